package node

import (
	"embed"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// program is one of the processes that the node's first process keeps running.
type program struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // the first is the executable's path inside the node
}

// The names of the programs, as the commands and the log files have them.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	containerd        = "containerd"
	kubelet           = "kubelet"
	kubeProxy         = "kube-proxy"
	netpol            = "netpol"
	volumesAgent      = "volumes"
)

// KubernetesPrograms are those that the folder [Node.Programs] has to hold.
func KubernetesPrograms() []string {
	return []string{etcd, apiServer, controllerManager, scheduler, kubelet, kubeProxy, "coredns"}
}

// programs lists what runs in the node, in the order in which it is started.
func programs() []program {
	kubeconfig := func(client string) string { return filepath.Join(kubeFolder, client+".conf") }
	pki := func(file string) string { return filepath.Join(pkiFolder, file) }
	binary := func(name string) string { return filepath.Join(programFolder, name) }
	return []program{
		{etcd, []string{binary(etcd), "--name=" + Name, "--data-dir=/var/lib/etcd",
			// The cluster does not outlive the machine's power, so it need not wait for the disk.
			"--unsafe-no-fsync",
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
			"--initial-cluster=" + Name + "=http://127.0.0.1:2380"}},
		{containerd, []string{"/usr/bin/containerd", "--config=/etc/containerd/config.toml"}},
		{apiServer, []string{binary(apiServer), "--etcd-servers=http://127.0.0.1:2379",
			"--advertise-address=" + Address, "--secure-port=6443", "--service-cluster-ip-range=" + serviceRange,
			"--allow-privileged", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--client-ca-file=" + pki("ca.crt"), "--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
			"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"), "--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
			"--kubelet-preferred-address-types=InternalIP", "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + pki("sa.pub"), "--service-account-signing-key-file=" + pki("sa.key")}},
		{controllerManager, []string{binary(controllerManager), "--kubeconfig=" + kubeconfig("controller-manager"),
			"--authentication-kubeconfig=" + kubeconfig("controller-manager"), "--authorization-kubeconfig=" + kubeconfig("controller-manager"),
			"--use-service-account-credentials", "--leader-elect=false", "--bind-address=127.0.0.1", "--root-ca-file=" + pki("ca.crt"),
			"--cluster-signing-cert-file=" + pki("ca.crt"), "--cluster-signing-key-file=" + pki("ca.key"),
			"--service-account-private-key-file=" + pki("sa.key"), "--flex-volume-plugin-dir=" + pluginFolder}},
		{scheduler, []string{binary(scheduler), "--kubeconfig=" + kubeconfig("scheduler"), "--authentication-kubeconfig=" + kubeconfig("scheduler"),
			"--authorization-kubeconfig=" + kubeconfig("scheduler"), "--leader-elect=false", "--bind-address=127.0.0.1"}},
		{kubelet, []string{binary(kubelet), "--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig=" + kubeconfig("kubelet"),
			"--hostname-override=" + Name, "--node-ip=" + Address}},
		{kubeProxy, []string{binary(kubeProxy), "--config=/etc/kubernetes/kube-proxy.yaml"}},
		{netpol, []string{agentFile, "netpol", "--kubeconfig=" + kubeconfig("netpol")}},
		{volumesAgent, []string{agentFile, "volumes", "--kubeconfig=" + kubeconfig("volumes")}},
	}
}

// programNames are the names of [programs], in the same order.
func programNames() []string {
	var names []string
	for _, one := range programs() {
		names = append(names, one.Name)
	}
	return names
}

// named says whether there is a program of that name.
func named(name string) bool { return slices.Contains(programNames(), name) }

//go:embed config
var configFiles embed.FS

// configPlaces are the files below config and where they lie inside the node.
var configPlaces = map[string]string{
	"containerd.toml": "/etc/containerd/config.toml",
	"pods.conflist":   cniFolder + "/10-pods.conflist",
	"kubelet.yaml":    "/etc/kubernetes/kubelet.yaml",
	"kube-proxy.yaml": "/etc/kubernetes/kube-proxy.yaml",
	"passwd":          "/etc/passwd",
	"group":           "/etc/group",
	"hosts":           "/etc/hosts",
	"resolv.conf":     "/etc/resolv.conf",
}

// writeConfiguration writes the programs' files and the list of programs to the node's root.
func (n *Node) writeConfiguration() error {
	for file, place := range configPlaces {
		content, err := render("config/" + file)
		if err != nil {
			return err
		}
		if err := writeFile(n.path(place), []byte(content), 0o644); err != nil {
			return err
		}
	}
	list, err := json.MarshalIndent(programs(), "", "  ")
	if err != nil {
		return err
	}
	return writeFile(n.path(programsFile), list, 0o644)
}

// render fills the addresses and names into one of the embedded files.
func render(file string) (string, error) {
	parsed, err := template.New(filepath.Base(file)).Option("missingkey=error").ParseFS(configFiles, file)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = parsed.Execute(&out, map[string]string{
		"Name": Name, "Address": Address, "PodRange": podRange, "DNS": dnsService, "PKI": pkiFolder, "Containerd": containerdSock,
		"CNI": cniFolder, "Plugins": pluginFolder, "KubeProxyConfig": kubeFolder + "/kube-proxy.conf",
		"Pause": pauseImage, "CoreDNS": dnsImage, "Agent": agentImage,
	})
	return out.String(), err
}
