package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrNotRegular is the error of a pipe, a folder or a device where a file belongs.
var ErrNotRegular = errors.New("is no regular file")

// OpenRegular opens a file to read, by [os.OpenFile] or the method of an
// [os.Root]. It refuses what is no regular file: to open a pipe waits for
// somebody who writes to it, deaf to signals, and a device may never end. It is
// opened without waiting and looked at then, since what was looked at before may
// be another file by now.
func OpenRegular(open func(string, int, os.FileMode) (*os.File, error), path string) (*os.File, error) {
	f, err := open(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadRegular reads the whole of a file that [OpenRegular] opens.
func ReadRegular(open func(string, int, os.FileMode) (*os.File, error), path string) ([]byte, error) {
	f, err := OpenRegular(open, path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}
