package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
)

// digest is a SHA-256 in digits, another for each text.
func digest(text string) string {
	hash := auth.HashOf(text)
	digits, _ := hash.MarshalText() // it never fails
	return string(digits)
}

// TestPeopleMakeWhatTheyMay makes keys and tokens as people of several rights, and of several mistakes.
func TestPeopleMakeWhatTheyMay(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	newProperty(t, namespace, "shop")
	people := map[string]*browser{}
	for name, rights := range map[string][]string{
		"viewer": viewer, "editor": editor, "chief": chief, "reader": {"get properties/events", "create,list accesstokens"}, "sender": {"get properties", "create apikeys,accesstokens"},
	} {
		who := name + "-" + namespace
		grant(t, "User", who, namespace, rights...)
		people[name] = c.as(who)
	}
	people["stranger"] = c.as("stranger-" + namespace)
	people["nobody"] = c.browser()
	body := func(change ...string) string {
		members := map[string]any{"name": "bi", "sha256": digest(t.Name()), "scope": "read", "expires_at": nil}
		for i := 0; i < len(change); i += 2 {
			if members[change[i]] = change[i+1]; change[i+1] == "" {
				delete(members, change[i])
			}
		}
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tests := map[string]struct {
		who, kind, body string
		header          []string
		status          int
		// want is in the answer.
		want string
	}{
		"an editor makes a token that reads":                       {who: "editor", kind: "tokens", body: body("name", "t1"), status: 201, want: `{"data":{"name":"t1","scope":"read","expires_at":null,"created_at":"`},
		"an editor makes one that writes":                          {who: "editor", kind: "tokens", body: body("name", "t2", "scope", "write"), status: 201, want: `"created_by":"editor-` + namespace + `","state":"pending","reason":"","message":"","from":"object"}}`},
		"an editor makes none that administers":                    {who: "editor", kind: "tokens", body: body("name", "t3", "scope", "admin"), status: 403, want: "may do more than you"},
		"an admin makes one that administers":                      {who: "chief", kind: "tokens", body: body("name", "t4", "scope", "admin", "expires_at", "2099-01-02T03:04:05+01:00"), status: 201, want: `"expires_at":"2099-01-02T02:04:05Z"`},
		"a reader who may make tokens makes one that reads":        {who: "reader", kind: "tokens", body: body("name", "t5"), status: 201, want: `"scope":"read"`},
		"a reader who may make tokens makes none that writes":      {who: "reader", kind: "tokens", body: body("name", "t6", "scope", "write"), status: 403, want: "may do more than you"},
		"one who may not read makes no token though RBAC says so":  {who: "sender", kind: "tokens", body: body("name", "t7"), status: 403, want: "may do more than you"},
		"one who may not read makes a key where RBAC says so":      {who: "sender", kind: "keys", body: body("name", "k1", "scope", ""), status: 201, want: `"publishable":false`},
		"an editor makes a key":                                    {who: "editor", kind: "keys", body: body("name", "k2", "scope", ""), status: 201, want: `"from":"object"`},
		"a viewer makes no token":                                  {who: "viewer", kind: "tokens", body: body("name", "t8"), status: 403, want: "verb create on accesstokens"},
		"a viewer makes no key":                                    {who: "viewer", kind: "keys", body: body("name", "k3", "scope", ""), status: 403, want: "verb create on apikeys"},
		"a reader makes no key":                                    {who: "reader", kind: "keys", body: body("name", "k4", "scope", ""), status: 403, want: "verb create on apikeys"},
		"who may see nothing is told nothing":                      {who: "stranger", kind: "tokens", body: body("name", "t9"), status: 404, want: "Property not found."},
		"who is not signed in makes nothing":                       {who: "nobody", kind: "tokens", body: body("name", "t10"), status: 401, want: `"sign_in":"/login"`},
		"a name is needed":                                         {who: "editor", kind: "tokens", body: body("name", ""), status: 422, want: `"errors":{"name":[`},
		"a name has no capitals":                                   {who: "editor", kind: "tokens", body: body("name", "BI"), status: 422, want: `"errors":{"name":[`},
		"a name leads nowhere":                                     {who: "editor", kind: "tokens", body: body("name", "../a"), status: 422, want: `"errors":{"name":[`},
		"a name is at most 63":                                     {who: "editor", kind: "tokens", body: body("name", strings.Repeat("a", 64)), status: 422, want: `"errors":{"name":[`},
		"a name may have 63":                                       {who: "editor", kind: "tokens", body: body("name", strings.Repeat("a", 63)), status: 201, want: `aaa`},
		"the secret itself is refused, and not repeated":           {who: "editor", kind: "tokens", body: body("name", "t11", "sha256", "wt_0123456789"), status: 422, want: `"errors":{"sha256":[`},
		"a hash in capitals is refused":                            {who: "editor", kind: "tokens", body: body("name", "t12", "sha256", strings.Repeat("A", 64)), status: 422, want: `"errors":{"sha256":[`},
		"a scope that there is not":                                {who: "chief", kind: "tokens", body: body("name", "t13", "scope", "root"), status: 422, want: `"errors":{"scope":[`},
		"a token needs a scope":                                    {who: "chief", kind: "tokens", body: body("name", "t14", "scope", ""), status: 422, want: `"errors":{"scope":[`},
		"a key has none":                                           {who: "chief", kind: "keys", body: body("name", "k5"), status: 422, want: `"errors":{"scope":[`},
		"an end that has been":                                     {who: "editor", kind: "tokens", body: body("name", "t15", "expires_at", "2020-01-01T00:00:00Z"), status: 422, want: `"errors":{"expires_at":[`},
		"an end that is no time":                                   {who: "editor", kind: "tokens", body: body("name", "t16", "expires_at", "tomorrow"), status: 422, want: `"errors":{"expires_at":[`},
		"several mistakes at once":                                 {who: "editor", kind: "tokens", body: body("name", "A", "sha256", "b", "scope", "c"), status: 422, want: "(and 2 more errors)"},
		"another's name is none of the members":                    {who: "editor", kind: "tokens", body: body("name", "t17", "created_by", "admin"), status: 400, want: "JSON object"},
		"nor another Property's":                                   {who: "editor", kind: "tokens", body: body("name", "t18", "propertyRef", "other"), status: 400, want: "JSON object"},
		"a member twice":                                           {who: "editor", kind: "tokens", body: `{"name":"a","name":"b"}`, status: 400, want: "JSON object"},
		"a list":                                                   {who: "editor", kind: "tokens", body: `[]`, status: 400, want: "JSON object"},
		"what is no JSON":                                          {who: "editor", kind: "tokens", body: `{`, status: 400, want: "JSON object"},
		"too much":                                                 {who: "editor", kind: "tokens", body: body("name", strings.Repeat("a", maxAskedBytes)), status: 413, want: "too long"},
		"a form of another site":                                   {who: "editor", kind: "tokens", body: body("name", "t19"), header: []string{"Content-Type: text/plain"}, status: 415, want: "application/json"},
		"a page of another site":                                   {who: "editor", kind: "tokens", body: body("name", "t20"), header: []string{"Sec-Fetch-Site: cross-site"}, status: 403, want: "own pages"},
		"a page of another origin, in a browser that says no more": {who: "editor", kind: "tokens", body: body("name", "t21"), header: []string{"Origin: https://evil.example"}, status: 403, want: "own pages"},
		"a page of the console's":                                  {who: "editor", kind: "tokens", body: body("name", "t22"), header: []string{"Sec-Fetch-Site: same-origin", "Origin: " + c.url}, status: 201, want: `"name":"t22"`},
	}
	made := map[string]string{}
	for name, test := range tests {
		got := people[test.who].do(http.MethodPost, "/namespaces/"+namespace+"/properties/shop/access/"+test.kind, test.body, test.header...)
		if got.status != test.status || !strings.Contains(got.body, test.want) || strings.Contains(got.body, "wt_") {
			t.Errorf("%s: got %d %s, want %d %s", name, got.status, got.body, test.status, test.want)
		}
		if got.status == http.StatusCreated {
			record := parse[struct{ Data struct{ Name string } }](t, got)
			made[test.kind+" "+record.Data.Name] = test.who + "-" + namespace
		}
	}
	found := map[string]string{}
	tokens, keys := &v1alpha1.AccessTokenList{}, &v1alpha1.APIKeyList{}
	for _, list := range []client.ObjectList{tokens, keys} {
		if err := cluster.admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range tokens.Items {
		found["tokens "+one.Name] = one.Spec.CreatedBy
		if one.Spec.PropertyRef.Name != "shop" || one.Spec.SHA256 != digest(t.Name()) {
			t.Errorf("there is %+v", one.Spec)
		}
	}
	for _, one := range keys.Items {
		found["keys "+one.Name] = one.Spec.CreatedBy
	}
	if diff := cmp.Diff(made, found); diff != "" {
		t.Errorf("what there is (-answered 201 +there):\n%s", diff)
	}
	if got := people["editor"].do(http.MethodPost, "/namespaces/"+namespace+"/properties/shop/access/tokens", body("name", "t1")); got.status != http.StatusConflict {
		t.Errorf("a name that is taken: got %d %s", got.status, got.body)
	}
	want := `"act":"credential.made","property":"` + namespace + `/shop","actor":{"kind":"user","name":"editor-` + namespace + `"},"object":{"kind":"access_token","name":"accesstoken/t2","scope":"write"},"outcome":"success"}`
	if acts := c.acts.String(); !strings.Contains(acts, want) || strings.Count(acts, "credential.made") != len(made) || strings.Contains(acts, digest(t.Name())) {
		t.Errorf("the audit log has %s, want %s and %d of them", acts, want, len(made))
	}
}

// TestPeopleRevokeWhatTheyMay deletes keys and tokens.
func TestPeopleRevokeWhatTheyMay(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	for _, name := range []string{"shop", "blog"} {
		newProperty(t, namespace, name)
	}
	token := func(name, property string) {
		create(t, &v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.AccessTokenSpec{
			PropertyRef: v1alpha1.PropertyReference{Name: property}, SHA256: digest(name), Scope: "admin",
		}})
	}
	token("mine", "shop")
	token("other", "blog")
	token("named", "shop")
	create(t, &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, Spec: v1alpha1.APIKeySpec{
		PropertyRef: v1alpha1.PropertyReference{Name: "shop"}, SHA256: digest("key"),
	}})
	people := map[string]*browser{}
	for name, rights := range map[string][]string{"viewer": viewer, "editor": editor, "one": {"get properties", "delete accesstokens named"}} {
		grant(t, "User", name+"-"+namespace, namespace, rights...)
		people[name] = c.as(name + "-" + namespace)
	}
	for _, step := range []struct {
		sentence, who, path string
		header              []string
		want                int
	}{
		{"a viewer revokes nothing", "viewer", "tokens/mine", nil, 403},
		{"a viewer is not told whether there is one", "viewer", "tokens/nowhere", nil, 403},
		{"one who may delete one revokes no other", "one", "tokens/mine", nil, 403},
		{"one who may delete one revokes it", "one", "tokens/named", nil, 204},
		{"a page of another site revokes nothing", "editor", "tokens/mine", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"another Property's is none of this one's", "editor", "tokens/other", nil, 404},
		{"one that there is not", "editor", "tokens/nowhere", nil, 404},
		{"a name that leads elsewhere", "editor", "tokens/..%2fother", nil, 404},
		{"dots", "editor", "tokens/%2e%2e", nil, 404},
		{"an editor revokes a token", "editor", "tokens/mine", nil, 204},
		{"once", "editor", "tokens/mine", nil, 404},
		{"the key of its name is there still, and is revoked", "editor", "keys/mine", nil, 204},
		{"those of the spec are not there", "editor", "tokens/default", nil, 404},
	} {
		if got := people[step.who].do(http.MethodDelete, "/namespaces/"+namespace+"/properties/shop/access/"+step.path, "", step.header...); got.status != step.want {
			t.Errorf("%s: got %d %s, want %d", step.sentence, got.status, got.body, step.want)
		}
	}
	left := &v1alpha1.AccessTokenList{}
	if err := cluster.admin.List(t.Context(), left, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 1 || left.Items[0].Name != "other" {
		t.Errorf("there are %+v", left.Items)
	}
	want := `"act":"credential.deleted","property":"` + namespace + `/shop","actor":{"kind":"user","name":"editor-` + namespace + `"},"object":{"kind":"access_token","name":"accesstoken/mine","scope":"admin"}`
	if acts := c.acts.String(); !strings.Contains(acts, want) || strings.Count(acts, "credential.deleted") != 3 {
		t.Errorf("the audit log has %s, want %s", acts, want)
	}
}

// accessBody is the answer to access as a page reads it.
type accessBody struct {
	Data struct {
		Tokens, Keys []map[string]any
		May          struct {
			Tokens struct {
				Create, Delete bool
				Scopes         []string
			}
			Keys struct{ Create, Delete bool }
		}
	}
}

// TestPeopleSeeTheKeysAndTokensOfAProperty reads the list as people of several rights.
func TestPeopleSeeTheKeysAndTokensOfAProperty(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	soon := metav1.NewTime(time.Now().Add(24 * time.Hour).Truncate(time.Second))
	p := newProperty(t, namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.AccessTokens = []v1alpha1.PropertyAccessToken{{Name: "bi"}, {Name: "old", Scope: "admin", ExpirationTime: &soon}}
		p.Spec.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "server"}, {Name: "web", Type: v1alpha1.APIKeyPublishable, AllowedOrigins: []v1alpha1.Origin{"https://a.example"}}}
	})
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionCredentialsReady, Status: metav1.ConditionTrue, Reason: "Ready"})
	if err := cluster.admin.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	newProperty(t, namespace, "blog")
	for name, condition := range map[string]metav1.Condition{
		"fresh":   {},
		"ready":   {Status: metav1.ConditionTrue, Reason: "Ready"},
		"waiting": {Status: metav1.ConditionUnknown, Reason: "Pending"},
		"double":  {Status: metav1.ConditionFalse, Reason: "Duplicate", Message: "It is another's."},
		"many":    {Status: metav1.ConditionFalse, Reason: "LimitReached"},
		"ended":   {Status: metav1.ConditionFalse, Reason: "Expired"},
	} {
		token := &v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.AccessTokenSpec{
			PropertyRef: v1alpha1.PropertyReference{Name: "shop"}, SHA256: digest(name), CreatedBy: "bob",
		}}
		create(t, token)
		if condition.Status != "" {
			condition.Type = v1alpha1.ConditionReady
			meta.SetStatusCondition(&token.Status.Conditions, condition)
			if err := cluster.admin.Status().Update(t.Context(), token); err != nil {
				t.Fatal(err)
			}
		}
	}
	create(t, &v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "blogs"}, Spec: v1alpha1.AccessTokenSpec{
		PropertyRef: v1alpha1.PropertyReference{Name: "blog"}, SHA256: digest("blogs"),
	}})
	create(t, &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server"}, Spec: v1alpha1.APIKeySpec{
		PropertyRef: v1alpha1.PropertyReference{Name: "shop"}, SHA256: digest("server"),
	}})
	ask := func(rights ...string) accessBody {
		t.Helper()
		who := "p" + digest(strings.Join(rights, ";"))[:20]
		grant(t, "User", who, namespace, rights...)
		got := c.as(who).get("/namespaces/" + namespace + "/properties/shop/access")
		if got.status != http.StatusOK || strings.Contains(got.body, digest("ready")) {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		return parse[accessBody](t, got)
	}
	states := func(records []map[string]any) map[string]string {
		found := map[string]string{}
		for _, one := range records {
			found[one["from"].(string)+" "+one["name"].(string)] = one["state"].(string)
		}
		return found
	}
	wantTokens := map[string]string{
		"property bi": "ready", "property old": "ready", "object fresh": "pending", "object ready": "ready", "object waiting": "pending", "object double": "refused",
		"object many": "refused", "object ended": "expired",
	}
	eventually(t, "the console knows of all", func() bool { return maps.Equal(states(ask(editor...).Data.Tokens), wantTokens) })
	got := ask(editor...)
	if diff := cmp.Diff(map[string]string{"property server": "ready", "property web": "ready", "object server": "pending"}, states(got.Data.Keys)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if may := got.Data.May; !may.Tokens.Create || !may.Tokens.Delete || !may.Keys.Create || !may.Keys.Delete || !slices.Equal(may.Tokens.Scopes, []string{"read", "write"}) {
		t.Errorf("an editor may %+v", may)
	}
	c.clock.forward(48 * time.Hour)
	if got := states(ask(append([]string{}, chief...)...).Data.Tokens)["property old"]; got != "expired" {
		t.Errorf("two days later one of the spec is %s", got)
	}
	got = ask(viewer...)
	if may := got.Data.May; may.Tokens.Create || may.Tokens.Delete || may.Keys.Create || may.Keys.Delete || len(may.Tokens.Scopes) > 0 || got.Data.Tokens == nil {
		t.Errorf("a viewer may %+v", may)
	}
	got = ask("get properties", "list apikeys")
	if got.Data.Tokens != nil || len(got.Data.Keys) != 3 {
		t.Errorf("one who may list keys alone sees %+v", got.Data)
	}
}
