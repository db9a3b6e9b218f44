// Package role wires the four roles of a tenant process: collect, deliver, query and archive. The pods' binary runs one
// of them for one Property, `weir dev` all of them for many.
package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/bots"
	"github.com/weir-dev/weir/collector/deliver"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/query"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/tracing"
)

// Options say what [Run] serves.
type Options struct {
	Roles []Name
	// Directories hold one Property's configuration each, as package config describes it.
	Directories []string
	// Listener serves collecting and reading; nil where neither is among the roles.
	Listener net.Listener
	// MetricsListener serves /metrics, /livez and /readyz; nil for none.
	MetricsListener net.Listener
	// Consumer tells this deliverer from the others of its properties; the same name after a restart lets it go
	// on where it stopped.
	Consumer string
	Logger   *slog.Logger
	// LogLevel is set to what the one Property of a pod says; nil where there are others in the process.
	LogLevel *slog.LevelVar
	// Audit is told of what is done with keys, tokens and events; nil for none.
	Audit *audit.Log
	// Local is what `weir dev` adds to the read API on the machine of its user; nil in pods.
	Local *query.Local
	// DrainDelay is for how long requests are still taken after readiness has turned false.
	DrainDelay time.Duration
	// Ready is called once everything can be served, views' first replay and histories' first filling included; its error ends the run. Nil
	// for none.
	Ready func() error

	// views is what [Run] gives the views of memory.
	views viewMemory
}

// reloadInterval is how often the configuration is looked at.
const reloadInterval = time.Second

func (o *Options) has(name Name) bool { return slices.Contains(o.Roles, name) }

// process is one run.
type process struct {
	Options
	properties []*property
	collect    *ingest.Handler
	query      *query.Handler
	deliver    map[*property]*deliveries
	archive    map[*property]*archives
	health     *server.Health
	registry   *prometheus.Registry
	// publishing is held while what the handlers serve changes.
	publishing sync.Mutex
}

// Run serves until ctx ends, then drains: requests and deliveries in flight finish side by side; appends are
// flushed and the views stopped after the last request; connections to Redis are closed at the end. A
// configuration that changes is served from then on; one that is bad at the start is an error, one that
// becomes bad later is reported and the last good one goes on being served.
func Run(ctx context.Context, o Options) (err error) {
	p := &process{Options: o, registry: prometheus.NewRegistry()}
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if p.has(Query) {
		p.views = memoryOfViews(len(o.Directories))
	}
	for _, directory := range o.Directories {
		property, err := open(directory, p.Options, p.registry)
		if err != nil {
			return errors.Join(err, p.close())
		}
		p.properties = append(p.properties, property)
	}
	defer func() { err = errors.Join(err, p.close()) }()

	provider, closeTracing, err := tracing.Start(ctx, p.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endTracing(ctx, closeTracing)) }()
	handler, err := p.handlers(provider)
	if err != nil {
		return err
	}
	p.publish()
	return p.serve(ctx, handler)
}

// handlers makes what the roles need beside the properties, and returns the HTTP side.
func (p *process) handlers(spans trace.TracerProvider) (http.Handler, error) {
	var checks []server.Check
	for _, property := range p.properties {
		checks = append(checks, property.checks()...)
	}
	if err := p.openArchives(); err != nil {
		return nil, err
	}
	for property, a := range p.archive {
		checks = append(checks, server.Check{Name: "clickhouse " + property.String(), Ready: a.ready})
	}
	p.health = server.NewHealth(checks...)

	observer := server.NewObserver(p.Logger, p.registry)
	observer.Trace(spans)
	router := server.NewRouter(observer)
	if p.has(Collect) || p.has(Deliver) {
		detector, err := bots.New()
		if err != nil {
			return nil, err
		}
		p.collect = ingest.New(ingest.Options{Now: time.Now, Registerer: p.registry, Bots: detector, Audit: p.Audit, MaxInFlightBytes: memoryInFlight()})
	}
	if p.has(Collect) {
		p.collect.Routes(router)
	}
	if p.has(Query) {
		p.query = query.New(query.Options{Logger: p.Logger, Audit: p.Audit, Now: time.Now, Budget: p.views.budget, Local: p.Local})
		p.query.Routes(router)
	}
	if p.has(Deliver) {
		p.deliver = map[*property]*deliveries{}
		for _, property := range p.properties {
			metrics, err := deliver.NewMetrics(prometheus.WrapRegistererWith(property.labels(), p.registry))
			if err != nil {
				return nil, fmt.Errorf("deliveries of %s: %w", property, err)
			}
			p.deliver[property] = newDeliveries(property, metrics, spans, p.collect, p.Options)
		}
	}
	return router, nil
}

// publish lets the handlers serve the properties as they were last loaded.
func (p *process) publish() {
	var collect []ingest.Tenant
	var queried []query.Tenant
	for _, property := range p.properties {
		if p.has(Collect) || slices.ContainsFunc(property.config.Sources, func(source sources.Source) bool { return source.ReadsOrders }) {
			collect = append(collect, property.collectTenant())
		}
		if p.query != nil {
			queried = append(queried, property.queryTenant())
		}
	}
	if p.collect != nil {
		p.collect.Serve(collect)
	}
	if p.query != nil {
		p.query.Serve(queried)
	}
}

// republish serves a property from the engine that answers now.
func (p *process) republish(property *property) {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	p.publish()
	p.Logger.Info("questions are answered by another engine from now on", "property", property.String(), "from", property.engines.now().String())
}

// serve runs everything until ctx ends or a server fails.
func (p *process) serve(ctx context.Context, handler http.Handler) error {
	// What stands behind the handlers outlives them: it is stopped when the last request has been answered.
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var back errgroup.Group
	front, running := errgroup.WithContext(ctx)

	for _, property := range p.properties {
		back.Go(func() error { property.ledger.follow(behind, property.stream); return nil })
		if property.engines != nil {
			back.Go(func() error { return property.engines.keep(behind, property, func() { p.republish(property) }) })
		}
		if property.watch != nil {
			back.Go(func() error { property.watch.follow(behind); return nil })
		}
		if property.tally != nil {
			back.Go(func() error { property.keepCounting(behind); return nil })
		}
		if d := p.deliver[property]; d != nil {
			front.Go(func() error { return d.run(running) })
		}
		if a := p.archive[property]; a != nil {
			front.Go(func() error { return a.run(running) })
		}
	}
	front.Go(func() error { p.reload(running); return nil })
	if p.has(Deliver) {
		front.Go(func() error { p.reportMisconfigurations(running); return nil })
	}
	if p.Listener != nil {
		front.Go(func() error {
			return server.Run(running, server.Options{
				Listener: p.Listener, Handler: handler, Logger: p.Logger, Health: p.health, DrainDelay: p.DrainDelay,
				MaxConnections: maxConnections(), MaxHeaderBytes: p.maxHeaderBytes(),
			})
		})
	}
	if p.MetricsListener != nil {
		operations := server.OperationsHandler(p.health, p.registry)
		back.Go(func() error {
			err := server.Run(behind, server.Options{Listener: p.MetricsListener, Handler: operations, Logger: p.Logger})
			fail(err)
			return err
		})
	}
	if p.Ready != nil {
		front.Go(func() error { return p.announce(running) })
	}
	err := front.Wait()
	p.health.Drain()
	stop()
	return errors.Join(err, back.Wait())
}

// announce calls Ready when every property's questions are answered, or never where ctx ends before.
func (p *process) announce(ctx context.Context) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for slices.ContainsFunc(p.properties, func(property *property) bool { return !property.answering() }) {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	return p.Ready()
}

// endTracing sends the spans that are left. A trace backend that is away is no reason to fail.
func endTracing(ctx context.Context, closing func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := closing(ctx); err != nil && ctx.Err() == nil {
		return errors.New("the last spans could not be sent")
	}
	return nil
}

// close gives up what the properties hold.
func (p *process) close() error {
	var errs []error
	for _, property := range p.properties {
		errs = append(errs, property.close())
	}
	return errors.Join(errs...)
}

// maxHeaderBytes leaves room for the longest query string, and for one that is a little longer to be told so.
func (p *process) maxHeaderBytes() int {
	if p.has(Query) {
		return query.MaxQueryBytes + 32<<10
	}
	return 0
}
