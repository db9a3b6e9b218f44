package node

import (
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

// at returns a node in a folder of the test's own, with its root prepared.
func at(t *testing.T) *Node {
	t.Helper()
	folder := t.TempDir()
	n := &Node{State: filepath.Join(folder, "node"), Cache: folder, Out: &strings.Builder{}}
	if err := n.prepareRoot(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEveryFileThatAProgramIsToldOfIsWritten(t *testing.T) {
	n := at(t)
	if err := n.writeConfiguration(); err != nil {
		t.Fatal(err)
	}
	if err := n.writeCredentials(time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, one := range programs() {
		for _, arg := range one.Args[1:] {
			_, file, _ := strings.Cut(arg, "=")
			if !strings.HasPrefix(file, "/") || strings.HasPrefix(file, "/var/lib/") {
				continue // those are folders that the program makes itself
			}
			if _, err := os.Stat(n.path(file)); err != nil {
				t.Errorf("%s %s: %v", one.Name, arg, err)
			}
		}
	}
	for file, place := range configPlaces {
		content, err := os.ReadFile(n.path(place))
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(content), "<no value>") {
			t.Errorf("%s has a value that nothing fills in:\n%s", file, content)
		}
	}
}

func TestTheKubeconfigTrustsTheAPIServerAndNothingElse(t *testing.T) {
	n := at(t)
	if err := n.writeCredentials(time.Now()); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", n.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(config.CAData)
	server := certificate(t, n.path(pkiFolder+"/apiserver.crt"))
	for _, name := range []string{Address, "127.0.0.1", apiService, "kubernetes.default.svc"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: trusted, DNSName: name}); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: trusted, DNSName: "example.com"}); err == nil {
		t.Error("the certificate is good for example.com, too")
	}
	client := certificate(t, n.path(pkiFolder+"/apiserver-kubelet-client.crt"))
	if _, err := client.Verify(x509.VerifyOptions{Roots: trusted, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("a client's certificate is good for a server")
	}
	if info, err := os.Stat(n.Kubeconfig()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig's mode is %v (%v), want 0600", info.Mode(), err)
	}
}

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestManifestsAreWhole(t *testing.T) {
	objects, err := manifests()
	if err != nil {
		t.Fatal(err)
	}
	var deployments []string
	for _, object := range objects {
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			t.Errorf("no kind, version or name: %v", object.Object)
		}
		if object.GetLabels()[manifestLabel] != manifestValue {
			t.Errorf("%s %s lacks the label that it is found by", object.GetKind(), object.GetName())
		}
		if object.GetKind() == "Deployment" {
			deployments = append(deployments, object.GetName())
		}
	}
	slices.Sort(deployments)
	if diff := cmp.Diff([]string{"coredns", "ingress"}, deployments); diff != "" {
		t.Errorf("Deployments (-want +got):\n%s", diff)
	}
}

func TestANodeIsUpWhileItsFirstProcessLives(t *testing.T) {
	n := at(t)
	for does, tt := range map[string]struct {
		content string
		want    error
	}{
		"no process was written down":      {"", errNoNode},
		"its writing was cut short":        {"12", errNoNode},
		"there is no such process":         {"4194304999 1", errNoNode},
		"another process has got its name": {"1 0", errNoNode},
	} {
		t.Run(does, func(t *testing.T) {
			if err := os.WriteFile(n.pidFile(), []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := n.running(); err != tt.want { //nolint:errorlint // it is returned as it is
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
	if err := n.remember(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if got, err := n.running(); err != nil || got.pid != os.Getpid() {
		t.Errorf("process %d, error %v, want this one", got.pid, err)
	}
}

func TestLogsShowTheirEnds(t *testing.T) {
	n := at(t)
	if err := os.WriteFile(n.LogFile(kubelet), []byte("one\ntwo\nthree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := n.Logs(2, kubelet, etcd); err != nil {
		t.Fatal(err)
	}
	want := "==> " + n.LogFile(kubelet) + " <==\ntwo\nthree\n"
	if diff := cmp.Diff(want, n.Out.(*strings.Builder).String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if err := n.Logs(2, "kublet"); err == nil || !strings.Contains(err.Error(), "kubelet") {
		t.Errorf("error %v, want one that lists the programs", err)
	}
}

func TestTheNodesRangesAreApart(t *testing.T) {
	all := ranges()
	for i, one := range all {
		for _, other := range all[i+1:] {
			if one.Overlaps(other) {
				t.Errorf("%s and %s overlap", one, other)
			}
		}
	}
	for address, within := range map[string]int{Address: 0, machineAddress: 0, apiService: 2, dnsService: 2} {
		if !all[within].Contains(netip.MustParseAddr(address)) {
			t.Errorf("%s is not in %s", address, all[within])
		}
	}
}
