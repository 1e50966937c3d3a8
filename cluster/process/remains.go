package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidFile of a server, in its folder. The server deletes it when it ends in good
// order, so one that is still there tells of a kill.
const pidFile = "redis.pid"

// RemoveRemains deletes what the servers of a world left outside its folder,
// when the world was killed and could not clean up. The folder itself is the
// caller's, and nothing of that world may be alive.
func RemoveRemains(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", pidFile))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			continue // killed while it wrote the file
		}
		errs = append(errs, removeFaketimeFiles(pid))
	}
	return errors.Join(errs...)
}

// removeFaketimeFiles deletes what libfaketime leaves behind when its process
// is killed.
func removeFaketimeFiles(pid int) error {
	var errs []error
	for _, name := range []string{"/dev/shm/faketime_shm_%d", "/dev/shm/sem.faketime_sem_%d"} {
		if err := os.Remove(fmt.Sprintf(name, pid)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
