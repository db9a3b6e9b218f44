package role

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/stream"
)

// past is a property's history as its deliverer reads it, for replays: without whose those events are that are nobody's by now.
type past struct {
	*history.Engine
	stream *stream.Stream
	// identifiers is for how many days it is told whose an event is, kept for how many the history keeps events; 0 for ever.
	identifiers, kept int
	anonymous, oldest atomic.Uint64
}

// past returns a property's history, nil where there is none or where it is not told how it is reached, and how it is let go of.
func (d *deliveries) past(property *config.Property) (deliver.Past, func()) {
	nothing := func() {}
	if property.History == nil {
		return nil, nothing
	}
	how, found, err := config.LoadClickHouse(d.directory)
	if err != nil || !found {
		d.logger.Warn("replays reach no further back than Redis until it is known how the history is reached", "error", err)
		return nil, nothing
	}
	client, err := clickhouse.Dial(how.URL, clickhouse.Options{TLS: how.TLS})
	if err != nil {
		d.logger.Warn("replays reach no further back than Redis: the history cannot be used", "error", err)
		return nil, nothing
	}
	p := &past{stream: d.stream, identifiers: property.Retention.IdentifiersDays, kept: property.History.RetentionDays}
	p.Engine = history.New(history.Options{
		Client: client, Currency: property.Currency, MaxBytes: statementBytes,
		Anonymous: func() stream.Position { return stream.Position(p.anonymous.Load()) },
		Oldest:    func() stream.Position { return stream.Position(p.oldest.Load()) },
	})
	return p, client.Close
}

// Entries implements [deliver.Past].
func (p *past) Entries(ctx context.Context, positions []stream.Position) ([]stream.Entry, error) {
	if err := p.look(ctx); err != nil {
		return nil, err
	}
	return p.Engine.Entries(ctx, positions)
}

// Ended implements [stream.Past].
func (p *past) Ended(ctx context.Context, platform string, statuses []stream.Status, after, end stream.Position) ([]stream.Record, stream.Position, error) {
	if err := p.look(ctx); err != nil {
		return nil, 0, err
	}
	return p.Engine.Ended(ctx, platform, statuses, after, end)
}

// look finds out what is too old by now, in whole UTC days, as the history's answers do.
func (p *past) look(ctx context.Context) error {
	now, err := p.stream.Now(ctx)
	if err != nil {
		return err
	}
	before := func(days int) uint64 {
		if days == 0 {
			return 0
		}
		return uint64(stream.At(now.UTC().AddDate(0, 0, -days).Truncate(24 * time.Hour)))
	}
	p.anonymous.Store(max(p.anonymous.Load(), before(p.identifiers)))
	p.oldest.Store(before(p.kept))
	return nil
}
