// Package rows turns what a property's streams have into rows of the tables of its history, and back. What the columns mean
// stands in package schema.
package rows

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// Event is a row of the table events.
type Event struct {
	At       uint64 `ch:"at"`
	Name     string `ch:"name"`
	Class    uint8  `ch:"class"`
	Visitor  uint64 `ch:"visitor"`
	ClientID string `ch:"client_id"`
	Value    *int64 `ch:"value"`
	Currency string `ch:"currency"`
	OrderID  string `ch:"order_id"`
	// The delivery id's halves, as [SplitDeliveryID] has them.
	DeliveryHigh uint64 `ch:"delivery_high"`
	DeliveryLow  uint64 `ch:"delivery_low"`
	// EventID is "" where it is the delivery's.
	EventID string `ch:"event_id"`
	// Touch is the event's own, Origin that which its visitor comes from; as [TouchText] writes them.
	Touch  string `ch:"touch"`
	Origin string `ch:"origin"`
	// OriginAge is how many milliseconds that touch was before the event.
	OriginAge uint32 `ch:"origin_age"`
	// Since is one more than how many milliseconds before the event its visitor had another one, which is in the table too; 0 where
	// that is not known, or there was none.
	Since uint32 `ch:"since"`
	Page  string `ch:"page"`
	// The products' ids, amounts and quantities stand side by side. Of events that are no sale the amounts are absent and the
	// quantities 0.
	ProductIDs        []string `ch:"products.id"`
	ProductAmounts    []*int64 `ch:"products.amount"`
	ProductQuantities []int64  `ch:"products.quantity"`
	Platforms         string   `ch:"platforms"`
	Identifiers       []uint64 `ch:"identifiers"`
	Entry             string   `ch:"entry"`
	Identity          string   `ch:"identity"`
}

// PlatformSeparator stands between the names of platforms, none of which has one.
const PlatformSeparator = ","

// FromEvent returns the row of an event of a property, which is "NAMESPACE/NAME", at a position of the events stream. Its
// origin is its own touch: where it has none, whoever knows the visitor's earlier events fills it in.
func FromEvent(property string, at stream.Position, e *event.Event) Event {
	counted := analytics.RowOf(property, at, e)
	rest := wire.RestOf(e)
	row := Event{
		At: uint64(at), Name: e.Name, Class: uint8(e.Class), ClientID: counted.ClientID, Currency: e.Currency, OrderID: e.OrderID,
		Page: counted.Page, Platforms: strings.Join(e.Platforms, PlatformSeparator),
		Entry: rest.Entry, Identity: rest.Identity,
	}
	row.DeliveryHigh, row.DeliveryLow = SplitDeliveryID(at, e.DeliveryID)
	if counted.IsSomeone {
		row.Visitor = Number(counted.Visitor)
	}
	if e.Value != nil {
		row.Value = new(int64(*e.Value))
	}
	if e.ID != e.DeliveryID.String() {
		row.EventID = e.ID
	}
	if counted.IsTouch {
		row.Touch = TouchText(counted.Touch)
		if counted.IsSomeone {
			row.Origin = row.Touch
		}
	}
	row.addProducts(counted.Products, counted.IsSale)
	row.Identifiers = identifiersOf(property, e, row.Visitor)
	return row
}

func (r *Event) addProducts(products []columns.Product, isSale bool) {
	for _, product := range products {
		var amount *int64
		quantity := int64(0)
		if isSale {
			quantity = int64(product.Quantity)
			if product.Amount != columns.NoValue {
				amount = new(int64(product.Amount))
			}
		}
		r.ProductIDs = append(r.ProductIDs, product.ID)
		r.ProductAmounts = append(r.ProductAmounts, amount)
		r.ProductQuantities = append(r.ProductQuantities, quantity)
	}
}

// identifiersOf returns the event's identifiers other than the visitor itself, which most events have alone. They begin with 0
// where the visitor is none of them: it was told by events before.
func identifiersOf(property string, e *event.Event, visitor uint64) []uint64 {
	var buffer [12]event.Identifier
	var list []uint64
	own := visitor == 0
	for _, identifier := range e.Identifiers(property, buffer[:]).List {
		if number := Number(identifier); number != visitor {
			list = append(list, number)
		} else {
			own = true
		}
	}
	if !own {
		list = slices.Insert(list, 0, 0)
	}
	return list
}

// Restore returns the event, without what tells of its visitor's device. The person of an event of somebody is its visitor.
func (r *Event) Restore() (event.Event, error) {
	rest := wire.Rest{Entry: r.Entry, Identity: r.Identity}
	e, err := rest.Event()
	if err != nil {
		return event.Event{}, fmt.Errorf("event %s: %w", stream.Position(r.At), err)
	}
	e.Name, e.Class, e.Currency, e.OrderID = r.Name, event.Class(r.Class), r.Currency, r.OrderID
	e.DeliveryID = JoinDeliveryID(r.At, r.DeliveryHigh, r.DeliveryLow)
	if e.ID = r.EventID; e.ID == "" {
		e.ID = e.DeliveryID.String()
	}
	if !e.Anonymous {
		e.ClientID = r.ClientID
	}
	if r.Value != nil {
		e.Value = new(event.Amount(*r.Value))
	}
	if r.Platforms != "" {
		e.Platforms = strings.Split(r.Platforms, PlatformSeparator)
	}
	if r.Visitor != 0 {
		e.Person = PersonOf(r.Visitor)
	}
	return e, nil
}

// Number returns a person or identifier as a number; 0 is nobody's.
func Number(p event.Person) uint64 { return binary.BigEndian.Uint64(p[:]) }

// PersonOf is the inverse of [Number].
func PersonOf(number uint64) (p event.Person) {
	binary.BigEndian.PutUint64(p[:], number)
	return p
}

// SplitDeliveryID returns the halves of an event's delivery id. Of the first one the milliseconds of the position are taken, where ids
// have those of their making: what is left takes two bytes, and not six more.
func SplitDeliveryID(at stream.Position, id uuid.UUID) (high, low uint64) {
	return binary.BigEndian.Uint64(id[:8]) - uint64(at.Milliseconds())<<16, binary.BigEndian.Uint64(id[8:])
}

// JoinDeliveryID is the inverse of [SplitDeliveryID].
func JoinDeliveryID(at, high, low uint64) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], high+uint64(stream.Position(at).Milliseconds())<<16)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}
