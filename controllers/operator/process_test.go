package operator

import (
	"regexp"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
)

// election lets an operator take over soon, and gives a busy machine time enough to renew.
var election = []string{"--leader-elect", "--leader-elect-resource-namespace=weir-system",
	"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=5s", "--leader-elect-retry-period=250ms", "--allow-host=*=*.example.com"}

// everything is a Property for which each kind is made that the operator may make.
func everything(name string, exposure v1alpha1.Exposure) *v1alpha1.Property {
	p := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec.Currency = "EUR"
	p.Spec.Collector.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: 2, MaxReplicas: 4}
	p.Spec.Platforms = []v1alpha1.Platform{{Name: "console", Type: platforms.TypeLog}}
	p.Spec.Exposure = exposure
	return p
}

// TestTheOperatorServesAClusterAsAProcess runs the operator as config/default has it: with its ServiceAccount's
// rights and no others, several at a time.
func TestTheOperatorServesAClusterAsAProcess(t *testing.T) {
	c := startTestCluster(t)
	c.run("apply", "--server-side", "-k", "../../config/default")
	c.established("crd/properties.weir.dev")
	c.run("apply", "--server-side", "--dry-run=server", "-f", "../../config/samples")
	account := c.tokenFor("weir-system", "weir-operator")

	first := c.startOperatorProcess(account, election...)
	await(t, "the only operator leads", first.leads)
	second := c.startOperatorProcess(account, election...)
	c.create(everything("shop", v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: "collect.example.com", APIHost: "api.example.com"}))
	c.awaitCondition("default", "shop", v1alpha1.ConditionRedisReady, first)
	if second.leads() {
		t.Error("both operators lead")
	}
	for _, address := range []string{first.health + "/healthz", second.health + "/healthz", second.health + "/readyz"} {
		if got := first.get(address); got != "ok" {
			t.Errorf("%s answers %q, want ok", address, got)
		}
	}
	if text := first.get(first.metrics + "/metrics"); !strings.Contains(text, `controller_runtime_reconcile_total{controller="property"`) {
		t.Error("the metrics tell nothing of reconciles")
	}

	// Its kinds may come later than the operator.
	c.run("apply", "--server-side", "-f", "../testdata/crds/optional.yaml")
	c.established("crd/httproutes.gateway.networking.k8s.io", "crd/podmonitors.monitoring.coreos.com")

	t.Run("when the leader is killed the other takes over", func(t *testing.T) {
		first.end(syscall.SIGKILL)
		await(t, "the second operator leads", second.leads)
		c.create(everything("gate", v1alpha1.Exposure{Type: v1alpha1.ExposureGateway, CollectHost: "gate.example.com",
			Gateway: &v1alpha1.GatewayExposure{ParentRefs: []v1alpha1.GatewayReference{{Name: "public"}}}}))
		c.awaitCondition("default", "gate", v1alpha1.ConditionRedisReady, second)
		gate := c.property("gate")
		await(t, "the optional kinds are there", func() bool {
			return c.count(gate, "gateway.networking.k8s.io", "v1", "HTTPRoute") == 1 && c.count(gate, "monitoring.coreos.com", "v1", "PodMonitor") == 1
		})
	})
	t.Run("what a Property no longer asks for is removed", func(t *testing.T) {
		shop := c.property("shop")
		shop.Spec.Exposure, shop.Spec.Collector.Autoscaling = v1alpha1.Exposure{Type: v1alpha1.ExposureNone}, nil
		if err := c.admin.Update(t.Context(), shop); err != nil {
			t.Fatal(err)
		}
		await(t, "Ingresses and autoscaler are gone", func() bool {
			return c.count(shop, "networking.k8s.io", "v1", "Ingress")+c.count(shop, "autoscaling", "v2", "HorizontalPodAutoscaler") == 0
		})
	})
	t.Run("a token that somebody makes is taken over and said to be in force", func(t *testing.T) {
		token := &v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bi"}}
		token.Spec.PropertyRef.Name, token.Spec.SHA256 = "shop", strings.Repeat("0a", 32)
		c.create(token)
		c.run("wait", "--for=condition=Ready", "--timeout=30s", "accesstoken/bi")
		if err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(token), token); err != nil {
			t.Fatal(err)
		}
		if owners := token.OwnerReferences; len(owners) != 1 || owners[0].UID != c.property("shop").UID {
			t.Errorf("its owners are %v", owners)
		}
	})
	t.Run("running pods are told", func(t *testing.T) {
		template := c.deployment("shop-collector").Spec.Template
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop-collector-1", Labels: template.Labels}, Spec: template.Spec}
		c.create(pod)
		await(t, "the pod has its annotation", func() bool {
			return c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod) == nil && pod.Annotations["weir.dev/config"] != ""
		})
		if err := c.admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a deleted Property goes with its objects", func(t *testing.T) {
		gate := c.property("gate")
		if err := c.admin.Delete(t.Context(), gate); err != nil {
			t.Fatal(err)
		}
		await(t, "the Property is gone", func() bool {
			return apierrors.IsNotFound(c.admin.Get(t.Context(), client.ObjectKeyFromObject(gate), gate))
		})
		if n := c.count(gate, "", "v1", "Secret") + c.count(gate, "apps", "v1", "Deployment") + c.count(gate, "monitoring.coreos.com", "v1", "PodMonitor"); n != 0 {
			t.Errorf("%d objects are left", n)
		}
	})
	t.Run("a leader that is told to end gives its lease back", func(t *testing.T) {
		first.fine()
		second.fine()
		if code := second.end(syscall.SIGTERM); code != 0 {
			t.Errorf("the exit code is %d, want 0", code)
		}
		lease := &coordinationv1.Lease{}
		if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: "weir-system", Name: "weir-operator.weir.dev"}, lease); err != nil {
			t.Fatal(err)
		}
		if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
			t.Errorf("the lease is still held by %s", *holder)
		}
	})
	t.Run("a second release for all namespaces is not ready and changes nothing", func(t *testing.T) { leavesTheClusterAlone(t, c) })
	t.Run("one that serves a namespace needs its rights there alone", func(t *testing.T) { servesOneNamespace(t, c) })
}

// workedProperties is in the metrics of an operator that has reconciled a Property and will look at it again.
var workedProperties = regexp.MustCompile(`controller_runtime_reconcile_total\{controller="property",result="requeue_after"\} [1-9]`)

// leavesTheClusterAlone runs an operator of another release beside the one that has just ended, whose Lease still holds.
func leavesTheClusterAlone(t *testing.T, c *testCluster) {
	shop := c.property("shop")
	before := c.deployment("shop-collector").Generation
	second := c.launchOperatorProcess(c.tokenFor("weir-system", "weir-operator"), "--leader-elect", "--image=weir:other",
		"--leader-elect-resource-namespace=weir-system", "--leader-elect-resource-name=second")
	await(t, "the second release says why it does nothing", func() bool {
		return strings.Contains(second.log.String(), "all namespaces are served by the release weir-system/weir-operator.weir.dev already")
	})
	if got := second.get(second.health + "/readyz"); got != "" {
		t.Errorf("it answers %q, want it not to be ready", got)
	}
	shop.Spec.Retention.Days = 80
	if err := c.admin.Update(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	await(t, "the second release has looked at Properties", func() bool {
		return workedProperties.MatchString(second.get(second.metrics + "/metrics"))
	})
	if code := second.end(syscall.SIGTERM); code != 0 {
		t.Errorf("the exit code is %d, want 0", code)
	}
	if after := c.property("shop"); after.Status.ObservedGeneration == after.Generation || c.deployment("shop-collector").Generation != before {
		t.Error("it has served the Property")
	}
	second.fine("leaves alone what another serves",
		"failed to get informer from cache", "leader election lost") // it was told to end while it looked for kinds
}

func servesOneNamespace(t *testing.T, c *testCluster) {
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shops"}})
	c.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shops", Name: "weir"}})
	c.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shops", Name: "weir"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weir-operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "shops", Name: "weir"}},
	})
	bounded := c.startOperatorProcess(c.tokenFor("shops", "weir"), "--watch-namespace=shops")
	inside := everything("inside", v1alpha1.Exposure{Type: v1alpha1.ExposureNone})
	inside.Namespace = "shops"
	c.create(inside)
	c.create(everything("outside", v1alpha1.Exposure{Type: v1alpha1.ExposureNone}))
	c.awaitCondition("shops", "inside", v1alpha1.ConditionRedisReady, bounded)
	if status := c.property("outside").Status; status.ObservedGeneration != -1 { // as all begin
		t.Errorf("the Property of another namespace has a status: %+v", status)
	}
	bounded.fine()
	if code := bounded.end(syscall.SIGTERM); code != 0 {
		t.Errorf("the exit code is %d, want 0", code)
	}
}

func (c *testCluster) create(object client.Object) {
	c.t.Helper()
	if err := c.admin.Create(c.t.Context(), object); err != nil {
		c.t.Fatalf("create %s: %v", object.GetName(), err)
	}
}

func (c *testCluster) property(name string) *v1alpha1.Property {
	c.t.Helper()
	p := &v1alpha1.Property{}
	if err := c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *testCluster) deployment(name string) *appsv1.Deployment {
	c.t.Helper()
	d := &appsv1.Deployment{}
	if err := c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, d); err != nil {
		c.t.Fatal(err)
	}
	return d
}
