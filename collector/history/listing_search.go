package history

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// window is a range of positions, from one to before another.
type window struct{ from, to uint64 }

// search goes through the events of a range window by window, in a listing's order. What it takes of ClickHouse's memory does
// not depend on how many events there are, but of the visitors that are asked for, and it ends where the page is full.
type search struct {
	engine *Engine
	moment moment
	query  analytics.ListingQuery
	// whole is what the query's range has of the events.
	whole window
	// kept is the condition on an event, but for what became of it, and delivered that; "1" for none.
	kept, delivered string
	values          map[string]any
	// looksUp says that few events can be found: those of some visitors, or with some ids.
	looksUp bool
	// counting says that all events of the range are looked for.
	counting bool
}

func newSearch(e *Engine, m moment, q analytics.ListingQuery) *search {
	s := &search{engine: e, moment: m, query: q, delivered: "1", values: map[string]any{"anonymous": m.anonymous}}
	s.whole = window{max(uint64(analytics.FirstAt(q.Range.From)), m.first), min(uint64(analytics.FirstAt(q.Range.To)), m.last+1)}
	conditions := []string{"1"}
	if !q.AnyClass {
		s.values["class"] = int(q.Class)
		conditions = append(conditions, "class = {class:UInt8}")
	}
	if len(q.Events) > 0 {
		s.values["names"] = q.Events
		conditions = append(conditions, "has({names:Array(String)}, name)")
	}
	conditions = append(conditions, s.lookUps()...)
	if len(q.Platforms)+len(q.Statuses) > 0 {
		s.values["platforms"] = q.Platforms
		conditions = append(conditions, "platforms != ''")
	}
	s.kept = strings.Join(conditions, " AND ")
	switch {
	case len(q.Statuses) > 0:
		s.delivered = s.statusSQL()
	case len(q.Platforms) > 0:
		s.delivered = "hasAny(" + platformsSQL + ", {platforms:Array(String)})"
	}
	return s
}

// platformsSQL is an event's platforms as a list.
const platformsSQL = "splitByChar('" + rows.PlatformSeparator + "', toString(platforms))"

// lookUps are the conditions of the ids and visitors that are asked for: in words by which an index is looked into, or the projection by
// visitors.
func (s *search) lookUps() (conditions []string) {
	q := &s.query
	s.looksUp = len(q.EventIDs)+len(q.OrderIDs)+len(q.Visitors) > 0
	if len(q.EventIDs) > 0 {
		s.values["ids"] = q.EventIDs
		conditions = append(conditions, schema.EventID+" IN (SELECT arrayJoin({ids:Array(String)}))")
	}
	if len(q.OrderIDs) > 0 {
		s.values["orders"] = q.OrderIDs
		conditions = append(conditions, "order_id != '' AND order_id IN (SELECT arrayJoin({orders:Array(String)}))")
	}
	if len(q.Visitors) > 0 {
		visitors := []uint64{}
		for _, text := range q.Visitors {
			if person, isOne := event.ParsePerson(text); isOne && person != (event.Person{}) {
				visitors = append(visitors, rows.Number(person))
			}
		}
		s.values["visitors"] = visitors
		conditions = append(conditions, `at IN (SELECT at FROM events WHERE visitor IN (SELECT arrayJoin({visitors:Array(UInt64)}))
			AND at >= {anonymous:UInt64} AND `+inRange+`)`)
	}
	return conditions
}

// statusSQL is the condition that one of an event's deliveries has one of the statuses that are asked for. A delivery of which
// there is no record is pending.
func (s *search) statusSQL() string {
	wanted := make([]int, len(s.query.Statuses))
	for i, status := range s.query.Statuses {
		wanted[i] = int(status)
	}
	s.values["statuses"] = wanted
	maps.Copy(s.values, s.moment.recordBounds())
	// Which record counts is found out of few: of the deliveries of events that can be meant at all.
	possible := s.possibleSQL()
	counting := "SELECT at, toString(platform) FROM (" + countingSQL(inRange+" AND "+s.platformSQL()+" AND "+possible) + ") WHERE "
	counts := " IN (" + counting + "has({statuses:Array(UInt8)}, record.3))"
	if s.asksFor(stream.Pending) {
		counts = " NOT IN (" + counting + "NOT has({statuses:Array(UInt8)}, record.3))"
	}
	return "at IN (SELECT at FROM (" + s.deliverySQL(possible) + ") WHERE (at, platform)" + counts + ")"
}

// deliverySQL is the deliveries that are asked for of the events that a condition keeps.
func (s *search) deliverySQL(kept string) string {
	return "SELECT at, platform FROM (SELECT at, arrayJoin(" + platformsSQL + ") AS platform FROM events WHERE " + inRange + " AND " + s.kept + " AND " + kept +
		") WHERE " + s.platformSQL()
}

// possibleSQL is a condition on events that those have one of whose deliveries has a status that is asked for, and few others: one
// of its records says so or, where it may be pending, none says that it was delivered, which is never taken back.
func (s *search) possibleSQL() string {
	const records = "FROM records WHERE " + inRange + " AND " + knownRecords
	switch {
	case !s.asksFor(stream.Pending):
		return "at IN (SELECT at " + records + " AND has({statuses:Array(UInt8)}, status) AND " + s.platformSQL() + ")"
	case s.asksFor(stream.Delivered):
		return "1"
	default:
		return "at IN (SELECT at FROM (" + s.deliverySQL("1") + ") WHERE (at, platform) NOT IN (SELECT at, toString(platform) " + records + " AND status = 2))"
	}
}

// asksFor says whether events with a delivery of a status are looked for.
func (s *search) asksFor(status stream.Status) bool { return slices.Contains(s.query.Statuses, status) }

// platformSQL is the condition that a delivery is to one of the platforms that are asked for.
func (s *search) platformSQL() string {
	if len(s.query.Platforms) == 0 {
		return "1"
	}
	return "has({platforms:Array(String)}, platform)"
}

// parameters are those of all of the search's statements.
func (s *search) parameters(w window) map[string]any {
	parameters := maps.Clone(s.values)
	parameters["from"], parameters["to"] = w.from, w.to
	return parameters
}

func (s *search) direction() string {
	if s.query.Ascending {
		return ""
	}
	return " DESC"
}

// following is what of the range follows the query's cursor in the listing's order.
func (s *search) following() window {
	w, after := s.whole, uint64(s.query.After)
	switch {
	case after == 0:
	case s.query.Ascending:
		w.from = max(w.from, after+1)
	default:
		w.to = min(w.to, after)
	}
	return w
}

const (
	// firstPages is for how many pages of events the first window has room, where they come as they do on average.
	firstPages = 4
	// growth is how many times as long each window is as the one before.
	growth = 4
	// mostDeliveries is how many events, or records, a window has at most of which it has to be found out how they stand.
	mostDeliveries = 1 << 18
)

// each calls visit for one window of a range behind the other, in the listing's order, as long as it wants more.
func (s *search) each(ctx context.Context, left window, visit func(window) (more bool, err error)) error {
	next := s.nextByLength
	if len(s.query.Statuses) > 0 {
		next = s.nextByDeliveries
	}
	for step := 0; left.from < left.to; step++ {
		w, err := next(ctx, left, step)
		if err != nil {
			return err
		}
		if more, err := visit(w); err != nil || !more {
			return err
		}
		if s.query.Ascending {
			left.from = w.to
		} else {
			left.to = w.from
		}
	}
	return nil
}

// first returns the window of a length that comes first in the listing's order.
func (s *search) first(of window, length uint64) window {
	switch {
	case length >= of.to-of.from:
		return of
	case s.query.Ascending:
		return window{of.from, of.from + length}
	default:
		return window{of.to - length, of.to}
	}
}

// nextByLength returns windows of growing lengths, so that a full page is found in the first, and a rare event in a few.
func (s *search) nextByLength(_ context.Context, left window, step int) (window, error) {
	if s.counting || s.looksUp {
		return left, nil
	}
	return s.first(left, s.lengthFor(firstPages*(s.query.Limit+1), step)), nil
}

// lengthFor is how long a window has to be to have room for a number of events, where they come as they do on average, and
// after some steps of growth.
func (s *search) lengthFor(events, steps int) uint64 {
	const longest = 1 << 62
	length := float64(s.moment.last-s.moment.first+1) / float64(s.moment.count) * float64(events)
	return uint64(min(max(length, 1)*math.Pow(growth, float64(steps)), longest))
}

// nextByDeliveries returns windows that have, beside being no longer than those of nextByLength, a bounded number of events with
// deliveries or, where each event that is looked for has a record, of records that may count for it.
func (s *search) nextByDeliveries(ctx context.Context, left window, step int) (window, error) {
	length, most := uint64(math.MaxUint64), mostDeliveries
	switch {
	case s.counting:
		length = s.lengthFor(mostDeliveries, 0)
	case !s.looksUp:
		length = s.lengthFor(firstPages*(s.query.Limit+1), step)
		most = int(min(float64(s.query.Limit+1)*math.Pow(growth, float64(step)), mostDeliveries))
	}
	w := s.first(left, length)
	parameters := s.parameters(w)
	parameters["most"] = most
	from := "events WHERE " + s.kept
	if !s.asksFor(stream.Pending) && !s.looksUp {
		from = "records WHERE " + knownRecords + " AND has({statuses:Array(UInt8)}, status) AND " + s.platformSQL()
		if len(s.query.Events) > 0 {
			from += " AND has({names:Array(String)}, name)"
		}
	}
	ends, err := all[uint64](ctx, s.engine, clickhouse.Query{
		SQL:        "SELECT at FROM " + from + " AND " + inRange + " ORDER BY at" + s.direction() + " LIMIT 1 OFFSET {most:UInt64}",
		Parameters: parameters,
	})
	if err != nil || len(ends) == 0 {
		return w, err
	}
	if s.query.Ascending {
		return window{w.from, ends[0] + 1}, nil
	}
	return window{ends[0], w.to}, nil
}
