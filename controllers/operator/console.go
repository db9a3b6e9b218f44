package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/console"
)

const consoleUsage = `The cluster's page for people: they sign in at an OpenID Connect provider, and see and do with Properties what RBAC lets them.

Usage:
  weir-operator console --url https://HOST --oidc-issuer-url URL --oidc-client-id ID --signing-keys-file FILE FLAG…

Flags:

`

// consoleOptions are the console's flags.
type consoleOptions struct {
	console.Options
	listen, healthListen string
	watchNamespaces      []string
	drainDelay           time.Duration
}

// drainTimeout is how long requests in flight may take to end: with the delay before, less than the chart gives the pod.
const drainTimeout = 20 * time.Second

// The bounds of --session-max-age.
const (
	minSession = 5 * time.Minute
	maxSession = 12 * time.Hour
)

// parseConsoleFlags reads the flags, as [parseFlags] does.
func parseConsoleFlags(args []string, output io.Writer) (consoleOptions, error) {
	var o consoleOptions
	var base, prefix, authorities string
	provider := &o.Provider
	set := flags.NewSet(program + " console")
	set.StringVar(&o.listen, "listen", ":8080", "`ADDRESS` for the pages")
	set.StringVar(&o.healthListen, "health-listen", ":8081", "`ADDRESS` for /healthz, /readyz and /metrics")
	set.StringVar(&base, "url", "", "`URL` at which people reach the console: https and a host of its own; http on the machine itself alone")
	set.StringVar(&provider.Issuer, "oidc-issuer-url", "", "`URL` of the OpenID Connect provider, as its tokens name it")
	set.StringVar(&provider.ClientID, "oidc-client-id", "", "`ID` of the console at the provider")
	set.StringVar(&provider.ClientSecretFile, "oidc-client-secret-file", "", "`FILE` with the client's secret; default: none, for a public client")
	set.Func("oidc-scope", "`SCOPE` to ask the provider for; may be repeated; default: openid, profile, email and groups", flags.Repeated(&provider.Scopes))
	set.StringVar(&provider.Claims.Username, "oidc-username-claim", "sub", "`CLAIM` that is the user's name, as the API server has it")
	set.StringVar(&prefix, "oidc-username-prefix", "", "`PREFIX` of users' names, - for none; default: the issuer's URL and #, none for the claim email")
	set.StringVar(&provider.Claims.Groups, "oidc-groups-claim", "groups", "`CLAIM` that has the user's groups")
	set.StringVar(&provider.Claims.GroupsPrefix, "oidc-groups-prefix", "", "`PREFIX` of groups' names; default: none")
	set.StringVar(&authorities, "oidc-ca-file", "", "`FILE` with the authorities that the provider's certificate may come from beside the system's, in PEM")
	set.StringVar(&o.SigningKeysFile, "signing-keys-file", "", "`FILE` with the keys that the operator makes, by which query pods know the console")
	set.Func("watch-namespace", "`NAMESPACE` whose Properties are shown; may be repeated; default: all", flags.Repeated(&o.watchNamespaces))
	addOperatorClass(set, &o.OperatorClass)
	set.DurationVar(&o.SessionMaxAge, "session-max-age", time.Hour, "how long after signing in somebody is signed out, 5m to 12h; groups are as old as that")
	set.DurationVar(&o.drainDelay, "drain-delay", 5*time.Second, "how long requests are still taken after readiness has turned false")
	if err := flags.Parse(set, consoleUsage, args, output); err != nil {
		return o, err
	}
	var errs flags.Errors
	flags.CheckAddress("--listen", o.listen, ":8080 or 127.0.0.1:8080", &errs)
	flags.CheckAddress("--health-listen", o.healthListen, ":8081 or 127.0.0.1:8081", &errs)
	checkOperatorClass(o.OperatorClass, &errs)
	o.URL = parseBase(base, &errs)
	o.checkProvider(prefix, &errs)
	o.Provider.Authorities = readAuthorities(authorities, &errs)
	if o.SigningKeysFile == "" {
		errs.Add("--signing-keys-file: must name a file; the operator makes it, in a Secret")
	}
	if o.SessionMaxAge < minSession || o.SessionMaxAge > maxSession {
		errs.Add("--session-max-age: %s must be 5m to 12h", o.SessionMaxAge)
	}
	o.watchNamespaces = slices.Compact(slices.Sorted(slices.Values(o.watchNamespaces)))
	return o, errs.Err()
}

// parseBase reads --url.
func parseBase(text string, errs *flags.Errors) *url.URL {
	base, err := url.Parse(text)
	if err != nil || !console.IsSecureURL(text) || base.Path != "" && base.Path != "/" || base.RawQuery != "" || base.Fragment != "" {
		errs.Add("--url: must be https and a host without a path, as in https://console.example.com")
		return nil
	}
	return &url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/"}
}

// checkProvider looks at the flags of the provider, and completes them.
func (o *consoleOptions) checkProvider(prefix string, errs *flags.Errors) {
	p := &o.Provider
	if issuer, err := url.Parse(p.Issuer); err != nil || !console.IsSecureURL(p.Issuer) || issuer.RawQuery != "" || issuer.Fragment != "" {
		errs.Add("--oidc-issuer-url: must be the provider's https URL, as its tokens name it, as in https://login.example.com")
	}
	if p.ClientID == "" {
		errs.Add("--oidc-client-id: must be the console's id at the provider")
	}
	if p.ClientSecretFile != "" {
		if secret, err := os.ReadFile(p.ClientSecretFile); err != nil || strings.TrimSpace(string(secret)) == "" {
			errs.Add("--oidc-client-secret-file: must be a file with the client's secret")
		}
	}
	if len(p.Scopes) == 0 {
		p.Scopes = []string{"openid", "profile", "email", "groups"}
	}
	if !slices.Contains(p.Scopes, "openid") {
		p.Scopes = append([]string{"openid"}, p.Scopes...)
	}
	if p.Claims.Username == "" {
		errs.Add("--oidc-username-claim: must name a claim")
	}
	p.Claims.UsernamePrefix = console.UsernamePrefix(prefix, p.Claims.Username, p.Issuer)
	for name, value := range map[string]string{"--oidc-username-prefix": p.Claims.UsernamePrefix, "--oidc-groups-prefix": p.Claims.GroupsPrefix} {
		if strings.HasPrefix(value, "system:") {
			errs.Add("%s: must not begin with system:, which is the cluster's own", name)
		}
	}
}

// readAuthorities reads the certificates in a file, nil for "".
func readAuthorities(file string, errs *flags.Errors) []byte {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		errs.Add("--oidc-ca-file: %v", err)
		return nil
	}
	return text
}

// consoleServe serves the console until ctx ends.
func consoleServe(ctx context.Context, version string, args []string, stdout, stderr io.Writer) error {
	o, err := parseConsoleFlags(args, stdout)
	if err != nil {
		return err
	}
	o.Logger, o.Now = slog.New(slog.NewJSONHandler(stderr, nil)), time.Now
	o.Audit = audit.New(stdout, o.Logger, time.Now)
	log.SetLogger(logr.FromSlogHandler(o.Logger.Handler()))
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	o.Registerer = registry

	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	collectGarbageSooner()
	cluster.QPS = -1 // the API server keeps its own order, by priority and fairness
	scheme, err := controllers.NewScheme()
	if err != nil {
		return err
	}
	known, err := cache.New(cluster, console.CacheOptions(scheme, o.watchNamespaces))
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	o.Cached = known
	if o.Client, err = client.New(cluster, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	served, err := console.New(o.Options)
	if err != nil {
		return flags.Errors{fmt.Sprintf("--oidc-ca-file: %v", err)}
	}
	o.Logger.InfoContext(ctx, "console starts", "version", version, "url", o.URL.String(), "issuer", o.Provider.Issuer, "namespaces", o.watchNamespaces)
	return serveConsole(ctx, o, served, known, registry)
}

// serveConsole serves pages, health and metrics.
func serveConsole(ctx context.Context, o consoleOptions, served *console.Console, known cache.Cache, registry *prometheus.Registry) error {
	handler, err := served.Handler()
	if err != nil {
		return err
	}
	for _, object := range []client.Object{&v1alpha1.Property{}, &v1alpha1.AccessToken{}, &v1alpha1.APIKey{}} {
		if _, err := known.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch the cluster: %w", err)
		}
	}
	health := server.NewHealth(
		server.Check{Name: "cache", Ready: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			defer cancel()
			if !known.WaitForCacheSync(ctx) {
				return errors.New("the cache is not in step with the API server; the log says what it waits for")
			}
			return nil
		}},
		server.Check{Name: "signing-keys", Ready: served.Check},
	)
	pages, err := server.Listen(ctx, o.listen, "--listen")
	if err != nil {
		return err
	}
	operations, err := server.Listen(ctx, o.healthListen, "--health-listen")
	if err != nil {
		return errors.Join(err, pages.Close())
	}
	// Health is served, and the cache kept, until the pages' last requests are answered.
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return known.Start(behind) })
	running.Go(func() error {
		return server.Run(behind, server.Options{Listener: operations, Handler: operationsOf(health, registry), Logger: o.Logger})
	})
	running.Go(func() error {
		defer stop()
		return server.Run(ctx, server.Options{Listener: pages, Handler: handler, Logger: o.Logger, Health: health, DrainDelay: o.drainDelay, DrainTimeout: drainTimeout})
	})
	running.Go(func() error {
		served.Discover(ctx)
		return nil
	})
	return running.Wait()
}

// operationsOf serves what a cluster asks of a process, by the operator's paths as well as the pods'.
func operationsOf(health *server.Health, registry *prometheus.Registry) http.Handler {
	operations := server.OperationsHandler(health, registry)
	mux := http.NewServeMux()
	mux.Handle("/", operations)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		live := r.Clone(r.Context())
		live.URL.Path = "/livez"
		operations.ServeHTTP(w, live)
	})
	return mux
}
