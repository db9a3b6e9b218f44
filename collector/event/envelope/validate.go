package envelope

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/personal"
)

// How old and how far ahead a caller's timestamp may be.
const (
	maxAge   = 7 * 24 * time.Hour
	maxAhead = time.Minute
)

// Limits of texts, in characters.
const (
	maxNameLength      = 100
	maxTextLength      = 255
	maxClickIDLength   = 512
	maxUserAgentLength = 1024
	maxURLLength       = 2048
	maxTitleLength     = 300
	maxConsentLength   = 8192
)

// Valid is an envelope in which everything holds. It still knows the person's raw data: it lives for one
// request, and only what [Pseudonymise] makes of it may leave.
type Valid struct {
	// event lacks what acceptance adds: the delivery id, the platforms, the hashes. Its context and the texts of
	// its contents are not yet cleaned of the person's data.
	event  event.Event
	person personal.Person
	// room is what the person's contacts may lie in.
	room contactRoom
	// extras are the unknown members of the event's contents, by the item's index; nil where there are none at all.
	extras [][]outline.Value
	// properties are the customer's own members.
	properties []outline.Value
	// test says that the sender marks the event as a test.
	test bool
}

// Traits are what tells who an event counts for, as the sender wrote it: the person's data among it are not to be kept.
type Traits struct {
	// Test says that the sender marks the event as a test.
	Test bool
	// ClientID, IP (in its canonical form), UserAgent and PageURL are "" where the event has none.
	ClientID, IP, UserAgent, PageURL string
}

// Traits returns what tells who the event counts for.
func (v *Valid) Traits() Traits {
	e := &v.event
	return Traits{v.test, e.ClientID, e.Context.IP, e.Context.UserAgent, e.Context.PageURL}
}

// UUID returns the id that the caller gave the event, where that is a UUID in its canonical, lower-case form: it can
// serve as the delivery id, which saves another one.
func (v *Valid) UUID() (uuid.UUID, bool) { return event.CanonicalUUID(v.event.ID) }

// Validate judges an envelope as of now and reads it. aliases maps event names as sent to the names they
// stand for; it applies before everything else does. Exactly one of the results is nil; the errors come in the
// order event, event_id, client_id, user_id, session_id, engagement_time_msec, user, data, properties, context, consent,
// timestamp, test, at most one for each field. What is valid
// is so until the envelope is reset or read into again.
func (e *Envelope) Validate(now time.Time, aliases map[string]string) (*Valid, event.Errors) {
	c := newChecker("")
	e.valid = Valid{}
	values := e.outline
	if e.translated != nil {
		values = e.translated
	}
	top, valid, into := outline.At(values), &e.valid, &e.valid.event
	into.Name = c.eventName(top.Get("event"), aliases)
	into.ID = withoutPlaceholder(c.text("event_id", top.Get("event_id"), textRule{max: maxTextLength, plain: true}))
	into.ClientID = c.identifier("client_id", top.Get("client_id"))
	into.UserID = c.identifier("user_id", top.Get("user_id"))
	into.SessionID = c.identifier("session_id", top.Get("session_id"))
	into.EngagementTime = c.engagementTime(top.Get("engagement_time_msec"))
	for _, raw := range e.unread {
		valid.person.Unread = append(valid.person.Unread, unread(raw))
	}
	into.Country = c.user(top.Get("user"), &valid.person, &valid.room)
	if sent := &valid.person; len(sent.Emails)+len(sent.Phones)+len(sent.Unread) > 0 && personal.MayHoldContact(into.Name) {
		// Not the names: an event may well be called like a visitor.
		contacts := (&personal.Person{Emails: sent.Emails, Phones: sent.Phones, Unread: sent.Unread}).Finder()
		if contacts.ContactIn(into.Name) {
			c.malformed("event")
		}
	}
	c.data(&top, valid)
	valid.properties = c.properties(top.Get("properties"))
	into.Context = c.context(top.Get("context"))
	into.Consent = c.consents(top.Get("consent"), e.translated != nil)
	if into.OccurredAt = e.occurredAt.UTC().Truncate(time.Millisecond); e.occurredAt.IsZero() {
		into.OccurredAt = c.timestamp(top.Get("timestamp"), now)
	}
	valid.test = c.boolean("test", top.Get("test"))
	if len(e.optional) > 0 {
		c.errs = slices.DeleteFunc(c.errs, func(err event.FieldError) bool {
			return slices.ContainsFunc(e.optional, func(path string) bool { return strings.HasPrefix(err.Field, path) })
		})
	}
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return valid, nil
}

// checker reads fields one by one and gathers the errors. Each of its methods returns the zero value for a
// field that is absent or bad.
type checker struct {
	// prefix stands before the names of the fields, and behind it, in an element of an array, the element's
	// index: putting a path together is left to the error that needs it.
	prefix string
	index  int
	errs   event.Errors
}

// newChecker returns a checker of the fields below prefix, which is "" or ends with a dot.
func newChecker(prefix string) checker { return checker{prefix: prefix, index: -1} }

// path returns a field's full path.
func (c *checker) path(field string) string {
	if c.index < 0 {
		return c.prefix + field
	}
	return strings.TrimSuffix(c.prefix+strconv.Itoa(c.index)+"."+field, ".")
}

// fail adds an error; message completes "The FIELD field …".
func (c *checker) fail(field, message string) {
	field = c.path(field)
	c.errs.Add(field, "The "+field+" field "+message)
}

func (c *checker) required(field string) { c.fail(field, "is required.") }

func (c *checker) malformed(field string) { c.fail(field, "format is invalid.") }

// unlisted says that a value is none of those that there are.
func (c *checker) unlisted(field string) {
	field = c.path(field)
	c.errs.Add(field, "The selected "+field+" is invalid.")
}

// textRule says what a text may be.
type textRule struct {
	// max is the highest number of characters.
	max int
	// plain forbids control characters.
	plain bool
	// numbers takes a JSON number as the text that it is written with.
	numbers bool
}

func (c *checker) text(field string, n outline.Node, rule textRule) string {
	if n.Absent() {
		return ""
	}
	var said string
	switch kind := n.Kind(); {
	case kind == jsontext.KindString:
		said = n.Text()
	case kind == jsontext.KindNumber && rule.numbers:
		said = n.Raw
	default:
		c.fail(field, "must be a string.")
		return ""
	}
	return c.bounded(field, said, rule)
}

// bounded holds a text to its rule.
func (c *checker) bounded(field, said string, rule textRule) string {
	switch {
	case len(said) > rule.max && utf8.RuneCountInString(said) > rule.max:
		c.fail(field, fmt.Sprintf("must not be greater than %d characters.", rule.max))
	case rule.plain && hasControl(said):
		c.malformed(field)
	default:
		return said
	}
	return ""
}

func hasControl(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return strings.ContainsFunc(s[i:], unicode.IsControl)
		}
	}
	return false
}

// object says whether a field is an object, which alone is to be looked into.
func (c *checker) object(field string, n *outline.Node) bool {
	if n.Absent() {
		return false
	}
	if n.Kind() != jsontext.KindBeginObject {
		c.fail(field, "must be an object.")
		return false
	}
	return true
}

func (c *checker) eventName(n outline.Node, aliases map[string]string) string {
	if n.Absent() {
		c.required("event")
		return ""
	}
	if n.Kind() != jsontext.KindString {
		c.fail("event", "must be a string.")
		return ""
	}
	name := personal.Trim(n.Text())
	if name == "" {
		c.required("event")
		return ""
	}
	name = c.bounded("event", name, textRule{max: maxNameLength, plain: true})
	if new(personal.Finder).ContactIn(name) {
		c.malformed("event") // no contact names an event: a name goes everywhere
		return ""
	}
	if alias, ok := aliases[name]; ok {
		return alias
	}
	return name
}

// identifier reads an id of somebody, or of an order, without space around it; "" where it is one of nobody.
func (c *checker) identifier(field string, n outline.Node) string {
	if n.Absent() {
		return ""
	}
	return personal.WithoutNobody(personal.Trim(c.text(field, n, textRule{max: maxTextLength, plain: true, numbers: true})))
}

// maxEngagementTime is the longest time for which somebody is busy with a page.
const maxEngagementTime = 24 * time.Hour

// engagementTime reads a number of milliseconds, also as a text.
func (c *checker) engagementTime(n outline.Node) time.Duration {
	const field = "engagement_time_msec"
	amount := c.amount(field, n, amountRule{atLeastZero: true})
	if amount == nil {
		return 0
	}
	ms, whole := amount.Whole()
	switch {
	case !whole:
		c.fail(field, "must be an integer.")
	case ms > maxEngagementTime.Milliseconds():
		c.fail(field, fmt.Sprintf("must not be greater than %d.", maxEngagementTime.Milliseconds()))
	default:
		return time.Duration(ms) * time.Millisecond
	}
	return 0
}

// timestamp reads the caller's own time, to the millisecond.
func (c *checker) timestamp(n outline.Node, now time.Time) time.Time {
	const field = "timestamp"
	said := c.text(field, n, textRule{max: maxTextLength})
	if said == "" {
		return time.Time{}
	}
	at, err := event.ParseTimestamp(said)
	if err != nil {
		c.malformed(field)
		return time.Time{}
	}
	at, now = at.UTC().Truncate(time.Millisecond), now.UTC().Truncate(time.Millisecond)
	if oldest := now.Add(-maxAge); at.Before(oldest) {
		c.fail(field, "must be a date after or equal to "+oldest.Format(time.RFC3339Nano)+".")
		return time.Time{}
	}
	if latest := now.Add(maxAhead); at.After(latest) {
		c.fail(field, "must be a date before or equal to "+latest.Format(time.RFC3339Nano)+".")
		return time.Time{}
	}
	return at
}

// withoutPlaceholder returns an event's id, "" where it is blank or a word for none. Numbers, zero too, may count the events of
// a caller.
func withoutPlaceholder(id string) string {
	if id != "" && personal.IsNobody(id) && (strings.ContainsFunc(id, unicode.IsLetter) || !strings.ContainsFunc(id, unicode.IsDigit) || len(id) == len(uuid.Nil.String())) {
		return ""
	}
	return id
}
