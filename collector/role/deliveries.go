package role

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver"
	"github.com/weir-dev/weir/collector/stream"
)

// deliveries runs a property's delivery engine, and a new one whenever the configuration has changed.
type deliveries struct {
	stream    *stream.Stream
	directory string
	metrics   *deliver.Metrics
	consumer  string
	logger    *slog.Logger

	mu      sync.Mutex
	current config.Property
	stop    context.CancelFunc // of the engine that runs
}

func newDeliveries(p *property, metrics *deliver.Metrics, o Options) *deliveries {
	return &deliveries{
		stream: p.stream, directory: p.directory, metrics: metrics, consumer: o.Consumer,
		logger: o.Logger.With("property", p.String()), current: p.config, stop: func() {},
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

// run delivers until ctx ends and what is in flight has been settled.
func (d *deliveries) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := d.runOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// runOnce delivers until ctx ends or the configuration changes.
func (d *deliveries) runOnce(ctx context.Context) error {
	d.mu.Lock()
	running, stop := context.WithCancel(ctx)
	defer stop()
	d.stop = stop
	property := d.current
	d.mu.Unlock()

	return deliver.New(deliver.Options{
		Stream: d.stream, Property: property, Consumer: d.consumer, Metrics: d.metrics, Logger: d.logger,
		Credentials: func(platform string) (map[string]string, error) {
			if i := slices.IndexFunc(property.Platforms, func(p config.Platform) bool { return p.Name == platform }); i >= 0 {
				if traits, _ := property.Platforms[i].Type.Traits(); len(traits.Credentials) == 0 {
					return nil, nil // nothing is mounted for it
				}
			}
			return config.PlatformCredentials(d.directory, platform)
		},
	}).Run(running)
}
