// Package kubetest starts a real etcd and kube-apiserver for tests, with Weir's definitions and without the controllers of a
// cluster: no pods, no garbage collection, no rollouts but those that a test plays.
package kubetest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/controllers"
)

// Server is a real kube-apiserver, with authorization by role.
type Server struct {
	*envtest.Environment
	// Client may do everything.
	Client client.Client

	root string
	// adding is held while a user is added: the environment counts their certificates without a lock of its own.
	adding sync.Mutex
}

// Main runs a package's tests with a server for all of them, and returns the exit code. root leads to the checkout.
func Main(m *testing.M, root string, into **Server, prepare ...func(*Server) error) int {
	server, err := Start(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop etcd and kube-apiserver:", err)
		}
	}()
	for _, each := range prepare {
		if err := each(server); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	*into = server
	return m.Run()
}

// Start starts a server, which whoever asks for it has to stop. edit may have it run otherwise.
func Start(root string, edit ...func(*envtest.Environment)) (*Server, error) {
	log.SetLogger(logr.Discard())
	if err := FindAssets(root); err != nil {
		return nil, err
	}
	s := &Server{root: root, Environment: &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
	}}
	for _, each := range edit {
		each(s.Environment)
	}
	rest, err := s.Start()
	if err != nil {
		return nil, fmt.Errorf("start etcd and kube-apiserver: %w", err)
	}
	rest.QPS = -1 // the server keeps its own order
	scheme, err := controllers.NewScheme()
	if err != nil {
		return nil, err
	}
	s.Client, err = client.New(rest, client.Options{Scheme: scheme})
	return s, err
}

// FindAssets makes the environment's KUBEBUILDER_ASSETS name the folder with etcd and kube-apiserver, unless it does: hack/kube.sh
// builds them where they are not there.
func FindAssets(root string) error {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return nil
	}
	assets, err := exec.CommandContext(context.Background(), filepath.Join(root, "hack", "kube.sh")).Output()
	if err != nil {
		return fmt.Errorf("hack/kube.sh: %w", err)
	}
	return os.Setenv("KUBEBUILDER_ASSETS", strings.TrimSpace(string(assets)))
}

// InstallRoles applies the roles for people and the policy for their keys and tokens, as config/rbac has them.
func (s *Server) InstallRoles() error {
	return s.Install(map[string]client.Object{
		"property_view_role": &rbacv1.ClusterRole{}, "property_edit_role": &rbacv1.ClusterRole{}, "property_admin_role": &rbacv1.ClusterRole{},
		"credentials_policy": &admissionv1.ValidatingAdmissionPolicy{}, "credentials_policy_binding": &admissionv1.ValidatingAdmissionPolicyBinding{},
	})
}

// Install reads objects from the files of these names in config/rbac, and makes them.
func (s *Server) Install(objects map[string]client.Object) error {
	for name, object := range objects {
		text, err := os.ReadFile(filepath.Join(s.root, "config", "rbac", name+".yaml"))
		if err == nil {
			err = yaml.UnmarshalStrict(text, object)
		}
		if err == nil {
			err = s.Client.Create(context.Background(), object)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Create makes objects.
func (s *Server) Create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := s.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// Kubeconfig is a file by which a user reaches the cluster.
func (s *Server) Kubeconfig(t testing.TB, user envtest.User) string {
	t.Helper()
	s.adding.Lock()
	added, err := s.AddUser(user, nil)
	s.adding.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	text, err := added.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Operate runs an operator for a namespace until the test ends.
func (s *Server) Operate(t testing.TB, namespace string, options controllers.Options) {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(s.Config, ctrl.Options{
		Scheme: s.Client.Scheme(), Cache: controllers.CacheOptions([]string{namespace}), Logger: logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
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
