// Package history answers the read API's questions from a property's history in ClickHouse. Its answers are those of
// [analytics.View], value for value; what they mean is said there.
package history

import (
	"context"
	"errors"
	"maps"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/stream"
)

// Options configure an [Engine].
type Options struct {
	// Client reaches the database with the property's tables.
	Client *clickhouse.Client
	// Currency is the reporting currency, upper-case ISO 4217.
	Currency string
	// Anonymous returns the position before which events are nobody's; nil for none.
	Anonymous func() stream.Position
	// Oldest returns the position before which nothing is kept, whether it has left the tables yet or not; nil for none.
	Oldest func() stream.Position
	// MaxBytes is how much memory of ClickHouse's one statement may take; 0 for whatever ClickHouse lets it.
	MaxBytes int64
}

// Engine answers questions. All its methods may be called at once.
type Engine struct {
	client    *clickhouse.Client
	currency  string
	anonymous func() stream.Position
	oldest    func() stream.Position
	settings  clickhouse.Settings
}

// New returns an engine.
func New(o Options) *Engine {
	e := &Engine{client: o.Client, currency: o.Currency, anonymous: o.Anonymous, oldest: o.Oldest, settings: clickhouse.Settings{}}
	none := func() stream.Position { return 0 }
	if e.anonymous == nil {
		e.anonymous = none
	}
	if e.oldest == nil {
		e.oldest = none
	}
	if o.MaxBytes > 0 {
		e.settings["max_memory_usage"] = o.MaxBytes
		// Half of it is for what is grouped or sorted: beyond that it goes to the disk.
		e.settings["max_bytes_before_external_group_by"] = o.MaxBytes / 2
		e.settings["max_bytes_before_external_sort"] = o.MaxBytes / 2
	}
	return e
}

// moment is what an answer is about: the statements that it takes see the same events, whatever is archived meanwhile.
type moment struct {
	// last is the newest event, records the newest entry of the deliveries stream of which there is a record.
	last, records uint64
	// oldest is the position before which there are no events, anonymous that before which they are nobody's. That is not before
	// oldest: what is not there credits nothing either.
	oldest, anonymous uint64
}

// now returns the moment that a question is about.
func (e *Engine) now(ctx context.Context) (moment, error) {
	type newest struct {
		Events  uint64 `ch:"events"`
		Records uint64 `ch:"records"`
	}
	found, err := one[newest](ctx, e, clickhouse.Query{SQL: "SELECT ifNull((SELECT max(at) FROM events), 0) AS events, ifNull((SELECT max(entry) FROM records), 0) AS records"})
	oldest := uint64(e.oldest())
	return moment{last: found.Events, records: found.Records, oldest: oldest, anonymous: max(uint64(e.anonymous()), oldest)}, err
}

// bounds are the parameters that all statements of an answer have: see [selection].
func (m moment) bounds(r analytics.Range) map[string]any {
	return map[string]any{
		"from": max(uint64(analytics.FirstAt(r.From)), m.oldest), "to": min(uint64(analytics.FirstAt(r.To)), m.last+1), "anonymous": m.anonymous,
	}
}

// one runs a query whose answer is one row.
func one[T any](ctx context.Context, e *Engine, q clickhouse.Query) (T, error) {
	row, err := clickhouse.One[T](ctx, e.client, e.within(q))
	return row, failed(err)
}

// all runs a query whose answer is a few rows.
func all[T any](ctx context.Context, e *Engine, q clickhouse.Query) ([]T, error) {
	rows, err := clickhouse.Select[T](ctx, e.client, e.within(q))
	return rows, failed(err)
}

// within has a query keep within the engine's bounds.
func (e *Engine) within(q clickhouse.Query) clickhouse.Query {
	settings := maps.Clone(e.settings)
	maps.Copy(settings, q.Settings)
	q.Settings = settings
	return q
}

// failed returns an error in the words of package analytics. What is wrong stands behind them, without anything that was asked.
func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, clickhouse.MemoryLimit):
		return errors.Join(analytics.ErrTooCostly, err)
	case errors.Is(err, clickhouse.Quota):
		return errors.Join(analytics.ErrBusy, err)
	case errors.As(err, new(*clickhouse.Problem)):
		return errors.Join(analytics.ErrUnavailable, err)
	default:
		return err // of the context
	}
}
