package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openPartial opens what a backup has left under a path, for this process alone: the lock goes when it is closed, or when the process
// dies. It is nil where there is nothing. The folder may be anybody's, so whatever else is there is left as it is.
func openPartial(path string) (*os.File, error) {
	for {
		there, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if !there.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a file that a backup has left: remove it, or write to another FILE", path)
		}
		// Who has put something else there since must neither have it followed nor keep us waiting.
		opened, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if locked, err := lock(opened); locked != nil || err != nil {
			return locked, err
		}
	}
}

// createPartial makes an empty file of its owner's under a path, for this process alone, in place of what a backup has left. That is
// not emptied: it may have another name, or others may have it open.
func createPartial(path string) (*os.File, error) {
	for {
		left, err := openPartial(path)
		if err != nil {
			return nil, err
		}
		if left != nil {
			if err := errors.Join(os.Remove(path), left.Close()); err != nil {
				return nil, err
			}
		}
		opened, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if locked, err := lock(opened); locked != nil || err != nil {
			return locked, err
		}
	}
}

// lock takes the lock of an open file, without which nobody gives it another name or removes it. It returns nil, with the file closed,
// where somebody has done so before.
func lock(opened *os.File) (*os.File, error) {
	same := false
	err := syscall.Flock(int(opened.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("another backup writes %s", opened.Name())
	case err != nil:
		err = fmt.Errorf("lock %s, so that no other backup writes it: %w", opened.Name(), err)
	default:
		same, err = stillThere(opened)
	}
	if same && err == nil {
		return opened, nil
	}
	return nil, errors.Join(err, opened.Close())
}

// stillThere says whether an open file is what is under its name.
func stillThere(opened *os.File) (bool, error) {
	ours, err := opened.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(opened.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(ours, there), err
}
