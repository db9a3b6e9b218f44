package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// debianPackages are what the node takes from the distribution; dependencies that the machine lacks come along.
var debianPackages = []string{"containerd", "runc", "containernetworking-plugins", "nftables"}

// fromDistribution are the programs that the node needs from there, wherever they come from.
var fromDistribution = []string{
	"/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/usr/bin/ctr", "/usr/sbin/runc", "/usr/sbin/nft",
	"/usr/lib/cni/ptp", "/usr/lib/cni/host-local", "/usr/lib/cni/loopback",
}

// packageTree is the folder with the unpacked packages, named for the release that they are of.
func (n *Node) packageTree() string {
	release := "unknown"
	if content, err := os.ReadFile("/etc/os-release"); err == nil {
		values := map[string]string{}
		for line := range strings.Lines(string(content)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values[key] = strings.Trim(value, `"`)
		}
		release = values["ID"] + "-" + values["VERSION_ID"]
	}
	return filepath.Join(n.Cache, "node-packages-"+release)
}

// packages returns the folder whose usr is to be laid over the machine's. The distribution's packages are unpacked there, not
// installed: installing containerd would start it as a service of the machine. Where there is no apt-get, the
// machine has to have the programs, and the folder is "".
func (n *Node) packages(ctx context.Context) (string, error) {
	tree := n.packageTree()
	if complete(tree) {
		return tree, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		if complete("/") {
			return "", nil
		}
		return "", fmt.Errorf("without apt-get the machine itself has to have %s", strings.Join(fromDistribution, ", "))
	}
	if err := os.MkdirAll(n.Cache, 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(n.Cache, "node-packages-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	fresh, err := unpackPackages(ctx, scratch)
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.RemoveAll(tree), os.Rename(fresh, tree)); err != nil {
		return "", err
	}
	if !complete(tree) {
		return "", fmt.Errorf("the packages %s lack some of %s", strings.Join(debianPackages, ", "), strings.Join(fromDistribution, ", "))
	}
	return tree, nil
}

// complete says whether all programs are below a folder, or the machine has those that are not.
func complete(tree string) bool {
	for _, program := range fromDistribution {
		_, unpacked := os.Stat(filepath.Join(tree, program))
		_, installed := os.Stat(program)
		if unpacked != nil && installed != nil {
			return false
		}
	}
	return true
}

// unpackPackages downloads the packages by an apt whose state and cache lie in scratch, and unpacks them into a
// folder there. The machine's sources, keys and proxies apply, and its list of installed packages, so that what it
// has is not fetched again.
func unpackPackages(ctx context.Context, scratch string) (string, error) {
	state, archives, tree := filepath.Join(scratch, "state"), filepath.Join(scratch, "cache", "archives"), filepath.Join(scratch, "tree")
	for _, folder := range []string{filepath.Join(state, "lists", "partial"), filepath.Join(archives, "partial"), filepath.Join(tree, "usr")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
	}
	// So that a package's /lib ends up in /usr/lib, where the machine has it as well.
	for _, folder := range []string{"bin", "sbin", "lib", "lib64"} {
		place := filepath.Join("usr", folder)
		if err := errors.Join(os.Mkdir(filepath.Join(tree, place), 0o755), os.Symlink(place, filepath.Join(tree, folder))); err != nil {
			return "", err
		}
	}
	installed, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil {
		return "", err
	}
	status := filepath.Join(state, "status")
	if err := os.WriteFile(status, installed, 0o644); err != nil {
		return "", err
	}
	apt := []string{"-qq", "-y"}
	for _, option := range []string{
		"Dir::State=" + state, "Dir::State::lists=" + filepath.Join(state, "lists"), "Dir::State::status=" + status,
		"Dir::Cache=" + filepath.Join(scratch, "cache"), "Dir::Cache::archives=" + archives, "Dir::Log=" + scratch,
		"APT::Sandbox::User=", "Acquire::Languages=none",
	} {
		apt = append(apt, "-o", option)
	}
	if _, err := run(ctx, "", "apt-get", append(apt, "update")...); err != nil {
		return "", err
	}
	download := append(append(apt, "--no-install-recommends", "--download-only", "install"), debianPackages...)
	if _, err := run(ctx, "", "apt-get", download...); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		// Not dpkg-deb -x, which would put a folder in the place of a link.
		if _, err := run(ctx, "", "bash", "-c", `set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"`, "unpack", file, tree); err != nil {
			return "", err
		}
	}
	return tree, nil
}
