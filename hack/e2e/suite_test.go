package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	release = "weir"
	// system is the release's namespace. In a cluster of yours it is the only one: Properties are in it, too.
	system = "weir-e2e"
	// ownLabel marks the namespaces that the suite has made; others are never touched.
	ownLabel = "app.kubernetes.io/managed-by"
)

// suite is the cluster as the steps use it.
type suite struct {
	client.Client
	discovery discovery.DiscoveryInterface
	// node says that the cluster is the node of hack/cluster.sh.
	node bool
}

func connect(t *testing.T) *suite {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", settings.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 100, 200
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &suite{Client: api, discovery: finder, node: settings.node != ""}
}

// namespaceOf is where a tenant's Property is: a namespace for each, on the node.
func (s *suite) namespaceOf(tenant string) string {
	if s.node {
		return system + "-" + tenant
	}
	return system
}

// command runs a program to its end and returns what it printed.
func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+settings.kubeconfig)
	var out, failures bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failures
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(failures.String()))
	}
	return out.String(), nil
}

// pipe runs a program that has to succeed and is given input.
func (s *suite) pipe(t *testing.T, input, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), "KUBECONFIG="+settings.kubeconfig), strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, args[0], err, out)
	}
	return string(out)
}

// must runs a program that has to succeed.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), name, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// within asks until it gets no error, and fails the test after so long with the last one. It returns how long it took.
func within(t *testing.T, limit time.Duration, what string, ask func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	deadline, tick := time.After(limit), time.NewTicker(200*time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return time.Since(begin)
		}
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-tick.C:
		}
	}
}

// claim makes a namespace of the suite's own that enforces restricted Pod Security, and refuses one that is not its.
func (s *suite) claim(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		ownLabel: system, "pod-security.kubernetes.io/enforce": "restricted",
	}}}
	err := s.Create(t.Context(), namespace)
	if apierrors.IsAlreadyExists(err) {
		if err = s.Get(t.Context(), client.ObjectKey{Name: name}, namespace); err == nil && namespace.Labels[ownLabel] != system {
			t.Fatalf("the cluster has a namespace %s that this suite has not made", name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// secret reads a Secret's values.
func (s *suite) secret(t *testing.T, namespace, name string) map[string][]byte {
	t.Helper()
	var secret corev1.Secret
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

// pods lists the pods of a namespace that have the labels and are not ending.
func (s *suite) pods(t *testing.T, namespace string, labels map[string]string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := s.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		t.Fatal(err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// explain prints what explains a failure: pods, conditions, warnings, and the ends of the logs.
func (s *suite) explain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	show := func(title, name string, args ...string) {
		out, err := command(ctx, name, args...)
		if err != nil {
			out += err.Error()
		}
		t.Logf("==> %s\n%s", title, out)
	}
	var namespaces corev1.NamespaceList
	if err := s.List(ctx, &namespaces, client.MatchingLabels{ownLabel: system}); err != nil {
		t.Log(err)
	}
	for _, namespace := range namespaces.Items {
		name := namespace.Name
		show("pods and Properties of "+name, "kubectl", "-n", name, "get", "pods,properties", "-o", "wide", "--ignore-not-found")
		show("conditions in "+name, "kubectl", "-n", name, "get", "properties", "--ignore-not-found", "-o",
			`jsonpath={range .items[*]}{.metadata.name}{"\n"}{range .status.conditions[*]}  {.type}={.status} {.reason}: {.message}{"\n"}{end}{end}`)
		show("events of "+name, "kubectl", "-n", name, "get", "events", "--sort-by=.lastTimestamp", "--field-selector=type=Warning")
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.InNamespace(name)); err != nil {
			t.Log(err)
		}
		for _, pod := range pods.Items {
			show("the end of the log of "+name+"/"+pod.Name, "kubectl", "-n", name, "logs", pod.Name, "--all-containers", "--tail=15", "--ignore-errors")
			if !ready(&pod) {
				show(name+"/"+pod.Name, "kubectl", "-n", name, "describe", "pod", pod.Name)
			}
		}
	}
	if s.node {
		show("the node's programs", settings.node, "status")
		show("the ingress", "kubectl", "-n", "kube-system", "logs", "--selector=app.kubernetes.io/name=ingress", "--tail=15")
	}
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
