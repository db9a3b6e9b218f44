// Package event is the domain: an event as Weir keeps it, in which a person is a handful of hashes, its money, and how
// it is said that a field is wrong. Below it, envelope makes events of what customers' servers send, personal knows what
// tells of a person, and wire stores events. None of them imports another package of Weir's or does I/O.
package event

import (
	"time"

	"github.com/google/uuid"
)

// Event is an accepted event as the stream keeps it. It holds no raw e-mail address, phone number or name.
type Event struct {
	// ID is what the caller was answered: its own event_id verbatim, or DeliveryID's text where it sent none.
	ID string
	// DeliveryID is the caller's event_id where that is a UUID, else a UUIDv7 made at acceptance; webhooks carry it
	// on every attempt.
	DeliveryID uuid.UUID
	// Name is the event's name after the Property's aliases.
	Name string
	// OccurredAt is the caller's own timestamp, to the millisecond; zero where it sent none. When the event
	// was received is the time in its stream id.
	OccurredAt time.Time
	// Value is nil where the event had none; Currency is upper-case ISO 4217 or "".
	Value    *Amount
	Currency string

	OrderID     string
	ContentID   string
	ContentName string
	ClientID    string
	Contents    []Item
	User        Hashes
	Context     Context
	Consent     Consent
	// Platforms names the platforms in force at acceptance, in the Property's order.
	Platforms []string
}

// DedupID is the identifier that every platform gets on every attempt, by which it can tell a repeat: the
// caller's event_id, else the delivery id.
func (e *Event) DedupID() string { return e.ID }

// CanonicalUUID reads a UUID, other than the nil UUID, that is spelt as [uuid.UUID.String] spells it.
func CanonicalUUID(text string) (uuid.UUID, bool) {
	if len(text) != len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
		return uuid.Nil, false
	}
	for i := range len(text) {
		if text[i] >= 'A' && text[i] <= 'F' {
			return uuid.Nil, false // Parse would take it, but it could not be had back from 16 bytes
		}
	}
	id, err := uuid.Parse(text)
	return id, err == nil && id != uuid.Nil
}

// Item is one member of an event's contents.
type Item struct {
	ID, Name, Category string
	// Quantity and Price are nil where the caller gave none.
	Quantity *Amount
	Price    *Amount
	// Extra is a JSON object of the members that Weir gives no meaning to, nil where there are none. Members
	// that look like a person's data are not in it.
	Extra []byte
}

// Context is where a visitor was and came from, as the caller tells it; everything is optional. UTM fields
// and click ids that only PageURL carries have been read out of it.
type Context struct {
	PageURL     string
	Referrer    string
	IP          string
	UserAgent   string
	UTMSource   string
	UTMMedium   string
	UTMCampaign string
	UTMTerm     string
	UTMContent  string
	// ClickIDs maps the names of [ClickIDNames] to the platforms' click identifiers.
	ClickIDs map[string]string
}

// ClickIDNames lists the click identifiers that an envelope may carry, in the order in which the stream
// numbers them. New names are appended.
var ClickIDNames = [...]string{
	"gclid", "fbclid", "fbp", "fbc", "ttclid", "ttp", "msclkid", "epik", "sc_click_id", "rdt_cid", "li_fat_id", "twclid",
}

// Decision is a consent decision.
type Decision uint8

// The values of a [Decision].
const (
	Unstated Decision = iota
	Granted
	Denied
)

// Consent holds what the visitor decided.
type Consent struct {
	AdUserData        Decision
	AdPersonalization Decision
}
