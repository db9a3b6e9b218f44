package redisserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weir-dev/weir/collector/redisserver/debian"
)

// fromPackage returns the redis-server unpacked below cache, after having unpacked it where it is missing or
// does not run. A file lock lets only one process do so.
func fromPackage(ctx context.Context, cache string, logger *slog.Logger) (Binary, error) {
	root := filepath.Join(cache, debian.Release())
	if binary, err := unpacked(ctx, root); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Binary{}, err
	}
	lock, err := lockFile(ctx, root+".lock", 5*time.Minute)
	if err != nil {
		return Binary{}, fmt.Errorf("waiting for another process to unpack redis-server: %w", err)
	}
	defer lock.Close()
	if binary, err := unpacked(ctx, root); err == nil {
		return binary, nil
	}

	logger.InfoContext(ctx, "fetching the distribution's redis-server package", "into", root)
	if err := debian.Unpack(ctx, root, "redis-server"); err != nil {
		return Binary{}, err
	}
	return unpacked(ctx, root)
}

// unpacked returns the program below root where it is there and runs.
func unpacked(ctx context.Context, root string) (Binary, error) {
	path := filepath.Join(root, "usr", "bin", "redis-server")
	if _, err := os.Stat(path); err != nil {
		return Binary{}, err
	}
	var libraries []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		dir := filepath.Dir(path)
		if err == nil && strings.Contains(entry.Name(), ".so.") && !slices.Contains(libraries, dir) {
			libraries = append(libraries, dir)
		}
		return err
	})
	if err != nil {
		return Binary{}, err
	}
	return probe(ctx, Binary{Path: path, LibraryPath: strings.Join(libraries, string(os.PathListSeparator))})
}

// errLocked says that another open file holds the lock.
var errLocked = errors.New("locked by another process")

// tryLock opens the file and takes its lock; closing the file (or the end of the process, and of its children
// that inherited the file) gives it back. It fails with errLocked where it is taken.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// lockFile waits at most for timeout to take the file's lock.
func lockFile(ctx context.Context, path string, timeout time.Duration) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		file, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return file, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-ticker.C:
		}
	}
}
