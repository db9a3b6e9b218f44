package analytics

import (
	"fmt"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// decoded are entries on their way into the view.
type decoded struct {
	rows []columns.Row
	// errs name the entries that could not be decoded.
	errs []error
	// last is the position of the last entry.
	last stream.Position
	// cut is the position before which nothing is retained, where events between those of the view and these may have
	// been trimmed unread; otherwise 0.
	cut stream.Position
}

// decode does what can be done for entries without the view's lock.
func (v *View) decode(entries []stream.Entry) decoded {
	d := decoded{rows: make([]columns.Row, 0, len(entries))}
	for _, entry := range entries {
		d.last = entry.Position
		e, err := wire.Decode(entry.Data)
		if err != nil {
			d.errs = append(d.errs, fmt.Errorf("entry %s: %w", entry.Position, err))
			continue
		}
		if v.erased != nil && v.erased(&e, entry.Position.Time()) {
			continue
		}
		d.rows = append(d.rows, RowOf(v.property, entry.Position, &e))
	}
	return d
}

// RowOf takes from an event what numbers are computed from; property is "NAMESPACE/NAME". Products that were neither sold nor
// refunded are told apart by IsSale.
func RowOf(property string, position stream.Position, e *event.Event) columns.Row {
	r := columns.Row{
		Position: position, Name: e.Name, Class: e.Class, ClientID: e.ClientID, Value: columns.NoValue, Currency: e.Currency,
		Platforms: columns.ListPlatforms(e.Platforms), EventID: e.ID, OrderID: e.OrderID,
	}
	if e.Anonymous { // identifiers that it has are for platforms
		r.ClientID = ""
	}
	if e.Class.Counts() { // others are no visitors
		r.Visitor, r.IsSomeone = e.Whose(property)
	}
	r.Touch, r.IsTouch = TouchOf(&e.Context)
	if e.Value != nil {
		r.Value = *e.Value
	}
	r.Page, r.IsSale = pageOf(e.Context.PageURL), e.Name == purchaseEvent || e.Name == refundEvent
	r.Products = productsOf(e)
	return r
}
