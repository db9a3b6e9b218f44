package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/archive"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// archives runs a property's archive where it has a history, and another one whenever the way there has changed.
type archives struct {
	name      string
	directory string
	stream    *stream.Stream
	ledger    *ledger
	metrics   *archive.Metrics
	logger    *slog.Logger

	mu sync.Mutex
	// way is how the history is reached, nil where there is none.
	way *config.ClickHouse
	// days and identifiersDays are for how long it keeps what.
	days, identifiersDays int
	current               *archive.Archive
	changed               chan struct{}
}

func newArchives(p *property, metrics *archive.Metrics, logger *slog.Logger) *archives {
	a := &archives{
		name: p.String(), directory: p.directory, stream: p.reading, ledger: p.ledger, metrics: metrics,
		logger: logger.With("property", p.String()), changed: make(chan struct{}),
	}
	a.reload(p.config)
	return a
}

// openArchives makes the properties' archives, where that is among the roles.
func (p *process) openArchives() error {
	if !p.has(Archive) {
		return nil
	}
	p.archive = map[*property]*archives{}
	for _, property := range p.properties {
		metrics, err := archive.NewMetrics(prometheus.WrapRegistererWith(property.labels(), p.registry))
		if err != nil {
			return fmt.Errorf("archive of %s: %w", property, err)
		}
		p.archive[property] = newArchives(property, metrics, p.Logger)
	}
	return nil
}

// reload reads how the history is reached. Where that cannot be read, what was known before goes on being used.
func (a *archives) reload(property config.Property) {
	var way *config.ClickHouse
	if property.History != nil {
		loaded, found, err := config.LoadClickHouse(a.directory)
		if err == nil && !found {
			err = fmt.Errorf("%s: is missing", config.HistoryURLFile)
		}
		if err != nil {
			a.logger.Error("how the history is reached cannot be read; nothing else than before is archived until it can", "error", err)
			return
		}
		loaded.Cluster = property.History.Cluster
		way = &loaded
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.days, a.identifiersDays = keptFor(&property)
	if same := way == nil && a.way == nil || way != nil && a.way != nil && *way == *a.way; same {
		return
	}
	a.way = way
	close(a.changed)
	a.changed = make(chan struct{})
}

// run archives until ctx ends, nothing before it is known who has been erased. Without a history it waits for one.
func (a *archives) run(ctx context.Context) error {
	if a.ledger.await(ctx) != nil {
		return nil
	}
	for ctx.Err() == nil {
		a.mu.Lock()
		way, changed := a.way, a.changed
		a.mu.Unlock()
		running, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		if way != nil {
			all.Go(func() { a.runOne(running, *way) })
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
		stop()
		all.Wait()
	}
	return nil
}

// runOne archives by one way.
func (a *archives) runOne(ctx context.Context, way config.ClickHouse) {
	client, err := clickhouse.Dial(way.URL, clickhouse.Options{TLS: way.TLS, Settings: schema.Cluster(way.Cluster).Settings()})
	if err != nil { // it was looked at when it was loaded
		a.logger.Error("the history cannot be reached by its URL", "error", err)
		return
	}
	defer client.Close()
	var one *archive.Archive
	forgets := &forgetting{stream: a.stream, ledger: a.ledger, kept: a.kept, hidden: func() { one.Reread() }}
	one = archive.New(archive.Options{
		Property: a.name, Stream: a.stream, Client: client, Cluster: schema.Cluster(way.Cluster), Erased: a.ledger.Erased, Metrics: a.metrics, Logger: a.logger,
		Beside: func(ctx context.Context) { forgets.run(ctx, client, schema.Cluster(way.Cluster), a.logger) },
	})
	a.set(one)
	defer a.set(nil)
	one.Run(ctx)
}

func (a *archives) kept() (days, identifiersDays int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.days, a.identifiersDays
}

func (a *archives) set(one *archive.Archive) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current = one
}

// ready says whether ClickHouse has been reached. Where there is no history there is nothing to reach.
func (a *archives) ready(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.way != nil && (a.current == nil || !a.current.Reached()) {
		return errors.New("ClickHouse has not been reached yet")
	}
	return nil
}
