package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/controllers/kubetest"
)

// apiServer is a real etcd and kube-apiserver, with authorization by role. The console speaks to it as its own account, which has the
// role that the chart gives it and no other.
type apiServer struct {
	config *rest.Config
	scheme *runtime.Scheme
	// admin may do everything, console what its role says.
	admin, console client.Client
	cached         cache.Cache
}

// account is the console's.
const account = "system:serviceaccount:weir-system:weir-console"

var (
	cluster    *apiServer
	namespaces atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	started, err := kubetest.Start("../..")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = started.Stop() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cluster, err = connect(ctx, started); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// connect makes the console's account, and clients.
func connect(ctx context.Context, started *kubetest.Server) (*apiServer, error) {
	own := rest.CopyConfig(started.Config)
	own.Impersonate.UserName = account
	s := &apiServer{config: started.Config, scheme: started.Client.Scheme(), admin: started.Client}
	var err error
	if s.console, err = client.New(own, client.Options{Scheme: s.scheme}); err != nil {
		return nil, err
	}
	text, err := os.ReadFile("../../config/rbac/console_role.yaml")
	if err != nil {
		return nil, err
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(text, role); err != nil {
		return nil, err
	}
	// The chart gives the right to ask what others may do apart, for it is one of the whole cluster.
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "weir-system", Name: "weir-console"}},
	}
	// And the policy that lets nobody make a token beyond their own rights, which the console is held to as well.
	if err := started.Install(map[string]client.Object{
		"credentials_policy": &admissionv1.ValidatingAdmissionPolicy{}, "credentials_policy_binding": &admissionv1.ValidatingAdmissionPolicyBinding{},
	}); err != nil {
		return nil, err
	}
	for _, object := range []client.Object{role, binding} {
		if err := s.admin.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	if s.cached, err = cache.New(own, CacheOptions(s.scheme, nil)); err != nil {
		return nil, err
	}
	for _, object := range []client.Object{&v1alpha1.Property{}, &v1alpha1.AccessToken{}, &v1alpha1.APIKey{}} {
		if _, err := s.cached.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return nil, err
		}
	}
	go func() { _ = s.cached.Start(ctx) }()
	if !s.cached.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("the cache does not sync")
	}
	return s, nil
}

// create makes an object as the cluster's administrator.
func create(t testing.TB, object client.Object) {
	t.Helper()
	if err := cluster.admin.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// newNamespace makes a namespace of its own.
func newNamespace(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test-%d", namespaces.Add(1))
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}

// newProperty makes a Property and waits until the console knows of it.
func newProperty(t testing.TB, namespace, name string, edit ...func(*v1alpha1.Property)) *v1alpha1.Property {
	t.Helper()
	p := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.Currency = "EUR"
	for _, e := range edit {
		e(p)
	}
	create(t, p)
	eventually(t, "the console knows of the Property", func() bool {
		return cluster.cached.Get(t.Context(), client.ObjectKeyFromObject(p), &v1alpha1.Property{}) == nil
	})
	return p
}

// rules are short: "get properties/events".
func rules(texts ...string) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, text := range texts {
		words := strings.Fields(text)
		rule := rbacv1.PolicyRule{APIGroups: []string{"weir.dev"}, Verbs: strings.Split(words[0], ","), Resources: strings.Split(words[1], ",")}
		if len(words) > 2 {
			rule.ResourceNames = strings.Split(words[2], ",")
		}
		all = append(all, rule)
	}
	return all
}

var bindings atomic.Int64

// grant lets a user, or a group, do something in a namespace; in all of them where it is "".
func grant(t testing.TB, kind, name, namespace string, texts ...string) {
	t.Helper()
	id := fmt.Sprintf("console-test-%d", bindings.Add(1))
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}}
	if namespace == "" {
		create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: id}, Rules: rules(texts...)})
		create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: id}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: id}})
		return
	}
	create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id}, Rules: rules(texts...)})
	create(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: id}})
}

// The rights of people, in short. The test's role of an account is that of the aggregated roles.
var (
	viewer = []string{"get,list,watch properties,accesstokens,apikeys"}
	editor = append([]string{"get properties/events", "create properties/replay", "create,delete accesstokens,apikeys"}, viewer...)
	chief  = append([]string{"create properties/erasures"}, editor...)
)

// eventually polls until done, for half a minute.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// buffer collects lines that are read while more are written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// clock is the console's, which a test can put forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) forward(d time.Duration) { c.ahead.Add(int64(d)) }

// running is a console with a provider of its own.
type running struct {
	*Console
	t        testing.TB
	url      string
	provider *testProvider
	clock    *clock
	key      auth.SigningKey
	keysFile string
	registry *prometheus.Registry
	acts     *buffer
	log      *buffer

	// signing lets one test at a time say who signs in.
	signing sync.Mutex
	mu      sync.Mutex
	pods    map[string]string
}

// start runs a console.
func start(t testing.TB, edit ...func(*Options)) *running {
	t.Helper()
	c := &running{t: t, provider: newTestProvider(t), clock: &clock{}, registry: prometheus.NewRegistry(), acts: &buffer{}, log: &buffer{}, pods: map[string]string{}}
	web := httptest.NewUnstartedServer(nil)
	t.Cleanup(web.Close)
	c.url = "http://" + web.Listener.Addr().String()
	c.provider.redirect, c.provider.now = c.url+"/callback", c.clock.now
	base, err := url.Parse(c.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	c.key, c.keysFile = auth.NewSigningKey(time.Now()), filepath.Join(t.TempDir(), "keys.json")
	c.writeKeys(c.key)
	secretFile := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secretFile, []byte(clientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(c.log, nil))
	o := Options{
		URL: base, SigningKeysFile: c.keysFile, SessionMaxAge: time.Hour, Cached: cluster.cached, Client: cluster.console,
		Logger: logger, Registerer: c.registry, Now: c.clock.now, Audit: audit.New(c.acts, logger, c.clock.now), Dial: c.dial,
		Provider: Provider{
			Issuer: c.provider.URL, ClientID: clientID, ClientSecretFile: secretFile, Scopes: []string{"openid", "groups"},
			Claims: Claims{Username: "sub", Groups: "groups"}, Authorities: c.provider.authorities(),
		},
	}
	for _, e := range edit {
		e(&o)
	}
	if c.Console, err = New(o); err != nil {
		t.Fatal(err)
	}
	if web.Config.Handler, err = c.Handler(); err != nil {
		t.Fatal(err)
	}
	web.Start()
	return c
}

// writeKeys writes the file of signing keys, newest first.
func (c *running) writeKeys(keys ...auth.SigningKey) {
	c.t.Helper()
	text, err := json.Marshal(keys)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(c.keysFile, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// dial connects to the server that stands for a Service.
func (c *running) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	to := c.pods[address]
	c.mu.Unlock()
	if to == "" {
		return nil, fmt.Errorf("nothing listens on %s", address)
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

// serve has a server stand for a Property's query pods.
func (c *running) serve(p *v1alpha1.Property, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods[p.Name+"-query."+p.Namespace+".svc:80"] = address
}

// browser is somebody's, with cookies. It follows no redirects by itself.
type browser struct {
	*http.Client
	c *running
}

func (c *running) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	transport := c.provider.Client().Transport.(*http.Transport).Clone()
	return &browser{&http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, c}
}

// answer is what a browser has got.
type answer struct {
	status int
	header http.Header
	body   string
}

// do asks for a path of the console, or for a whole URL. Header lines are NAME: VALUE.
func (b *browser) do(method, path, body string, header ...string) answer {
	b.c.t.Helper()
	if !strings.Contains(path, "://") {
		path = b.c.url + path
	}
	request, err := http.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	if err != nil {
		b.c.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if request.Header.Set(name, value); name == "Host" {
			request.Host = value
		}
	}
	got, err := b.Do(request)
	if err != nil { // the connection was cut before the answer's header
		return answer{0, http.Header{}, "<cut>"}
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		text = append(text, "<cut>"...)
	}
	return answer{got.StatusCode, got.Header, string(text)}
}

func (b *browser) get(path string, header ...string) answer {
	b.c.t.Helper()
	return b.do(http.MethodGet, path, "", header...)
}

// back signs in as far as the provider, and returns where that sends the browser back to.
func (b *browser) back(login string) string {
	b.c.t.Helper()
	to := b.get(login)
	if to.status != http.StatusFound {
		b.c.t.Fatalf("%s: got %d %s", login, to.status, to.body)
	}
	from := b.get(to.header.Get("Location"))
	if from.status != http.StatusFound {
		b.c.t.Fatalf("the provider: got %d %s", from.status, from.body)
	}
	return from.header.Get("Location")
}

// signIn signs somebody in.
func (c *running) signIn(claims map[string]any) *browser {
	c.t.Helper()
	c.signing.Lock()
	defer c.signing.Unlock()
	c.provider.letIn(claims)
	b := c.browser()
	if got := b.get(b.back("/login")); got.status != http.StatusSeeOther || got.header.Get("Location") != "/" {
		c.t.Fatalf("signing in: got %d %s %s", got.status, got.header.Get("Location"), got.body)
	}
	return b
}

// as signs in a user of a name.
func (c *running) as(name string, groups ...string) *browser {
	c.t.Helper()
	return c.signIn(map[string]any{"sub": name, "groups": slices.Concat([]string{}, groups)})
}

// parse reads a JSON answer.
func parse[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return v
}

// revoke takes everybody's rights in a namespace away.
func revoke(t testing.TB, namespace string) {
	t.Helper()
	if err := cluster.admin.DeleteAllOf(context.Background(), &rbacv1.RoleBinding{}, client.InNamespace(namespace)); err != nil {
		t.Error(err)
	}
}
