package analytics

import (
	"slices"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
)

// listing returns a page by the definitions: all events that match in the listing's order, of which the page is a part.
func (o *oracle) listing(q ListingQuery) Page {
	var page Page
	total := 0
	for _, record := range o.matching(q) {
		total++
		isBehind := q.After == 0 || q.Ascending && record.Position > q.After || !q.Ascending && record.Position < q.After
		switch {
		case !isBehind:
		case len(page.Records) < q.Limit:
			page.Records = append(page.Records, record)
		case page.Next == 0:
			page.Next = page.Records[q.Limit-1].Position
		}
	}
	if q.Count {
		page.Total = &total
	}
	return page
}

// matching returns all events that a listing shows on some page, in its order.
func (o *oracle) matching(q ListingQuery) []Record {
	isAsked := func(asked []string, text string) bool {
		return len(asked) == 0 || text != "" && slices.Contains(asked, text)
	}
	var found []Record
	for _, e := range o.events {
		r := o.record(e)
		isInRange := !r.ReceivedAt.Before(q.Range.From) && r.ReceivedAt.Before(q.Range.To)
		if isInRange && (q.AnyClass || r.Class == q.Class) && isAsked(q.Events, r.Event) && isAsked(q.EventIDs, r.EventID) &&
			isAsked(q.OrderIDs, r.OrderID) && isAsked(q.Visitors, r.Visitor) && isDelivered(r, q) {
			found = append(found, r)
		}
	}
	if !q.Ascending {
		slices.Reverse(found)
	}
	return found
}

// record is how a listing shows an event.
func (o *oracle) record(e *oracleEvent) Record {
	r := Record{
		Position: e.position, EventID: e.ID, Event: e.Name, Class: e.Class, ReceivedAt: e.at(), Value: e.Value, Currency: e.Currency,
		OrderID: e.OrderID, ClientID: e.ClientID, Visitor: e.visitor, Anonymous: e.anonymous,
	}
	if e.Class != event.Human { // nobody visits
		r.ClientID, r.Visitor = "", ""
	}
	if e.touch != nil {
		r.Touch = *e.touch
	}
	for _, platform := range e.Platforms {
		r.Deliveries = append(r.Deliveries, o.delivery(e, platform))
	}
	return r
}

// isDelivered says whether one delivery is to a platform and has a status that a listing asks for.
func isDelivered(r Record, q ListingQuery) bool {
	return len(q.Platforms)+len(q.Statuses) == 0 || slices.ContainsFunc(r.Deliveries, func(d Delivery) bool {
		return (len(q.Platforms) == 0 || slices.Contains(q.Platforms, d.Platform)) && (len(q.Statuses) == 0 || slices.Contains(q.Statuses, d.Status))
	})
}

// lookUp has a listing ask for some ids: mostly such as events have.
func (w *world) lookUp(q *ListingQuery) {
	some := func(of func(Record) string, more ...string) (ids []string) {
		for range w.IntN(4) {
			if len(w.oracle.events) > 0 {
				more = append(more, of(w.oracle.record(pick(w.Rand, w.oracle.events...))))
			}
			ids = append(ids, pick(w.Rand, more...))
		}
		return ids
	}
	switch w.IntN(8) {
	case 0:
		q.EventIDs = some(func(r Record) string { return r.EventID }, "unknown", uuid.UUID{1}.String())
	case 1:
		q.OrderIDs = some(func(r Record) string { return r.OrderID }, "unknown", "")
	case 2, 3:
		q.Visitors = some(func(r Record) string { return r.Visitor }, visitorID("client", []byte("unknown")), "no visitor", "")
	case 4:
		q.Visitors = some(func(r Record) string { return r.Visitor }, visitorID("client", []byte("c0")))
		q.OrderIDs = some(func(r Record) string { return r.OrderID }, "1")
		q.EventIDs = some(func(r Record) string { return r.EventID }, "Order 3")
	}
}
