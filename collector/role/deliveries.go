package role

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver"
	"github.com/weir-dev/weir/collector/fetch"
	"github.com/weir-dev/weir/collector/stream"
)

// deliveries runs a property's delivery engine, and a new one whenever the configuration has changed.
type deliveries struct {
	stream    *stream.Stream
	ledger    *ledger
	directory string
	metrics   *deliver.Metrics
	tracing   trace.TracerProvider
	consumer  string
	logger    *slog.Logger
	audit     *audit.Log

	mu      sync.Mutex
	current config.Property
	stop    context.CancelFunc // of the engine that runs
	fetcher *fetch.Fetcher     // of the shops, beside it
	// taker stores what shops report.
	taker fetch.Taker
}

func newDeliveries(p *property, metrics *deliver.Metrics, tracing trace.TracerProvider, taker fetch.Taker, o Options) *deliveries {
	return &deliveries{
		stream: p.stream, ledger: p.ledger, directory: p.directory, metrics: metrics, tracing: tracing, consumer: o.Consumer,
		logger: o.Logger.With("property", p.String()), audit: o.Audit, current: p.config, stop: func() {}, taker: taker,
	}
}

// restart makes deliveries go on with another configuration, or with other credentials. It does not wait for
// what is in flight.
func (d *deliveries) restart(changed config.Property) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current = changed
	d.stop()
}

// run delivers until ctx ends and what is in flight has been settled. When the configuration changes the next engine
// starts while requests of the one before still end, so that a slow platform holds up no other. Beside each engine shops
// are read. Nothing is sent before it is known who has been erased.
func (d *deliveries) run(ctx context.Context) error {
	if d.ledger.await(ctx) != nil {
		return nil
	}
	engines, ctx := errgroup.WithContext(ctx)
	for resume := true; ctx.Err() == nil; resume = false {
		running, engine, fetcher, end := d.next(ctx, resume)
		engines.Go(func() error {
			defer end()
			return engine.Run(running)
		})
		engines.Go(func() error { fetcher.Run(running); return nil })
		<-running.Done()
	}
	return engines.Wait()
}

// shopTimeout bounds a request to a shop.
const shopTimeout = 30 * time.Second

// next makes an engine and a fetcher of the configuration as it is now, the context that ends with ctx or when that changes, and
// what is to be done when the engine has ended.
// Only the process's first engine may take what the consumer holds for that of a process that was killed; the others run
// because something has changed.
func (d *deliveries) next(ctx context.Context, resume bool) (context.Context, *deliver.Engine, *fetch.Fetcher, func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
	running, stop := context.WithCancel(ctx)
	d.stop = stop
	property := d.current
	d.fetcher = fetch.New(fetch.Options{
		Property: property, Positions: d.stream, Taker: d.taker, Orders: d.stream, Doer: deliver.NewHTTPClient(property.Egress, shopTimeout), Logger: d.logger,
		Credentials: func(source string) (map[string]string, error) { return config.SourceCredentials(d.directory, source) },
	})
	past, end := d.past(&property)
	engine := deliver.New(deliver.Options{
		Past: past, Stream: d.stream, Property: property, Ledger: d.ledger, Audit: d.audit, Consumer: d.consumer, Resume: resume, Changed: !resume, Metrics: d.metrics, Tracing: d.tracing, Logger: d.logger,
		Credentials: func(platform string) (map[string]string, error) {
			if own := property.Platform(platform); own != nil {
				if traits, _ := own.Type.Traits(); len(traits.Credentials) == 0 {
					return nil, nil // nothing is mounted for it
				}
			}
			return config.PlatformCredentials(d.directory, platform)
		},
	})
	return running, engine, d.fetcher, end
}
