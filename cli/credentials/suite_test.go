package credentials_test

import (
	"log/slog"
	"net/netip"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/kubetest"
)

// cluster is a real kube-apiserver with Weir's definitions, roles and policy.
var cluster *kubetest.Server

func TestMain(m *testing.M) {
	stream.RouteLogs(slog.New(slog.DiscardHandler))
	os.Exit(kubetest.Main(m, "../..", &cluster, (*kubetest.Server).InstallRoles))
}

// kubeconfig is a file by which a user with some of the roles for people in a namespace reaches the cluster.
func kubeconfig(t *testing.T, namespace, name string, roles ...string) string {
	t.Helper()
	file := cluster.Kubeconfig(t, envtest.User{Name: name})
	for _, role := range roles {
		cluster.Create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weir-" + role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		})
	}
	return file
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	cluster.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// serve runs the operator for a namespace until the test ends.
func serve(t *testing.T, namespace string) {
	t.Helper()
	cluster.Operate(t, namespace, controllers.Options{RedisURL: redistest.URL(t), Image: "weir:test", RedisAllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
}
