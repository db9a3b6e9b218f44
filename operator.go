package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

// operator serves the Properties of a cluster until ctx ends.
func operator(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	options, err := parseOperatorFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewJSONHandler(stderr, nil))
	stream.RouteLogs(logger)
	log.SetLogger(logr.FromSlogHandler(logger.Handler()))

	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	cluster.QPS = -1 // the API server keeps its own order, by priority and fairness
	scheme, err := controllers.NewScheme()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme: scheme, Cache: controllers.CacheOptions(options.watchNamespaces), Logger: log.Log,
		Metrics:        metricsserver.Options{BindAddress: options.metricsListen},
		LeaderElection: options.leaderElection, LeaderElectionID: "weir-operator.weir.dev",
		// The process ends when the lease is given back, so the next leader need not wait for it to run out.
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        options.healthListen,
	})
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	if err := errors.Join(manager.AddHealthzCheck("ping", healthz.Ping), manager.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	if err := controllers.Setup(ctx, manager, options.Options, logger, nil); err != nil {
		return err
	}
	logger.InfoContext(ctx, "operator starts", "version", version, "image", options.Image, "namespaces", options.watchNamespaces)
	return manager.Start(ctx)
}
