package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

// serve serves the Properties of a cluster until ctx ends.
func serve(ctx context.Context, version string, args []string, stdout, stderr io.Writer) error {
	options, err := parseFlags(args, stdout)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	logger := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	if options.logLevelFile != "" {
		go followLogLevel(ctx, options.logLevelFile, level, logger)
	}
	options.Audit = audit.New(stdout, logger, time.Now)
	stream.RouteLogs(logger)
	log.SetLogger(logr.FromSlogHandler(logger.Handler()))

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
	manager, err := ctrl.NewManager(cluster, managerOptions(options, scheme))
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	direct, err := client.New(cluster, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	holder, shared := options.leaderElection.release()
	options.Leases = &controllers.NamespaceLeases{
		Client: direct, Holder: holder, GiveBack: !shared, Class: options.OperatorClass, Namespaces: options.watchNamespaces,
		Duration: controllers.LeaseDuration, Now: time.Now, Logger: logger,
	}
	if asked := options.redisCertificates; asked.made() || asked.reload {
		options.RedisCertificates = &controllers.RedisCertificates{
			Client: direct, Secret: asked.secret, RedisURL: options.RedisURL, Files: options.RedisTLS, Now: time.Now, Logger: logger,
		}
	}
	if options.consoleKeys != (types.NamespacedName{}) {
		options.Console = &controllers.ConsoleKeys{Client: direct, Secret: options.consoleKeys, Now: time.Now, Logger: logger}
	}
	err = errors.Join(
		manager.AddHealthzCheck("ping", healthz.Ping),
		manager.AddReadyzCheck("cache", inStep(manager.GetCache())),
		manager.AddReadyzCheck("namespaces", options.Leases.Check),
	)
	if err != nil {
		return err
	}
	if err := controllers.Setup(ctx, manager, options.Options, logger, nil); err != nil {
		return err
	}
	if err := metrics.Registry.Register(controllers.PausedProperties(manager.GetCache(), options.OperatorClass)); err != nil {
		return err
	}
	logger.InfoContext(ctx, "operator starts", "version", version, "image", options.Image, "class", options.OperatorClass, "namespaces", options.watchNamespaces)
	return manager.Start(ctx)
}

// managerOptions are the flags in the words of controller-runtime.
func managerOptions(o options, scheme *runtime.Scheme) ctrl.Options {
	election := o.leaderElection
	return ctrl.Options{
		Scheme: scheme, Cache: controllers.CacheOptions(o.watchNamespaces), Logger: log.Log, Metrics: metricsserver.Options{BindAddress: o.metricsListen}, HealthProbeBindAddress: o.healthListen,
		LeaderElection: election.enabled, LeaderElectionID: election.name, LeaderElectionNamespace: election.namespace,
		LeaseDuration: &election.duration, RenewDeadline: &election.renewDeadline, RetryPeriod: &election.retryPeriod,
		// The process ends when the lease is given back, so the next leader need not wait for it to run out.
		LeaderElectionReleaseOnCancel: true,
	}
}

// ownNamespace has the namespace of a pod.
const ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// release names the release that this process is one of, and says whether others share it. Without leader election each
// process is one of its own.
func (l leaderElection) release() (name string, shared bool) {
	namespace := l.namespace
	if namespace == "" {
		if text, err := os.ReadFile(ownNamespace); err == nil {
			namespace = strings.TrimSpace(string(text))
		}
	}
	if l.enabled && namespace != "" {
		return namespace + "/" + l.name, true
	}
	return namespace + "/" + string(uuid.NewUUID()), false
}

// collectGarbageSooner keeps the operator small. Nearly all that it allocates is garbage at once, what the API server
// answered above all, and it is rarely busy: collecting four times as often as Go does costs little of its time and saves
// more than a third of its memory. GOGC in the environment says otherwise.
func collectGarbageSooner() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
}

// inStep is the check that the operator knows the state of the cluster: not before its caches are filled, as where a definition
// or a right is missing.
func inStep(known cache.Cache) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), 500*time.Millisecond)
		defer cancel()
		if !known.WaitForCacheSync(ctx) {
			return errors.New("the cache is not in step with the API server; the log says what it waits for")
		}
		return nil
	}
}
