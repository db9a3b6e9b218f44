package archive

import (
	"context"
	"maps"
	"unique"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// touches know each visitor's latest touch, as far as that tells where later events come from. They are those of one place in the
// events stream: where a block begins elsewhere, as after a restart or a doubt, they are read from the table anew. So a block that
// is sent again, by whomever, has the origins that it had.
type touches struct {
	client *clickhouse.Client
	// at is the place that they are of, where known says that there is one.
	at     stream.Position
	known  bool
	latest map[uint64]touch
	// block are those of the block that begins there, up to end: they hold once the lane goes on behind it.
	block map[uint64]touch
	end   stream.Position
	// swept is how many there were when old ones were last removed.
	swept int
}

// touch is one: its event, and what it is.
type touch struct {
	at   stream.Position
	text unique.Handle[string]
}

// leastSwept is up to how many touches it is not worth the while to look for old ones.
const leastSwept = 10_000

// fill says where the visitors of rows come from, which are those of the entries behind after, up to last.
func (t *touches) fill(ctx context.Context, after, last stream.Position, list []rows.Event) error {
	if err := t.move(ctx, after); err != nil {
		return err
	}
	t.block, t.end = map[uint64]touch{}, last
	for i := range list {
		row := &list[i]
		switch {
		case row.Visitor == 0:
		case row.Touch != "":
			t.block[row.Visitor] = touch{stream.Position(row.At), unique.Make(row.Touch)}
		default:
			row.Origin, row.OriginAge = t.origin(row)
		}
	}
	return nil
}

// origin returns the touch that the visitor of a row without one comes from, and how long before that was, in milliseconds.
func (t *touches) origin(row *rows.Event) (text string, age uint32) {
	found, known := t.block[row.Visitor]
	if !known {
		if found, known = t.latest[row.Visitor]; !known {
			return "", 0
		}
	}
	ms := stream.Position(row.At).Milliseconds() - found.at.Milliseconds()
	if ms > analytics.TouchLookback.Milliseconds() {
		return "", 0
	}
	return found.text.Value(), uint32(ms)
}

// move has them be those of a place.
func (t *touches) move(ctx context.Context, to stream.Position) error {
	switch {
	case t.known && to == t.at:
	case t.known && t.block != nil && to == t.end:
		maps.Copy(t.latest, t.block)
		t.at = to
		t.sweep()
	default:
		t.known, t.block = false, nil
		if err := t.read(ctx, to); err != nil {
			return err
		}
		t.at, t.known = to, true
	}
	t.block = nil
	return nil
}

// oldest is the first position whose touches tell something at another.
func oldest(at stream.Position) stream.Position {
	return stream.At(at.Time().Add(-analytics.TouchLookback))
}

// sweep removes those that are too old, where there are twice as many as there were.
func (t *touches) sweep() {
	if len(t.latest) < 2*max(t.swept, leastSwept) {
		return
	}
	first := oldest(t.at)
	maps.DeleteFunc(t.latest, func(_ uint64, one touch) bool { return one.at < first })
	t.latest = maps.Clone(t.latest) // a map never becomes smaller
	t.swept = len(t.latest)
}

// read reads them from the table.
func (t *touches) read(ctx context.Context, at stream.Position) error {
	type found struct {
		Visitor uint64 `ch:"visitor"`
		At      uint64 `ch:"newest"`
		Text    string `ch:"what"`
	}
	t.latest = map[uint64]touch{}
	query := clickhouse.Query{
		SQL: `SELECT visitor, max(at) AS newest, argMax(toString(touch), at) AS what FROM events
			WHERE at >= {from:UInt64} AND at <= {to:UInt64} AND touch != '' AND visitor != 0 AND at NOT IN (SELECT at FROM erased) GROUP BY visitor`,
		Parameters: map[string]any{"from": uint64(oldest(at)), "to": uint64(at)},
		Settings:   clickhouse.Settings{"max_bytes_before_external_group_by": int64(1 << 30)},
	}
	if at == 0 {
		return nil
	}
	for row, err := range clickhouse.Rows[found](ctx, t.client, query) {
		if err != nil {
			return err
		}
		t.latest[row.Visitor] = touch{stream.Position(row.At), unique.Make(row.Text)}
	}
	t.swept = len(t.latest)
	return nil
}
