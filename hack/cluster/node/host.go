package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// What the machine has of the node outside of its namespaces: a link, routes, and a cgroup.

// checkAddresses refuses to begin where the machine uses the node's addresses for something else.
func checkAddresses(ctx context.Context) error {
	output, err := run(ctx, "", "ip", "-4", "-json", "route", "show", "table", "main")
	if err != nil {
		return err
	}
	var routes []struct{ Dst, Dev string }
	if err := json.Unmarshal(output, &routes); err != nil {
		return fmt.Errorf("the routes of this machine: %w", err)
	}
	for _, route := range routes {
		taken, err := netip.ParsePrefix(route.Dst)
		if err != nil {
			address, err := netip.ParseAddr(route.Dst)
			if err != nil {
				continue // the default route
			}
			taken = netip.PrefixFrom(address, address.BitLen())
		}
		for _, wanted := range ranges() {
			if route.Dev != Name && taken.Overlaps(wanted) {
				return fmt.Errorf("the node would take %s, but this machine reaches %s through %s", wanted, taken, route.Dev)
			}
		}
	}
	return nil
}

// connect makes the link between the machine and the node, and the routes over it. The node gets none to anywhere else: what it
// does stays on this machine.
func connect(ctx context.Context, process firstProcess) error {
	pid := strconv.Itoa(process.pid)
	machine := strings.Join([]string{
		"link add " + Name + " type veth peer name eth0 netns " + pid,
		"addr add " + machineAddress + "/30 dev " + Name,
		"link set " + Name + " up",
	}, "\n")
	if _, err := run(ctx, machine, "ip", "-batch", "-"); err != nil {
		return err
	}
	node := strings.Join([]string{
		"link set lo up",
		"addr add " + Address + "/30 dev eth0",
		"link set eth0 up",
		// Services are not on the link; kube-proxy rewrites what would go there, but only where there is a route.
		"route add " + serviceRange + " via " + machineAddress,
	}, "\n")
	if _, err := run(ctx, node, "nsenter", "--net", "--target", pid, "ip", "-batch", "-"); err != nil {
		return err
	}
	routes := "route add " + podRange + " via " + Address + "\nroute add " + serviceRange + " via " + Address
	_, err := run(ctx, routes, "ip", "-batch", "-")
	return err
}

// linkFile is there as long as the machine has the link.
const linkFile = "/sys/class/net/" + Name

// checkOthers refuses to touch a node that is not of this state directory: the link and the cgroup are one for the machine.
func (n *Node) checkOthers() error {
	if _, err := os.Stat(linkFile); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("the machine has a link %s, but no node runs of %s: it is that of another cache directory (WEIR_CACHE), which can take it down", Name, n.State)
}

// disconnect removes the link, and with it its routes, where they are still there after the node's end.
func disconnect(ctx context.Context) error {
	if _, err := os.Stat(linkFile); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := run(ctx, "", "ip", "link", "delete", Name)
	if _, gone := os.Stat(linkFile); errors.Is(gone, os.ErrNotExist) {
		return nil // the kernel was faster
	}
	return err
}

const cgroups = "/sys/fs/cgroup"

// hierarchies are the folders of the machine's cgroup hierarchies: one with version 2, one a controller with version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(cgroups + "/cgroup.controllers"); err == nil {
		return []string{cgroups}, nil
	}
	entries, err := os.ReadDir(cgroups)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, entry := range entries {
		if entry.IsDir() { // beside them are links, for controllers that share a hierarchy
			list = append(list, filepath.Join(cgroups, entry.Name()))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no cgroups", cgroups)
	}
	return list, nil
}

// makeCgroups makes the node's cgroup in every hierarchy; the kubelet puts the pods below it.
func makeCgroups() error {
	list, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range list {
		group := filepath.Join(hierarchy, Name)
		if err := os.MkdirAll(group, 0o755); err != nil {
			return err
		}
		// In version 1 nothing can be put into a cpuset that does not say which processors it has.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(hierarchy, file))
			if err != nil {
				continue // another hierarchy, or version 2, where it is inherited
			}
			if err := os.WriteFile(filepath.Join(group, file), content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeCgroups removes the node's cgroups, the innermost first. Those of processes that are just ending are busy for a moment.
func removeCgroups(ctx context.Context) error {
	list, err := hierarchies()
	if err != nil {
		return err
	}
	return poll(ctx, removeTimeout, "the end of the node's cgroups", func(context.Context) (bool, error) {
		left := false
		for _, hierarchy := range list {
			var groups []string
			err := filepath.WalkDir(filepath.Join(hierarchy, Name), func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					groups = append(groups, path)
				}
				if errors.Is(err, os.ErrNotExist) {
					return nil
				}
				return err
			})
			if err != nil {
				return false, err
			}
			slices.Reverse(groups)
			for _, group := range groups {
				left = os.Remove(group) != nil || left
			}
		}
		return !left, nil
	})
}

// prepareRoot makes the folders of the node's root file system, which is fresh each time.
func (n *Node) prepareRoot() error {
	if err := os.RemoveAll(n.State); err != nil {
		return err
	}
	if err := os.MkdirAll(n.State, 0o700); err != nil {
		return err
	}
	for _, folder := range []string{
		"usr", "proc", "sys", "dev", "run", "root", "etc", "opt", programFolder, logFolder, "var/lib/etcd", "var/lib/containerd",
		"var/lib/kubelet", "var/lib/cni", volumesFolder,
	} {
		if err := os.MkdirAll(n.path(folder), 0o755); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(n.path("tmp"), 0o777); err != nil {
		return err
	}
	if err := os.Chmod(n.path("tmp"), 0o777|os.ModeSticky); err != nil {
		return err
	}
	if err := os.Symlink("/run", n.path("var/run")); err != nil {
		return err
	}
	for _, folder := range []string{"bin", "sbin", "lib", "lib64"} {
		target, err := os.Readlink("/" + folder)
		switch {
		case err == nil:
			err = os.Symlink(target, n.path(folder))
		case errors.Is(err, os.ErrNotExist):
			err = nil
		default: // a folder of its own, which will be mounted
			err = os.MkdirAll(n.path(folder), 0o755)
		}
		if err != nil {
			return err
		}
	}
	return writeFile(n.path(agentFile), nil, 0o755) // the executable is mounted on it
}

// run runs a command of the machine with an input and returns what it prints. Its last words are part of the error.
func run(ctx context.Context, input, name string, args ...string) ([]byte, error) {
	var said bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	command.Stdin, command.Stderr = strings.NewReader(input), &said
	output, err := command.Output()
	if err != nil {
		words := bytes.TrimSpace(append(said.Bytes(), output...))
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(append([]string{name}, args...), " "), err, words[max(0, len(words)-600):])
	}
	return output, nil
}
