package charts_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The namespaces of the rights that are looked at: of the release that serves one, of the one that serves all, and of tenants.
const (
	someRelease, allRelease = "rights-some", "rights-all"
	served, unserved        = "rights-shops", "rights-blogs"
)

// accounts are who asks, by a name for the table.
var accounts = map[string]string{
	"operator of one namespace":  "system:serviceaccount:" + someRelease + ":some-weir-operator",
	"operator of all namespaces": "system:serviceaccount:" + allRelease + ":all-weir-operator",
	"collector":                  "system:serviceaccount:" + served + ":shop-collector",
	"deliverer":                  "system:serviceaccount:" + served + ":shop-deliverer",
	"query":                      "system:serviceaccount:" + served + ":shop-query",
	"Redis and helm test":        "system:serviceaccount:" + someRelease + ":default",
	"tenant":                     "tenant",
}

// installRights applies what gives rights of two releases, and makes a tenant of one who may edit Properties and nothing else.
func installRights(t *testing.T) {
	t.Helper()
	for _, name := range []string{someRelease, allRelease, served, unserved} {
		makeNamespace(t, name)
	}
	for name, args := range map[string][]string{
		"some": {"--namespace", someRelease, "--set", "watchNamespaces={" + served + "},rbac.aggregateRoles=false"},
		"all":  {"--namespace", allRelease, "--set", "clusterWide=true"},
	} {
		rendered := runHelm(t, append([]string{"template", name, chart, "--set", "crds.install=false"}, args...)...)
		for _, object := range objects(t, rendered) {
			if group := object.GroupVersionKind().Group; group != rbacv1.GroupName && group != "admissionregistration.k8s.io" {
				continue
			}
			err := cluster.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.ForceOwnership, client.FieldOwner("helm"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := client.IgnoreNotFound(cluster.client.Delete(context.Background(), object)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	tenant := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "all-weir-edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant"}},
	}
	if err := cluster.client.Create(t.Context(), tenant); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// right is one thing to ask for: "VERB RESOURCE[.GROUP][/SUBRESOURCE][=NAME] [NAMESPACE]", without a namespace for the cluster.
type right string

func (r right) attributes(t *testing.T) *authorizationv1.ResourceAttributes {
	t.Helper()
	words := strings.Fields(string(r))
	if len(words) < 2 || len(words) > 3 {
		t.Fatalf("%q is no right", r)
	}
	a := &authorizationv1.ResourceAttributes{Verb: words[0]}
	if len(words) == 3 {
		a.Namespace = words[2]
	}
	resource, name, _ := strings.Cut(words[1], "=")
	resource, a.Subresource, _ = strings.Cut(resource, "/")
	a.Name = name
	a.Resource, a.Group, _ = strings.Cut(resource, ".")
	return a
}

// TestTheMatrixOfRights asks a real API server what each part may do. What is not in the list of an account it may not do.
func TestTheMatrixOfRights(t *testing.T) {
	installRights(t)
	in := func(namespace string, rights ...string) []right {
		var list []right
		for _, r := range rights {
			list = append(list, right(strings.TrimSpace(r+" "+namespace)))
		}
		return list
	}
	work := []string{
		"get secrets", "list secrets", "watch secrets", "create secrets", "update secrets", "delete secrets", "patch pods", "create serviceaccounts",
		"patch serviceaccounts", "create deployments.apps", "patch deployments.apps", "patch properties.weir.dev/status", "create ingresses.networking.k8s.io",
		"list accesstokens.weir.dev", "patch accesstokens.weir.dev", "patch accesstokens.weir.dev/status", "watch apikeys.weir.dev", "patch apikeys.weir.dev/status",
		"get leases.coordination.k8s.io=operator.weir.dev", "create leases.coordination.k8s.io=operator.weir.dev", "update leases.coordination.k8s.io=operator.weir.dev",
	}
	never := []string{
		"create serviceaccounts/token", "create pods", "delete pods", "create pods/exec", "create pods/ephemeralcontainers", "get pods/log", "update pods/ephemeralcontainers",
		"create rolebindings.rbac.authorization.k8s.io", "create roles.rbac.authorization.k8s.io", "impersonate serviceaccounts", "create properties.weir.dev",
		"delete properties.weir.dev", "create leases.coordination.k8s.io", "update leases.coordination.k8s.io=kube-scheduler", "delete leases.coordination.k8s.io=operator.weir.dev",
		"create accesstokens.weir.dev", "create apikeys.weir.dev", "attribute accesstokens.weir.dev", "get properties.weir.dev/events",
		"create properties.weir.dev/replay", "create properties.weir.dev/erasures",
		"deletecollection secrets", "create daemonsets.apps", "create jobs.batch", "create persistentvolumeclaims", "get persistentvolumeclaims", "create endpoints",
	}
	ofTheCluster := []string{
		"get nodes", "get nodes/proxy", "list namespaces", "create namespaces", "update customresourcedefinitions.apiextensions.k8s.io",
		"create clusterroles.rbac.authorization.k8s.io", "bind clusterroles.rbac.authorization.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io",
		"create clusterrolebindings.rbac.authorization.k8s.io", "impersonate users", "impersonate groups", "create tokenreviews.authentication.k8s.io",
		"delete validatingadmissionpolicies.admissionregistration.k8s.io", "create mutatingwebhookconfigurations.admissionregistration.k8s.io",
		"create persistentvolumes", "approve certificatesigningrequests.certificates.k8s.io", "list secrets", "list properties.weir.dev",
	}
	var asked []right
	for _, namespace := range []string{served, unserved, "kube-system", someRelease} {
		asked = append(append(asked, in(namespace, work...)...), in(namespace, never...)...)
	}
	asked = append(asked, in("", ofTheCluster...)...)
	certificates := in(someRelease, "get secrets=some-weir-redis-tls", "update secrets=some-weir-redis-tls")
	asked = append(append(asked, certificates...), in(someRelease, "delete secrets=some-weir-redis-tls", "get secrets=some-weir-redis", "update secrets=some-weir-redis")...)

	allowed := map[string][]right{
		"operator of one namespace": in(served, work...),
		"tenant": in(served, "create properties.weir.dev", "delete properties.weir.dev", "create accesstokens.weir.dev", "patch accesstokens.weir.dev",
			"create apikeys.weir.dev", "get properties.weir.dev/events", "create properties.weir.dev/replay"),
	}
	// What it grants is what values.yaml and the notes say.
	for _, namespace := range []string{served, unserved, "kube-system", someRelease} {
		allowed["operator of all namespaces"] = append(allowed["operator of all namespaces"], in(namespace, work...)...)
	}
	allowed["operator of all namespaces"] = append(allowed["operator of all namespaces"], "list secrets", "list properties.weir.dev")
	allowed["operator of all namespaces"] = append(append(allowed["operator of all namespaces"], certificates...),
		in(someRelease, "delete secrets=some-weir-redis-tls", "get secrets=some-weir-redis", "update secrets=some-weir-redis")...)
	allowed["operator of one namespace"] = append(allowed["operator of one namespace"], certificates...)
	// Leader election, which is in the release's own namespace.
	allowed["operator of one namespace"] = append(allowed["operator of one namespace"], in(someRelease,
		"get leases.coordination.k8s.io=operator.weir.dev", "create leases.coordination.k8s.io=operator.weir.dev", "update leases.coordination.k8s.io=operator.weir.dev",
		"create leases.coordination.k8s.io", "update leases.coordination.k8s.io=kube-scheduler")...)

	for name, user := range accounts {
		t.Run(name, func(t *testing.T) {
			want := map[right]bool{}
			for _, r := range allowed[name] {
				want[r] = true
			}
			for _, r := range asked {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: user, Groups: groupsOf(user), ResourceAttributes: r.attributes(t),
				}}
				if err := cluster.client.Create(t.Context(), review); err != nil {
					t.Fatal(err)
				}
				if review.Status.Allowed != want[r] {
					t.Errorf("%s: allowed is %t, want %t", r, review.Status.Allowed, want[r])
				}
			}
		})
	}
}

func groupsOf(user string) []string {
	parts := strings.Split(user, ":")
	if len(parts) != 4 {
		return []string{"system:authenticated"}
	}
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + parts[2], "system:authenticated"}
}

// as returns a client with an account's rights.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groupsOf(user)}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var ofAProperty = []metav1.OwnerReference{{APIVersion: "weir.dev/v1alpha1", Kind: "Property", Name: "shop", UID: "1", Controller: new(true)}}

// rolesDeployment is one as the operator makes it, with an edit.
func rolesDeployment(edit func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": "shop"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "shop-collector", OwnerReferences: ofAProperty}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = corev1.PodSpec{
		ServiceAccountName: "shop-collector", AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{{Name: "weir", Image: "weir:test", SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)}}},
		Volumes:    []corev1.Volume{{Name: "redis", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "shop-redis-collector"}}}},
	}
	edit(d)
	return d
}

// redisStatefulSet is that of a Property's own Redis as the operator makes it, with an edit.
func redisStatefulSet(edit func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	pods := rolesDeployment(func(*appsv1.Deployment) {}).Spec
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "shop-redis", OwnerReferences: ofAProperty}}
	s.Spec = appsv1.StatefulSetSpec{Replicas: new(int32(1)), Selector: pods.Selector, Template: pods.Template, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
	}}}
	s.Spec.Template.Spec.ServiceAccountName = "shop-redis"
	first := s.Spec.Template.Spec.Containers[0]
	first.Name = "acl-file"
	s.Spec.Template.Spec.InitContainers = []corev1.Container{first}
	edit(s)
	return s
}

// TestThePolicyHoldsTheOperatorToWhatAPropertyIsMadeOf tries, with the account of the operator of all namespaces, what its role
// allows and nobody asked it to do.
func TestThePolicyHoldsTheOperatorToWhatAPropertyIsMadeOf(t *testing.T) {
	installRights(t)
	somebodys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: unserved, Name: "somebodys"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "somebodys", Annotations: map[string]string{"theirs": "1"}},
		Spec: rolesDeployment(func(*appsv1.Deployment) {}).Spec.Template.Spec}
	pod.Spec.ServiceAccountName = ""
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: "RuntimeDefault"}}
	pod.Spec.Containers[0].SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	named := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	certificates, elsewhere, password := named(allRelease, "all-weir-redis-tls"), named(served, "all-weir-redis-tls"), named(allRelease, "all-weir-redis")
	ledger := func(name, instance, managedBy string) *corev1.Secret {
		made := named(served, name)
		if instance != "" {
			made.Labels = map[string]string{"app.kubernetes.io/instance": instance, "app.kubernetes.io/managed-by": managedBy}
		}
		return made
	}
	kept, bare := ledger("blog-erasures", "blog", "weir"), ledger("forum-erasures", "", "")
	for _, object := range []client.Object{kept, bare, somebodys, pod, certificates, elsewhere, password} {
		if err := cluster.client.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	secret := func(namespace string, kind corev1.SecretType, owners []metav1.OwnerReference, annotations map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "made", OwnerReferences: owners, Annotations: annotations}, Type: kind}
	}
	create := func(object client.Object) func(client.Client) error {
		return func(c client.Client) error {
			return c.Create(context.Background(), object.DeepCopyObject().(client.Object), client.DryRunAll)
		}
	}
	fill := func(secret *corev1.Secret) func(client.Client) error {
		return func(c client.Client) error {
			changed := named(secret.Namespace, secret.Name)
			changed.Labels = secret.Labels
			changed.Data = map[string][]byte{"tls.crt": []byte("x")}
			return c.Update(context.Background(), changed, client.DryRunAll)
		}
	}
	redis := func(edit func(*appsv1.StatefulSet)) func(client.Client) error { return create(redisStatefulSet(edit)) }
	deployment := func(edit func(*appsv1.Deployment)) func(client.Client) error { return create(rolesDeployment(edit)) }
	patch := func(text string) func(client.Client) error {
		return func(c client.Client) error {
			return c.Patch(context.Background(), pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", []byte(text)), client.DryRunAll)
		}
	}
	tests := map[string]struct {
		do   func(client.Client) error
		want string // words of the refusal; "" where it is its work
	}{
		"a token of a ServiceAccount, as a Secret": {create(secret(served, corev1.SecretTypeServiceAccountToken, ofAProperty,
			map[string]string{"kubernetes.io/service-account.name": "default"})), "no ServiceAccount tokens"},
		"the same in kube-system": {create(secret("kube-system", corev1.SecretTypeServiceAccountToken, ofAProperty,
			map[string]string{"kubernetes.io/service-account.name": "default"})), "cluster's own namespaces"},
		"a Secret of no Property's":                         {create(secret(served, corev1.SecretTypeOpaque, nil, nil)), "only what a Property controls"},
		"a Secret of a Property's":                          {create(secret(served, corev1.SecretTypeOpaque, ofAProperty, nil)), ""},
		"a Secret of a Property's, kube-system":             {create(secret("kube-system", corev1.SecretTypeOpaque, ofAProperty, nil)), "cluster's own namespaces"},
		"a ledger of erasures, which outlives its Property": {create(ledger("shop-erasures", "shop", "weir")), ""},
		"a further part of a ledger":                        {create(ledger("shop-erasures-1", "shop", "weir")), ""},
		"a ledger without the labels":                       {create(ledger("shop-erasures", "", "")), "only what a Property controls"},
		"a ledger with another Property's label":            {create(ledger("shop-erasures", "blog", "weir")), "only what a Property controls"},
		"another Secret with a ledger's labels":             {create(ledger("shop-keys", "shop", "weir")), "only what a Property controls"},
		"the ledger that it has made changed":               {fill(kept), ""},
		"somebody's Secret of a ledger's name changed":      {fill(bare), "only what a Property controls"},
		"a ledger that no Property controls deleted": {func(c client.Client) error {
			return c.Delete(context.Background(), kept.DeepCopy(), client.DryRunAll)
		}, "only what a Property controls"},
		"somebody's Secret deleted": {func(c client.Client) error {
			return c.Delete(context.Background(), somebodys.DeepCopy(), client.DryRunAll)
		}, "only what a Property controls"},
		"the certificates of its Redis":                  {fill(certificates), ""},
		"a Secret of the same name in another namespace": {fill(elsewhere), "only what a Property controls"},
		"another Secret of its own namespace":            {fill(password), "only what a Property controls"},
		"the Secret with the certificates of Redis, deleted": {func(c client.Client) error {
			return c.Delete(context.Background(), certificates.DeepCopy(), client.DryRunAll)
		}, "only what a Property controls"},
		"a Deployment as it makes them":     {deployment(func(*appsv1.Deployment) {}), ""},
		"a Deployment of no Property's":     {deployment(func(d *appsv1.Deployment) { d.OwnerReferences = nil }), "only what a Property controls"},
		"a Deployment with a token":         {deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.AutomountServiceAccountToken = new(true) }), "without a token"},
		"a Deployment with another account": {deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = "default" }), "accounts of their own"},
		"a Deployment with the node's files": {deployment(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		}), "mount ConfigMaps and Secrets alone"},
		"a Deployment with a projected token": {deployment(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "shop-erasures"}}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			}}}
		}), "mount ConfigMaps and Secrets alone"},
		"a Deployment with the parts of a ledger in one directory": {deployment(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "shop-erasures"}}},
			}}}
		}), ""},
		"a Deployment in the node's network": {deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = true }), "no access to their nodes"},
		"a privileged Deployment": {deployment(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}), "no access to their nodes"},
		"a Deployment with an init container": {deployment(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "weir:test"}}
		}), "accounts of their own"},
		"a Property's Redis as it makes it": {redis(func(*appsv1.StatefulSet) {}), ""},
		"a Redis of no Property's":          {redis(func(s *appsv1.StatefulSet) { s.OwnerReferences = nil }), "only what a Property controls"},
		"a StatefulSet that is no Redis":    {redis(func(s *appsv1.StatefulSet) { s.Name, s.Spec.Template.Spec.ServiceAccountName = "db", "db" }), "are a Property's Redis"},
		"a Redis with another account":      {redis(func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.ServiceAccountName = "default" }), "accounts of their own"},
		"a Redis with somebody's volume": {redis(func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "theirs"}}
		}), "mount ConfigMaps and Secrets alone"},
		"a Redis with another volume of a template": {redis(func(s *appsv1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Name = "theirs" }), "are a Property's Redis"},
		"a Redis with a privileged init container": {redis(func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.InitContainers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}), "no access to their nodes"},
		"a pod told of its configuration":   {patch(`{"metadata": {"annotations": {"weir.dev/config": "1"}}}`), ""},
		"a pod's image changed":             {patch(`{"metadata": {"annotations": {"weir.dev/config": "1"}}, "spec": {"containers": [{"name": "weir", "image": "evil"}]}}`), "nothing else"},
		"another annotation of a pod's":     {patch(`{"metadata": {"annotations": {"weir.dev/config": "1", "other": "1"}}}`), "nothing else"},
		"an annotation of a pod's, changed": {patch(`{"metadata": {"annotations": {"weir.dev/config": "1", "theirs": "2"}}}`), "nothing else"},
	}
	operator := as(t, accounts["operator of all namespaces"])
	deadline := time.Now().Add(30 * time.Second)
	for probe := tests["a Secret of no Property's"].do; probe(operator) == nil; { // a policy takes effect after a moment
		if time.Now().After(deadline) {
			t.Fatal("the policy has no effect")
		}
		<-time.After(100 * time.Millisecond)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.do(operator)
			if tt.want == "" {
				if err != nil {
					t.Errorf("it is refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("got %v, want a refusal with %q", err, tt.want)
			}
		})
	}
}
