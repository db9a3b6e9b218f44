package analytics

import (
	"context"
	"math/big"
	"slices"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// Attribution returns who the conversions of a range that the filter keeps are credited to. A conversion's touches are its visitor's
// from Lookback before it up to and including it; consecutive ones with the same source, medium and campaign
// are one. It fails with [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context ends.
func (v *View) Attribution(ctx context.Context, q AttributionQuery) (Attribution, error) {
	names := namesOf(event.Human, q.ConversionEvent)
	return runQuery(ctx, v, names, func(ctx context.Context, s *snapshot) (Attribution, error) { return s.attribution(ctx, q) })
}

// What an attribution takes for each of something: a touch in the column's dictionary, a conversion and a copy of it, a
// visitor and a group. A group has its exact credits, some numbers of arbitrary size and a result.
const (
	groupOfBytes       = 4
	conversionBytes    = 2 * 32
	nearestBytes       = 8
	journeyBytes       = 20
	creditedGroupBytes = 3 << 9
)

func (s *snapshot) attribution(ctx context.Context, q AttributionQuery) (Attribution, error) {
	if err := s.reservation.growFor(len(s.Touches), groupOfBytes); err != nil {
		return Attribution{}, err
	}
	w, err := newAttributor(s, q)
	if err != nil {
		return Attribution{}, err
	}
	conversions, err := w.findConversions(ctx)
	if err != nil {
		return Attribution{}, err
	}
	if q.Model == Linear {
		err = w.creditLinear(ctx, conversions)
	} else {
		err = w.creditSingleTouch(ctx, conversions)
	}
	if err != nil {
		return Attribution{}, err
	}
	return w.result(), nil
}

// attributor finds the conversions and gives credit for them.
type attributor struct {
	snapshot *snapshot
	query    AttributionQuery
	name     uint32
	// kept keeps conversions.
	kept selection
	// rows are those whose touches may count; conversions before the ordinal from are not of the range.
	rows columns.RowRange
	from uint64

	// count and revenue are of all conversions, those of nobody too.
	count   int
	revenue columns.Sums

	creditor
	// groupOf holds the group for each touch, by the touch's number.
	groupOf []uint32
}

func newAttributor(s *snapshot, q AttributionQuery) (*attributor, error) {
	kept, err := s.selecting(q.Filter)
	if err != nil {
		return nil, err
	}
	conversions := s.in(q.Range)
	touches := Range{From: q.Range.From.Add(-q.Lookback), To: q.Range.To}
	rows := s.in(touches)
	if q.Lookback == 0 {
		rows.First = s.First
	}
	w := &attributor{
		snapshot: s, query: q, name: s.numbers[0], kept: kept, rows: rows, from: conversions.First,
		creditor: newCreditor(q.GroupBy), groupOf: make([]uint32, len(s.Touches)),
	}
	return w, nil
}

// findConversions counts the conversions and returns them in stream order.
func (w *attributor) findConversions(ctx context.Context) ([]conversion, error) {
	rows := w.rows
	rows.First = w.from
	parts := w.snapshot.split(rows)
	found, revenues := make([][]conversion, len(parts)), make([]columns.Sums, len(parts))
	err := together(len(parts), func(part int) (err error) {
		found[part], err = w.conversionsOf(ctx, parts[part], &revenues[part])
		return err
	})
	if err != nil {
		return nil, err
	}
	for part := range parts {
		w.count += len(found[part])
		w.revenue.Merge(revenues[part])
	}
	if len(parts) == 1 {
		return found[0], nil
	}
	return slices.Concat(found...), nil
}

// conversionsOf returns the conversions of some rows and adds up what they brought in.
func (w *attributor) conversionsOf(ctx context.Context, rows columns.RowRange, revenue *columns.Sums) (found []conversion, err error) {
	buffer, oldest, expected := make([]uint16, 0, columns.ChunkRows), columns.NewCursor(w.rows), 0
	if err := rows.Each(ctx, func(c columns.ChunkRange) { expected += len(w.kept.named(&c, w.name, buffer)) }); err != nil {
		return nil, err
	}
	if err := w.snapshot.reservation.growFor(expected, conversionBytes); err != nil {
		return nil, err
	}
	found = make([]conversion, 0, expected)
	err = rows.Each(ctx, func(c columns.ChunkRange) {
		rows, offset := w.kept.named(&c, w.name, buffer), c.Offset(&w.rows)
		w.kept.addValues(&c, w.name, rows, revenue)
		for _, row := range rows {
			one := conversion{visitor: c.Visitor[row], value: w.value(c.Chunk, row), at: offset + uint32(row)}
			if w.query.Lookback > 0 {
				one.oldest = oldest.Advance(c.Position[row].Milliseconds() - w.query.Lookback.Milliseconds())
			}
			found = append(found, one)
		}
	})
	return found, err
}

// value is a conversion's value in the property's currency.
func (w *attributor) value(c *columns.Chunk, row uint16) event.Amount {
	value := c.Value[row]
	if value == columns.NoValue {
		value = 0
	}
	if uint32(c.Currency[row]) != w.snapshot.reporting {
		value = 0
	}
	return value
}

// group returns the number of what a touch's credit goes to.
func (w *attributor) group(touch uint32) uint32 {
	// Group 0 is what untouched conversions go to, so that 0 can stand for "not looked up yet": a touch that
	// belongs to it is merely looked up again.
	if w.groupOf[touch] == 0 {
		before := len(w.groups.names)
		w.groupOf[touch] = w.groups.number(groupName(w.snapshot.Touches[touch], w.query.GroupBy))
		if len(w.groups.names) > before {
			_ = w.snapshot.reservation.grow(creditedGroupBytes) // where it fails the query ends soon
		}
	}
	return w.groupOf[touch]
}

// none is the name of a medium or campaign that is not there.
const none = "(none)"

// directGroup is what the credit for conversions without a touch goes to.
func directGroup(by Dimension) string {
	switch by {
	case BySource:
		return "(direct)"
	case ByMedium, ByCampaign:
		return none
	default:
		return Direct
	}
}

func groupName(t columns.Touch, by Dimension) string {
	switch by {
	case BySource:
		return t.Source
	case ByMedium:
		return firstOf(t.Medium, none)
	case ByCampaign:
		return firstOf(t.Campaign, none)
	default:
		return t.Channel
	}
}

// result rounds the credits and returns them in order.
func (w *attributor) result() Attribution {
	return w.creditor.result(Attribution{
		Conversions: w.count, Revenue: w.revenue.In(w.snapshot.reporting).Total, RevenueByCurrency: byCode(w.revenue, w.snapshot.Currencies),
		CompleteFrom: w.snapshot.completeFrom,
	}, w.query.Limit, w.snapshot.minorUnit)
}

// keep keeps the first results, 0 for all, and takes the others together; all conversions are in the units of credit.
func (a *Attribution) keep(results []exactResult, most int, all *big.Int) {
	if most == 0 || len(results) < most {
		most = len(results)
	}
	for i := range results[:most] {
		a.Results = append(a.Results, results[i].AttributionResult)
	}
	if most == len(results) {
		return
	}
	others, exact := AttributionOthers{Groups: len(results) - most}, new(big.Int)
	for i := range results[most:] {
		r := &results[most+i]
		others.Conversions += r.Conversions
		others.Revenue.Merge(r.Revenue)
		exact.Add(exact, r.exact)
	}
	others.Share = exactRate(exact, all)
	a.Others = &others
}
