package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// bounded is as whom the operator speaks where its rights are bounded.
const bounded = "weir-bounded"

// grant gives the bounded operator the rights of config/rbac in a namespace, but for the verbs on a resource that are taken.
func grant(t testing.TB, namespace, taken string, verbs ...string) {
	t.Helper()
	text, err := os.ReadFile("../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	full := rbacv1.ClusterRole{}
	if err := yaml.Unmarshal(text, &full); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bounded}}
	for _, rule := range full.Rules {
		for _, resource := range rule.Resources {
			one := *rule.DeepCopy()
			one.Resources = []string{resource}
			if resource == taken {
				one.Verbs = slices.DeleteFunc(one.Verbs, func(verb string) bool { return slices.Contains(verbs, verb) })
			}
			if len(one.Verbs) > 0 {
				role.Rules = append(role.Rules, one)
			}
		}
	}
	if err := server.client.Patch(context.Background(), role, client.Merge, client.FieldOwner("test")); apierrors.IsNotFound(err) {
		create(t, role)
		create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bounded},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: bounded},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: bounded}},
		})
	} else if err != nil {
		t.Fatal(err)
	}
}

// houseRule is what the policies of [deny] say.
const houseRule = "the rules of the house forbid it"

// deny has an admission policy refuse an operation on an object, from when this returns until lift.
func deny(t testing.TB, namespace, group, resource, name string, operation admissionv1.OperationType) (lift func(testing.TB)) {
	t.Helper()
	return denySaying(t, namespace, group, resource, name, operation, "")
}

// denySaying has the policy say what an expression makes of the object.
func denySaying(t testing.TB, namespace, group, resource, name string, operation admissionv1.OperationType, says string) (lift func(testing.TB)) {
	t.Helper()
	ctx, id := context.Background(), strings.ToLower(strings.Join([]string{"test", namespace, resource, name, strings.ReplaceAll(string(operation), "*", "all")}, "."))
	rule := func(group, resource string, operation admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{operation},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}}
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
			rule(group, resource, operation), rule("rbac.authorization.k8s.io", "rolebindings", admissionv1.Create),
		}},
		Validations: []admissionv1.Validation{{
			Expression: fmt.Sprintf("request.namespace != %q || !((request.resource.resource == 'rolebindings' && object.metadata.name == 'probe') || (request.resource.resource == %q && request.name == %q))",
				namespace, resource, name),
			Message: houseRule, MessageExpression: says,
		}},
	}}
	create(t, policy)
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: id, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	create(t, binding)
	eventually(t, func() error {
		probe := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: bounded},
		}
		if err := server.client.Create(ctx, probe, client.DryRunAll); err == nil || !strings.Contains(err.Error(), id) {
			return fmt.Errorf("the policy is not in force yet: %w", err)
		}
		return nil
	})
	return func(t testing.TB) {
		t.Helper()
		if err := errors.Join(server.client.Delete(ctx, binding), server.client.Delete(ctx, policy)); err != nil {
			t.Fatal(err)
		}
	}
}

// quota bounds how many objects of a kind a namespace may have, as the controller that this API server lacks would.
func quota(t testing.TB, namespace, kind string, most int64) (lift func(testing.TB)) {
	t.Helper()
	hard := corev1.ResourceList{corev1.ResourceName(kind): *resource.NewQuantity(most, resource.DecimalSI)}
	object := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	create(t, object)
	object.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourceName(kind): resource.Quantity{}}}
	if err := server.client.Status().Update(context.Background(), object); err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) {
		t.Helper()
		if err := server.client.Delete(context.Background(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// refused is a row of [refusals]: what makes the API server refuse something, when the Property is made or with a
// change of it afterwards, and how that ends.
type refused struct {
	spec  func(*v1alpha1.PropertySpec)
	cause func(t testing.TB, namespace string) (lift func(testing.TB))
	// change is made when the Property has been served without any error.
	change func(t testing.TB, namespace string)

	condition string
	reason    string // Refused where there is none
	says      []string
	// stands is what is made all the same.
	stands []string
}

func onCollector(edit func(*v1alpha1.PodOptions)) func(*v1alpha1.PropertySpec) {
	return func(s *v1alpha1.PropertySpec) { edit(&s.Collector.PodOptions) }
}

func denying(group, resource, name string) func(testing.TB, string) func(testing.TB) {
	return func(t testing.TB, namespace string) func(testing.TB) {
		return deny(t, namespace, group, resource, called(name, namespace), admissionv1.OperationAll)
	}
}

// denyingRoute has the route accepted where it is let through.
func denyingRoute(t testing.TB, namespace string) func(testing.TB) {
	route := called("shop-collector", namespace)
	lift := deny(t, namespace, "gateway.networking.k8s.io", "httproutes", route, admissionv1.Create)
	return func(t testing.TB) {
		lift(t)
		acceptRoute(t, namespace, route, "edge", "True")
	}
}

func withoutRight(resource string, verbs ...string) func(testing.TB, string) func(testing.TB) {
	return func(t testing.TB, namespace string) func(testing.TB) {
		grant(t, namespace, resource, verbs...)
		return func(t testing.TB) { grant(t, namespace, "") }
	}
}

func within(kind string, most int64) func(testing.TB, string) func(testing.TB) {
	return func(t testing.TB, namespace string) func(testing.TB) { return quota(t, namespace, kind, most) }
}

// called is the name of an object of the row's Property: no two Properties of a cluster have one name.
func called(name, namespace string) string {
	return strings.ReplaceAll(name, "shop", "shop"+strings.TrimPrefix(namespace, "test-"))
}

// editing changes the spec.
func editing(edit func(*v1alpha1.PropertySpec)) func(testing.TB, string) {
	return func(t testing.TB, namespace string) {
		change(t, &v1alpha1.Property{}, namespace, called("shop", namespace), func(p *v1alpha1.Property) { edit(&p.Spec) })
	}
}

// frozen makes an object immutable and then asks for another content; the end is that the object is made anew.
func frozen[T client.Object](object T, name string, freeze func(T), edit func(*v1alpha1.PropertySpec)) (func(testing.TB, string), func(testing.TB, string) func(testing.TB)) {
	return func(t testing.TB, namespace string) {
			change(t, object, namespace, called(name, namespace), freeze)
			editing(edit)(t, namespace)
		}, func(_ testing.TB, namespace string) func(testing.TB) {
			return func(t testing.TB) {
				if err := server.client.Delete(context.Background(), get(t, object, namespace, called(name, namespace))); err != nil {
					t.Fatal(err)
				}
			}
		}
}

func exposed(edit ...func(*v1alpha1.Exposure)) func(*v1alpha1.PropertySpec) {
	return func(s *v1alpha1.PropertySpec) {
		s.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress}
		for _, e := range edit {
			e(&s.Exposure)
		}
	}
}

func throughGateway(s *v1alpha1.PropertySpec) {
	s.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureGateway, Gateway: &v1alpha1.GatewayExposure{ParentRefs: []v1alpha1.GatewayReference{{Name: "edge"}}}}
}

// refusals has a row for each way in which an API server that works keeps the operator from what a Property asks for.
func refusals() map[string]refused {
	const credentials, redis, pods, hosts = v1alpha1.ConditionCredentialsReady, v1alpha1.ConditionRedisReady, v1alpha1.ConditionWorkloadsAvailable, v1alpha1.ConditionExposed
	others := []string{"Deployment shop-deliverer", "Deployment shop-query", "Service shop-collector", "Ingress shop-collector"}
	invalid := func(spec func(*v1alpha1.PodOptions), says ...string) refused {
		return refused{spec: onCollector(spec), condition: pods, says: append(says, "Deployment shop-collector", "spec.template"), stands: others}
	}
	token := func(s *v1alpha1.PropertySpec) {
		s.AccessTokens = append(s.AccessTokens, v1alpha1.PropertyAccessToken{Name: "next"})
	}
	rows := map[string]refused{
		"a label of nodes that is none":                invalid(func(o *v1alpha1.PodOptions) { o.NodeSelector = map[string]string{"a b": "c"} }, "nodeSelector", "name part must consist of"),
		"a value of a node's label that is none":       invalid(func(o *v1alpha1.PodOptions) { o.NodeSelector = map[string]string{"a": "b c"} }, "nodeSelector", "a valid label must"),
		"a request above its limit":                    invalid(func(o *v1alpha1.PodOptions) { o.Resources = quantities("cpu", "2", "1") }, "must be less than or equal to cpu limit"),
		"a request below nothing":                      invalid(func(o *v1alpha1.PodOptions) { o.Resources = quantities("memory", "-1", "1Gi") }, "must be greater than or equal to 0"),
		"a toleration of an operator that there isn't": invalid(func(o *v1alpha1.PodOptions) { o.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Maybe"}} }, "tolerations[", "Maybe"),
		"a toleration of all values and of one": invalid(func(o *v1alpha1.PodOptions) {
			o.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Exists", Value: "b"}}
		}, "value must be empty"),
		"an affinity to nodes without values": invalid(func(o *v1alpha1.PodOptions) {
			o.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "In"}}}}}}}
		}, "nodeAffinity", "must be specified when"),
		"an affinity without weight": invalid(func(o *v1alpha1.PodOptions) {
			o.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}}}}}
		}, "must be in the range 1-100"),
		"pods spread without skew": invalid(func(o *v1alpha1.PodOptions) {
			o.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule"}}
		}, "maxSkew", "must be greater than zero"),
		"pods spread in a way that there isn't": invalid(func(o *v1alpha1.PodOptions) {
			o.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "Despair"}}
		}, "whenUnsatisfiable", "Despair"),
		"an annotation of pods that is none": invalid(func(o *v1alpha1.PodOptions) { o.PodAnnotations = map[string]string{"a b": ""} }, "annotations", "name part must consist of"),
		"annotations that are too long":      invalid(func(o *v1alpha1.PodOptions) { o.PodAnnotations = map[string]string{"a": strings.Repeat("b", 300<<10)} }, "annotations", "Too long"),
		"an annotation of an Ingress that is none": {
			spec: exposed(func(e *v1alpha1.Exposure) {
				e.Ingress = &v1alpha1.IngressExposure{Annotations: map[string]string{"a b": ""}}
			}), condition: hosts, says: []string{"Ingress shop-collector", "metadata.annotations", "name part must consist of"}, stands: []string{"Deployment shop-collector"},
		},

		"a quota without room for the credentials": {cause: within("secrets", 0), condition: credentials,
			says: []string{"Secret shop-credentials", "exceeded quota: small"}, stands: []string{"Service shop-collector", "ConfigMap shop-config"}},
		"a quota without room for a user's Secret": {cause: within("secrets", 2), condition: redis,
			says: []string{"Secret shop-redis-", "exceeded quota: small"}, stands: []string{"Secret shop-credentials", "Service shop-collector"}},
		"a quota of two Deployments":  {cause: within("count/deployments.apps", 2), condition: pods, says: []string{"Deployment shop-query", "exceeded quota"}, stands: []string{"Deployment shop-collector", "Service shop-query"}},
		"a quota of one Service":      {cause: within("services", 1), condition: pods, says: []string{"Service shop-query", "exceeded quota"}, stands: []string{"Deployment shop-query"}},
		"a quota without a ConfigMap": {cause: within("configmaps", 0), condition: pods, says: []string{"ConfigMap shop-config", "exceeded quota"}, stands: []string{"Deployment shop-query"}},
		"a quota without an Ingress":  {spec: exposed(), cause: within("count/ingresses.networking.k8s.io", 0), condition: hosts, says: []string{"Ingress shop-collector", "exceeded quota"}, stands: []string{"Deployment shop-query"}},

		"no right to make Secrets":           {cause: withoutRight("secrets", "create"), condition: credentials, says: []string{"Secret shop-credentials", `cannot create resource "secrets"`}, stands: []string{"Service shop-query"}},
		"no right to change Deployments":     {cause: withoutRight("deployments", "patch"), condition: pods, says: []string{"Deployment shop-query", `cannot patch resource "deployments"`}, stands: []string{"Service shop-query"}},
		"no right to change Ingresses":       {spec: exposed(), cause: withoutRight("ingresses", "patch"), condition: hosts, says: []string{"Ingress shop-collector", `cannot patch resource "ingresses"`}, stands: []string{"Deployment shop-query"}},
		"no right to change NetworkPolicies": {cause: withoutRight("networkpolicies", "patch"), condition: pods, says: []string{"NetworkPolicy shop-query", `cannot patch resource "networkpolicies"`}, stands: []string{"Deployment shop-query"}},
		"no right to read Secrets": { // which what is made anew does not need
			spec: func(s *v1alpha1.PropertySpec) {
				s.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "brought", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "brought", Key: "key"}}}
			},
			cause: func(t testing.TB, namespace string) func(testing.TB) {
				create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brought"}, StringData: map[string]string{"key": auth.NewAPIKey()}})
				return withoutRight("secrets", "get")(t, namespace)
			},
			condition: credentials, says: []string{"read Secret brought", `cannot get resource "secrets"`}, stands: []string{"Service shop-query"},
		},
		"no right to delete what is not asked for any more": {
			spec: exposed(), cause: withoutRight("ingresses", "delete"),
			change:    editing(func(s *v1alpha1.PropertySpec) { s.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureNone} }),
			condition: hosts, says: []string{"delete Ingress shop-collector", `cannot delete resource "ingresses"`},
		},

		"a policy about the Property itself": {cause: func(t testing.TB, namespace string) func(testing.TB) {
			return deny(t, namespace, "weir.dev", "properties", called("shop", namespace), admissionv1.Update)
		}, condition: v1alpha1.ConditionReady, says: []string{"finalizer", "Property shop", houseRule}},
		"a policy about the ConfigMap":       {cause: denying("", "configmaps", "shop-config"), condition: pods, says: []string{"ConfigMap shop-config", houseRule}, stands: []string{"Deployment shop-query"}},
		"a policy about a ServiceAccount":    {cause: denying("", "serviceaccounts", "shop-deliverer"), condition: pods, says: []string{"ServiceAccount shop-deliverer", houseRule}, stands: []string{"Deployment shop-deliverer"}},
		"a policy about a Deployment":        {cause: denying("apps", "deployments", "shop-deliverer"), condition: pods, says: []string{"Deployment shop-deliverer", houseRule}, stands: []string{"Deployment shop-query", "Deployment shop-collector"}},
		"a policy about a Service":           {cause: denying("", "services", "shop-query"), condition: pods, says: []string{"Service shop-query", houseRule}, stands: []string{"Deployment shop-query"}},
		"a policy about a disruption budget": {cause: denying("policy", "poddisruptionbudgets", "shop-collector"), condition: pods, says: []string{"PodDisruptionBudget shop-collector", houseRule}, stands: []string{"Deployment shop-query"}},
		"a policy about an autoscaler": {spec: func(s *v1alpha1.PropertySpec) {
			s.Collector.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: 2, MaxReplicas: 3}
		},
			cause: denying("autoscaling", "horizontalpodautoscalers", "shop-collector"), condition: pods, says: []string{"HorizontalPodAutoscaler shop-collector", houseRule}, stands: []string{"Deployment shop-query"}},
		"a policy about a NetworkPolicy":  {cause: denying("networking.k8s.io", "networkpolicies", "shop-collector"), condition: pods, says: []string{"NetworkPolicy shop-collector", houseRule}, stands: []string{"Deployment shop-collector"}},
		"a policy about an Ingress":       {spec: exposed(), cause: denying("networking.k8s.io", "ingresses", "shop-collector"), condition: hosts, says: []string{"Ingress shop-collector", houseRule}, stands: []string{"Deployment shop-collector"}},
		"a policy about an HTTPRoute":     {spec: throughGateway, cause: denyingRoute, condition: hosts, says: []string{"HTTPRoute shop-collector", houseRule}, stands: []string{"Deployment shop-collector"}},
		"a policy about a PodMonitor":     {cause: denying("monitoring.coreos.com", "podmonitors", "shop-pods"), condition: pods, says: []string{"PodMonitor shop-pods", houseRule}, stands: []string{"Deployment shop-collector"}},
		"a policy about the keys' hashes": {cause: denying("", "secrets", "shop-api-keys"), condition: pods, says: []string{"Secret shop-api-keys", houseRule}, stands: []string{"Secret shop-access-tokens", "Deployment shop-collector"}},
		"a policy about a role's user":    {cause: denying("", "secrets", "shop-redis-query"), condition: redis, says: []string{"Secret shop-redis-query", houseRule}, stands: []string{"Deployment shop-collector", "Deployment shop-deliverer"}},
		"a policy about the credentials": {cause: func(t testing.TB, namespace string) func(testing.TB) {
			return deny(t, namespace, "", "secrets", called("shop-credentials", namespace), admissionv1.Update)
		}, change: editing(token), condition: credentials, says: []string{"update Secret shop-credentials", houseRule}},
		"a policy about deleting": {spec: exposed(), cause: func(t testing.TB, namespace string) func(testing.TB) {
			return deny(t, namespace, "networking.k8s.io", "ingresses", called("shop-collector", namespace), admissionv1.Delete)
		}, change: editing(func(s *v1alpha1.PropertySpec) { s.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureNone} }), condition: hosts,
			says: []string{"delete Ingress shop-collector", houseRule}},
		"a webhook that nobody answers": {cause: deadWebhook, condition: pods, reason: v1alpha1.ReasonServerFailed,
			says: []string{"ConfigMap shop-config", "failed calling webhook"}, stands: []string{"Deployment shop-collector"}},
		"pods that a LimitRange refuses": {change: func(t testing.TB, namespace string) { podsRefused(t, namespace, corev1.ConditionTrue) },
			cause: func(_ testing.TB, namespace string) func(testing.TB) {
				return func(t testing.TB) { podsRefused(t, namespace, corev1.ConditionFalse) }
			},
			condition: pods, reason: v1alpha1.ReasonUnavailable, says: []string{"shop-collector", "minimum cpu usage per Container is 1"}},
	}
	frozenRow := func(name string, row refused) { rows[name] = row }
	edit, end := frozen(&corev1.Secret{}, "shop-access-tokens", func(s *corev1.Secret) { s.Immutable = new(true) }, token)
	frozenRow("hashes that have been made immutable", refused{change: edit, cause: end, condition: pods, says: []string{"Secret shop-access-tokens", "field is immutable when `immutable` is set"}})
	configuration, again := frozen(&corev1.ConfigMap{}, "shop-config", func(c *corev1.ConfigMap) { c.Immutable = new(true) },
		func(s *v1alpha1.PropertySpec) { s.TimeZone = "Europe/Paris" })
	frozenRow("a configuration that has been made immutable", refused{change: configuration, cause: again, condition: pods, says: []string{"ConfigMap shop-config", "field is immutable when `immutable` is set"}})
	return rows
}

func quantities(name corev1.ResourceName, request, limit string) *v1alpha1.Resources {
	return &v1alpha1.Resources{
		Requests: corev1.ResourceList{name: resource.MustParse(request)}, Limits: corev1.ResourceList{name: resource.MustParse(limit)},
	}
}

// deadWebhook has the API server ask somebody about ConfigMaps who does not answer.
func deadWebhook(t testing.TB, namespace string) func(testing.TB) {
	t.Helper()
	webhook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "dead." + namespace}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "dead.example.com", FailurePolicy: new(admissionv1.Fail), SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ClientConfig:      admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.OperationAll},
			Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}},
	}}}
	create(t, webhook)
	eventually(t, func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}}
		if err := server.client.Create(context.Background(), probe, client.DryRunAll); err == nil {
			return errors.New("nobody is asked yet")
		}
		return nil
	})
	return func(t testing.TB) {
		if err := server.client.Delete(context.Background(), webhook); err != nil {
			t.Fatal(err)
		}
	}
}

// podsRefused plays the controller that makes pods, or cannot.
func podsRefused(t testing.TB, namespace string, status corev1.ConditionStatus) {
	t.Helper()
	eventually(t, func() error {
		d := get(t, &appsv1.Deployment{}, namespace, called("shop-collector", namespace))
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: status, Reason: "FailedCreate",
			Message: `pods "shop-collector-1" is forbidden: minimum cpu usage per Container is 1, but request is 50m`,
		}}}
		return server.client.Status().Update(context.Background(), d)
	})
}

// TestWhatTheServerRefusesIsAConditionInItsWords has the API server refuse things, and lets them pass again.
func TestWhatTheServerRefusesIsAConditionInItsWords(t *testing.T) {
	rows, namespaces := refusals(), map[string]string{}
	if len(rows) < 29 {
		t.Fatalf("there are %d rows", len(rows))
	}
	var all []string
	for sentence := range rows {
		namespaces[sentence] = newNamespace(t)
		all = append(all, namespaces[sentence])
		grant(t, namespaces[sentence], "")
	}
	startOperator(t, operatorOptions{namespaces: all, user: bounded, Options: controllers.Options{
		RedisURL: redistest.URL(t), LongestBackoff: time.Second,
		Exposure: controllers.ExposureRules{AllowedHosts: map[string][]string{"*": {"*"}}, AllowedAnnotations: []string{"*"}, HostTemplate: "{name}.{namespace}.example.com"},
		Pods:     controllers.PodRules{AllowedAnnotations: []string{"*"}, AllowedTolerations: []string{"*"}},
	}})
	t.Run("rows", func(t *testing.T) {
		for sentence, row := range rows {
			t.Run(sentence, func(t *testing.T) {
				t.Parallel()
				row.run(t, namespaces[sentence])
			})
		}
	})
}

func (row refused) run(t *testing.T, namespace string) {
	name := called("shop", namespace)
	lift := func(t testing.TB) {
		editing(func(s *v1alpha1.PropertySpec) {
			s.Collector, s.Exposure = v1alpha1.Collector{}, v1alpha1.Exposure{Type: v1alpha1.ExposureNone}
		})(t, namespace)
	}
	late := row.change != nil
	if row.cause != nil && !late {
		lift = row.cause(t, namespace)
	}
	create(t, property(namespace, name, func(p *v1alpha1.Property) {
		if slices.Contains(row.stands, "Ingress shop-collector") {
			exposed()(&p.Spec)
		}
		if row.spec != nil {
			row.spec(&p.Spec)
		}
	}))
	if late {
		waitFor(t, namespace, name, v1alpha1.ConditionWorkloadsAvailable, metav1.ConditionFalse, v1alpha1.ReasonProgressing)
		lift = row.cause(t, namespace)
		row.change(t, namespace)
	}
	reason := row.reason
	if reason == "" {
		reason = v1alpha1.ReasonRefused
	}
	p := waitFor(t, namespace, name, row.condition, metav1.ConditionFalse, reason)
	eventually(t, func() error { return row.told(get(t, p, namespace, name), reason) })
	eventually(t, func() error {
		there := owned(t, p)
		for _, one := range row.stands {
			if there[called(one, namespace)] == "" {
				return fmt.Errorf("there is no %s: it waits for what is refused", one)
			}
		}
		return nil
	})
	lift(t)
	eventually(t, func() error {
		get(t, p, namespace, name)
		for _, kind := range []string{v1alpha1.ConditionCredentialsReady, v1alpha1.ConditionRedisReady, v1alpha1.ConditionExposed, v1alpha1.ConditionWorkloadsAvailable} {
			found := meta.FindStatusCondition(p.Status.Conditions, kind)
			if found == nil || (found.Status != metav1.ConditionTrue && found.Reason != v1alpha1.ReasonProgressing) {
				return fmt.Errorf("it is over, and %s is still %+v", kind, found)
			}
		}
		return nil
	})
}

// told says whether the Property and an event of it tell what was refused.
func (row refused) told(p *v1alpha1.Property, reason string) error {
	text := message(p, row.condition)
	for _, words := range row.says {
		if !strings.Contains(text, called(words, p.Namespace)) {
			return fmt.Errorf("%s does not say %q: %s", row.condition, words, text)
		}
	}
	if len(text) > 4096 {
		return fmt.Errorf("the message has %d bytes", len(text))
	}
	if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
		return errors.New("it is Ready all the same")
	}
	if kind := v1alpha1.ConditionRedisReady; row.condition != kind && row.condition != v1alpha1.ConditionReady && !meta.IsStatusConditionTrue(p.Status.Conditions, kind) &&
		!strings.Contains(message(p, kind), row.says[len(row.says)-1]) {
		return fmt.Errorf("it has not its users in Redis: %s", message(p, kind))
	}
	var list eventsv1.EventList
	if err := server.client.List(context.Background(), &list, client.InNamespace(p.Namespace)); err != nil {
		return err
	}
	for _, event := range list.Items {
		if event.Reason == row.condition+"False" && event.Action == reason && strings.Contains(event.Note, called(row.says[0], p.Namespace)) {
			return nil
		}
	}
	return fmt.Errorf("no event says so, among %d", len(list.Items))
}

// TestWhatASecretHoldsIsInNoRefusal has policies repeat what is in a Secret that they refuse.
func TestWhatASecretHoldsIsInNoRefusal(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		secret, key string
		operation   admissionv1.OperationType
		condition   string
		change      func(*v1alpha1.PropertySpec)
	}{
		"a key that is made":              {"credentials", "api-key.default", admissionv1.Create, v1alpha1.ConditionCredentialsReady, nil},
		"a token that is made, in base64": {"credentials", "access-token.default", admissionv1.Create, v1alpha1.ConditionCredentialsReady, nil},
		"a password":                      {"redis-query", "password", admissionv1.Create, v1alpha1.ConditionRedisReady, nil},
		"a password in a URL":             {"redis-query", "url", admissionv1.Create, v1alpha1.ConditionRedisReady, nil},
		"the hashes of keys":              {"api-keys", "api-keys.json", admissionv1.Create, v1alpha1.ConditionWorkloadsAvailable, nil},
		"the hashes of tokens, in base64": {"access-tokens", "access-tokens.json", admissionv1.Create, v1alpha1.ConditionWorkloadsAvailable, nil},
		"a key that stands beside a new one": {"credentials", "api-key.default", admissionv1.Update, v1alpha1.ConditionCredentialsReady, func(s *v1alpha1.PropertySpec) {
			s.APIKeys = append(s.APIKeys, v1alpha1.PropertyAPIKey{Name: "next"})
		}},
	}
	for sentence, row := range rows {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			namespace, logged := newNamespace(t), &lockedBuffer{}
			name := called("shop", namespace)
			startOperator(t, operatorOptions{
				namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), LongestBackoff: time.Second},
				log: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			policy := func() {
				says := fmt.Sprintf(`"it holds [" + string(object.data[%q]) + "]"`, row.key)
				denySaying(t, namespace, "", "secrets", name+"-"+row.secret, row.operation, says)
			}
			if row.change == nil {
				policy()
			}
			create(t, property(namespace, name))
			if row.change != nil {
				settled(t, namespace, name)
				policy()
				editing(row.change)(t, namespace)
			}
			p := waitFor(t, namespace, name, row.condition, metav1.ConditionFalse, v1alpha1.ReasonRefused)
			if text := message(p, row.condition); !strings.Contains(text, "it holds […]") {
				t.Errorf("the condition says %q", text)
			}
			said := ""
			eventually(t, func() error {
				var list eventsv1.EventList
				if err := server.client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
					return err
				}
				for _, event := range list.Items {
					said += event.Note + "\n"
				}
				if !strings.Contains(said, "it holds [") || !strings.Contains(logged.String(), "it holds [") {
					return errors.New("neither an event nor the log says so")
				}
				return nil
			})
			for where, text := range map[string]string{"an event": said, "the log": logged.String()} {
				if strings.Contains(strings.ReplaceAll(text, "it holds […]", ""), "it holds [") {
					t.Errorf("%s repeats it", where)
				}
			}
		})
	}
}

func TestTheValuesOfASecretAreTakenOutOfAnError(t *testing.T) {
	held := map[string][]byte{"password": []byte("correct horse"), "short": []byte("to"), "empty": nil}
	for sentence, row := range map[string]struct{ answer, want string }{
		"a value in the clear":         {"not [correct horse]", "not […]"},
		"a value in base64":            {"not [Y29ycmVjdCBob3JzZQ==]", "not […]"},
		"a value twice":                {"correct horse, correct horse", "…, …"},
		"what is in any text stays":    {"not to be", "not to be"},
		"and so does what is no value": {"a correct answer", "a correct answer"},
	} {
		t.Run(sentence, func(t *testing.T) {
			want := "cannot create Secret shop: " + row.want
			if got := controllers.ObjectFailed(held, errors.New(row.answer)).Error(); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
}

func TestAStatusThatIsRefusedIsAnEvent(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	name := called("shop", namespace)
	grant(t, namespace, "properties/status", "patch")
	startOperator(t, operatorOptions{namespaces: []string{namespace}, user: bounded, Options: controllers.Options{RedisURL: redistest.URL(t), LongestBackoff: time.Second}})
	create(t, property(namespace, name))
	eventually(t, func() error {
		var list eventsv1.EventList
		if err := server.client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Reason != "StatusNotWritten" {
				continue
			}
			if event.Type != corev1.EventTypeWarning || event.Action != v1alpha1.ReasonRefused || event.Regarding.Name != name {
				t.Errorf("it is a %s about %s, of the action %s", event.Type, event.Regarding.Name, event.Action)
			}
			for _, words := range []string{"write the status of Property " + name, `cannot patch resource "properties/status"`} {
				if !strings.Contains(event.Note, words) {
					t.Errorf("%q does not say %q", event.Note, words)
				}
			}
			return nil
		}
		return fmt.Errorf("no event says so, among %d", len(list.Items))
	})
	p := get(t, &v1alpha1.Property{}, namespace, name)
	if len(p.Status.Conditions) > 0 {
		t.Error("the status has been written")
	}
	eventually(t, func() error { // all else is made
		if there := owned(t, p); there["Deployment "+name+"-query"] == "" {
			return errors.New("there is no Deployment")
		}
		return nil
	})
	grant(t, namespace, "")
	settled(t, namespace, name)
}

func TestADeadRedisIsSaidWhateverElseIsRefused(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	name := called("shop", namespace)
	redisServer := redistest.Start(t, redisserver.Options{})
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redisServer.URL(), LongestBackoff: time.Second}})
	create(t, property(namespace, name))
	settled(t, namespace, name)
	ctx := context.Background()
	rows := map[string]struct {
		group, resource, name string
		operation             admissionv1.OperationType
		provoke               func()
	}{
		"a Deployment": {"apps", "deployments", "shop-query", admissionv1.Update, func() {
			editing(func(s *v1alpha1.PropertySpec) { s.Query.NodeSelector = map[string]string{"disk": "fast"} })(t, namespace)
		}},
		"the credentials": {"", "secrets", "shop-credentials", admissionv1.Update, func() {
			editing(func(s *v1alpha1.PropertySpec) { s.AccessTokens = []v1alpha1.PropertyAccessToken{{Name: "next"}} })(t, namespace)
		}},
		"a user's Secret": {"", "secrets", "shop-redis-query", admissionv1.Create, func() {
			if err := server.client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-redis-query"}}); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for what, row := range rows {
		t.Run("with "+what+" refused", func(t *testing.T) {
			lift := deny(t, namespace, row.group, row.resource, called(row.name, namespace), row.operation)
			row.provoke()
			eventually(t, func() error {
				p := get(t, &v1alpha1.Property{}, namespace, name)
				for _, condition := range p.Status.Conditions {
					if condition.Reason == v1alpha1.ReasonRefused {
						return nil
					}
				}
				return errors.New("nothing is refused yet")
			})
			if err := redisServer.Kill(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, namespace, name, v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisUnreachable)
			if err := redisServer.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			lift(t)
			settled(t, namespace, name)
		})
	}
}

// TestNothingWaitsForLongerThanHalfAMinute bounds what an operator waits whom nobody tells that a quota was raised.
func TestNothingWaitsForLongerThanHalfAMinute(t *testing.T) {
	backoff := controllers.Backoff(0)
	shop := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shops", Name: "shop"}}
	var total time.Duration
	for i := range 1000 {
		wait := backoff.When(shop)
		total += wait
		if wait > 30*time.Second {
			t.Fatalf("after %d failures the wait is %v", i+1, wait)
		}
		if i == 4 && total > 5*time.Second {
			t.Errorf("five attempts take %v", total)
		}
	}
	if wait := backoff.When(shop); wait != 30*time.Second {
		t.Errorf("after a thousand failures the wait is %v, want 30s", wait)
	}
	old, changed := property("shops", "shop"), property("shops", "shop")
	old.Generation, changed.Generation = 1, 2
	old.ResourceVersion, changed.ResourceVersion = "1", "2"
	if !controllers.IsNews(backoff, old, changed) {
		t.Error("another spec is no news")
	}
	if wait := backoff.When(shop); wait > time.Second {
		t.Errorf("with another spec the wait is %v", wait)
	}
	changed.Generation = 1
	changed.Status.CollectURL = "http://shop"
	if controllers.IsNews(backoff, old, changed) {
		t.Error("its own status makes the operator try again at once")
	}
	if changed.Status = old.Status; !controllers.IsNews(backoff, old, changed) {
		t.Error("other metadata, or the periodic look, is no news")
	}
}
