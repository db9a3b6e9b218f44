// Package console is the cluster's page for people: they sign in at an OpenID Connect provider, and see and do with Properties what
// the cluster's RBAC lets them, without an access token. It asks the API server at every request, hands questions about a Property's
// numbers on to the Property's own query pods, and reads no Secret.
package console

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/dashboard"
	"github.com/weir-dev/weir/collector/server"
)

// Options are what a [Console] needs. All but Audit and Dial are required.
type Options struct {
	// URL is where people reach the console: a scheme and a host of its own, https but on the machine itself.
	URL      *url.URL
	Provider Provider
	// SigningKeysFile has the keys with which the console shows the query pods who asks, newest first.
	SigningKeysFile string
	// SessionMaxAge is how long after signing in somebody is signed out.
	SessionMaxAge time.Duration
	// OperatorClass is that of the Properties which are shown, those whose pods the console's operator tells of its keys; "" for
	// those without one.
	OperatorClass string
	// Cached has Properties, AccessTokens and APIKeys as they were a moment ago.
	Cached client.Reader
	// Client is the API server itself.
	Client     client.Client
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
	// Audit is told of who signs in and of what people make and revoke; nil for none.
	Audit *audit.Log
	// Dial connects to query pods; nil for the network, without addresses of the machine itself.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Console answers browsers. It is safe for concurrent use.
type Console struct {
	base       *url.URL
	class      string
	cached     client.Reader
	client     client.Client
	logger     *slog.Logger
	audit      *audit.Log
	now        func() time.Time
	observer   *server.Observer
	metrics    metrics
	provider   *provider
	sealer     sealer
	cookies    cookieNames
	sessions   *sessions
	authoriser *authoriser
	signer     *signer
	pods       *pods
}

// metrics are those of signing in.
type metrics struct{ signIns *prometheus.CounterVec }

// New makes a console. It fails where the provider's certificates cannot be read.
func New(o Options) (*Console, error) {
	asked, err := newProvider(o.Provider, o.URL.JoinPath(pathCallback).String(), o.Now, o.Logger)
	if err != nil {
		return nil, err
	}
	c := &Console{
		base: o.URL, class: o.OperatorClass, cached: o.Cached, client: o.Client, logger: o.Logger, audit: o.Audit, now: o.Now,
		observer: server.NewObserver(o.Logger, o.Registerer), provider: asked,
		sealer: newSealer(), cookies: namesFor(o.URL), sessions: newSessions(o.SessionMaxAge, o.Now),
		authoriser: newAuthoriser(o.Client, o.Now),
		signer:     &signer{file: o.SigningKeysFile, now: o.Now, logger: o.Logger},
	}
	c.pods = newPods(o.Dial, c.signer)
	c.metrics.signIns = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_console_sign_ins_total", Help: "Attempts to sign in to the console, by how they ended.",
	}, []string{"outcome"})
	for _, how := range []outcome{signedIn, cancelled, stale, invalid, refused, down} {
		c.metrics.signIns.WithLabelValues(string(how))
	}
	o.Registerer.MustRegister(c.metrics.signIns, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_console_sessions", Help: "Sessions of people who are signed in to the console.",
	}, func() float64 { return float64(c.sessions.count()) }))
	return c, nil
}

// Check says whether the console can show query pods who asks.
func (c *Console) Check(context.Context) error {
	c.signer.mu.Lock()
	defer c.signer.mu.Unlock()
	c.signer.read(c.now())
	if len(c.signer.keys) == 0 {
		return errNoKeys
	}
	return nil
}

// discoverRetry is how long after a failure the provider is asked again at the start.
const discoverRetry = 10 * time.Second

// Discover asks the provider what it is like, again and again until it says so or ctx ends: so that the log says at the start that
// nobody can sign in, rather than when somebody tries.
func (c *Console) Discover(ctx context.Context) {
	for {
		if _, err := c.provider.discover(ctx); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(discoverRetry):
		}
	}
}

// The parameters of paths.
const (
	namespaceParameter  = "namespace"
	propertyParameter   = "property"
	credentialParameter = "credential"
)

// propertyBase is below which a Property's page lies.
const propertyBase = "/namespaces/{" + namespaceParameter + "}/properties/{" + propertyParameter + "}"

// Handler has all routes.
func (c *Console) Handler() (http.Handler, error) {
	files, err := dashboard.New()
	if err != nil {
		return nil, err
	}
	protection := http.NewCrossOriginProtection()
	if err := protection.AddTrustedOrigin(c.base.Scheme + "://" + c.base.Host); err != nil {
		return nil, err
	}
	protection.SetDenyHandler(http.HandlerFunc(refuseOrigin))
	router := server.NewRouter(c.observer)
	router.NotFound(headers(http.HandlerFunc(server.NotFound)).ServeHTTP)
	router.MethodNotAllowed(headers(http.HandlerFunc(server.MethodNotAllowed)).ServeHTTP)
	router.Group(func(r chi.Router) {
		r.Use(headers, protection.Handler)
		c.shells(r, files)
		r.Get(pathLogin, c.login)
		r.Get(pathCallback, c.callback)
		r.Group(func(r chi.Router) {
			r.Use(ownPageOnly)
			get(r, "/session", c.session)
			r.Delete("/session", c.signOut)
			get(r, "/api/properties", c.signedIn(c.list))
			r.Group(func(r chi.Router) { // no router of its own, which would take any method at its root
				r.Use(namesProperty)
				c.property(r)
			})
		})
	})
	return router, nil
}

// shells mounts what is the same for everybody: the pages' HTML and the files that it loads.
func (c *Console) shells(r chi.Router, files dashboard.Files) {
	static := files.ServeStatic(server.NotFound)
	get(r, "/", files.Console().ServeHTTP)
	for _, pattern := range dashboard.FilePatterns() {
		get(r, pattern, static)
	}
	shell := namesProperty(dashboard.WithSlash(files.Shell())).ServeHTTP
	get(r, propertyBase, shell)
	get(r, propertyBase+"/", shell)
	for _, pattern := range dashboard.FilePatterns() {
		get(r, propertyBase+pattern, static)
	}
}

// property mounts what is asked below a Property's page.
func (c *Console) property(r chi.Router) {
	get(r, propertyBase+"/session", c.propertySession)
	r.Delete(propertyBase+"/session", c.signOut)
	get(r, propertyBase+"/access", c.atProperty(c.access))
	for _, kind := range credentialKinds {
		r.Post(propertyBase+"/access/"+kind.path, c.atProperty(c.makeCredential(kind)))
		r.Delete(propertyBase+"/access/"+kind.path+"/{"+credentialParameter+"}", c.atProperty(c.revokeCredential(kind)))
	}
	for _, call := range calls {
		handler := c.atProperty(c.proxied(call))
		if call.method == http.MethodPost {
			r.Post(propertyBase+"/api"+call.pattern, handler)
		} else {
			get(r, propertyBase+"/api"+call.pattern, handler)
		}
	}
}

// get mounts a handler for GET and HEAD.
func get(r chi.Router, pattern string, handler http.HandlerFunc) {
	r.Get(pattern, handler)
	r.Head(pattern, handler)
}

// headers bound what a browser does with any answer of the console's, and keep answers out of caches unless a handler says otherwise.
func headers(next http.Handler) http.Handler {
	return server.SecurityHeaders(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dashboard.Headers(w.Header())
		next.ServeHTTP(w, r)
	}))
}

// ownPageOnly refuses what a browser asks for a page of another site or host.
func ownPageOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !dashboard.FromOwnPage(r) {
			refuseOrigin(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseOrigin answers a request that another page's script or form has made.
func refuseOrigin(w http.ResponseWriter, _ *http.Request) {
	server.Message(w, http.StatusForbidden, "Only the console's own pages may ask this.")
}

// errNotFound is that there is no such Property, or none that the user is to know of.
var errNotFound = errors.New("not found")
