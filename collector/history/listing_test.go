package history_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// someListing makes up a listing, which is asked for page by page.
func someListing(p *past) (any, func(engine) (any, error)) {
	q := analytics.ListingQuery{
		Range: p.someRange(), Class: pick(p.Rand, event.Human, event.Human, event.Bot, event.Test), AnyClass: p.IntN(3) == 0,
		Platforms: pick(p.Rand, nil, nil, []string{"meta"}, []string{"removed"}, []string{"crm", "meta"}),
		Ascending: p.IntN(2) == 0, Limit: 1 + p.IntN(20),
	}
	if p.IntN(2) == 0 {
		q.Events = []string{"purchase", "it's", "lead"}[:1+p.IntN(3)]
	}
	if p.IntN(2) == 0 {
		q.Statuses = []stream.Status{stream.Status(p.IntN(6)), stream.Status(p.IntN(6))}[:1+p.IntN(2)]
	}
	if p.IntN(4) == 0 {
		q.After = p.last - stream.Position(p.Int64N(int64(p.last-stream.At(begin))+2))
	}
	p.lookUp(&q)
	pages := pick(p.Rand, 2, 3, 1000/q.Limit)
	counts := []bool{p.IntN(2) == 0, p.IntN(2) == 0}
	return fmt.Sprintf("%+v, %d pages", q, pages), func(e engine) (any, error) {
		var list []analytics.Page
		q := q
		for n := range pages {
			q.Count = n < 2 && counts[n]
			page, err := e.Listing(context.Background(), q)
			if err != nil {
				return nil, err
			}
			list = append(list, page)
			if q.After = page.Next; q.After == 0 {
				break
			}
		}
		return list, nil
	}
}

// lookUp has a listing ask for some ids: mostly such as events have.
func (p *past) lookUp(q *analytics.ListingQuery) {
	some := func(of func(*rows.Event) string, more ...string) (ids []string) {
		for range p.IntN(4) {
			ids = append(ids, pick(p.Rand, append(more, of(&p.table[p.IntN(len(p.table))]))...))
		}
		return ids
	}
	eventID := func(r *rows.Event) string {
		if r.EventID == "" {
			return rows.JoinDeliveryID(r.At, r.DeliveryHigh, r.DeliveryLow).String()
		}
		return r.EventID
	}
	orderID := func(r *rows.Event) string { return r.OrderID }
	visitor := func(r *rows.Event) string { return rows.PersonOf(r.Visitor).String() }
	switch p.IntN(8) {
	case 0:
		q.EventIDs = some(eventID, "unknown", uuid.UUID{1}.String(), "Order 3")
	case 1:
		q.OrderIDs = some(orderID, "unknown", "")
	case 2, 3:
		q.Visitors = some(visitor, "AAAAAAAAAAE", "no visitor", "")
	case 4:
		q.Visitors = some(visitor)
		q.OrderIDs = some(orderID, "1")
		q.EventIDs = some(eventID, "Order 3")
	}
}
