// Package event is the domain: an event as Weir keeps it, in which a person is a handful of hashes, its money, and how
// it is said that a field is wrong. Below it, envelope makes events of what customers' servers send, personal knows what
// tells of a person, and wire stores events. None of them imports another package of Weir's or does I/O.
package event

import (
	"slices"
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
	// Tax, Shipping and Discount are parts of Value, in Currency; nil where the event had none.
	Tax, Shipping, Discount *Amount

	OrderID     string
	ContentID   string
	ContentName string
	Coupon      string
	SearchTerm  string
	// ListID and ListName are the list of products that the event is about.
	ListID, ListName string
	Contents         []Item

	// ClientID is the browser's or the device's, UserID that of the customer's own account. Neither is ever one of
	// nobody, such as "null".
	ClientID, UserID string
	// SessionID is the visit's, as the caller counts visits.
	SessionID string
	// EngagementTime is for how long the visitor was busy with the page, to the millisecond.
	EngagementTime time.Duration

	User Hashes
	// MoreContacts are the same person's further e-mail addresses and phone numbers, at most four of each: the
	// variants of one address and of one number in each.
	MoreContacts []Hashes
	// Country is where the person lives: ISO 3166-1 alpha-2 in upper case, or "". It is no hash, since a hash of one of
	// 250 codes hides nothing.
	Country string

	// Properties is a JSON object of the members that the customer gave a meaning to: texts, numbers, booleans and lists
	// of them; nil where there are none. Members that look like a person's data are not in it.
	Properties []byte

	Context Context
	Consent Consent
	// Anonymous says that the visitor has denied analytics: the event is nobody's, whatever identifiers it has. It has
	// those alone that a platform needs which the visitor did permit.
	Anonymous bool
	// Class says who the event counts for.
	Class Class
	// Person is whose event it is, as its identifiers told when it was stored; zero where that is their default or
	// where nobody asked. [Event.Whose] knows both.
	Person Person
	// Platforms names the platforms that the event is for: those in force at acceptance, in the Property's order; none
	// where the event is no human's.
	Platforms []string
}

// Needed says which of the identifiers that tell a visitor again somebody needs.
type Needed struct{ ClientID, UserID, SessionID bool }

// Keep removes the identifiers that nobody needs.
func (e *Event) Keep(needed Needed) {
	if !needed.ClientID {
		e.ClientID = ""
	}
	if !needed.UserID {
		e.UserID = ""
	}
	if !needed.SessionID {
		e.SessionID = ""
	}
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
	ID, Name, Brand, Variant string
	// Category is the first of up to five, Categories are the others: category2 to category5.
	Category   string
	Categories [4]string
	// Quantity, Price and Discount are nil where the caller gave none; the money is for one piece.
	Quantity, Price, Discount *Amount
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
	PageTitle   string
	// Language is the visitor's, a tag of BCP 47 such as "de-CH".
	Language string
	// ActionSource is where the event happened.
	ActionSource ActionSource
	// ClickIDs maps the names of [ClickIDNames] to the platforms' click identifiers.
	ClickIDs map[string]string
	// Clicked are the names of the click ids that the event had before [Event.DropIdentity]: where its visitor came from
	// is told by them too.
	Clicked ClickSet
}

// HasClick says whether the event has, or had, a click id of this name.
func (c *Context) HasClick(name string) bool { return c.ClickIDs[name] != "" || c.Clicked.Has(name) }

// ClickIDNames lists the click identifiers that an envelope may carry, in the order in which the stream
// numbers them. New names are appended.
var ClickIDNames = [...]string{
	"gclid", "fbclid", "fbp", "fbc", "ttclid", "ttp", "msclkid", "epik", "sc_click_id", "rdt_cid", "li_fat_id", "twclid",
	"gbraid", "wbraid", "oppref",
}

// ActionSource is where an event happened.
type ActionSource uint8

// The values of an [ActionSource], numbered as in the stream.
const (
	NoActionSource ActionSource = iota // the caller said nothing
	OnWebsite
	InApp
	ByPhoneCall
	InPhysicalStore
	ByEmail
	InChat
	Elsewhere
)

// actionSources are how callers write them.
var actionSources = [...]string{"", "web", "app", "phone_call", "physical_store", "email", "chat", "other"}

// String returns the source as callers write it, "" for none.
func (s ActionSource) String() string { return actionSources[s] }

// ParseActionSource reads what [ActionSource.String] writes.
func ParseActionSource(text string) (ActionSource, bool) {
	i := slices.Index(actionSources[:], text)
	return ActionSource(max(i, 0)), i > 0
}

// Decision is a consent decision.
type Decision uint8

// The values of a [Decision].
const (
	Unstated Decision = iota
	Granted
	Denied
)

// Consent holds what the visitor decided, in whatever form the caller said so.
type Consent struct {
	// The four of Google's consent mode.
	AdUserData        Decision
	AdPersonalization Decision
	AdStorage         Decision
	AnalyticsStorage  Decision
	// TCF is a consent string of IAB Europe's framework; GPP one of the Global Privacy Platform, with the sections of it
	// that apply in GPPSections: numbers with commas, 0 where nobody knows them yet, -1 where none applies.
	TCF, GPP, GPPSections string
	// USPrivacy is a string of IAB's U.S. Privacy, such as "1YNN"; LimitedDataUse asks platforms to process the event for
	// little more than counting it.
	USPrivacy      string
	LimitedDataUse bool
	// Categories are the decisions on purposes with names of the customer's own, or of the platform that manages consent.
	Categories map[string]bool
}
