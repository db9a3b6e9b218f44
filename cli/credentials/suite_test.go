package credentials_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

// cluster is a real kube-apiserver with Weir's definitions, roles and policy.
var cluster struct {
	*envtest.Environment
	client client.Client
	// adding is held while a user is added: the environment counts their certificates without a lock of its own.
	adding sync.Mutex
}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	log.SetLogger(logr.Discard())
	stream.RouteLogs(slog.New(slog.DiscardHandler))
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		assets, err := exec.CommandContext(context.Background(), "../../hack/kube.sh").Output()
		if err == nil {
			err = os.Setenv("KUBEBUILDER_ASSETS", strings.TrimSpace(string(assets)))
		}
		if err != nil {
			return fail(err)
		}
	}
	cluster.Environment = &envtest.Environment{CRDDirectoryPaths: []string{"../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	rest, err := cluster.Start()
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	scheme, err := controllers.NewScheme()
	if err == nil {
		cluster.client, err = client.New(rest, client.Options{Scheme: scheme})
	}
	if err == nil {
		err = installRoles()
	}
	if err != nil {
		return fail(err)
	}
	return m.Run()
}

// installRoles applies the roles for people and the policy, as config/rbac has them.
func installRoles() error {
	for file, object := range map[string]client.Object{
		"property_view_role.yaml": &rbacv1.ClusterRole{}, "property_edit_role.yaml": &rbacv1.ClusterRole{}, "property_admin_role.yaml": &rbacv1.ClusterRole{},
		"credentials_policy.yaml": &admissionv1.ValidatingAdmissionPolicy{}, "credentials_policy_binding.yaml": &admissionv1.ValidatingAdmissionPolicyBinding{},
	} {
		text, err := os.ReadFile("../../config/rbac/" + file)
		if err == nil {
			err = yaml.UnmarshalStrict(text, object)
		}
		if err == nil {
			err = cluster.client.Create(context.Background(), object)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := cluster.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// kubeconfig is a file by which a user with some of the roles for people in a namespace reaches the cluster.
func kubeconfig(t *testing.T, namespace, name string, roles ...string) string {
	t.Helper()
	cluster.adding.Lock()
	user, err := cluster.AddUser(envtest.User{Name: name}, nil)
	cluster.adding.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weir-" + role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		})
	}
	return file
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// serve runs the operator for a namespace until the test ends.
func serve(t *testing.T, namespace string) {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(cluster.Config, ctrl.Options{
		Scheme: cluster.client.Scheme(), Cache: controllers.CacheOptions([]string{namespace}), Logger: logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	options := controllers.Options{RedisURL: redistest.URL(t), Image: "weir:test", RedisAllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	if err := controllers.Setup(ctx, mgr, options, slog.New(slog.DiscardHandler), nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	})
}
