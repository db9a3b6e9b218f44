// Package redisserver has a private redis-server at hand for development and tests: it finds the program or
// fetches the distribution's package below the user's cache directory, and runs it as a child that does not
// outlive its parent. Nothing here needs root or changes the machine.
package redisserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
)

// minimumMajor is the first major version with the Function libraries that Weir needs.
const minimumMajor = 7

// Binary is a redis-server program that runs on this machine.
type Binary struct {
	// Path is the program's absolute path.
	Path string
	// Version is what it calls itself: "7.0.15".
	Version string
	// LibraryPath is what LD_LIBRARY_PATH must name; "" where the system has all the libraries.
	LibraryPath string
}

// MissingError says that no redis-server is to be had, and which command installs one.
type MissingError struct {
	// Install is the one command that helps; "" where none is known for this machine.
	Install string
	// Cause says what was tried.
	Cause error
}

// Error names the cause and the command.
func (e *MissingError) Error() string {
	if e.Install == "" {
		return fmt.Sprintf("no redis-server of version %d.0 or newer: %v; install Redis or Valkey and put it on the PATH", minimumMajor, e.Cause)
	}
	return fmt.Sprintf("no redis-server of version %d.0 or newer: %v; this installs one: %s", minimumMajor, e.Cause, e.Install)
}

// Unwrap returns the cause.
func (e *MissingError) Unwrap() error { return e.Cause }

// Find returns the redis-server (or valkey-server) on the PATH where it is new enough, else the one of the
// distribution's package, which it unpacks below the user's cache directory at the first call; that takes a
// few seconds, and several processes may call it at once. It fails with a [*MissingError].
func Find(ctx context.Context, logger *slog.Logger) (Binary, error) {
	onPath := errors.New("none on the PATH")
	for _, name := range []string{"redis-server", "valkey-server"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		binary, err := probe(ctx, Binary{Path: path})
		if err == nil {
			return binary, nil
		}
		onPath = err
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return Binary{}, &MissingError{Install: installCommand(), Cause: onPath}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Binary{}, &MissingError{Install: installCommand(), Cause: fmt.Errorf("no cache directory to unpack it in: %w", err)}
	}
	binary, err := fromPackage(ctx, filepath.Join(cache, "weir", "redis"), logger)
	if err != nil {
		return Binary{}, &MissingError{Install: installCommand(), Cause: err}
	}
	return binary, nil
}

var versionPattern = regexp.MustCompile(`\bv=((\d+)\.\d+\.\d+)`)

// probe runs the program to learn its version.
func probe(ctx context.Context, binary Binary) (Binary, error) {
	path, err := filepath.Abs(binary.Path)
	if err != nil {
		return Binary{}, err
	}
	binary.Path = path
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = binary.Environment()
	output, err := cmd.CombinedOutput()
	if err != nil {
		return Binary{}, fmt.Errorf("%s --version: %w: %s", path, err, bytes.TrimSpace(output))
	}
	match := versionPattern.FindSubmatch(output)
	if match == nil {
		return Binary{}, fmt.Errorf("%s --version tells no version: %s", path, bytes.TrimSpace(output))
	}
	binary.Version = string(match[1])
	if major, err := strconv.Atoi(string(match[2])); err != nil || major < minimumMajor {
		return Binary{}, fmt.Errorf("%s is version %s", path, binary.Version)
	}
	return binary, nil
}

// Environment is the process environment that the program needs.
func (b Binary) Environment() []string {
	env := os.Environ()
	if b.LibraryPath == "" {
		return env
	}
	path := b.LibraryPath
	if inherited := os.Getenv("LD_LIBRARY_PATH"); inherited != "" {
		path += string(os.PathListSeparator) + inherited
	}
	return append(env, "LD_LIBRARY_PATH="+path)
}

// installCommand guesses by the package manager at hand what a person would type.
func installCommand() string {
	commands := []struct{ manager, command string }{
		{"brew", "brew install redis"},
		{"apt-get", "sudo apt-get install redis-server"},
		{"dnf", "sudo dnf install valkey"},
		{"apk", "apk add redis"},
		{"pacman", "sudo pacman -S valkey"},
		{"zypper", "sudo zypper install redis"},
		{"pkg", "pkg install redis"},
	}
	for _, c := range commands {
		if _, err := exec.LookPath(c.manager); err == nil {
			return c.command
		}
	}
	if runtime.GOOS == "darwin" {
		return "brew install redis (with Homebrew from https://brew.sh)"
	}
	return ""
}
