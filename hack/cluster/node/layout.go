// Package node makes a Kubernetes node of the machine it runs on, without a container engine: etcd, the control
// plane, containerd, the kubelet and kube-proxy run in mount, process, network, host name and IPC namespaces of
// their own, on a root file system of their own. What the machine keeps of it are one state directory, one
// network link with the routes over it, and one cgroup; [Down] removes these. Nothing is installed, and the
// machine's firewall and kernel settings stay as they are.
//
// It is equipment for demonstrations and end-to-end tests: one node, one replica of everything, IPv4, and no way
// out to other machines.
package node

import (
	"io"
	"net/netip"
	"path/filepath"

	"github.com/weir-dev/weir/hack/cluster/volumes"
)

// Name is the node's name in the cluster, and that of its link and its cgroup on the machine.
const Name = "weir-node"

// Where the node is. Address is reachable from the machine, and so are pods and services.
const (
	Address        = "10.250.0.2"
	machineAddress = "10.250.0.1"
	linkRange      = "10.250.0.0/30"
	podRange       = "10.244.0.0/24"
	serviceRange   = "10.96.0.0/16"
	apiService     = "10.96.0.1"
	dnsService     = "10.96.0.10"
)

// ranges are the addresses that the node takes on the machine.
func ranges() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix(linkRange), netip.MustParsePrefix(podRange), netip.MustParsePrefix(serviceRange)}
}

// Node says where a node keeps its state and what it is made from.
type Node struct {
	// State is the directory with all that the node writes.
	State string
	// Cache is the directory with what outlives a node: unpacked packages and packed images.
	Cache string
	// Programs is the folder with etcd, coredns and Kubernetes' own programs.
	Programs string
	// Self is the path of the running executable: inside the node it is the first process and the agents.
	Self string
	// Images are archives to import beside those that the node itself needs.
	Images []string
	// Out gets the report for people.
	Out io.Writer
}

// Inside the node, everything is at its usual place.
const (
	programFolder  = "/opt/node/programs"
	agentFile      = "/opt/node/agent"
	pkiFolder      = "/etc/kubernetes/pki"
	kubeFolder     = "/etc/kubernetes"
	cniFolder      = "/etc/cni/net.d"
	programsFile   = "/etc/node/programs.json"
	controlSocket  = "/run/node/control.sock"
	containerdSock = "/run/containerd/containerd.sock"
	logFolder      = "/var/log"
	volumesFolder  = "/var/lib/weir-volumes"
	pluginFolder   = "/var/lib/kubelet/plugins" // of volumes; the default lies below /usr, which cannot be written to
	searchPath     = programFolder + ":/usr/sbin:/usr/bin:/sbin:/bin"
)

// root is the node's root file system as the machine sees it.
func (n *Node) root() string { return filepath.Join(n.State, "root") }

// path is where the machine sees a file that lies directly on the node's root file system.
func (n *Node) path(inside string) string { return filepath.Join(n.root(), inside) }

// Kubeconfig is the path of the administrator's kubeconfig, for use on the machine.
func (n *Node) Kubeconfig() string { return filepath.Join(n.State, "kubeconfig") }

// LogFile is where the machine sees the log of one of the node's programs.
func (n *Node) LogFile(program string) string { return n.path(logFolder + "/" + program + ".log") }

// Volumes are the options of the node's volumes agent.
func Volumes() volumes.Options {
	return volumes.Options{Class: "weir-node", Provisioner: "weir.dev/node-volumes", Folder: volumesFolder, Node: Name}
}
