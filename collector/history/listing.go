package history

import (
	"context"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// listedEvent is what a listing takes of an event.
type listedEvent struct {
	At           uint64 `ch:"at"`
	Name         string `ch:"name"`
	Class        uint8  `ch:"class"`
	Visitor      uint64 `ch:"visitor"`
	ClientID     string `ch:"client_id"`
	Value        *int64 `ch:"value"`
	Currency     string `ch:"currency"`
	OrderID      string `ch:"order_id"`
	DeliveryHigh uint64 `ch:"delivery_high"`
	DeliveryLow  uint64 `ch:"delivery_low"`
	EventID      string `ch:"event_id"`
	Touch        string `ch:"touch"`
	Platforms    string `ch:"platforms"`
}

const listedColumns = "at, name, class, visitor, client_id, value, currency, order_id, delivery_high, delivery_low, event_id, touch, platforms"

// Listing returns a page of the events of a range.
func (e *Engine) Listing(ctx context.Context, q analytics.ListingQuery) (analytics.Page, error) {
	m, err := e.now(ctx)
	if err != nil {
		return analytics.Page{}, err
	}
	s := newSearch(e, m, q)
	found, err := s.page(ctx)
	if err != nil {
		return analytics.Page{}, err
	}
	var page analytics.Page
	if len(found) > q.Limit {
		found = found[:q.Limit]
		page.Next = stream.Position(found[q.Limit-1].At)
	}
	if page.Records, err = e.shown(ctx, m, found); err != nil {
		return analytics.Page{}, err
	}
	if q.Count {
		total := len(page.Records)
		if q.After != 0 || page.Next != 0 {
			if total, err = s.count(ctx); err != nil {
				return analytics.Page{}, err
			}
		}
		page.Total = &total
	}
	page.CompleteFrom, err = e.completeFrom(ctx)
	return page, err
}

// shown returns events as the listing shows them.
func (e *Engine) shown(ctx context.Context, m moment, events []listedEvent) ([]analytics.Record, error) {
	var positions []uint64
	for i := range events {
		if events[i].Platforms != "" {
			positions = append(positions, events[i].At)
		}
	}
	said, err := e.recordsOf(ctx, m, positions)
	if err != nil {
		return nil, err
	}
	list := make([]analytics.Record, len(events))
	for i := range events {
		list[i] = events[i].record(m, said[events[i].At])
	}
	return list, nil
}

// record returns the event as the listing shows it.
func (l *listedEvent) record(m moment, said []rows.Record) analytics.Record {
	position := stream.Position(l.At)
	r := analytics.Record{
		Position: position, EventID: l.EventID, Event: l.Name, Class: event.Class(l.Class), ReceivedAt: position.Time(),
		Currency: l.Currency, OrderID: l.OrderID, Anonymous: l.At < m.anonymous,
		Deliveries: deliveriesOf(l.Platforms, position.Time(), said),
	}
	if r.EventID == "" {
		r.EventID = rows.JoinDeliveryID(l.At, l.DeliveryHigh, l.DeliveryLow).String()
	}
	if l.Value != nil {
		r.Value = new(event.Amount(*l.Value))
	}
	if l.Visitor != 0 && !r.Anonymous {
		r.Visitor, r.ClientID = rows.PersonOf(l.Visitor).String(), l.ClientID
	}
	if touch, isTouch := rows.ParseTouch(l.Touch); isTouch {
		r.Touch = touch
	}
	return r
}

// choose returns the first of those events of a window that a search looks for, in the listing's order, at most a number of them.
func (s *search) choose(ctx context.Context, w window, most int) ([]listedEvent, error) {
	parameters := s.parameters(w)
	parameters["limit"] = most
	return all[listedEvent](ctx, s.engine, clickhouse.Query{
		SQL: "SELECT " + listedColumns + " FROM events WHERE " + inRange + " AND " + s.kept + " AND " + s.delivered +
			" ORDER BY at" + s.direction() + " LIMIT {limit:UInt64}",
		Parameters: parameters,
	})
}

// page returns the events of a page and, where there are more, the one behind.
func (s *search) page(ctx context.Context) (found []listedEvent, err error) {
	most := s.query.Limit + 1
	err = s.each(ctx, s.following(), func(w window) (more bool, err error) {
		chosen, err := s.choose(ctx, w, most-len(found))
		found = append(found, chosen...)
		return len(found) < most, err
	})
	return found, err
}

// count returns how many events of the range there are, of all pages.
func (s *search) count(ctx context.Context) (total int, err error) {
	s.counting = true
	err = s.each(ctx, s.whole, func(w window) (more bool, err error) {
		count, err := one[uint64](ctx, s.engine, clickhouse.Query{
			SQL: "SELECT count() FROM events WHERE " + inRange + " AND " + s.kept + " AND " + s.delivered, Parameters: s.parameters(w),
		})
		total += int(count)
		return true, err
	})
	return total, err
}
