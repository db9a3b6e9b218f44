package redisserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// fromPackage returns the redis-server unpacked below cache, after having unpacked it where it is missing or
// does not run. A file lock lets only one process do so.
func fromPackage(ctx context.Context, cache string, logger *slog.Logger) (Binary, error) {
	root := filepath.Join(cache, release())
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
	scratch, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return Binary{}, err
	}
	defer os.RemoveAll(scratch)
	tree := filepath.Join(scratch, "tree")
	if err := fetchPackage(ctx, scratch, tree); err != nil {
		return Binary{}, err
	}
	if err := os.RemoveAll(root); err != nil {
		return Binary{}, err
	}
	if err := os.Rename(tree, root); err != nil {
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

// fetchPackage downloads redis-server and those of its dependencies that the machine lacks with an apt whose
// state and cache lie in scratch, and unpacks them into tree. The machine's sources, keys and proxies apply.
func fetchPackage(ctx context.Context, scratch, tree string) error {
	state, archives := filepath.Join(scratch, "state"), filepath.Join(scratch, "cache", "archives")
	for _, dir := range []string{filepath.Join(state, "lists", "partial"), filepath.Join(archives, "partial"), tree} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// A copy of dpkg's status tells apt what is installed already, and lets it lock beside the copy.
	status, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(state, "status"), status, 0o644); err != nil {
		return err
	}
	apt := []string{
		"-qq", "-y", "-o", "Dir::State=" + state, "-o", "Dir::State::lists=" + filepath.Join(state, "lists"),
		"-o", "Dir::State::status=" + filepath.Join(state, "status"), "-o", "Dir::Cache=" + filepath.Join(scratch, "cache"),
		"-o", "Dir::Cache::archives=" + archives, "-o", "Dir::Log=" + scratch, "-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none",
	}
	if err := run(ctx, "apt-get", append(apt, "update")...); err != nil {
		return err
	}
	if err := run(ctx, "apt-get", append(apt, "--no-install-recommends", "--download-only", "install", "redis-server")...); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return errors.New("apt-get downloaded no package for redis-server")
	}
	for _, file := range packages {
		if err := run(ctx, "dpkg-deb", "-x", file, tree); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command and puts its last words into the error.
func run(ctx context.Context, name string, args ...string) error {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		words := bytes.TrimSpace(output)
		if len(words) > 500 {
			words = words[len(words)-500:]
		}
		return fmt.Errorf("%s %s: %w: %s", name, args[len(args)-1], err, words)
	}
	return nil
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

// lockFile waits at most for patience to take the file's lock.
func lockFile(ctx context.Context, path string, patience time.Duration) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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
