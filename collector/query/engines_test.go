package query

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// learner is an engine whose past changes.
//
//nolint:interfacebloat // it is an engine, and what happens to a past
type learner interface {
	Engine
	AddEvents(entries []stream.Entry) error
	Erase(positions []stream.Position) error
	Forget(before stream.Position)
	Anonymize(before stream.Position)
}

// engineMaker makes an engine of what a property's streams hold, and what whole events and records are read from.
type engineMaker func(t testing.TB, property string, source *memory) (learner, EventReader, RecordReader)

// engines are the engines that answers come from.
func engines() map[string]engineMaker {
	return map[string]engineMaker{"a view": newView, "a history": newHistory}
}

// onEachEngine runs a test of what is answered, whatever answers.
func onEachEngine(t *testing.T, test func(t *testing.T, engine engineMaker)) {
	t.Helper()
	for name, engine := range engines() {
		t.Run(name, func(t *testing.T) { test(t, engine) })
	}
}

func newView(t testing.TB, property string, source *memory) (learner, EventReader, RecordReader) {
	t.Helper()
	view := analytics.NewView(analytics.Options{Property: property, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	fill(t, view, source)
	return view, StreamEvents{source}, StreamRecords{source}
}

// onDisk is a history. It is filled when it is first asked: many a test asks one of several properties alone.
type onDisk struct {
	t        testing.TB
	property string
	engine   func() *history.Engine
	client   *clickhouse.Client
	touches  map[uint64]rows.Event
	names    map[stream.Position]string

	mu        sync.Mutex
	anonymous stream.Position
}

func newHistory(t testing.TB, property string, source *memory) (learner, EventReader, RecordReader) {
	t.Helper()
	d := &onDisk{t: t, property: property, touches: map[uint64]rows.Event{}, names: map[stream.Position]string{}}
	d.engine = sync.OnceValue(func() *history.Engine { return d.open(source) })
	return d, d, d
}

// open makes the tables and fills them.
func (d *onDisk) open(source *memory) *history.Engine {
	client, err := clickhouse.Dial(clickhousetest.Shared(d.t), clickhouse.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(client.Close)
	if _, err := schema.Ensure(context.Background(), client); err != nil {
		d.t.Fatal(err)
	}
	d.client = client
	if err := d.insert(source.entries); err != nil {
		d.t.Fatal(err)
	}
	records := make([]rows.Record, len(source.records))
	for i, entry := range source.recordPositions() {
		records[i] = rows.FromRecord(entry, 0, &source.records[i], d.names[source.records[i].Event])
	}
	if err := clickhouse.Insert(context.Background(), client, schema.Records, records, ""); err != nil {
		d.t.Fatal(err)
	}
	return history.New(history.Options{Client: client, Currency: "EUR", Anonymous: func() stream.Position {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.anonymous
	}})
}

// insert adds events as the archive does, with where their visitors come from.
func (d *onDisk) insert(entries []stream.Entry) error {
	table := make([]rows.Event, len(entries))
	for i := range entries {
		e, err := wire.Decode(entries[i].Data)
		if err != nil {
			return err
		}
		row := rows.FromEvent(d.property, entries[i].Position, &e)
		d.names[entries[i].Position] = e.Name
		if row.Touch != "" {
			d.touches[row.Visitor] = row
		} else if touch, known := d.touches[row.Visitor]; known && row.Visitor != 0 {
			if age := stream.Position(row.At).Milliseconds() - stream.Position(touch.At).Milliseconds(); age <= analytics.TouchLookback.Milliseconds() {
				row.Origin, row.OriginAge = touch.Touch, uint32(age)
			}
		}
		table[i] = row
	}
	return clickhouse.Insert(context.Background(), d.client, schema.Events, table, "")
}

// AddEvents implements [learner].
func (d *onDisk) AddEvents(entries []stream.Entry) error {
	d.engine()
	return d.insert(entries)
}

// Erase implements [learner].
func (d *onDisk) Erase(positions []stream.Position) error {
	d.engine()
	texts := make([]string, len(positions))
	for i, position := range positions {
		texts[i] = strconv.FormatUint(uint64(position), 10)
	}
	condition := "DELETE WHERE at IN (" + strings.Join(texts, ", ") + ") SETTINGS mutations_sync = 2"
	return errors.Join(d.run("ALTER TABLE events "+condition), d.run("ALTER TABLE records "+condition))
}

// Forget implements [learner].
func (d *onDisk) Forget(before stream.Position) {
	d.engine()
	bounds := strconv.FormatUint(uint64(before), 10)
	for _, sql := range []string{
		"INSERT INTO gaps VALUES (0, " + bounds + ")",
		"ALTER TABLE events DELETE WHERE at < " + bounds + " SETTINGS mutations_sync = 2",
		"ALTER TABLE records DELETE WHERE at < " + bounds + " SETTINGS mutations_sync = 2",
	} {
		if err := d.run(sql); err != nil {
			d.t.Error(err)
		}
	}
}

// Anonymize implements [learner].
func (d *onDisk) Anonymize(before stream.Position) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.anonymous = before
}

func (d *onDisk) run(sql string) error {
	return d.client.Exec(context.Background(), clickhouse.Query{SQL: sql})
}

// EventsAt implements [EventReader].
func (d *onDisk) EventsAt(ctx context.Context, positions []stream.Position) ([]*event.Event, error) {
	return EventsAt(ctx, d.engine(), positions)
}

// AtOnce implements [EventReader].
func (d *onDisk) AtOnce() int { return 300 }

// RecordsOf implements [RecordReader].
func (d *onDisk) RecordsOf(ctx context.Context, of *analytics.Record) ([]stream.Record, error) {
	return d.engine().Attempts(ctx, of)
}

// Status implements [Engine].
func (d *onDisk) Status(ctx context.Context) analytics.Status { return d.engine().Status(ctx) }

// Summary implements [Engine].
func (d *onDisk) Summary(ctx context.Context, r analytics.Range, filter analytics.Filter) (analytics.Summary, error) {
	return d.engine().Summary(ctx, r, filter)
}

// Series implements [Engine].
func (d *onDisk) Series(ctx context.Context, ranges []analytics.Range, filter analytics.Filter) (analytics.Series, error) {
	return d.engine().Series(ctx, ranges, filter)
}

// Breakdown implements [Engine].
func (d *onDisk) Breakdown(ctx context.Context, q analytics.BreakdownQuery) (analytics.Breakdown, error) {
	return d.engine().Breakdown(ctx, q)
}

// EventStats implements [Engine].
func (d *onDisk) EventStats(ctx context.Context, q analytics.StatsQuery) (analytics.Stats, error) {
	return d.engine().EventStats(ctx, q)
}

// Deliveries implements [Engine].
func (d *onDisk) Deliveries(ctx context.Context, q analytics.DeliveriesQuery) (analytics.Deliveries, error) {
	return d.engine().Deliveries(ctx, q)
}

// Funnel implements [Engine].
func (d *onDisk) Funnel(ctx context.Context, q analytics.FunnelQuery) (analytics.Funnel, error) {
	return d.engine().Funnel(ctx, q)
}

// Attribution implements [Engine].
func (d *onDisk) Attribution(ctx context.Context, q analytics.AttributionQuery) (analytics.Attribution, error) {
	return d.engine().Attribution(ctx, q)
}

// Listing implements [Engine].
func (d *onDisk) Listing(ctx context.Context, q analytics.ListingQuery) (analytics.Page, error) {
	return d.engine().Listing(ctx, q)
}

var _ Engine = (*history.Engine)(nil)

// tenantOf is what a handler serves from an engine.
func tenantOf(t testing.TB, engine engineMaker, tenant Tenant, source *memory) (Tenant, learner) {
	t.Helper()
	made, events, records := engine(t, propertyOf(&tenant), source)
	tenant.Engine, tenant.Events, tenant.Records = made, events, records
	return tenant, made
}
