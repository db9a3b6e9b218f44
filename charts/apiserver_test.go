package charts_test

import (
	standard "cmp"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// namespaces are made once; they enforce restricted Pod Security.
var namespaces sync.Map

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	once, _ := namespaces.LoadOrStore(name, sync.OnceValue(func() error {
		return cluster.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}})
	}))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
}

// TestTheAPIServerAcceptsEverything applies every object of every value set as a dry run, in namespaces that enforce
// restricted Pod Security, with unknown fields refused. Pods are made from the workloads, for Pod Security judges pods alone.
func TestTheAPIServerAcceptsEverything(t *testing.T) {
	for _, namespace := range []string{releaseNamespace, "shops", "blogs"} {
		makeNamespace(t, namespace)
	}
	strict := client.WithFieldValidation(cluster.client, metav1.FieldValidationStrict)
	for name, path := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := objects(t, renderSet(t, path))
			if len(list) == 0 {
				t.Fatal("nothing is rendered")
			}
			for _, object := range list {
				err := strict.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
					client.DryRunAll, client.ForceOwnership, client.FieldOwner("helm"))
				if err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
				if pod := podOf(t, object); pod != nil {
					if err := strict.Create(t.Context(), pod, client.DryRunAll); err != nil {
						t.Errorf("the pod of %s %s: %v", object.GetKind(), object.GetName(), err)
					}
				}
			}
		})
	}
}

// TestTheDryRunWouldNotice shows that the test above can fail.
func TestTheDryRunWouldNotice(t *testing.T) {
	makeNamespace(t, releaseNamespace)
	deployment := find(t, objects(t, render(t, everywhere...)), "Deployment", "weir-operator")
	pod := podOf(t, deployment)
	pod.Spec.SecurityContext.RunAsNonRoot = nil
	if err := cluster.client.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("a pod that may be root: %v, want it forbidden", err)
	}
	if err := unstructured.SetNestedField(deployment.Object, "x", "spec", "template", "spec", "priorityClass"); err != nil {
		t.Fatal(err)
	}
	err := client.WithFieldValidation(cluster.client, metav1.FieldValidationStrict).Apply(t.Context(),
		client.ApplyConfigurationFromUnstructured(deployment), client.DryRunAll, client.FieldOwner("helm"))
	if err == nil || !strings.Contains(err.Error(), "priorityClass") {
		t.Errorf("an unknown field: %v, want it refused by name", err)
	}
}

// podOf is the pod that a workload makes, nil for what makes none. The priority class and the service account are left
// out: admission looks those up, and a dry run has not made them.
func podOf(t *testing.T, object *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	if object.GetKind() != "Deployment" && object.GetKind() != "StatefulSet" {
		return nil
	}
	var template corev1.PodTemplateSpec
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(nested[map[string]any](t, object, "spec", "template"), &template)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = object.GetNamespace(), object.GetName()+"-dry-run"
	pod.Spec.PriorityClassName, pod.Spec.ServiceAccountName = "", ""
	if object.GetKind() == "StatefulSet" { // its claims become volumes
		claims, _, err := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
		if err != nil {
			t.Fatal(err)
		}
		for range claims {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + object.GetName() + "-0"},
			}})
		}
	}
	return pod
}

func TestTheDefinitionsAreThoseOfTheRepository(t *testing.T) {
	bound, loose := objects(t, render(t, everywhere...)), objects(t, render(t, "--set", "clusterWide=true,crds.keep=false"))
	for _, resource := range []string{"properties", "accesstokens", "apikeys"} {
		source := &unstructured.Unstructured{}
		readYAML(t, "../config/crd/bases/weir.dev_"+resource+".yaml", &source.Object)
		rendered := find(t, bound, "CustomResourceDefinition", source.GetName())
		if diff := cmp.Diff(jsonOf(t, source.Object["spec"]), jsonOf(t, rendered.Object["spec"])); diff != "" {
			t.Errorf("%s: spec (-config/crd +chart):\n%s", resource, diff)
		}
		if got := rendered.GetAnnotations()["helm.sh/resource-policy"]; got != "keep" {
			t.Errorf("%s: helm.sh/resource-policy is %q", resource, got)
		}
		if _, found := find(t, loose, "CustomResourceDefinition", source.GetName()).GetAnnotations()["helm.sh/resource-policy"]; found {
			t.Errorf("%s: it is kept, although crds.keep is false", resource)
		}
	}
}

// TestTheOperatorAndTheConsoleMayDoNoMoreThanTheyNeed compares the rights in both scopes with config/rbac, which controllers' markers make.
func TestTheOperatorAndTheConsoleMayDoNoMoreThanTheyNeed(t *testing.T) {
	source := &rbacv1.ClusterRole{}
	readYAML(t, "../config/rbac/role.yaml", source)
	election := &rbacv1.Role{}
	readYAML(t, "../config/rbac/leader_election_role.yaml", election)
	console := &rbacv1.ClusterRole{}
	readYAML(t, "../config/rbac/console_role.yaml", console)
	fills := func(secret string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get", "update"}}}
	}
	certificates, keys := fills("weir-redis-tls"), fills("weir-console-keys")
	reviews := []rbacv1.PolicyRule{{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}}}
	const withConsole = "console.enabled=true,console.url=https://c.example.com,console.oidc.issuerURL=https://id.example.com,console.oidc.clientID=weir"
	tests := map[string]struct {
		args []string
		// account is whose, the operator's where it is "".
		account string
		// want are the rules by kind, namespace and name.
		want map[string][]rbacv1.PolicyRule
	}{
		"for all namespaces": {everywhere, "", map[string][]rbacv1.PolicyRule{
			"ClusterRole/weir-operator":                         source.Rules,
			"Role weir-system/weir-operator-leader-election":    election.Rules,
			"Role weir-system/weir-operator-redis-certificates": certificates,
		}},
		"for two namespaces": {[]string{"--set", "watchNamespaces={shops,blogs}"}, "", map[string][]rbacv1.PolicyRule{
			"Role shops/weir-operator":                          source.Rules,
			"Role blogs/weir-operator":                          source.Rules,
			"Role weir-system/weir-operator-leader-election":    election.Rules,
			"Role weir-system/weir-operator-redis-certificates": certificates,
		}},
		"with certificates of somebody else's": {[]string{"--set", "watchNamespaces={shops},redis.tls.existingSecret=theirs"}, "", map[string][]rbacv1.PolicyRule{
			"Role shops/weir-operator":                       source.Rules,
			"Role weir-system/weir-operator-leader-election": election.Rules,
		}},
		"for a console's keys": {[]string{"--set", "watchNamespaces={shops},redis.tls.existingSecret=theirs," + withConsole}, "", map[string][]rbacv1.PolicyRule{
			"Role shops/weir-operator":                       source.Rules,
			"Role weir-system/weir-operator-leader-election": election.Rules,
			"Role weir-system/weir-operator-console-keys":    keys,
		}},
		"the console's for all namespaces": {[]string{"--set", "clusterWide=true," + withConsole}, "weir-console", map[string][]rbacv1.PolicyRule{
			"ClusterRole/weir-console": console.Rules, "ClusterRole/weir-console-reviews": reviews,
		}},
		"the console's for two namespaces": {[]string{"--set", "watchNamespaces={shops,blogs}," + withConsole}, "weir-console", map[string][]rbacv1.PolicyRule{
			"Role shops/weir-console": console.Rules, "Role blogs/weir-console": console.Rules, "ClusterRole/weir-console-reviews": reviews,
		}},
		"no console's where there is none":            {everywhere, "weir-console", map[string][]rbacv1.PolicyRule{}},
		"none where they are somebody else's to give": {[]string{"--set", "rbac.create=false,clusterWide=true," + withConsole}, "", map[string][]rbacv1.PolicyRule{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, boundRules(t, objects(t, render(t, tt.args...)), standard.Or(tt.account, "weir-operator"))); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

// boundRules are the rules that bindings give to an account of the chart's.
func boundRules(t *testing.T, list []*unstructured.Unstructured, name string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	bound := map[string][]rbacv1.PolicyRule{}
	for _, object := range list {
		if !strings.HasSuffix(object.GetKind(), "RoleBinding") {
			continue
		}
		var binding rbacv1.RoleBinding // the two kinds have the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
			t.Fatal(err)
		}
		account := func(name string) []rbacv1.Subject {
			return []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: releaseNamespace}}
		}
		switch {
		case slices.Equal(binding.Subjects, account(name)):
		case slices.Equal(binding.Subjects, account("weir-operator")), slices.Equal(binding.Subjects, account("weir-console")):
			continue
		default:
			t.Errorf("%s %s is for %v", binding.Kind, binding.Name, binding.Subjects)
		}
		role := &rbacv1.ClusterRole{}
		i := slices.IndexFunc(list, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == binding.RoleRef.Kind && o.GetName() == binding.RoleRef.Name && o.GetNamespace() == binding.Namespace
		})
		if i < 0 {
			t.Fatalf("%s %s binds a role that is not there", binding.Kind, binding.Name)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, role); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprintf("%s %s/%s", role.Kind, role.Namespace, role.Name)
		bound[strings.Replace(key, " /", "/", 1)] = role.Rules
	}
	return bound
}

func TestViewEditAndAdminAreThoseOfTheRepository(t *testing.T) {
	list := objects(t, render(t, everywhere...))
	for _, name := range []string{"view", "edit", "admin"} {
		source, rendered := &rbacv1.ClusterRole{}, &rbacv1.ClusterRole{}
		readYAML(t, "../config/rbac/property_"+name+"_role.yaml", source)
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, list, "ClusterRole", "weir-"+name).Object, rendered)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(source.Rules, rendered.Rules) {
			t.Errorf("%s: rules are %v, want %v", name, rendered.Rules, source.Rules)
		}
		for key, want := range source.Labels {
			if rendered.Labels[key] != want {
				t.Errorf("%s: label %s is %q, want %q", name, key, rendered.Labels[key], want)
			}
		}
	}
}

// TestThePolicyOfCredentialsIsThatOfTheRepository, which has its test with the definitions' own.
func TestThePolicyOfCredentialsIsThatOfTheRepository(t *testing.T) {
	source := &unstructured.Unstructured{}
	readYAML(t, "../config/rbac/credentials_policy.yaml", &source.Object)
	const kind, name = "ValidatingAdmissionPolicy", "weir-credentials-weir-system"
	for sentence, tt := range map[string]struct {
		args []string
		want bool
	}{
		"where the release makes the definitions":                  {[]string{"--set", "watchNamespaces={shops}"}, true},
		"where it serves all namespaces":                           {everywhere, true},
		"not where somebody else makes the definitions":            {[]string{"--set", "watchNamespaces={shops},crds.install=false"}, false},
		"but where it is asked for":                                {[]string{"--set", "watchNamespaces={shops},crds.install=false,rbac.credentialsPolicy=true"}, true},
		"not where it is not wanted":                               {[]string{"--set", "watchNamespaces={shops},rbac.credentialsPolicy=false"}, false},
		"not before Kubernetes 1.30, which does not have the kind": {[]string{"--set", "watchNamespaces={shops}", "--kube-version", "1.29.14"}, false},
		"with a provider's build of 1.30":                          {[]string{"--set", "watchNamespaces={shops}", "--kube-version", "v1.30.0-eks-1"}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			list := objects(t, render(t, tt.args...))
			has := func(kind string) bool {
				return slices.ContainsFunc(list, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
			}
			if has(kind) != tt.want || has(kind+"Binding") != tt.want {
				t.Fatalf("policy %t, binding %t, want %t", has(kind), has(kind+"Binding"), tt.want)
			}
			if !tt.want {
				return
			}
			if diff := cmp.Diff(jsonOf(t, source.Object["spec"]), jsonOf(t, find(t, list, kind, name).Object["spec"])); diff != "" {
				t.Errorf("spec (-config/rbac +chart):\n%s", diff)
			}
		})
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
