package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

const (
	// identity is the namespace of the OpenID provider.
	identity     = system + "-identity"
	providerHost = "provider." + identity + ".svc"
	consoleHost  = "console.e2e.test"
)

func opensTheConsole(t *testing.T, s *suite) {
	authority := redistest.NewAuthority(t)
	s.claim(t, identity)
	address := s.startProvider(t, authority)
	s.installConsole(t, authority)
	for _, tenant := range []string{"shop", "books"} {
		s.letAnalysts(t, s.namespaceOf(tenant))
	}
	blog := s.apply(t, s.expose(s.property("blog"))) // which nobody may see

	bob := newBrowser(t, authority, address)
	bob.signsIn(t, "bob", "password of bob")
	if seen := bob.properties(t); len(seen) != 0 {
		t.Errorf("who has no role sees %v", seen)
	}
	alice := newBrowser(t, authority, address)
	if status, body := alice.ask(t, http.MethodGet, "/api/properties", nil); status != http.StatusUnauthorized {
		t.Errorf("who has not signed in is answered %d %s", status, body)
	}
	if _, err := alice.tries(t, "alice", "password of bob"); err == nil {
		t.Error("a wrong password signs in")
	}
	begin := time.Now()
	alice.signsIn(t, "alice", "password of alice")
	s.figure(t, "signing in, through the provider", "%.2f s", time.Since(begin).Seconds())
	want := []string{s.namespaceOf("books") + "/books", s.namespaceOf("shop") + "/shop"}
	if diff := cmp.Diff(want, alice.properties(t)); diff != "" {
		t.Errorf("of three Properties she sees (-want +got):\n%s", diff)
	}
	if status, body := alice.ask(t, http.MethodGet, base(blog)+"api/events", nil); status != http.StatusNotFound {
		t.Errorf("the events of the third are answered %d %s, want 404", status, body)
	}
	shop := s.tenantOf(t, "shop")
	alice.makesAndUsesAKey(t, shop)
	alice.makesAndRevokesAToken(t, shop)
	alice.isBoundedByRBAC(t, shop)
	if status, body := alice.ask(t, http.MethodDelete, "/session", nil); status >= http.StatusBadRequest {
		t.Errorf("signing out is answered %d %s", status, body)
	}
	if status, _ := alice.ask(t, http.MethodGet, "/api/properties", nil); status != http.StatusUnauthorized {
		t.Errorf("who has signed out is answered %d", status)
	}
	s.helm(t, settings.chart, settings.image, nil)
	must(t, "kubectl", "-n", blog.namespace, "delete", "property", blog.name, "--timeout=100s")
	must(t, "kubectl", "delete", "namespace", identity, "--timeout=100s")
	must(t, "kubectl", "-n", system, "delete", "secret", "oidc-client", "oidc-ca")
	must(t, "kubectl", "-n", s.namespaceOf("books"), "delete", "rolebinding", "analysts-weir-view", "analysts-weir-edit")
}

// startProvider runs the OpenID provider of ./provider, and returns where it is reached from here.
func (s *suite) startProvider(t *testing.T, authority *redistest.Authority) string {
	t.Helper()
	certificate, key := authority.Sign(t, func(c *x509.Certificate) { c.DNSNames = []string{providerHost} })
	labels := map[string]string{"app.kubernetes.io/name": "provider"}
	files := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: identity, Name: "provider"}, StringData: map[string]string{"tls.crt": certificate, "tls.key": key}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: identity, Name: "provider"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: identity, Name: "provider", Labels: labels},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), FSGroup: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Volumes: []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: files.Name}}}},
			Containers: []corev1.Container{{
				Name: "provider", Image: settings.peerImage, ImagePullPolicy: corev1.PullNever, Command: []string{"/provider"},
				Env: []corev1.EnvVar{
					{Name: "ISSUER", Value: "https://" + providerHost}, {Name: "CLIENT_SECRET", Value: "the console's secret"},
					{Name: "REDIRECT_URI", Value: "https://" + consoleHost + "/callback"},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "tls", MountPath: "/etc/provider"}},
				ReadinessProbe: &corev1.Probe{
					PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8443)}},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	for _, object := range []client.Object{files, service, pod} {
		if err := s.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	within(t, time.Minute, "the provider is ready", func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if !ready(pod) {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	})
	return net.JoinHostPort(pod.Status.PodIP, "8443")
}

// installConsole upgrades the release to one with a console.
func (s *suite) installConsole(t *testing.T, authority *redistest.Authority) {
	t.Helper()
	for name, data := range map[string]map[string]string{"oidc-client": {"client-secret": "the console's secret"}, "oidc-ca": {"ca.crt": authority.PEM}} {
		if err := s.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}, StringData: data}); err != nil {
			t.Fatal(err)
		}
	}
	took := s.helm(t, settings.chart, settings.image, map[string]any{"console": map[string]any{
		"enabled": true, "url": "https://" + consoleHost,
		"oidc": map[string]any{
			"issuerURL": "https://" + providerHost, "clientID": "weir", "existingSecret": "oidc-client", "caSecret": "oidc-ca",
			"usernamePrefix": "e2e:", "groupsPrefix": "e2e:",
		},
		"ingress": map[string]any{"enabled": true, "className": "weir-node"},
	}})
	s.figure(t, "helm upgrade with the console", "%.1f s", took.Seconds())
}

// letAnalysts gives the group of Alice the chart's roles in a namespace.
func (s *suite) letAnalysts(t *testing.T, namespace string) {
	t.Helper()
	for _, role := range []string{"weir-view", "weir-edit"} {
		err := s.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "analysts-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "e2e:analysts"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// browser keeps cookies, follows redirects and trusts the authority, as a person's does. Before the ingress stands what ends TLS.
type browser struct{ http.Client }

func newBrowser(t *testing.T, authority *redistest.Authority, provider string) *browser {
	t.Helper()
	certificate, key := authority.Sign(t, func(c *x509.Certificate) { c.DNSNames = []string{consoleHost} })
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(settings.ingress)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	front.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	front.StartTLS()
	t.Cleanup(front.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority.PEM))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{consoleHost + ":443": front.Listener.Addr().String(), providerHost + ":443": provider}
	return &browser{http.Client{Jar: jar, Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			known := addresses[address]
			if known == "" {
				return nil, errors.New("the browser is led to " + address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, known)
		},
	}}}
}

// tries opens the console, is led to the provider, fills in its form, and returns where it ends.
func (b *browser) tries(t *testing.T, name, password string) (*url.URL, error) {
	t.Helper()
	var form *url.URL
	within(t, time.Minute, "the console leads to the provider", func() error { // the console itself may have started only now
		response, err := b.Get("https://" + consoleHost + "/login?return=%2F")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK || response.Request.URL.Hostname() != providerHost {
			return fmt.Errorf("%s answers %s", response.Request.URL.Hostname(), response.Status)
		}
		form = response.Request.URL
		return nil
	})
	response, err := b.PostForm(form.String(), url.Values{"username": {name}, "password": {password}, "id": {form.Query().Get("authRequestID")}})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.Request.URL.Hostname() != consoleHost || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it ends at %s with %s", response.Request.URL.Hostname(), response.Status)
	}
	return response.Request.URL, nil
}

func (b *browser) signsIn(t *testing.T, name, password string) {
	t.Helper()
	at, err := b.tries(t, name, password)
	if err != nil || at.Path != "/" {
		t.Fatalf("signing in as %s ends at %v: %v", name, at, err)
	}
	status, body := b.ask(t, http.MethodGet, "/session", nil)
	if want := `"user":"e2e:` + name + `"`; status != http.StatusOK || !contains(body, want) {
		t.Fatalf("the session is %d %s, want %s", status, body, want)
	}
}

// ask asks the console as its pages do.
func (b *browser) ask(t *testing.T, method, path string, body any) (int, string) {
	t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		content = strings.NewReader(string(text))
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+consoleHost+path, content)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := b.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// read asks for something and reads the member data.
func (b *browser) read(t *testing.T, path string, data any) {
	t.Helper()
	status, body := b.ask(t, http.MethodGet, path, nil)
	if status != http.StatusOK {
		t.Fatalf("%s answers %d %s", path, status, body)
	}
	if err := json.Unmarshal([]byte(body), &struct{ Data any }{data}); err != nil {
		t.Fatal(err)
	}
}

// properties are those that the console shows, sorted; each with its figures.
func (b *browser) properties(t *testing.T) []string {
	t.Helper()
	var list []struct {
		Namespace, Property, Ready string
		Figures                    map[string]any
		Problem                    any
	}
	b.read(t, "/api/properties?period=7d", &list)
	names := []string{}
	for _, one := range list {
		if one.Ready != "True" || one.Figures["pageviews"] == nil {
			t.Errorf("the console says of %s/%s that Ready is %s, its figures are %v, %v", one.Namespace, one.Property, one.Ready, one.Figures, one.Problem)
		}
		names = append(names, one.Namespace+"/"+one.Property)
	}
	slices.Sort(names)
	return names
}

// base is below what a Property's page is in the console.
func base(it *tenant) string { return "/namespaces/" + it.namespace + "/properties/" + it.name + "/" }

// makesAndUsesAKey sends an event with a key that is minutes old at most, and sees what became of the event.
func (b *browser) makesAndUsesAKey(t *testing.T, shop *tenant) {
	t.Helper()
	key := auth.NewAPIKey()
	hash, err := auth.HashOf(key).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	status, body := b.ask(t, http.MethodPost, base(shop)+"access/keys", map[string]any{"name": "console-e2e", "sha256": string(hash), "expires_at": nil})
	if status != http.StatusCreated {
		t.Fatalf("making a key is answered %d %s", status, body)
	}
	took := shop.accepts(t, key, `{"event": "console", "event_id": "console-1", "client_id": "ann"}`)
	shop.figure(t, "a key, from made to taken", "%.1f s", took.Seconds())
	within(t, 30*time.Second, "the console shows the event and its deliveries", func() error {
		var events []record
		b.read(t, base(shop)+"api/events?event=console", &events)
		if len(events) != 1 || len(events[0].Delivery) == 0 {
			return fmt.Errorf("it shows %v", events)
		}
		for _, delivery := range events[0].Delivery {
			if delivery.Status != "delivered" {
				return fmt.Errorf("%s is %s", delivery.Platform, delivery.Status)
			}
		}
		return nil
	})
	// What GitOps applies again is the Property; nothing of it is the key's.
	property := shop.get(t)
	property.ManagedFields, property.ResourceVersion, property.UID, property.Status = nil, "", "", v1alpha1.PropertyStatus{}
	property.APIVersion, property.Kind = v1alpha1.GroupVersion.String(), v1alpha1.Kind
	text, err := json.Marshal(property)
	if err != nil {
		t.Fatal(err)
	}
	applied := shop.pipe(t, string(text), "kubectl", "apply", "--server-side", "--force-conflicts", "--field-manager=gitops", "-f", "-")
	if !strings.Contains(applied, "serverside-applied") {
		t.Errorf("applying the Property again says %s", applied)
	}
	shop.ready(t)
	if status, body := shop.send(t, key, `{"event": "console", "event_id": "console-2"}`); status != http.StatusAccepted {
		t.Errorf("after the Property was applied again the key is answered %d %s", status, body)
	}
	if status, body := b.ask(t, http.MethodDelete, base(shop)+"access/keys/console-e2e", nil); status != http.StatusNoContent {
		t.Errorf("revoking the key is answered %d %s", status, body)
	}
	took = within(t, time.Minute, "the revoked key is refused", func() error {
		if status, body := shop.send(t, key, `{"event": "console"}`); status != http.StatusUnauthorized {
			return fmt.Errorf("it is answered %d %s", status, body)
		}
		return nil
	})
	shop.figure(t, "a key, from revoked to refused", "%.1f s", took.Seconds())
}

func (b *browser) makesAndRevokesAToken(t *testing.T, shop *tenant) {
	t.Helper()
	token := auth.NewAccessToken()
	hash, err := auth.HashOf(token).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]any{"name": "console-e2e", "sha256": string(hash), "scope": "read", "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	if status, body := b.ask(t, http.MethodPost, base(shop)+"access/tokens", asked); status != http.StatusCreated {
		t.Fatalf("making a token is answered %d %s", status, body)
	}
	is := func(want int) func() error {
		return func() error {
			status, body, err := shop.request(t, token, "analytics/summary")
			if err != nil || status != want {
				return fmt.Errorf("it is answered %d %s %w, want %d", status, body, err, want)
			}
			return nil
		}
	}
	took := within(t, time.Minute, "the token is taken", is(http.StatusOK))
	shop.figure(t, "a token, from made to taken", "%.1f s", took.Seconds())
	if status, body := b.ask(t, http.MethodDelete, base(shop)+"access/tokens/console-e2e", nil); status != http.StatusNoContent {
		t.Fatalf("revoking the token is answered %d %s", status, body)
	}
	took = within(t, time.Minute, "the revoked token is refused", is(http.StatusUnauthorized))
	shop.figure(t, "a token, from revoked to refused", "%.1f s", took.Seconds())
	if took > 10*time.Second {
		t.Errorf("a revoked token was taken for %s", took)
	}
}

// isBoundedByRBAC looks at what the role edit has not: what only admin may.
func (b *browser) isBoundedByRBAC(t *testing.T, shop *tenant) {
	t.Helper()
	hash, err := auth.HashOf(auth.NewAccessToken()).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]any{"name": "console-admin", "sha256": string(hash), "scope": "admin", "expires_at": nil}
	if status, body := b.ask(t, http.MethodPost, base(shop)+"access/tokens", asked); status != http.StatusForbidden {
		t.Errorf("a token with a scope beyond her own is answered %d %s, want 403", status, body)
	}
	if status, body := b.ask(t, http.MethodPost, base(shop)+"api/erasures", map[string]any{"client_id": "ann"}); status != http.StatusForbidden {
		t.Errorf("an erasure beyond her scope is answered %d %s, want 403", status, body)
	}
	// Her roles are taken away while she is signed in.
	for _, role := range []string{"weir-view", "weir-edit"} {
		must(t, "kubectl", "-n", shop.namespace, "delete", "rolebinding", "analysts-"+role)
	}
	took := within(t, 30*time.Second, "what she may no longer see is shown no more", func() error {
		if status, body := b.ask(t, http.MethodGet, base(shop)+"api/events", nil); status != http.StatusNotFound {
			return fmt.Errorf("it is answered %d %.200s", status, body)
		}
		return nil
	})
	shop.figure(t, "a role, from taken away to refused", "%.1f s", took.Seconds())
}
