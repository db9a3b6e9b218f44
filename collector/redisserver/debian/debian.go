// Package debian unpacks packages of the machine's own distribution, Debian or Ubuntu or one like them, without root and
// without installing them: a Redis for development, a browser for tests, containerd for a node of one's own.
package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Release names the distribution's release and the architecture, because packages' libraries fit no other.
func Release() string {
	name := runtime.GOOS
	if text, err := os.ReadFile("/etc/os-release"); err == nil {
		fields := map[string]string{}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			fields[key] = strings.Trim(value, `"'`)
		}
		name = fields["ID"] + "-" + fields["VERSION_ID"]
	}
	return strings.Map(func(r rune) rune {
		if r == '/' || r == filepath.Separator || r <= ' ' {
			return '_'
		}
		return r
	}, name+"-"+runtime.GOARCH)
}

// Unpack downloads packages, and those of their dependencies that the machine lacks, and unpacks them into tree, which it
// puts there in one step, in place of what was there. The machine's sources, keys and proxies apply. It takes turns with
// nobody: whoever may be doing the same is the caller's to lock out.
func Unpack(ctx context.Context, tree string, packages ...string) error {
	if err := os.MkdirAll(filepath.Dir(tree), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(tree), "unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	files, err := download(ctx, scratch, packages)
	if err != nil {
		return err
	}
	fresh := filepath.Join(scratch, "tree")
	// So that a package's /lib ends up in /usr/lib, where the machine has it as well.
	for _, folder := range []string{"bin", "sbin", "lib", "lib64"} {
		place := filepath.Join("usr", folder)
		if err := errors.Join(os.MkdirAll(filepath.Join(fresh, place), 0o755), os.Symlink(place, filepath.Join(fresh, folder))); err != nil {
			return err
		}
	}
	for _, file := range files {
		// Not dpkg-deb -x, which would put a folder in the place of a link.
		const script = `set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"`
		if err := run(ctx, "bash", "-c", script, "unpack", file, fresh); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(tree), os.Rename(fresh, tree))
}

// download fetches packages by an apt whose state and cache lie in scratch, and returns the files.
func download(ctx context.Context, scratch string, packages []string) ([]string, error) {
	state, archives := filepath.Join(scratch, "state"), filepath.Join(scratch, "cache", "archives")
	for _, folder := range []string{filepath.Join(state, "lists", "partial"), filepath.Join(archives, "partial")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	// A copy of dpkg's status tells apt what is installed already, and lets it lock beside the copy.
	installed, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil {
		return nil, err
	}
	status := filepath.Join(state, "status")
	if err := os.WriteFile(status, installed, 0o644); err != nil {
		return nil, err
	}
	apt := []string{"-qq", "-y"}
	for _, option := range []string{
		"Dir::State=" + state, "Dir::State::lists=" + filepath.Join(state, "lists"), "Dir::State::status=" + status,
		"Dir::Cache=" + filepath.Join(scratch, "cache"), "Dir::Cache::archives=" + archives, "Dir::Log=" + scratch,
		"APT::Sandbox::User=", "Acquire::Languages=none",
	} {
		apt = append(apt, "-o", option)
	}
	if err := run(ctx, "apt-get", append(apt, "update")...); err != nil {
		return nil, err
	}
	if err := run(ctx, "apt-get", append(append(apt, "--no-install-recommends", "--download-only", "install"), packages...)...); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("apt-get downloaded no package for %s", strings.Join(packages, ", "))
	}
	return files, err
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
