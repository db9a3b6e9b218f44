package controllers_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// installPolicy makes the policy of credentials and its binding, as config/rbac has them.
func installPolicy(t *testing.T) {
	t.Helper()
	for file, object := range map[string]client.Object{
		"credentials_policy.yaml": &admissionv1.ValidatingAdmissionPolicy{}, "credentials_policy_binding.yaml": &admissionv1.ValidatingAdmissionPolicyBinding{},
	} {
		text, err := os.ReadFile("../config/rbac/" + file)
		if err == nil {
			err = yaml.UnmarshalStrict(text, object)
		}
		if err != nil {
			t.Fatal(err)
		}
		create(t, object)
		t.Cleanup(func() { remove(t, object) })
	}
}

// asUser is a client with a user's rights in a namespace: those that files in config/rbac give, and rules beside them.
func asUser(t *testing.T, namespace, user string, roles []string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	for _, role := range roles {
		text, err := os.ReadFile("../config/rbac/" + role + "_role.yaml")
		var read rbacv1.ClusterRole
		if err == nil {
			err = yaml.UnmarshalStrict(text, &read)
		}
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, read.Rules...)
	}
	create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: rules})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config := rest.CopyConfig(server.config)
	config.Impersonate.UserName = user
	c, err := client.New(config, client.Options{Scheme: server.scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ofWeir(resource, verb string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"weir.dev"}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
}

func TestNobodyMakesATokenWithMoreRightsThanTheirOwn(t *testing.T) {
	t.Parallel()
	namespace, elsewhere := newNamespace(t), newNamespace(t)
	installPolicy(t)
	makes := ofWeir("accesstokens", "create")
	users := map[string]client.Client{}
	for user, rights := range map[string]struct {
		roles []string
		rules []rbacv1.PolicyRule
	}{
		"viewer":  {[]string{"property_view"}, nil},
		"editor":  {[]string{"property_view", "property_edit"}, nil},
		"admin":   {[]string{"property_view", "property_edit", "property_admin"}, nil},
		"maker":   {nil, []rbacv1.PolicyRule{makes}},
		"one":     {nil, []rbacv1.PolicyRule{makes, ofWeir("properties/events", "get", "shop")}},
		"replays": {nil, []rbacv1.PolicyRule{makes, ofWeir("properties/replay", "create")}},
		"eraser":  {nil, []rbacv1.PolicyRule{makes, ofWeir("properties/events", "get"), ofWeir("properties/erasures", "create")}},
		"keyer":   {nil, []rbacv1.PolicyRule{ofWeir("apikeys", "create")}},
		"console": {[]string{"console"}, nil},
		"helpful": {[]string{"property_edit"}, []rbacv1.PolicyRule{ofWeir("accesstokens", "attribute")}},
	} {
		users[user] = asUser(t, namespace, user, rights.roles, rights.rules...)
	}
	token := func(edit ...func(*v1alpha1.AccessToken)) client.Object {
		return accessToken(namespace, "shop", "asked", edit...)
	}
	scope := func(s v1alpha1.AccessTokenScope) func(*v1alpha1.AccessToken) {
		return func(a *v1alpha1.AccessToken) { a.Spec.Scope = s }
	}
	by := func(name string) func(*v1alpha1.AccessToken) {
		return func(a *v1alpha1.AccessToken) { a.Spec.CreatedBy = name }
	}
	key := func(createdBy string) client.Object {
		key := apiKey(namespace, "shop", "asked", "wk_")
		key.Spec.CreatedBy = createdBy
		return key
	}
	eventually(t, func() error { // a policy takes effect after a moment
		if err := users["maker"].Create(context.Background(), token(), client.DryRunAll); err == nil {
			return fmt.Errorf("the policy has no effect yet")
		}
		return nil
	})
	for sentence, row := range map[string]struct {
		user   string
		object client.Object
		want   string // words of the refusal; "" where it is made
	}{
		"whoever may view makes none":                       {"viewer", token(), "cannot create resource"},
		"whoever may edit makes one that reads":             {"editor", token(), ""},
		"and one that replays":                              {"editor", token(scope("write")), ""},
		"but none that does everything":                     {"editor", token(scope("admin")), "scope admin takes the right to create properties/erasures of the Property shop, which editor does not have"},
		"an admin makes one that does everything":           {"admin", token(scope("admin")), ""},
		"the right to make tokens is not enough":            {"maker", token(), "get properties/events"},
		"nor is it for one that names its scope":            {"maker", token(scope("read")), "get properties/events"},
		"the right to read one Property is, for that one":   {"one", token(), ""},
		"but not for another":                               {"one", accessToken(namespace, "blog", "asked"), "of the Property blog"},
		"nor for more than reading":                         {"one", token(scope("write")), "create properties/replay"},
		"whoever may replay and not read makes none":        {"replays", token(scope("write")), "get properties/events"},
		"each scope takes the rights of those before it":    {"eraser", token(scope("admin")), "create properties/replay"},
		"rights in another namespace are none here":         {"admin", accessToken(elsewhere, "shop", "asked"), "cannot create resource"},
		"one's own name may stand there":                    {"editor", token(by("editor")), ""},
		"somebody else's may not":                           {"editor", token(by("admin")), "spec.createdBy: must be editor, or absent"},
		"an admin's rights do not change that":              {"admin", token(by("editor")), "spec.createdBy"},
		"the console says whose it is, which it may":        {"console", token(by("editor"), scope("admin")), ""},
		"for keys too":                                      {"console", key("editor"), ""},
		"which is a right of its own for each kind":         {"helpful", key("editor"), "spec.createdBy: must be helpful"},
		"a key takes the right to make keys alone":          {"keyer", key(""), ""},
		"with one's own name too":                           {"keyer", key("keyer"), ""},
		"and not with somebody else's":                      {"keyer", key("admin"), "spec.createdBy"},
		"who may make tokens makes no keys":                 {"one", key(""), "cannot create resource"},
		"what the definition forbids says the definition":   {"admin", token(func(a *v1alpha1.AccessToken) { a.Spec.SHA256 = "wt_" }), "never the token itself"},
		"a scope that there is not says the definition too": {"admin", token(scope("all")), "supported values"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := users[row.user].Create(context.Background(), row.object.DeepCopyObject().(client.Object), client.DryRunAll)
			if row.want == "" {
				if err != nil {
					t.Errorf("it is refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want a refusal with %q", err, row.want)
			}
		})
	}

	t.Run("a change widens nothing, and labels may be changed", func(t *testing.T) {
		ctx, made := context.Background(), accessToken(namespace, "shop", "made", scope("read"), by("editor"))
		if err := users["editor"].Create(ctx, made); err != nil {
			t.Fatal(err)
		}
		for name, patch := range map[string]string{
			"scope": `{"spec":{"scope":"admin"}}`, "Property": `{"spec":{"propertyRef":{"name":"blog"}}}`, "maker": `{"spec":{"createdBy":"admin"}}`,
			"no maker": `{"spec":{"createdBy":null}}`, "end": `{"spec":{"expirationTime":"2099-01-01T00:00:00Z"}}`,
		} {
			if err := users["admin"].Patch(ctx, made.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch))); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "immutable") {
				t.Errorf("another %s: %v, want it refused", name, err)
			}
		}
		labels := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"bi"}}}`))
		if err := users["editor"].Patch(ctx, made.DeepCopy(), labels); err != nil {
			t.Error(err)
		}
		status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"conditions":[]}}`))
		if err := users["admin"].Status().Patch(ctx, made.DeepCopy(), status); !apierrors.IsForbidden(err) {
			t.Errorf("a status of somebody's own: %v, want it forbidden", err)
		}
	})
}
