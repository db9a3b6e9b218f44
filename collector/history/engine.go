// Package history answers the read API's questions from a property's history in ClickHouse. Its answers are those of
// [analytics.View], value for value; what they mean is said there.
package history

import (
	"context"
	"errors"
	"maps"
	"sync"

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

	// mu guards status, which is what the history said last of how far it is.
	mu     sync.Mutex
	status analytics.Status
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
	// first is the oldest event and last the newest, count how many there are.
	first, last, count uint64
	// records is the newest entry of the deliveries stream of which there is a record.
	records uint64
	// oldest is the position before which nothing is kept, anonymous that before which events are nobody's, known the one before which
	// touches credit no event: those that are nobody's, and those that are not kept any more.
	oldest, anonymous, known uint64
	// hidden says that there are rows that are to go: what is prepared has them still.
	hidden bool
	// whole says that every event is there that ever was, and is its visitor's.
	whole bool
}

// now returns the moment that a question is about.
func (e *Engine) now(ctx context.Context) (moment, error) {
	type ends struct {
		First   uint64 `ch:"first"`
		Last    uint64 `ch:"newest"`
		Count   uint64 `ch:"rows"`
		Records uint64 `ch:"records"`
		Hidden  uint64 `ch:"hidden"`
		Gaps    uint64 `ch:"lost"`
	}
	found, err := one[ends](ctx, e, clickhouse.Query{
		SQL: `SELECT min(at) AS first, max(at) AS newest, count() AS rows, ifNull((SELECT max(entry) FROM records), 0) AS records,
			ifNull((SELECT count() FROM erased), 0) AS hidden, ifNull((SELECT countIf(end > 0) FROM gaps), 0) AS lost FROM events`,
	})
	if err != nil {
		return moment{}, err
	}
	m := moment{
		first: found.First, last: found.Last, count: found.Count, records: found.Records, oldest: uint64(e.oldest()), anonymous: uint64(e.anonymous()),
		hidden: found.Hidden > 0,
	}
	m.whole = found.Gaps == 0 && !m.hidden && m.anonymous == 0 && m.oldest <= m.first
	if m.count > 0 && (m.hidden || m.first < m.oldest) {
		gone, err := one[uint64](ctx, e, clickhouse.Query{
			SQL:        "SELECT count() FROM events WHERE at < {oldest:UInt64} OR at IN (SELECT at FROM erased)",
			Parameters: map[string]any{"oldest": m.oldest},
		})
		if err != nil {
			return moment{}, err
		}
		m.first, m.count = max(m.first, m.oldest), m.count-min(gone, m.count)
	}
	// How long ago a touch was is known in milliseconds, and no millisecond is kept in part.
	m.known = max(m.anonymous, uint64(stream.At(stream.Position(m.first).Time())))
	return m, nil
}

// bounds are the parameters that all statements of an answer have: see [selection], and [quarters].
func (m moment) bounds(r analytics.Range) map[string]any {
	from, to := max(uint64(analytics.FirstAt(r.From)), m.oldest), min(uint64(analytics.FirstAt(r.To)), m.last+1)
	parameters := map[string]any{"from": from, "to": to, "anonymous": m.anonymous, "known": m.known}
	quarters(parameters, from, to, !m.hidden && m.anonymous <= from)
	return parameters
}

// touchesAreKnown says that no event of a range comes from a touch that credits none.
func (m moment) touchesAreKnown(r analytics.Range) bool {
	return m.whole || m.known <= uint64(analytics.FirstAt(r.From.Add(-analytics.TouchLookback)))
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
	settings["log_queries"] = false // what is asked for may name persons, and their erasure does not reach the server's logs
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
