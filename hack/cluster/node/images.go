package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The images that the node itself needs. Images are imported, never pulled: there is no registry to reach.
const (
	pauseImage = "weir.test/pause:dev"
	dnsImage   = "weir.test/coredns:dev"
	agentImage = "weir.test/node-agent:dev"
)

// Import takes image archives, as `docker save` or OCI tools write them, into the node.
func (n *Node) Import(ctx context.Context, archives ...string) error {
	process, err := n.running()
	if err != nil {
		return err
	}
	return n.importImages(ctx, process, archives)
}

func (n *Node) importImages(ctx context.Context, process firstProcess, archives []string) error {
	for _, archive := range archives {
		file, err := os.Open(archive)
		if err != nil {
			return err
		}
		_, err = process.exec(ctx, file, "ctr", "--namespace", "k8s.io", "images", "import", "-")
		file.Close()
		if err != nil {
			return fmt.Errorf("import %s: %w", archive, err)
		}
	}
	return nil
}

// containerdReady waits until containerd answers.
func (n *Node) containerdReady(ctx context.Context, process firstProcess) error {
	return n.await(ctx, process, 60*time.Second, "containerd", []string{containerd}, func(ctx context.Context) (bool, error) {
		_, err := process.exec(ctx, nil, "ctr", "--connect-timeout", "2s", "version")
		return err == nil, nil
	})
}

// ImageNames lists the images that the node has, by name.
func (n *Node) ImageNames(ctx context.Context) ([]string, error) {
	process, err := n.running()
	if err != nil {
		return nil, err
	}
	output, err := process.exec(ctx, nil, "ctr", "--namespace", "k8s.io", "images", "list", "--quiet")
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range strings.FieldsSeq(string(output)) {
		if !strings.HasPrefix(name, "sha256:") {
			names = append(names, name)
		}
	}
	return names, nil
}

// archives are those that the node needs, and those that were asked for.
func (n *Node) archives() []string {
	var list []string
	for _, name := range []string{"pause", "coredns", "node-agent"} {
		list = append(list, filepath.Join(n.Cache, "node-images", name+".tar"))
	}
	return append(list, n.Images...)
}
