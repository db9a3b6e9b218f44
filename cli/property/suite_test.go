package property_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/cli/property"
	"github.com/weir-dev/weir/cli/readapi"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/kubetest"
	"github.com/weir-dev/weir/controllers/resources"
)

// server is a real kube-apiserver with Weir's definitions, roles and policy.
var server *kubetest.Server

func TestMain(m *testing.M) {
	stream.RouteLogs(slog.New(slog.DiscardHandler))
	os.Exit(kubetest.Main(m, "../..", &server, (*kubetest.Server).InstallRoles))
}

// rule lets somebody do something in a namespace, in short: "create pods/portforward"; with a third word only with the object of that
// name. What is not of the core is of weir.dev.
func rule(text string) rbacv1.PolicyRule {
	words := strings.Fields(text)
	group := "weir.dev"
	switch resource, _, _ := strings.Cut(words[1], ","); {
	case strings.HasPrefix(resource, "pods"), strings.HasPrefix(resource, "secrets"), strings.HasPrefix(resource, "services"):
		group = ""
	case resource == "persistentvolumeclaims":
		group = ""
	case resource == "jobs":
		group = "batch"
	case resource == "deployments":
		group = "apps"
	case resource == "ingresses", resource == "networkpolicies":
		group = "networking.k8s.io"
	case resource == "endpointslices":
		group = "discovery.k8s.io"
	}
	made := rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: strings.Split(words[0], ","), Resources: strings.Split(words[1], ",")}
	if len(words) > 2 {
		made.ResourceNames = words[2:]
	}
	return made
}

// The rights of people, as the aggregated roles view and edit have them, as far as they count here.
var (
	viewer = []string{"get,list properties,accesstokens", "get,list pods", "get,list services", "get,list deployments", "get,list ingresses,networkpolicies", "get,list endpointslices"}
	editor = append([]string{"create,delete accesstokens", "get properties/events", "create properties/replay", "create pods/portforward"}, viewer...)
)

// kubeconfig is a file by which a user with some rights in a namespace reaches the cluster.
func kubeconfig(t *testing.T, namespace, name string, rights ...string) string {
	t.Helper()
	file := server.Kubeconfig(t, envtest.User{Name: name})
	if len(rights) == 0 {
		return file
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, text := range rights {
		role.Rules = append(role.Rules, rule(text))
	}
	server.Create(t, role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	return file
}

// outcome is how a command ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// buffer is written while it is read.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// shop is a namespace with a Property that a real operator serves and whose roles run in this process, each fed by what a kubelet would
// mount.
type shop struct {
	t         *testing.T
	namespace string
	// kubelet answers for the pods' node.
	kubelet *kubelet
	crm     *crm
	acts    buffer
}

// crm is a webhook's receiver, which answers what it is told to.
type crm struct {
	*httptest.Server
	status atomic.Int32
}

func newCRM(t *testing.T) *crm {
	t.Helper()
	c := &crm{}
	c.status.Store(http.StatusOK)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(c.status.Load())) }))
	t.Cleanup(c.Close)
	return c
}

// openShop makes the namespace, starts an operator for it, and its pods.
func openShop(t *testing.T, namespace string) *shop {
	t.Helper()
	s := &shop{t: t, namespace: namespace, crm: newCRM(t), kubelet: startKubelet(t, namespace)}
	server.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	s.operate()
	p := &v1alpha1.Property{}
	if err := yaml.Unmarshal([]byte(`{metadata: {name: shop}, spec: {currency: EUR, platforms: [{name: crm, type: Webhook,
		webhook: {url: "`+s.crm.URL+`/hook"}, credentialsSecretRef: {name: crm}}]}}`), p); err != nil {
		t.Fatal(err)
	}
	p.Namespace = namespace
	server.Create(t, p, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crm"},
		StringData: map[string]string{"signingSecret": "whsec_d2VpciBzYW1wbGUsIG5vdCBhIHNlY3JldCBhdCBhbGw="}})
	for suffix, name := range map[resources.Role]role.Name{resources.Collector: role.Collect, resources.Deliverer: role.Deliver, resources.Query: role.Query} {
		s.startPod(suffix, name)
	}
	return s
}

// operate runs the operator for the namespace until the test ends.
func (s *shop) operate() {
	s.t.Helper()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	server.Operate(s.t, s.namespace, controllers.Options{
		RedisURL: redistest.URL(s.t), Image: "weir:test", RedisAllowCIDRs: loopback, EgressAllowCIDRs: loopback,
		Exposure: controllers.ExposureRules{AllowedHosts: map[string][]string{"*": {"*.invalid"}}},
	})
}

// startPod runs a role as its Deployment says, and makes the pod's object.
func (s *shop) startPod(suffix resources.Role, name role.Name) {
	s.t.Helper()
	directory := s.t.TempDir()
	eventually(s.t, string(suffix)+" can be mounted", func() error { return s.mount(string(suffix), directory) })
	serving, operations := listen(s.t), listen(s.t)
	ctx, cancel := context.WithCancel(context.Background())
	ready, done, kubelet := make(chan struct{}), make(chan error, 1), sync.WaitGroup{}
	kubelet.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = s.mount(string(suffix), directory) // it is tried again, as on a node
			}
		}
	})
	logger := slog.New(slog.DiscardHandler)
	go func() {
		done <- role.Run(ctx, role.Options{
			Roles: []role.Name{name}, Directories: []string{directory}, Listener: serving, MetricsListener: operations, Consumer: "test",
			Logger: logger, Audit: audit.New(&s.acts, logger, time.Now), Ready: func() error { close(ready); return nil },
		})
	}()
	s.t.Cleanup(func() {
		cancel()
		kubelet.Wait()
		if err := <-done; err != nil {
			s.t.Errorf("%s ended with %v", name, err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		s.t.Fatalf("%s does not start with what was rendered: %v", name, err)
	}
	pod := "shop-" + string(suffix) + "-0"
	s.kubelet.listens(s.namespace, pod, 8080, serving.Addr().String())
	s.kubelet.listens(s.namespace, pod, 9090, operations.Addr().String())
	s.makePod(pod, suffix, corev1.ConditionTrue)
}

// makePod makes the object of a pod.
func (s *shop) makePod(name string, suffix resources.Role, ready corev1.ConditionStatus) {
	s.t.Helper()
	s.makePodOf(name, suffix, ready, metav1.OwnerReference{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop-" + string(suffix) + "-5d8f", UID: "5d8f", Controller: new(true),
	})
}

// makePodOf makes the object of a pod of others.
func (s *shop) makePodOf(name string, suffix resources.Role, ready corev1.ConditionStatus, owners ...metav1.OwnerReference) {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{
			resources.LabelName: resources.ManagedBy, resources.LabelInstance: "shop", resources.LabelComponent: string(suffix),
		}, OwnerReferences: owners},
		Spec: corev1.PodSpec{NodeName: s.namespace, Containers: []corev1.Container{{Name: "weir", Image: "weir:test"}}},
	}
	server.Create(s.t, pod)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, Message: "containers with unready status: [weir]"}}
	if err := server.Client.Status().Update(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// mount writes the files of a Deployment's volumes below directory, in place of /etc/weir, as a kubelet does.
func (s *shop) mount(suffix, directory string) error {
	ctx := context.Background()
	found := &appsv1.Deployment{}
	if err := server.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop-" + suffix}, found); err != nil {
		return err
	}
	pod := found.Spec.Template.Spec
	for _, mount := range pod.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		files, err := s.files(ctx, &pod.Volumes[i])
		if err != nil {
			return err
		}
		target := filepath.Join(directory, strings.TrimPrefix(mount.MountPath, "/etc/weir"))
		if err := os.MkdirAll(target, 0o700); err != nil {
			return err
		}
		for name, content := range files {
			file := filepath.Join(target, name)
			if before, err := os.ReadFile(file); err == nil && bytes.Equal(before, content) {
				continue
			}
			if err := os.WriteFile(file+".new", content, 0o600); err != nil {
				return err
			}
			if err := os.Rename(file+".new", file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shop) files(ctx context.Context, volume *corev1.Volume) (map[string][]byte, error) {
	files := map[string][]byte{}
	if volume.ConfigMap != nil {
		found := &corev1.ConfigMap{}
		err := server.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: volume.ConfigMap.Name}, found)
		for name, text := range found.Data {
			files[name] = []byte(text)
		}
		return files, err
	}
	names := map[string][]corev1.KeyToPath{}
	if volume.Secret != nil {
		names[volume.Secret.SecretName] = volume.Secret.Items
	}
	if volume.Projected != nil {
		for _, source := range volume.Projected.Sources {
			names[source.Secret.Name] = source.Secret.Items
		}
	}
	for name, items := range names {
		found := &corev1.Secret{}
		if err := server.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, found); err != nil {
			if volume.Secret != nil && volume.Secret.Optional != nil && *volume.Secret.Optional || volume.Projected != nil {
				continue
			}
			return nil, err
		}
		for _, item := range items {
			if value, there := found.Data[item.Key]; there {
				files[item.Path] = value
			}
		}
	}
	return files, nil
}

// eventually asks until it gets no error, for a minute.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	deadline, ticker := time.After(time.Minute), time.NewTicker(50*time.Millisecond)
	defer ticker.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("not within a minute: %s: %v", what, err)
		case <-ticker.C:
		}
	}
}

// environment is what commands have around them.
func (s *shop) environment(stdout, stderr *buffer) property.Environment {
	return property.Environment{
		Program: "kubectl weir", Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Getenv: func(string) string { return "" }, Now: time.Now, Version: "v0.1.0",
		Forward: readapi.PortForward,
	}
}

// weir runs a command with a user's kubeconfig in the shop's namespace.
func (s *shop) weir(ctx context.Context, kubeconfig string, args ...string) outcome {
	var stdout, stderr buffer
	return s.weirIn(ctx, s.environment(&stdout, &stderr), &stdout, &stderr, kubeconfig, args...)
}

func (s *shop) weirIn(ctx context.Context, around property.Environment, stdout, stderr *buffer, kubeconfig string, args ...string) outcome {
	command, found := property.Find(args[0])
	if !found {
		s.t.Fatalf("there is no command %s", args[0])
	}
	err := command.Run(ctx, around, slices.Concat(args[1:], []string{"-n", s.namespace, "--kubeconfig", kubeconfig}))
	code := flags.ExitCode("kubectl weir", err, stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// send sends an event with the Property's key.
func (s *shop) send(event string) int {
	s.t.Helper()
	response, err := http.Post(s.at("shop-collector-0")+"/collect/"+s.secret("api-key.default"), "application/json", strings.NewReader(event))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// at is where a pod answers.
func (s *shop) at(pod string) string {
	return "http://" + s.kubelet.address(s.namespace+"/"+pod, "8080")
}

// secret is a value of the Secret that the operator has made for the owner.
func (s *shop) secret(key string) string {
	s.t.Helper()
	secret := &corev1.Secret{}
	eventually(s.t, "the operator has made "+key, func() error {
		err := server.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "shop-credentials"}, secret)
		if err == nil && len(secret.Data[key]) == 0 {
			err = fmt.Errorf("it has no %s", key)
		}
		return err
	})
	return string(secret.Data[key])
}
