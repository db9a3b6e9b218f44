package e2e

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
)

// helmValues are the values that the chart is installed with, but for the image.
func (s *suite) helmValues(t *testing.T) map[string]any {
	t.Helper()
	values := map[string]any{}
	if settings.redisImage != "" {
		values["redis"] = map[string]any{"image": imageValue(settings.redisImage)}
	}
	if !s.node {
		values["watchNamespaces"] = []string{system}
		values["rbac"] = map[string]any{"aggregateRoles": false}
		values["crds"] = map[string]any{"install": s.mayDefine(t)}
		return values
	}
	values["clusterWide"] = true
	values["tenants"] = map[string]any{
		"egressAllowCIDRs": []string{"10.96.0.0/16", "10.244.0.0/16"},
		"allowedHosts":     map[string]any{"*": []string{"*.e2e.test"}}, "allowedIngressClasses": []string{"weir-node"},
	}
	values["networkPolicy"] = map[string]any{
		"ingressFrom": []any{
			map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "kube-system"}},
				"podSelector":       map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "ingress"}},
			},
			map[string]any{"podSelector": map[string]any{}},
		},
		"metricsFrom": []any{map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": monitoring}},
		}},
	}
	return values
}

// mayDefine says whether the release may make the CustomResourceDefinition: no other has.
func (s *suite) mayDefine(t *testing.T) bool {
	t.Helper()
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := s.Get(t.Context(), client.ObjectKey{Name: "properties.weir.dev"}, definition); err != nil {
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return true
	}
	return definition.Annotations["meta.helm.sh/release-namespace"] == system
}

func imageValue(reference string) map[string]any {
	colon := strings.LastIndex(reference, ":")
	return map[string]any{"repository": reference[:colon], "tag": reference[colon+1:]}
}

// helm installs or upgrades the release, with more values beside the suite's own, and waits until the operator and its Redis are there.
func (s *suite) helm(t *testing.T, chart, image string, more map[string]any) time.Duration {
	t.Helper()
	values := s.helmValues(t)
	values["image"] = imageValue(image)
	maps.Copy(values, more)
	content, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	must(t, "helm", "upgrade", "--install", release, chart, "--namespace", system, "--values", file, "--wait", "--timeout", "4m")
	must(t, "kubectl", "-n", system, "rollout", "status", "deployment/weir-operator", "--timeout=2m")
	within(t, 2*time.Minute, "Redis is ready", func() error {
		_, err := command(t.Context(), "kubectl", "-n", system, "wait", "pod/weir-redis-0", "--for=condition=Ready", "--timeout=10s")
		return err
	})
	return time.Since(begin)
}

func installs(t *testing.T, s *suite) {
	s.claim(t, system)
	s.figure(t, "helm install, until the operator and Redis are ready", "%.1f s", s.helm(t, settings.chart, settings.image, nil).Seconds())
	begin := time.Now()
	out := must(t, "helm", "test", release, "--namespace", system, "--timeout", "2m")
	if !strings.Contains(out, "Succeeded") {
		t.Errorf("helm test says:\n%s", out)
	}
	s.figure(t, "helm test", "%.1f s", time.Since(begin).Seconds())
}

// signingSecret is the customer's, known to both ends of the webhook.
var signingSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("end to end, with thirty-two bytes"))

// shop is the tenant that most steps use: two API keys, the log, and on the node a webhook and an Ingress.
func becomesReady(t *testing.T, s *suite) {
	shop := s.expose(s.property("shop"))
	shop.Spec.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "first"}, {Name: "second"}}
	s.claim(t, shop.Namespace)
	if s.node {
		s.startPeer(t, shop.Namespace)
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: "shop-crm"},
			StringData: map[string]string{"signingSecret": signingSecret},
		}
		if err := s.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		shop.Spec.Platforms = append(shop.Spec.Platforms, v1alpha1.Platform{
			Name: "crm", Type: "Webhook",
			Settings:             platforms.Settings{Webhook: &platforms.Webhook{URL: "http://peer." + shop.Namespace + ".svc.cluster.local:8080/hook"}},
			CredentialsSecretRef: &v1alpha1.SecretReference{Name: secret.Name},
		})
	}
	if err := s.Create(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	s.figure(t, "a Property, from applied to Ready", "%.1f s",
		s.settled(t, shop.Namespace, shop.Name, v1alpha1.ConditionReady, metav1.ConditionTrue, "").Seconds())
	s.figure(t, "from then on, until both Services lead to the pods", "%.1f s", s.served(t, s.tenantOf(t, "shop")).Seconds())
	for _, role := range []string{"collector", "deliverer", "query"} {
		if !slices.ContainsFunc(s.pods(t, shop.Namespace, roleOf("shop", role)), func(pod corev1.Pod) bool { return ready(&pod) }) {
			t.Errorf("the Property is Ready, and no pod of its %s is", role)
		}
	}
}

// served waits until the Property's Services lead somewhere: that is kube-proxy's to do, which follows the pods by a second or so.
func (s *suite) served(t *testing.T, it *tenant) time.Duration {
	t.Helper()
	if !s.node {
		return 0 // a forwarded port goes to a pod
	}
	peer := s.peerIn(t, it.namespace)
	return within(t, 30*time.Second, "Services lead to the pods of "+it.name, func() error {
		for _, role := range []string{"collector", "query"} {
			if failure := peer.dial(t, strings.TrimPrefix(it.service(role), "http://")+":80"); failure != "" {
				return errors.New(failure)
			}
		}
		return nil
	})
}

// roleOf are the labels of the pods of a Property's role.
func roleOf(name, role string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "weir", "app.kubernetes.io/instance": name, "app.kubernetes.io/component": role,
	}
}
