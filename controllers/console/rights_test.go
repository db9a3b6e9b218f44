package console

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
)

// listBody is the list as a page reads it.
type listBody struct {
	Data []struct {
		Namespace, Property, Ready, Reason, Message string
		TimeZone                                    string `json:"time_zone"`
		Currency                                    string
		Scope, Problem                              *string
		Figures                                     *struct {
			Purchases, Pageviews int64
			Revenue              any
			AddToCarts           int64 `json:"add_to_carts"`
			UniqueVisitors       int64 `json:"unique_visitors"`
		}
	}
	Totals []struct {
		Currency   string
		Properties int
		Revenue    float64
		Purchases  int64
	}
	Period struct{ Name, From, To string }
}

// scopes are a list's, by namespace and name, "none" for a Property without one.
func (l *listBody) scopes() map[string]string {
	found := map[string]string{}
	for _, one := range l.Data {
		found[one.Namespace+"/"+one.Property] = "none"
		if one.Scope != nil {
			found[one.Namespace+"/"+one.Property] = *one.Scope
		}
	}
	return found
}

// TestWhoMaySeeWhatIsWhatRBACSays asks as people of different roles, in one namespace and in all.
func TestWhoMaySeeWhatIsWhatRBACSays(t *testing.T) {
	t.Parallel()
	c := start(t)
	first, second := newNamespace(t), newNamespace(t)
	for _, p := range [][2]string{{first, "shop"}, {first, "blog"}, {second, "shop"}} {
		newProperty(t, p[0], p[1])
	}
	all := func(scope string) map[string]string {
		return map[string]string{first + "/shop": scope, first + "/blog": scope, second + "/shop": scope}
	}
	type granted struct {
		kind, namespace string
		rules           []string
	}
	tests := map[string]struct {
		grants []granted
		groups []string
		want   map[string]string
	}{
		"nobody's rights":                                           {want: map[string]string{}},
		"a viewer sees that there are Properties":                   {grants: []granted{{"User", first, viewer}}, want: map[string]string{first + "/shop": "none", first + "/blog": "none"}},
		"an editor writes":                                          {grants: []granted{{"User", first, editor}}, want: map[string]string{first + "/shop": "write", first + "/blog": "write"}},
		"an admin of a namespace administers there":                 {grants: []granted{{"User", second, chief}}, want: map[string]string{second + "/shop": "admin"}},
		"an admin of the cluster administers everywhere":            {grants: []granted{{"User", "", chief}}, want: all("admin")},
		"one who may do anything":                                   {grants: []granted{{"User", "", []string{"* *", "* */*"}}}, want: all("admin")},
		"a reader of one Property by its name":                      {grants: []granted{{"User", first, []string{"get properties/events shop"}}}, want: map[string]string{first + "/shop": "read"}},
		"a reader of a name everywhere":                             {grants: []granted{{"User", "", []string{"get properties/events shop"}}}, want: map[string]string{first + "/shop": "read", second + "/shop": "read"}},
		"one who may see one Property by its name":                  {grants: []granted{{"User", first, []string{"get properties blog"}}}, want: map[string]string{first + "/blog": "none"}},
		"the right to write without that to read is none":           {grants: []granted{{"User", first, []string{"create properties/replay,properties/erasures", "get properties"}}}, want: map[string]string{first + "/shop": "none", first + "/blog": "none"}},
		"the right to erase without that to write is that to read":  {grants: []granted{{"User", first, []string{"create properties/erasures", "get properties/events blog"}}}, want: map[string]string{first + "/blog": "read"}},
		"the right to list alone does not show one":                 {grants: []granted{{"User", first, []string{"list,watch properties"}}}, want: map[string]string{}},
		"the rights of a group":                                     {grants: []granted{{"Group", second, editor}}, groups: []string{"GROUP"}, want: map[string]string{second + "/shop": "write"}},
		"not those of a group that one is not in":                   {grants: []granted{{"Group", second, editor}}, groups: []string{"GROUP-2"}, want: map[string]string{}},
		"not those of a user who has the group's name":              {grants: []granted{{"User", second, nil}, {"Group", second, editor}}, want: map[string]string{}},
		"those of all whom the cluster knows, and one's own beside": {grants: []granted{{"User", second, editor}}, want: map[string]string{second + "/shop": "write"}},
	}
	number := 0
	for name, test := range tests {
		number++
		who := "person-" + first + "-" + string(rune('a'+number))
		for _, g := range test.grants {
			subject := who
			if g.kind == "Group" {
				subject += "-GROUP"
			}
			grant(t, g.kind, subject, g.namespace, g.rules...)
		}
		for i := range test.groups {
			test.groups[i] = who + "-" + test.groups[i]
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := c.as(who, test.groups...)
			got := b.get("/api/properties")
			if got.status != http.StatusOK {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			list := parse[listBody](t, got)
			found := list.scopes()
			for id := range found {
				if !strings.HasPrefix(id, first+"/") && !strings.HasPrefix(id, second+"/") {
					delete(found, id) // another test's
				}
			}
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
			// Each Property's own page says the same, also to who guesses its name.
			for id := range all("") {
				namespace, property, _ := strings.Cut(id, "/")
				base := "/namespaces/" + namespace + "/properties/" + property + "/"
				want, visible := test.want[id]
				session := b.get(base + "session")
				switch {
				case !visible && (session.status != http.StatusNotFound || session.body != `{"message":"Property not found."}`),
					visible && session.status != http.StatusOK,
					visible && want == "none" && !strings.Contains(session.body, `"scope":null`),
					visible && want != "none" && !strings.Contains(session.body, `"scope":"`+want+`"`):
					t.Errorf("%s: got %d %s, want %q", id, session.status, session.body, want)
				}
				wantEvents := map[bool]int{true: http.StatusForbidden, false: http.StatusServiceUnavailable}[want == "none"] // no pods are there
				if !visible {
					wantEvents = http.StatusNotFound
				}
				if events := b.get(base + "api/events"); events.status != wantEvents {
					t.Errorf("%s: events: got %d %s, want %d", id, events.status, events.body, wantEvents)
				}
				if access := b.get(base + "access"); (access.status == http.StatusOK) != visible {
					t.Errorf("%s: access: got %d", id, access.status)
				}
			}
		})
	}
}

// TestAPropertysPageSaysWhoIsSignedIn reads the answer that the page reads, and its forms for who is not.
func TestAPropertysPageSaysWhoIsSignedIn(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	newProperty(t, namespace, "shop")
	who := "ada-" + namespace
	grant(t, "User", who, namespace, editor...)
	base := "/namespaces/" + namespace + "/properties/shop/"
	stranger := c.browser()
	want := `{"message":"Unauthenticated.","loopback":false,"sign_in":"/login?return=%2Fnamespaces%2F` + namespace + `%2Fproperties%2Fshop%2F"}`
	if got := stranger.get(base + "session"); got.status != http.StatusUnauthorized || got.body != want {
		t.Errorf("a stranger: got %d %s, want %s", got.status, got.body, want)
	}
	if got := stranger.get("/namespaces/" + namespace + "/properties/nowhere/session"); got.status != http.StatusUnauthorized {
		t.Errorf("a stranger, of no Property: got %d", got.status)
	}
	b := c.as(who)
	got := b.get(base + "session")
	begin := `{"data":{"property":"shop","namespace":"` + namespace + `","token":"` + who + `","scope":"write","expires_at":"`
	if got.status != http.StatusOK || !strings.HasPrefix(got.body, begin) || !strings.HasSuffix(got.body, `","loopback":false,"console":true}}`) {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := b.do(http.MethodDelete, base+"session", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"end_session_url":"`) {
		t.Errorf("signing out: got %d %s", got.status, got.body)
	}
	if got := b.get(base + "session"); got.status != http.StatusUnauthorized {
		t.Errorf("afterwards: got %d", got.status)
	}
}

// TestARightThatIsTakenAwayEndsWithinSeconds takes it away while somebody is signed in.
func TestARightThatIsTakenAwayEndsWithinSeconds(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	newProperty(t, namespace, "shop")
	who := "ada-" + namespace
	grant(t, "User", who, namespace, editor...)
	b := c.as(who)
	path := "/namespaces/" + namespace + "/properties/shop/session"
	if got := b.get(path); got.status != http.StatusOK {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if err := cluster.admin.DeleteAllOf(t.Context(), &rbacv1.RoleBinding{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if got := b.get(path); got.status != http.StatusOK {
		t.Errorf("at once: got %d: decisions are not remembered", got.status)
	}
	eventually(t, "the right has ended", func() bool {
		c.clock.forward(decisionAge)
		return b.get(path).status == http.StatusNotFound
	})
	c.clock.forward(time.Hour)
	if got := b.get(path); got.status != http.StatusUnauthorized {
		t.Errorf("after an hour: got %d", got.status)
	}
}

// broken fails to say what people may do, or says something odd.
type broken struct {
	client.Client
	review func(*authorizationv1.SubjectAccessReview) error
}

func (b broken) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if review, ok := object.(*authorizationv1.SubjectAccessReview); ok {
		return b.review(review)
	}
	return b.Client.Create(ctx, object, options...)
}

// TestNobodyIsLetThroughWhereNobodyKnows has the API server's authorizers fail.
func TestNobodyIsLetThroughWhereNobodyKnows(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newProperty(t, namespace, "shop")
	base := "/namespaces/" + namespace + "/properties/shop/"
	tests := map[string]struct {
		review func(*authorizationv1.SubjectAccessReview) error
		want   int
	}{
		"the API server is away":             {func(*authorizationv1.SubjectAccessReview) error { return errors.New("away") }, http.StatusServiceUnavailable},
		"it is away, having said yes before": {func(r *authorizationv1.SubjectAccessReview) error { r.Status.Allowed = true; return errors.New("away") }, http.StatusServiceUnavailable},
		"an authorizer fails":                {func(r *authorizationv1.SubjectAccessReview) error { r.Status.EvaluationError = "no"; return nil }, http.StatusNotFound},
		"one allows and one denies": {func(r *authorizationv1.SubjectAccessReview) error {
			r.Status.Allowed, r.Status.Denied = true, true
			return nil
		}, http.StatusNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, func(o *Options) { o.Client = broken{cluster.console, test.review} })
			b := c.as("ada")
			for _, ask := range []struct{ method, path, body string }{
				{http.MethodGet, base + "session", ""}, {http.MethodGet, base + "api/events", ""}, {http.MethodGet, base + "access", ""},
				{http.MethodPost, base + "access/tokens", `{}`}, {http.MethodDelete, base + "access/tokens/a", ""}, {http.MethodPost, base + "api/erasures", `{}`},
			} {
				if got := b.do(ask.method, ask.path, ask.body); got.status != test.want || got.header.Get("Set-Cookie") != "" {
					t.Errorf("%s %s: got %d %s, want %d", ask.method, ask.path, got.status, got.body, test.want)
				}
			}
			list := b.get("/api/properties")
			if test.want == http.StatusServiceUnavailable && list.status != test.want || test.want != http.StatusServiceUnavailable && len(parse[listBody](t, list).Data) > 0 {
				t.Errorf("the list: got %d %s", list.status, list.body)
			}
		})
	}
}

// TestTheListHasWhatAPropertySaysOfItself reads the members that come from the Property, and the figures' sums.
func TestTheListHasWhatAPropertySaysOfItself(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := newNamespace(t)
	who := "ada-" + namespace
	grant(t, "User", who, namespace, editor...)
	summaries := map[string]string{
		"first":   `{"data":{"currency":"EUR","kpis":{"purchases":2,"revenue":0.1,"pageviews":10,"add_to_carts":3,"unique_visitors":4}}}`,
		"second":  `{"data":{"kpis":{"purchases":1,"revenue":-12345678901234567890.2001,"pageviews":1,"add_to_carts":0,"unique_visitors":1,"more":{}}}}`,
		"third":   `{"data":{"kpis":{"purchases":5,"revenue":7,"pageviews":1,"add_to_carts":0,"unique_visitors":1}}}`,
		"html":    `<html>`,
		"text":    `{"data":{"kpis":{"purchases":1,"revenue":"1","pageviews":1,"add_to_carts":0,"unique_visitors":1}}}`,
		"less":    `{"data":{"kpis":{"purchases":-1,"revenue":1,"pageviews":1,"add_to_carts":0,"unique_visitors":1}}}`,
		"huge":    `{"data":{"kpis":{"purchases":1,"revenue":1` + strings.Repeat("0", 40) + `,"pageviews":1,"add_to_carts":0,"unique_visitors":1}}}`,
		"long":    `{"data":{"kpis":{"purchases":1,"revenue":1,"pageviews":1,"add_to_carts":0,"unique_visitors":1}},"x":"` + strings.Repeat("a", maxFiguresBytes) + `"}`,
		"without": `{"data":{}}`,
	}
	for name, text := range summaries {
		p := newProperty(t, namespace, name, func(p *v1alpha1.Property) {
			if name == "third" {
				p.Spec.Currency, p.Spec.TimeZone = "USD", "Europe/Berlin"
			}
		})
		c.serve(p, c.pod(t, p, auth.ScopeRead, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/properties/"+name+"/analytics/summary" || r.URL.RawQuery != "period=30d" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
		}))
	}
	hanging := newProperty(t, namespace, "hanging")
	c.serve(hanging, c.pod(t, hanging, auth.ScopeRead, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	replaying := newProperty(t, namespace, "replaying")
	c.serve(replaying, c.pod(t, replaying, auth.ScopeRead, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	newProperty(t, namespace, "away")
	ready := newProperty(t, namespace, "ready")
	meta.SetStatusCondition(&ready.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "RedisNotReady", Message: "Redis is away"})
	if err := cluster.admin.Status().Update(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the console knows of the condition", func() bool {
		p := &v1alpha1.Property{}
		return cluster.cached.Get(t.Context(), client.ObjectKeyFromObject(ready), p) == nil && len(p.Status.Conditions) > 0
	})
	got := c.as(who).get("/api/properties?period=30d")
	if got.status != http.StatusOK || got.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	for _, want := range []string{
		`"figures":{"purchases":2,"revenue":0.1,"pageviews":10,"add_to_carts":3,"unique_visitors":4},"problem":null`,
		`"property":"third","ready":"Unknown","reason":"","message":"","time_zone":"Europe/Berlin","currency":"USD","scope":"write"`,
		`"property":"ready","ready":"False","reason":"RedisNotReady","message":"Redis is away"`,
		`"revenue":-12345678901234567890.2001`,
		`"totals":[{"currency":"EUR","properties":2,"revenue":-12345678901234567890.1001,"purchases":3,"pageviews":11,"add_to_carts":3},{"currency":"USD","properties":1,"revenue":7,`,
		`"period":{"name":"30d","from":"`,
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("%s is not in %s", want, got.body)
		}
	}
	problems := map[string]string{}
	for _, one := range parse[listBody](t, got).Data {
		if one.Problem != nil && one.Figures == nil {
			problems[one.Property] = *one.Problem
		}
	}
	nonsense := errNoFigures.Error()
	want := map[string]string{
		"html": nonsense, "text": nonsense, "less": nonsense, "huge": nonsense, "long": nonsense, "without": nonsense,
		"hanging": errNoAnswer.Error(), "away": errNoAnswer.Error(), "ready": errNoAnswer.Error(), "replaying": errNotYet.Error(),
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if got := c.as(who).get("/api/properties?period=1y"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `"errors":{"period":[`) {
		t.Errorf("another period: got %d %s", got.status, got.body)
	}
	if got := c.browser().get("/api/properties"); got.status != http.StatusUnauthorized {
		t.Errorf("a stranger: got %d %s", got.status, got.body)
	}
}

// TestRightsToManyAreAskedForOnce counts the questions of a list for somebody who may do everything.
func TestRightsToManyAreAskedForOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := start(t, func(o *Options) {
		o.Client = broken{cluster.console, func(r *authorizationv1.SubjectAccessReview) error {
			asked.Add(1)
			return cluster.console.Create(t.Context(), r)
		}}
	})
	namespace := newNamespace(t)
	for n := range 20 {
		newProperty(t, namespace, "shop-"+strconv.Itoa(n))
	}
	who := "ada-" + namespace
	grant(t, "User", who, "", chief...)
	b := c.as(who)
	if got := b.get("/api/properties"); got.status != http.StatusOK || strings.Count(got.body, `"namespace":"`+namespace+`"`) != 20 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("%d questions were asked, want one for each scope", n)
	}
}

// TestNamespacesThatAreNotWatchedHaveNothing serves some namespaces of the cluster, as the chart has it for a release of some.
func TestNamespacesThatAreNotWatchedHaveNothing(t *testing.T) {
	t.Parallel()
	first, second, third := newNamespace(t), newNamespace(t), newNamespace(t)
	who := "ada-" + first
	grant(t, "User", who, "", chief...)
	for _, namespace := range []string{first, second, third} {
		newProperty(t, namespace, "shop")
	}
	for name, watched := range map[string][]string{"one": {first}, "two": {first, second}} {
		t.Run(name, func(t *testing.T) {
			known, err := cache.New(cluster.config, CacheOptions(cluster.scheme, watched))
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = known.Start(t.Context()) }()
			for _, object := range []client.Object{&v1alpha1.Property{}, &v1alpha1.AccessToken{}, &v1alpha1.APIKey{}} {
				if _, err := known.GetInformer(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			c := start(t, func(o *Options) { o.Cached = known })
			b := c.as(who)
			want := map[string]string{}
			for _, namespace := range watched {
				want[namespace+"/shop"] = "admin"
			}
			list := parse[listBody](t, b.get("/api/properties"))
			if diff := cmp.Diff(want, list.scopes()); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
			if got := b.get("/namespaces/" + first + "/properties/shop/session"); got.status != http.StatusOK {
				t.Errorf("a watched one: got %d %s", got.status, got.body)
			}
			for _, path := range []string{"session", "access", "api/events"} {
				if got := b.get("/namespaces/" + third + "/properties/shop/" + path); got.status != http.StatusNotFound {
					t.Errorf("%s of one that is not watched: got %d %s", path, got.status, got.body)
				}
			}
		})
	}
}
