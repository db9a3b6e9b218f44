package wire

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
)

// Rest is what stores with columns keep of an event beside these: its name, ids, value, currency, client id, platforms, class and
// person stand in columns.
type Rest struct {
	// Entry is what stands in the clear, and Identity what tells whose the event is, each as fields of Entry; "" for nothing. What
	// tells of the device is in neither.
	Entry, Identity string
}

// RestOf returns what of an event stands in no column. The client id of an anonymous event is part of its identity: there it is
// for platforms alone, and no column has it.
func RestOf(e *event.Event) Rest {
	rest := *e
	rest.ID, rest.Name, rest.Value, rest.Currency, rest.OrderID = rest.DeliveryID.String(), "", nil, "", ""
	rest.Platforms, rest.Class, rest.Person = nil, 0, event.Person{}
	if !rest.Anonymous {
		rest.ClientID = ""
	}
	parts := Split(&rest, true)
	return Rest{Entry: string(parts.Entry[headSize:]), Identity: string(parts.Sealed[Identity])}
}

// Event returns the event that the rest is of, as far as it goes. Which click ids an event once had is told only where it has
// none any more.
func (r *Rest) Event() (event.Event, error) {
	const name = "n" // no entry is without one
	id := uuid.Max
	entry := appendVarint(nil, fieldFormatVersion, formatVersion)
	entry = appendName(appendBytes(entry, fieldDeliveryID, id[:]), name)
	for _, part := range []string{r.Entry, r.Identity} {
		entry = append(entry, part...)
	}
	e, err := Decode(entry)
	if err != nil {
		return event.Event{}, fmt.Errorf("the rest of an event: %w", err)
	}
	if e.Name != name || e.DeliveryID != id {
		return event.Event{}, errors.New("the rest of an event: it has a name or an id")
	}
	e.Name, e.ID, e.DeliveryID = "", "", uuid.Nil
	if len(e.Context.ClickIDs) > 0 {
		e.Context.Clicked = 0
	}
	return e, nil
}
