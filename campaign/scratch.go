package campaign

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/store"
)

// scratchPrefix begins the names of all scratch folders.
const scratchPrefix = "holdfast-scratch-"

// scratch makes a folder for what a run needs only while it plays. The first
// call of a process takes away what killed ones have left.
func scratch() (dir string, remove func() error, err error) {
	sweepOnce.Do(func() { err = sweepScratch(os.TempDir()) })
	if err != nil {
		return "", nil, fmt.Errorf("remove what a killed run left: %w", err)
	}
	for {
		dir, err := os.MkdirTemp("", scratchPrefix)
		if err != nil {
			return "", nil, fmt.Errorf("make a scratch folder: %w", err)
		}
		release, err := store.Claim(dir)
		if errors.Is(err, store.ErrClaimed) || errors.Is(err, os.ErrNotExist) {
			continue // another process's sweep was faster, and removes it
		}
		if err != nil {
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
		return dir, func() error {
			defer release()
			return os.RemoveAll(dir)
		}, nil
	}
}

var sweepOnce sync.Once

// sweepScratch removes the scratch folders whose owner is dead, killed before
// it could clean up, with what its servers left elsewhere.
func sweepScratch(root string) error {
	dirs, err := filepath.Glob(filepath.Join(root, scratchPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		release, err := store.Claim(dir)
		if err != nil {
			continue // it lives, or it is somebody else's, or gone by now
		}
		err = errors.Join(process.RemoveRemains(dir), os.RemoveAll(dir))
		release()
		if err != nil {
			return err
		}
	}
	return nil
}
