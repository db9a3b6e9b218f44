package imports

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// millisecond is what the history has of one.
type millisecond struct {
	// at has the positions of its events, and taken those that imported events have.
	at    map[identity]uint64
	taken map[uint64]bool
}

// longStatement are the settings of statements with many literals.
func longStatement() clickhouse.Settings {
	return clickhouse.Settings{"max_query_size": 64 << 20, "max_ast_elements": 10_000_000, "max_expanded_ast_elements": 10_000_000}
}

// list writes numbers as SQL.
func list(numbers []uint64) string {
	b := []byte{'('}
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, n, 10)
	}
	return string(append(b, ')'))
}

// between is the condition that a row is at one of two positions or between them. As these are literals, as those of [list], a
// statement has no parameters, with which it could not be long.
func between(first, last uint64) string { return fmt.Sprintf("at >= %d AND at <= %d", first, last) }

// look asks which events the history has in the milliseconds of a block.
func (w *writer) look(ctx context.Context, b *block) (map[int64]*millisecond, error) {
	type found struct {
		At    uint64 `ch:"at"`
		ID    string `ch:"id"`
		Class uint8  `ch:"class"`
	}
	within := between(positionOf(b.events[0].ms), positionOf(b.events[len(b.events)-1].ms+1)-1)
	count, err := clickhouse.One[uint64](ctx, w.client, clickhouse.Query{SQL: "SELECT count() FROM events WHERE " + within})
	if err != nil || count == 0 {
		return nil, err
	}
	query := clickhouse.Query{
		SQL: "SELECT at, " + schema.EventID + " AS id, class FROM events WHERE " + within, Settings: longStatement(),
	}
	if count > uint64(len(b.events)) {
		var wanted []uint64
		for i := range b.events {
			if ms := uint64(b.events[i].ms); len(wanted) == 0 || wanted[len(wanted)-1] != ms {
				wanted = append(wanted, ms)
			}
		}
		query.SQL += " AND bitShiftRight(at, 20) IN " + list(wanted)
	}
	there := map[int64]*millisecond{}
	for row, err := range clickhouse.Rows[found](ctx, w.client, query) {
		if err != nil {
			return nil, err
		}
		ms := stream.Position(row.At).Milliseconds()
		m := there[ms]
		if m == nil {
			m = &millisecond{at: map[identity]uint64{}, taken: map[uint64]bool{}}
			there[ms] = m
		}
		m.at[identity{row.ID, event.Class(row.Class)}] = row.At
		m.taken[row.At] = true
	}
	return there, nil
}

// positionOf is the first position of a millisecond.
func positionOf(ms int64) uint64 { return uint64(ms) << 20 }

// settle gives each event its position: the one that it has, or else a free one that follows from its identity. Several of the same
// millisecond have theirs in their own order.
func (b *block) settle(there map[int64]*millisecond) error {
	for from := 0; from < len(b.events); {
		to := from
		for to < len(b.events) && b.events[to].ms == b.events[from].ms {
			to++
		}
		if err := settle(b.events[from:to], there[b.events[from].ms]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func settle(events []pending, m *millisecond) error {
	if m == nil {
		m = &millisecond{}
	}
	taken := make(map[uint64]bool, len(events)+len(m.taken))
	for at := range m.taken {
		taken[at] = true
	}
	var fresh []*pending
	for i := range events {
		p := &events[i]
		if p.row.At, p.there = m.at[p.identity]; !p.there {
			fresh = append(fresh, p)
		}
	}
	if len(fresh)+len(taken) > mostAtOnce {
		return fmt.Errorf("%w: the history has no room for so many events of one millisecond", ErrInput)
	}
	base, places := positionOf(events[0].ms)|schema.Imported, make([]uint64, 0, len(fresh))
	byKey := slices.Clone(fresh)
	slices.SortFunc(byKey, func(x, y *pending) int { return x.compare(y.identity) })
	for _, p := range byKey {
		n := p.key % mostAtOnce
		for taken[base|n] {
			n = (n + 1) % mostAtOnce
		}
		taken[base|n] = true
		places = append(places, base|n)
	}
	slices.Sort(places)
	for i, p := range fresh {
		p.row.At = places[i]
	}
	return nil
}

// fresh are the rows of the events that the history does not have.
func (b *block) fresh() []rows.Event {
	list := make([]rows.Event, 0, len(b.events))
	for i := range b.events {
		if !b.events[i].there {
			list = append(list, b.events[i].row)
		}
	}
	return list
}

// token is what the table tells copies of the same rows by: positions follow from identities.
func token(what string, count int, at func(int) uint64) string {
	sum := sha256.New()
	var number [8]byte
	for i := range count {
		binary.BigEndian.PutUint64(number[:], at(i))
		sum.Write(number[:])
	}
	return "import/" + what + "/" + hex.EncodeToString(sum.Sum(nil))
}
