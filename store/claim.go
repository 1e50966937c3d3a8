package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrClaimed is the error of a folder that another process, or another run of
// this one, is writing to.
var ErrClaimed = errors.New("another run is writing there; choose a folder with --out")

// Claim makes a folder this run's own for as long as the process lives, or
// until release is called. The claim is the kernel's lock on the folder itself:
// it leaves no file behind, and it ends with the process however that ends, so
// a folder that can be claimed has no living owner.
func Claim(dir string) (release func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("claim the folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrClaimed
		}
		return nil, errors.Join(fmt.Errorf("claim %s: %w", dir, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // a folder opened to read has nothing to flush
}

// AwaitClaim is [Claim], but waits for a while for whoever has the folder.
func AwaitClaim(dir string, patience time.Duration) (release func(), err error) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		release, err = Claim(dir)
		if !errors.Is(err, ErrClaimed) || time.Now().After(end) {
			return release, err
		}
	}
}
