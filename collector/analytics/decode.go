package analytics

import (
	"crypto/sha256"
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
		d.rows = append(d.rows, rowOf(v.property, entry.Position, &e))
	}
	return d
}

// rowOf takes from an event what the view keeps.
func rowOf(property string, position stream.Position, e *event.Event) columns.Row {
	r := columns.Row{
		Position: position, Name: e.Name, Class: e.Class, ClientID: e.ClientID, Value: columns.NoValue, Currency: e.Currency,
		Platforms: columns.ListPlatforms(e.Platforms), EventID: e.ID, OrderID: e.OrderID,
	}
	if e.Class.Counts() { // others are no visitors
		r.Visitor, r.IsSomeone = visitorOf(property, e)
	}
	r.Touch, r.IsTouch = TouchOf(&e.Context)
	if e.Value != nil {
		r.Value = *e.Value
	}
	return r
}

// visitorOf returns whose event it is, by the first of client_id, e-mail and phone that it has; the second
// result is false for an event of nobody. The kinds have namespaces of their own: a client_id that happens to
// spell a hash is another visitor.
func visitorOf(property string, e *event.Event) (columns.VisitorKey, bool) {
	var buffer [256]byte
	text := append(buffer[:0], "weir visitor\x00"...)
	text = append(append(text, property...), 0)
	email, phone := e.User.Get(event.EmailLower), e.User.Get(event.PhoneDigits)
	switch {
	case e.ClientID != "":
		text = append(append(text, "client\x00"...), e.ClientID...)
	case !email.IsZero():
		text = append(append(text, "email\x00"...), email[:]...)
	case !phone.IsZero():
		text = append(append(text, "phone\x00"...), phone[:]...)
	default:
		return columns.VisitorKey{}, false
	}
	sum := sha256.Sum256(text)
	return columns.VisitorKey(sum[:]), true
}
