package forget

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// sliceRows is about how many rows' visitors ClickHouse tells apart at a time, mostSlices how many slices there are at most.
	sliceRows, mostSlices = 1 << 20, 256
	// numbersAtOnce is how many visitors and identifiers a statement names, positionsAtOnce how many positions.
	numbersAtOnce, positionsAtOnce = 10_000, 100_000
)

// part is one of the table of events.
type part struct {
	// Made tells a table on a server of a cluster from another one of the name; it is "" elsewhere.
	Made string `ch:"made"`
	// Place is where blocks are counted: a month of that, or the table. Month is the partition.
	Place string `ch:"place"`
	Month string `ch:"partition_id"`
	Name  string `ch:"name"`
	Rows  uint64 `ch:"rows"`
	Block int64  `ch:"max_block_number"`
}

// tables is what tells whether anything may have come to the table of events.
type tables struct {
	parts []part
	// uptime is for how many seconds the server has run.
	uptime uint32
}

// read asks for it.
func (f *Forgetter) read(ctx context.Context) (*tables, error) {
	uptime, err := clickhouse.One[uint32](ctx, f.client, clickhouse.Query{SQL: "SELECT toUInt32(uptime())"})
	if err != nil {
		return nil, err
	}
	made, place := "''", "''"
	if f.cluster != "" { // the folder has the table's own number in it
		made, place = "concat(hostName(), extract(path, '/store/[^/]*/[^/]*/'))", "concat(made, partition_id)"
	}
	parts, err := clickhouse.Select[part](ctx, f.client, clickhouse.Query{
		SQL: "SELECT " + made + " AS made, " + place + " AS place, partition_id, name, rows, max_block_number FROM " + f.cluster.System("parts") +
			" WHERE active AND database = {database:String} AND table = '" + f.cluster.Local(schema.Events) + "'",
		Parameters: map[string]any{"database": f.client.Database()},
	})
	return &tables{parts, uptime}, err
}

// newest is the number of the newest block of each place.
func (t *tables) newest() map[string]int64 {
	newest := map[string]int64{}
	for i := range t.parts {
		place := t.parts[i].Place
		newest[place] = max(newest[place], t.parts[i].Block)
	}
	return newest
}

// isAnother says whether the table, or its server, may be another one than it was before.
func (t *tables) isAnother(before *tables) bool {
	if slices.ContainsFunc(t.parts, func(one part) bool {
		return one.Made != "" && !slices.ContainsFunc(before.parts, func(other part) bool { return other.Made == one.Made })
	}) {
		return true
	}
	now := t.newest()
	for place, block := range before.newest() {
		if last, there := now[place]; last < block && (there || place == "") { // months go by age
			return true
		}
	}
	return t.uptime < before.uptime
}

// since returns the parts that have rows which came since.
func (t *tables) since(before *tables) (list []part) {
	newest := before.newest()
	for _, one := range t.parts {
		if last, known := newest[one.Place]; !known && one.Place != "" || one.Block > last {
			list = append(list, one)
		}
	}
	return list
}

// rowsOf is how many rows parts have.
func rowsOf(parts []part) (n uint64) {
	for i := range parts {
		n += parts[i].Rows
	}
	return n
}

// among is the condition that a row is in one of the parts that are looked at.
func (l *look) among() string {
	if l.parts == nil {
		return "1"
	}
	if l.parts[0].Place != "" { // each replica of a cluster has parts of its own
		months := map[string]bool{}
		for i := range l.parts {
			months[quoted(l.parts[i].Month)] = true
		}
		return "_partition_id IN (" + strings.Join(slices.Sorted(maps.Keys(months)), ", ") + ")"
	}
	names := make([]string, len(l.parts))
	for i := range l.parts {
		names[i] = quoted(l.parts[i].Name)
	}
	return "_part IN (" + strings.Join(names, ", ") + ")"
}

// search finds which visitors and identifiers are looked for. The digests are made here: neither they nor their salt are for
// ClickHouse. Visitors are told apart a slice of the numbers at a time, and identifiers, of which most rows have none, are not: so
// neither takes more memory where there are more of them.
func (f *Forgetter) search(ctx context.Context, l *look) error {
	parts := l.parts
	if parts == nil {
		parts = l.state.parts
	}
	slicesOfNumbers := min(mostSlices, 1+rowsOf(parts)/sliceRows)
	width := ^uint64(0)/slicesOfNumbers + 1 // 0 where there is one slice
	for i := range slicesOfNumbers {
		within := "visitor > 0"
		if slicesOfNumbers > 1 {
			within = fmt.Sprintf("visitor >= %d", i*width)
			if i < slicesOfNumbers-1 {
				within += fmt.Sprintf(" AND visitor < %d", (i+1)*width)
			}
		}
		if err := f.see(ctx, l, "SELECT DISTINCT visitor FROM events WHERE "+within+" AND "+l.among()); err != nil {
			return err
		}
	}
	return f.see(ctx, l, "SELECT arrayJoin(identifiers) FROM events WHERE notEmpty(identifiers) AND "+l.among())
}

func (f *Forgetter) see(ctx context.Context, l *look, sql string) error {
	for number, err := range clickhouse.Rows[uint64](ctx, f.client, clickhouse.Query{SQL: sql, Settings: unlogged()}) {
		if err != nil {
			return fmt.Errorf("look for erased persons: %w", err)
		}
		l.see(number)
	}
	return nil
}

// whoseRow is what tells whose an event is.
type whoseRow struct {
	At          uint64   `ch:"at"`
	Visitor     uint64   `ch:"visitor"`
	Identifiers []uint64 `ch:"identifiers"`
}

// all are the identifiers of the event. The visitor is one of them unless a 0 says that it is not; and of an event that was imported,
// of which an export says no more than who it was.
func (r *whoseRow) all() []uint64 {
	isOther := len(r.Identifiers) > 0 && r.Identifiers[0] == 0
	if r.Visitor == 0 || isOther && r.At&schema.Imported == 0 {
		return r.Identifiers
	}
	return append(r.Identifiers, r.Visitor)
}

// hidden is a row of the table erased.
type hidden struct {
	At    uint64 `ch:"at"`
	Batch uint32 `ch:"batch"`
}

// hide hides the rows of whom was found.
func (f *Forgetter) hide(ctx context.Context, l *look) error {
	numbers := make([]uint64, 0, len(l.found))
	for number := range l.found {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	var list []hidden
	flush := func() error {
		if len(list) == 0 {
			return nil
		}
		if err := f.number(ctx); err != nil {
			return err
		}
		for i := range list {
			list[i].Batch = f.batch
		}
		f.uncorrected, f.unfinished = true, true
		l.hidden += len(list)
		err := clickhouse.Insert(ctx, f.client, schema.Erased, list, "")
		list = list[:0]
		return err
	}
	for some := range slices.Chunk(numbers, numbersAtOnce) {
		sql := "SELECT at, visitor, identifiers FROM events WHERE (visitor IN (" + listed(some) + ") OR arrayExists(id -> id IN (" + listed(some) +
			"), identifiers)) AND " + l.among() + " AND at NOT IN (SELECT at FROM erased)"
		for row, err := range clickhouse.Rows[whoseRow](ctx, f.client, clickhouse.Query{SQL: sql, Settings: unlogged()}) {
			if err != nil {
				return fmt.Errorf("look for erased persons' events: %w", err)
			}
			if l.judge(row.all(), stream.Position(row.At).Time()) {
				list = append(list, hidden{At: row.At})
			}
			if len(list) == positionsAtOnce {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// listed are numbers as they stand in a statement.
func listed[N uint64 | uint32 | int](numbers []N) string {
	var b strings.Builder
	for i, number := range numbers {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(uint64(number), 10))
	}
	return b.String()
}

// quoted is a text as it stands in a statement, each of its bytes as a number, so that none can end it.
func quoted(text string) string {
	const digits = "0123456789ABCDEF"
	b := make([]byte, 0, 4*len(text)+2)
	b = append(b, '\'')
	for i := range len(text) {
		b = append(b, '\\', 'x', digits[text[i]>>4], digits[text[i]&15])
	}
	return string(append(b, '\''))
}

// unlogged are the settings of a statement that is long, or names visitors: it stands in no log of the server's queries.
func unlogged() clickhouse.Settings {
	return clickhouse.Settings{"log_queries": false, "max_query_size": int64(64 << 20)}
}
