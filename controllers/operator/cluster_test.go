package operator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/kubetest"
)

// asOperator makes the test binary the program itself, so that the operator runs as a process that can be killed.
const asOperator = "WEIR_TEST_AS_OPERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		os.Exit(Run(ctx, "v0.0.0", os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// timeout bounds what is awaited; it is generous because machines are slow and the race detector is on.
const timeout = 60 * time.Second

// await polls until done or the timeout.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", timeout, what)
		}
	}
}

// logBuffer collects output that is written while it is read.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// testCluster is a real etcd and kube-apiserver, with authorization by role, to which config/ is applied with
// kubectl, as people do it.
type testCluster struct {
	t          *testing.T
	admin      client.Client
	kubectl    string
	kubeconfig string // the admin's
	redisFile  string
}

func startTestCluster(t *testing.T) *testCluster {
	t.Helper()
	if err := kubetest.FindAssets("../.."); err != nil {
		t.Fatal(err)
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	log.SetLogger(logr.Discard()) // of this process; the operators are others
	environment := &envtest.Environment{BinaryAssetsDirectory: assets}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start etcd and kube-apiserver: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop etcd and kube-apiserver: %v", err)
		}
	})
	scheme, err := controllers.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := &testCluster{t: t, admin: admin, kubectl: filepath.Join(assets, "kubectl"),
		kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), redisFile: filepath.Join(t.TempDir(), "url")}
	if err := os.WriteFile(c.kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.redisFile, []byte(redistest.URL(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs kubectl as the admin.
func (c *testCluster) run(args ...string) string {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), c.kubectl, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	text, err := command.CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, text)
	}
	return string(text)
}

// established waits until the API server serves definitions: kubectl's own wait ends where one has no conditions yet.
func (c *testCluster) established(names ...string) {
	c.t.Helper()
	args := append([]string{"wait", "--for=condition=Established", "--timeout=60s"}, names...)
	deadline := time.Now().Add(time.Minute)
	for {
		command := exec.CommandContext(c.t.Context(), c.kubectl, args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
		text, err := command.CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, text)
		}
	}
}

// tokenFor writes the kubeconfig of a ServiceAccount.
func (c *testCluster) tokenFor(namespace, name string) string {
	c.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token := &authenticationv1.TokenRequest{}
	if err := c.admin.SubResource("token").Create(c.t.Context(), account, token); err != nil {
		c.t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// operatorProcess is a running operator.
type operatorProcess struct {
	t               *testing.T
	command         *exec.Cmd
	metrics, health string
	log             logBuffer
	exited          chan struct{}
	code            int
}

// startOperatorProcess starts the operator as the owner of a kubeconfig and waits until it is ready.
func (c *testCluster) startOperatorProcess(kubeconfig string, args ...string) *operatorProcess {
	c.t.Helper()
	o := c.launchOperatorProcess(kubeconfig, args...)
	await(c.t, "the operator is ready", func() bool {
		select {
		case <-o.exited:
			c.t.Fatalf("the operator ended with %d before it was ready:\n%s", o.code, o.log.String())
		default:
		}
		return o.get(o.health+"/readyz") == "ok"
	})
	return o
}

// launchOperatorProcess starts the operator as the owner of a kubeconfig.
func (c *testCluster) launchOperatorProcess(kubeconfig string, args ...string) *operatorProcess {
	c.t.Helper()
	o := &operatorProcess{t: c.t, metrics: "http://" + freePort(c.t), health: "http://" + freePort(c.t), exited: make(chan struct{})}
	args = append([]string{"--image=weir:test", "--redis-url-file=" + c.redisFile,
		"--metrics-listen=" + strings.TrimPrefix(o.metrics, "http://"), "--health-listen=" + strings.TrimPrefix(o.health, "http://")}, args...)
	o.command = exec.CommandContext(context.WithoutCancel(c.t.Context()), os.Args[0], args...)
	o.command.Env = append(os.Environ(), asOperator+"=1", "KUBECONFIG="+kubeconfig)
	o.command.Stdout, o.command.Stderr = &o.log, &o.log
	if err := o.command.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(o.exited)
		_ = o.command.Wait() // the code says it
		o.code = o.command.ProcessState.ExitCode()
	}()
	c.t.Cleanup(func() { o.end(syscall.SIGKILL) })
	return o
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// end sends a signal and returns the exit code.
func (o *operatorProcess) end(signal os.Signal) int {
	_ = o.command.Process.Signal(signal) // it may have ended already
	<-o.exited
	return o.code
}

// get returns what an address answers, "" where that is not 200.
func (o *operatorProcess) get(address string) string {
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		o.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// leads says whether the operator is the one that works.
func (o *operatorProcess) leads() bool {
	return strings.Contains(o.get(o.metrics+"/metrics"), `leader_election_master_status{name="weir-operator.weir.dev"} 1`)
}

// fine fails the test where the operator was not allowed something, or could not do it, but for what is expected.
func (o *operatorProcess) fine(expected ...string) {
	o.t.Helper()
	for line := range strings.Lines(o.log.String()) {
		if slices.ContainsFunc(expected, func(words string) bool { return strings.Contains(line, words) }) {
			continue
		}
		if strings.Contains(line, "forbidden") || strings.Contains(line, `"level":"ERROR"`) {
			o.t.Errorf("the operator complains: %s", line)
		}
	}
}

// awaitCondition waits until a condition of a Property's is True for its newest generation.
func (c *testCluster) awaitCondition(namespace, name, condition string, logs ...*operatorProcess) {
	c.t.Helper()
	p, deadline := &v1alpha1.Property{}, time.Now().Add(timeout)
	for {
		err := c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, p)
		if err == nil && p.Status.ObservedGeneration == p.Generation && meta.IsStatusConditionTrue(p.Status.Conditions, condition) {
			return
		}
		if time.Now().After(deadline) {
			words := fmt.Sprintf("error %v, status %+v", err, p.Status)
			for _, o := range logs {
				words += "\n" + o.log.String()
			}
			c.t.Fatalf("%s of %s is not True: %s", condition, name, words)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// count returns how many objects of a kind the Property has.
func (c *testCluster) count(p *v1alpha1.Property, group, version, kind string) int {
	c.t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	list.APIVersion = strings.TrimPrefix(group+"/"+version, "/")
	if err := c.admin.List(c.t.Context(), list, client.InNamespace(p.Namespace), client.MatchingLabels{"app.kubernetes.io/instance": p.Name}); err != nil {
		c.t.Fatal(err)
	}
	return len(list.Items)
}
