package charts_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// TestInstall installs the chart with helm, runs what its pods would run, as the account and with the files that it made
// for them, and upgrades and uninstalls it. What is missing of a cluster are kubelets and controllers.
func TestInstall(t *testing.T) {
	const namespace = "installed"
	for _, name := range []string{namespace, "served", "served-too", "elsewhere"} {
		makeNamespace(t, name)
	}
	values := []string{"--namespace", namespace, "--set", "watchNamespaces={served,served-too}"}
	notes := runHelm(t, append([]string{"install", release, chart}, values...)...)
	for _, want := range []string{
		"It serves the Properties of served, served-too.", "no rights in other namespaces", "helm test weir -n installed", "kubectl apply -n served -f -", "-H 'Content-Type: application/json'",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
	secret := getSecret(t, namespace, "weir-redis")
	operator := get(t, "apps/v1", "Deployment", namespace, "weir-operator")
	redis := get(t, "apps/v1", "StatefulSet", namespace, "weir-redis")
	sum := sha256.Sum256(secret["url"])
	if got := nested[string](t, operator, "spec", "template", "metadata", "annotations", "checksum/redis"); got != hex.EncodeToString(sum[:]) {
		t.Errorf("the operator's pods carry the checksum %s of another URL than the Secret's", got)
	}

	t.Run("the operator works with what the chart gives it", func(t *testing.T) {
		runOperator(t, namespace, secret["url"], operator, redis)
	})

	certificates := getSecret(t, namespace, "weir-redis-tls")
	t.Run("an upgrade keeps the password and the certificates, leaves Redis alone and brings the definition up to date", func(t *testing.T) {
		definition := get(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "properties.weir.dev")
		columns, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
		if err != nil {
			t.Fatal(err)
		}
		older := columns[0].(map[string]any)
		older["additionalPrinterColumns"] = []any{}
		if err := unstructured.SetNestedSlice(definition.Object, columns, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		if err := cluster.client.Update(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		runHelm(t, append([]string{"upgrade", release, chart, "--force-conflicts"}, append(values, "--set", "operator.replicas=3")...)...)
		if after := getSecret(t, namespace, "weir-redis"); string(after["url"]) != string(secret["url"]) {
			t.Error("the upgrade has made another password")
		}
		if diff := cmp.Diff(certificates, getSecret(t, namespace, "weir-redis-tls")); diff != "" || len(certificates) != 4 {
			t.Errorf("of the %d keys with which the operator filled the Secret, the upgrade has changed some", len(certificates))
		}
		if after := get(t, "apps/v1", "StatefulSet", namespace, "weir-redis"); after.GetGeneration() != redis.GetGeneration() {
			t.Error("the upgrade has changed Redis")
		}
		if got := nested[int64](t, get(t, "apps/v1", "Deployment", namespace, "weir-operator"), "spec", "replicas"); got != 3 {
			t.Errorf("there are %d operators", got)
		}
		upgraded := get(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "properties.weir.dev")
		if text := jsonOf(t, upgraded.Object["spec"]); !strings.Contains(text, "additionalPrinterColumns") {
			t.Error("the upgrade has left an older definition")
		}
	})

	t.Run("uninstalling leaves the Properties and nothing else", func(t *testing.T) {
		runHelm(t, "uninstall", release, "--namespace", namespace)
		get(t, "weir.dev/v1alpha1", "Property", "served", "shop")
		for _, kind := range []string{"Secret", "ConfigMap", "Service", "ServiceAccount", "Pod"} {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("v1")
			list.SetKind(kind + "List")
			if err := cluster.client.List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{"helm.sh/chart"}); err != nil {
				t.Fatal(err)
			}
			for _, left := range list.Items {
				t.Errorf("%s %s is left", kind, left.GetName())
			}
		}
		for _, name := range []string{"weir-operator", "weir-view", "weir-edit"} {
			role := &unstructured.Unstructured{}
			role.SetAPIVersion("rbac.authorization.k8s.io/v1")
			role.SetKind("ClusterRole")
			if err := cluster.client.Get(t.Context(), client.ObjectKey{Name: name}, role); !apierrors.IsNotFound(err) {
				t.Errorf("ClusterRole %s: %v, want it gone", name, err)
			}
		}
	})

	t.Run("it can be installed again, over the definition that was kept", func(t *testing.T) {
		runHelm(t, append([]string{"install", release, chart}, values...)...)
		runHelm(t, "uninstall", release, "--namespace", namespace)
	})
}

// runOperator starts a Redis and an operator with the arguments of the rendered pods, and looks whether Properties are
// served where they should be and nowhere else.
func runOperator(t *testing.T, namespace string, redisURL []byte, operator, redis *unstructured.Unstructured) {
	program := buildOperator(t)
	folder := t.TempDir()
	address := redisAddress(t, namespace, redisURL)
	urlFile := filepath.Join(folder, "operator-url")
	if err := os.WriteFile(urlFile, []byte(address.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	// The older of two Properties is where the operator has no rights.
	for _, served := range []string{"elsewhere", "served"} {
		property := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"currency": "EUR"}}}
		property.SetAPIVersion("weir.dev/v1alpha1")
		property.SetKind("Property")
		property.SetNamespace(served)
		property.SetName("shop")
		if err := cluster.client.Create(t.Context(), property); err != nil {
			t.Fatal(err)
		}
	}

	health := freeAddress(t)
	args := []string{"--metrics-listen=0", "--health-listen=" + health}
	for _, arg := range containerArgs(t, operator, "containers") {
		switch {
		case arg == "--leader-elect": // outside of a cluster the lease's namespace has to be named
			args = append(args, arg, "--leader-elect-resource-namespace="+namespace)
		case strings.HasPrefix(arg, "--redis-url-file="):
			args = append(args, "--redis-url-file="+urlFile)
		case strings.HasPrefix(arg, "--log-level-file="): // mounted from a ConfigMap
			level := nested[string](t, get(t, "v1", "ConfigMap", namespace, "weir-operator-log-level"), "data", "level")
			file := filepath.Join(folder, "level")
			if err := os.WriteFile(file, []byte(level), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--log-level-file="+file)
		default:
			args = append(args, arg)
		}
	}
	process := start(t, program, args, "KUBECONFIG="+accountConfig(t, namespace, "weir-operator"), "WEIR_IMAGE=weir:test")
	// The volumes of Redis's pod wait for what the operator makes.
	process.eventually(func() error {
		if certificates := getSecret(t, namespace, "weir-redis-tls"); len(certificates) != 4 {
			return fmt.Errorf("the Secret with the certificates has %d keys", len(certificates))
		}
		return nil
	})
	startRedis(t, program, folder, namespace, redisURL, address.Port(), redis)
	check := exec.CommandContext(t.Context(), program, "check", "--operator=http://"+health, "--redis-url-file="+urlFile, "--redis-ca-file="+filepath.Join(folder, "ca.crt"))
	if output, err := check.CombinedOutput(); err != nil {
		t.Fatalf("weir-operator check: %v: %s\n%s", err, output, process.output())
	}

	process.eventually(func() error {
		property := get(t, "weir.dev/v1alpha1", "Property", "served", "shop")
		conditions, _, err := unstructured.NestedSlice(property.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, condition := range conditions {
			if c := condition.(map[string]any); c["type"] == "RedisReady" && c["status"] == "True" {
				get(t, "apps/v1", "Deployment", "served", "shop-collector")
				return nil
			}
		}
		return fmt.Errorf("the Property's conditions are %v", conditions)
	})
	if elsewhere := get(t, "weir.dev/v1alpha1", "Property", "elsewhere", "shop"); jsonOf(t, elsewhere.Object["status"]) != jsonOf(t, map[string]any{"observedGeneration": -1}) {
		t.Errorf("a Property of another namespace has another status than that which all begin with: %v", elsewhere.Object["status"])
	}
	if text := process.output(); strings.Contains(text, "forbidden") {
		t.Errorf("the operator lacks rights:\n%s", text)
	}
}

// redisAddress is the administrator's URL, as the Secret has it, with a free port of this machine.
func redisAddress(t *testing.T, namespace string, redisURL []byte) *url.URL {
	t.Helper()
	address, err := url.Parse(string(redisURL))
	if err != nil {
		t.Fatal(err)
	}
	if want := "weir-redis." + namespace + ".svc:6379"; address.Scheme != "rediss" || address.Host != want {
		t.Errorf("the URL leads to %s://%s, want rediss://%s", address.Scheme, address.Host, want)
	}
	address.Host = freeAddress(t)
	return address
}

// startRedis runs what the StatefulSet's pod runs: acl-file, then redis-server with the rendered configuration, but for where it
// listens and where its files are.
func startRedis(t *testing.T, program, folder, namespace string, redisURL []byte, port string, redis *unstructured.Unstructured) {
	t.Helper()
	certificates := getSecret(t, namespace, "weir-redis-tls")
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if err := os.WriteFile(filepath.Join(folder, name), certificates[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(folder, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	urlFile := filepath.Join(folder, "url")
	if err := os.WriteFile(urlFile, redisURL, 0o600); err != nil {
		t.Fatal(err)
	}
	inPod := strings.NewReplacer("/etc/weir/redis/url", urlFile, "/etc/weir/redis-tls", folder, "/data", data, "tls-port 6379", "tls-port "+port)
	var args []string
	for _, arg := range containerArgs(t, redis, "initContainers") {
		args = append(args, inPod.Replace(arg))
	}
	if output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("weir-operator %v: %v: %s", args, err, output)
	}
	configuration := nested[string](t, get(t, "v1", "ConfigMap", namespace, "weir-redis"), "data", "redis.conf")
	var lines []string
	for line := range strings.Lines(configuration) {
		setting, _, _ := strings.Cut(line, " ")
		switch setting {
		case "bind", "port", "dir", "protected-mode":
		default:
			lines = append(lines, inPod.Replace(strings.TrimSpace(line)))
		}
	}
	redistest.Start(t, redisserver.Options{Extra: append(lines, "bind 127.0.0.1")})
}

// containerArgs are the arguments of a workload's first container.
func containerArgs(t *testing.T, workload *unstructured.Unstructured, list string) []string {
	t.Helper()
	container := nested[[]any](t, workload, "spec", "template", "spec", list)[0].(map[string]any)
	if command := fmt.Sprint(container["command"]); command != "[/weir-operator]" {
		t.Fatalf("the command is %s", command)
	}
	var args []string
	for _, arg := range container["args"].([]any) {
		args = append(args, arg.(string))
	}
	return args
}

// buildOperator builds the operator's binary. Its sources are opened here, so that the test cache notices when one changes.
func buildOperator(t *testing.T) string {
	t.Helper()
	for _, pattern := range []string{"../main.go", "../cli/flags/*.go", "../controllers/operator/*.go", "../controllers/*.go", "../controllers/resources/*.go"} {
		sources, err := filepath.Glob(pattern)
		if err != nil || len(sources) == 0 {
			t.Fatalf("no sources match %s: %v", pattern, err)
		}
		for _, source := range sources {
			if _, err := os.ReadFile(source); err != nil {
				t.Fatal(err)
			}
		}
	}
	binary := filepath.Join(t.TempDir(), "weir-operator")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "..").CombinedOutput(); err != nil {
		t.Fatalf("build weir-operator: %v: %s", err, output)
	}
	return binary
}

// accountConfig is a kubeconfig for a ServiceAccount, with nothing but its rights.
func accountConfig(t *testing.T, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{}
	if err := cluster.client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: cluster.config.Host, CertificateAuthorityData: cluster.config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a running program.
type process struct {
	t    *testing.T
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
}

// Write keeps what the program prints.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func start(t *testing.T, program string, args []string, environment ...string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan struct{})}
	command := exec.CommandContext(context.Background(), program, args...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = p, p
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = command.Wait() // its output tells why it has ended
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.done:
		case <-time.After(30 * time.Second):
			_ = command.Process.Kill()
			t.Errorf("%s does not end:\n%s", program, p.output())
		}
	})
	return p
}

// eventually polls until check returns nil, or the program has ended.
func (p *process) eventually(check func() error) {
	p.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-p.done:
			p.t.Fatalf("the program has ended: %v\n%s", err, p.output())
		case <-deadline.C:
			p.t.Fatalf("still after a minute: %v\n%s", err, p.output())
		case <-ticker.C:
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func get(t *testing.T, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	if err := cluster.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatalf("%s %s: %v", kind, name, err)
	}
	return object
}

func getSecret(t *testing.T, namespace, name string) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := cluster.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}
