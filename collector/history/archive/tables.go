package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// insertTimeout is how long a block may take. A table remembers the tokens of far more blocks than it is sent meanwhile.
	insertTimeout = time.Minute
)

// table is one of ClickHouse's.
type table[Row any] struct {
	client *clickhouse.Client
	// name is the table's, entry the column with the entries' positions, nth SQL of which row of the entry it is.
	name, entry, nth string
	// took is told how long inserts take, rows and blocks count what was taken.
	took         prometheus.Observer
	rows, blocks prometheus.Counter
}

func newTable[Row any](client *clickhouse.Client, m *Metrics, lane Lane, name, entry, nth string) *table[Row] {
	label := string(lane)
	return &table[Row]{client, name, entry, nth, m.inserts.WithLabelValues(label), m.rows.WithLabelValues(label), m.blocks.WithLabelValues(label)}
}

func eventsTable(client *clickhouse.Client, metrics *Metrics) *table[rows.Event] {
	return newTable[rows.Event](client, metrics, Events, schema.Events, "at", "toUInt16(0)")
}

func recordsTable(client *clickhouse.Client, metrics *Metrics) *table[rows.Record] {
	return newTable[rows.Record](client, metrics, Records, schema.Records, "entry", "nth")
}

// Last implements [Table].
func (t *table[Row]) Last(ctx context.Context, behind stream.Position) (stream.Position, error) {
	for _, from := range []stream.Position{behind, 0} {
		last, err := clickhouse.One[uint64](ctx, t.client, clickhouse.Query{
			SQL:        fmt.Sprintf("SELECT max(%[1]s) FROM %[2]s WHERE %[1]s >= {from:UInt64} AND bitAnd(%[1]s, %[3]d) = 0", t.entry, t.name, schema.Imported),
			Parameters: map[string]any{"from": uint64(from)},
		})
		if err != nil || last > 0 {
			return stream.Position(last), err
		}
	}
	return 0, nil
}

// Places implements [Table].
func (t *table[Row]) Places(ctx context.Context, after, last stream.Position) (map[Place]bool, error) {
	type place struct {
		Entry uint64 `ch:"place"`
		Nth   uint16 `ch:"row"`
	}
	there := map[Place]bool{}
	query := clickhouse.Query{
		SQL: fmt.Sprintf("SELECT %[1]s AS place, %[2]s AS row FROM %[3]s WHERE %[1]s > {after:UInt64} AND %[1]s <= {last:UInt64} AND bitAnd(%[1]s, %[4]d) = 0",
			t.entry, t.nth, t.name, schema.Imported),
		Parameters: map[string]any{"after": uint64(after), "last": uint64(last)},
	}
	for row, err := range clickhouse.Rows[place](ctx, t.client, query) {
		if err != nil {
			return nil, err
		}
		there[Place{stream.Position(row.Entry), row.Nth}] = true
	}
	return there, nil
}

// Insert implements [Table].
func (t *table[Row]) Insert(ctx context.Context, list []Row, token string) error {
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	began := time.Now()
	err := clickhouse.Insert(ctx, t.client, t.name, list, token)
	t.took.Observe(time.Since(began).Seconds())
	if err == nil {
		t.rows.Add(float64(len(list)))
		t.blocks.Inc()
	}
	return err
}

// gapRow is a row of the table of gaps.
type gapRow struct {
	Begin uint64 `ch:"begin"`
	End   uint64 `ch:"end"`
}

// addGap notes that events from one position to another may be missing, once.
func addGap(ctx context.Context, client *clickhouse.Client, begin, end stream.Position) error {
	row := gapRow{uint64(begin), uint64(end)}
	known, err := clickhouse.One[uint64](ctx, client, clickhouse.Query{
		SQL:        "SELECT count() FROM " + schema.Gaps + " WHERE begin <= {begin:UInt64} AND end >= {end:UInt64}",
		Parameters: map[string]any{"begin": row.Begin, "end": row.End},
	})
	if err != nil || known > 0 {
		return err
	}
	return clickhouse.Insert(ctx, client, schema.Gaps, []gapRow{row}, fmt.Sprintf("gap/%d/%d", begin, end))
}
