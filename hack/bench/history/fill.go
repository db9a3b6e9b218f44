package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/demo"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// days is how long the past is.
const days = 30

// block is how many rows are inserted at once.
const block = 100_000

// past is what is asked about.
type past struct {
	options
	out    io.Writer
	client *clickhouse.Client
	// from and to are its ends.
	from, to time.Time
}

// count is one number.
type count struct {
	Number uint64 `ch:"number"`
}

// fill makes the past, unless it is there from an earlier run.
func (p *past) fill(ctx context.Context) error {
	there, err := clickhouse.One[count](ctx, p.client, clickhouse.Query{SQL: "SELECT count() AS number FROM events"})
	if err != nil {
		return err
	}
	if there.Number == 0 {
		began := time.Now()
		if err := p.makeUp(ctx); err != nil {
			return err
		}
		if err := p.repeat(ctx); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "made in %s\n", time.Since(began).Round(time.Second))
	}
	ends, err := clickhouse.One[struct {
		First uint64 `ch:"first"`
		Last  uint64 `ch:"last"`
	}](ctx, p.client, clickhouse.Query{SQL: "SELECT min(at) AS first, max(at) AS last FROM events"})
	p.from, p.to = stream.Position(ends.First).Time(), stream.Position(ends.Last).Time().Add(time.Millisecond)
	return err
}

// makeUp inserts the events that are repeated, and what became of them on two platforms.
func (p *past) makeUp(ctx context.Context) error {
	property := &config.Property{
		Namespace: "bench", Name: "shop", Currency: "EUR", TimeZone: "UTC",
		Platforms: []platforms.Platform{{Name: "meta", Type: platforms.TypeMeta}, {Name: "console", Type: platforms.TypeLog}},
	}
	made, err := demo.New(demo.Options{Property: property, Events: min(p.base, p.events), Days: days, Seed: p.seed, End: time.Now().UTC().Truncate(24 * time.Hour)})
	if err != nil {
		return err
	}
	w := &writer{client: p.client, latest: map[uint64]touched{}, seen: map[uint64]stream.Position{}, names: map[stream.Position]string{}}
	for batch := range made.Batches() {
		if err := w.add(ctx, "bench/shop", &batch); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// touched is where a visitor came from last.
type touched struct {
	touch string
	at    stream.Position
}

// writer inserts what is made up, as the archive does.
type writer struct {
	client  *clickhouse.Client
	events  []rows.Event
	records []rows.Record
	latest  map[uint64]touched
	seen    map[uint64]stream.Position
	names   map[stream.Position]string
	entry   stream.Position
}

func (w *writer) add(ctx context.Context, property string, batch *demo.Batch) error {
	for i := range batch.Events {
		w.event(property, batch.Entries[i].Position, &batch.Events[i])
	}
	for i := range batch.Records {
		record := &batch.Records[i]
		w.entry = max(w.entry+1, stream.At(record.At))
		w.records = append(w.records, rows.FromRecord(w.entry, 0, record, w.names[record.Event]))
	}
	if len(w.events) < block {
		return nil
	}
	return w.flush(ctx)
}

func (w *writer) event(property string, at stream.Position, e *event.Event) {
	row := rows.FromEvent(property, at, e)
	if row.Touch != "" {
		w.latest[row.Visitor] = touched{row.Touch, at}
	} else if came, known := w.latest[row.Visitor]; known && row.Visitor != 0 {
		if age := at.Milliseconds() - came.at.Milliseconds(); age <= analytics.TouchLookback.Milliseconds() {
			row.Origin, row.OriginAge = came.touch, uint32(age)
		}
	}
	if seen, known := w.seen[row.Visitor]; known {
		row.Since = uint32(at.Milliseconds()-seen.Milliseconds()) + 1
	}
	if row.Visitor != 0 {
		w.seen[row.Visitor] = at
	}
	w.names[at] = row.Name
	w.events = append(w.events, row)
}

// flush inserts what there is, month by month.
func (w *writer) flush(ctx context.Context) error {
	for month, of := range byMonth(w.events, func(r *rows.Event) uint64 { return r.At }) {
		if err := clickhouse.Insert(ctx, w.client, schema.Events, of, fmt.Sprint("events", month, w.entry)); err != nil {
			return err
		}
	}
	for month, of := range byMonth(w.records, func(r *rows.Record) uint64 { return r.Entry }) {
		if err := clickhouse.Insert(ctx, w.client, schema.Records, of, fmt.Sprint("records", month, w.entry)); err != nil {
			return err
		}
	}
	w.events, w.records = w.events[:0], w.records[:0]
	return nil
}

func byMonth[Row any](list []Row, at func(*Row) uint64) map[string][]Row {
	months := map[string][]Row{}
	for i := range list {
		month := stream.Position(at(&list[i])).Time().Format("2006-01")
		months[month] = append(months[month], list[i])
	}
	return months
}

// repeat has the events that were made up happen again and again, to other visitors, some milliseconds later.
func (p *past) repeat(ctx context.Context) error {
	const moved = "bitOr(bitShiftLeft(bitShiftRight(%[1]s, 20) + 37 * {k:UInt64}, 20), bitAnd(%[1]s, 0xFFF) * 256 + {k:UInt64})"
	at, entry := fmt.Sprintf(moved, "at"), fmt.Sprintf(moved, "entry")
	statements := []string{
		`INSERT INTO events SELECT * REPLACE (` + at + ` AS at, if(visitor = 0, 0, intHash64(bitXor(visitor, {k:UInt64}))) AS visitor,
			if(client_id = '', '', concat(substring(client_id, 1, length(client_id) - 4), leftPad(toString(cityHash64(client_id, {k:UInt64}) % 10000), 4, '0'))) AS client_id,
			if(order_id = '', '', concat(order_id, toString({k:UInt64}))) AS order_id, rand64() AS delivery_low) FROM base_events`,
		`INSERT INTO records SELECT * REPLACE (` + at + ` AS at, ` + entry + ` AS entry) FROM base_records`,
	}
	base := "base_"
	for _, table := range []string{schema.Events, schema.Records} {
		for _, sql := range []string{"CREATE TABLE " + base + table + " AS " + table, "INSERT INTO " + base + table + " SELECT * FROM " + table} {
			if err := p.client.Exec(ctx, clickhouse.Query{SQL: sql}); err != nil {
				return err
			}
		}
	}
	for k := 1; k < p.events/p.base; k++ {
		for i, sql := range statements {
			if err := p.client.Exec(ctx, clickhouse.Query{SQL: sql, Parameters: map[string]any{"k": uint64(k)},
				Settings: clickhouse.Settings{"insert_deduplication_token": fmt.Sprint("copy", i, k), "optimize_use_projections": 0}}); err != nil {
				return err
			}
		}
	}
	for _, table := range []string{schema.Events, schema.Records} {
		if err := p.client.Exec(ctx, clickhouse.Query{SQL: "DROP TABLE " + base + table}); err != nil {
			return err
		}
	}
	return nil
}
