package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weir-dev/weir/collector/redisserver/debian"
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
	return filepath.Join(n.Cache, "node-packages-"+debian.Release())
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
	if err := debian.Unpack(ctx, tree, debianPackages...); err != nil {
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
