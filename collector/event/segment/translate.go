package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
)

// Optional are the beginnings of an envelope's members that are left out where they cannot be read, rather than the event
// with them: clients take any text for a country, a phone number or a language.
var Optional = []string{"user.", "context."}

// Translation is what a message is in Weir's own form.
type Translation struct {
	// Ignored says that the message is no event: it tells of a person, and nothing is kept of it.
	Ignored bool
	// Outline is of the envelope, good until the next message is translated.
	Outline []outline.Value
	// OccurredAt is when it happened by the receiver's clock, however long ago; zero where the message does not say.
	OccurredAt time.Time
	// Unread is the JSON of what stands where contacts of the person's may, and is not in the outline: good as long.
	Unread []string
}

// Translator translates messages one by one; it may be used again and again, which saves the memory of another one. It is
// not safe for concurrent use.
type Translator struct {
	message []outline.Value
	builder outline.Builder
	found   []finding
	// any has a bit for each row that has read something.
	any  uint64
	form *form
	// contacts is the JSON of what stands where contacts may, and unread what of it is used for none.
	contacts, unread []string
	// context is what the batch says for all of its messages.
	context []outline.Value
	// index is where the message stands in its batch, -1 where it is the body.
	index int
	// timestamp is the member that said when the event happened.
	timestamp string
	// listed are the products where they stand in a list.
	listed bool
	// own are the names of the customer's own properties.
	own []string
	// parts are what was said of consent, place by place.
	parts []part
}

// finding is what a row has read. It has no pointers, so that clearing many costs little.
type finding struct {
	// at is where it stands among the values of the message or, where the rank says so, of the batch's context, from 1;
	// 0 where nothing was found.
	at, rank int32
}

// ofBatch is added to the rank of what the batch says for all of its messages.
const ofBatch = 100

// read returns what a row has read, with what is behind it, and nil where it has read nothing.
func (t *Translator) read(row int) []outline.Value {
	switch found := t.found[row]; {
	case found.at == 0:
		return nil
	case found.rank >= ofBatch:
		return t.context[found.at-1:]
	default:
		return t.message[found.at-1:]
	}
}

// Reset forgets what was translated, which may be somebody's e-mail address.
func (t *Translator) Reset() {
	clear(t.message[:cap(t.message)])
	t.context = nil
	clear(t.parts[:cap(t.parts)])
	for _, texts := range [...][]string{t.own, t.contacts, t.unread} {
		clear(texts[:cap(texts)])
	}
	t.builder.Forget()
}

// Translate translates one of a request's messages that came now. It fails where the message is none, or says when it
// happened or what its visitor decided in a way that cannot be read; everything else is judged by the envelope.
func (t *Translator) Translate(r *Request, index int, now time.Time) (Translation, event.Errors) {
	t.builder.Reset()
	t.form, t.timestamp, t.listed = &forms[track], "timestamp", false
	raw := &r.raw[index]
	t.index, t.context = -1, r.context
	if r.kind == "" {
		t.index = index
		switch {
		case raw.Kind() != jsontext.KindBeginObject:
			return Translation{}, t.fail("", "must be an object.")
		case len(raw.Raw) > MaxMessageBytes:
			return Translation{}, t.fail("", fmt.Sprintf("must not be larger than %d bytes.", MaxMessageBytes))
		case !r.list.Strict(raw):
			return Translation{}, t.fail("", "must be valid JSON: UTF-8, without halves of surrogate pairs, with each member once, and not nested deeper than 100 levels.")
		}
	}
	t.message = outline.Of(raw.Raw, messageShape, t.message[:0])
	top := outline.At(t.message)

	kind := r.kind
	if kind == "" {
		member := top.Get("type")
		switch {
		case member.Absent():
			return Translation{}, t.fail("type", "is required.")
		case member.Kind() != jsontext.KindString:
			return Translation{}, t.fail("type", "must be a string.")
		}
		kind = member.Text()
	}
	for _, member := range [...]string{"properties", "context"} {
		if object := top.Get(member); !object.Absent() && object.Kind() != jsontext.KindBeginObject {
			return Translation{}, t.fail(member, "must be an object.")
		}
	}
	of, known := types[kind]
	switch {
	case !known:
		return Translation{}, t.fail("type", "must be track, page, screen, identify, group or alias.")
	case of.none:
		return Translation{Ignored: true}, nil
	}
	return t.translate(r, &top, of.call, now)
}

// translate translates an event.
func (t *Translator) translate(r *Request, top *outline.Node, c call, now time.Time) (Translation, event.Errors) {
	name := top.Get("event")
	switch c {
	case page:
		name.Raw = `"` + pageEvent + `"`
	case screen:
		name.Raw = `"` + screenEvent + `"`
	default:
		if to, known := renamed(&name); known {
			name.Raw, c = to.raw, to.call
		}
	}
	t.form = &forms[c]
	t.find()
	at, errs := t.when(r, top, now)
	errs = append(errs, t.consents(top)...)
	if len(errs) > 0 {
		return Translation{}, errs
	}

	if !name.Absent() {
		t.builder.Add("event", name.Raw)
	}
	if id := top.Get("messageId"); !id.Absent() {
		t.builder.Add("event_id", eventID(&id))
	}
	properties := top.Get("properties")
	t.members(c, &properties)
	t.consented()
	t.properties(c, top, &properties)
	return Translation{Outline: t.builder.Values(), OccurredAt: at, Unread: t.unread}, nil
}

// fail is an error of a member of the message, "" for the message itself.
func (t *Translator) fail(member, what string) event.Errors {
	return event.Errors{{Field: member, Message: "The " + member + " field " + what}}
}

// named is what an event is called here, as JSON, and how it is read.
type named struct {
	raw  string
	call call
}

// renames has the names in lower case, with spaces between the words.
var renames = func() map[string]named {
	all := map[string]named{}
	for _, r := range Renames {
		to := named{raw: outline.Quote(r.To), call: track}
		switch {
		case r.To == event.Purchase, r.To == event.Refund:
			to.call = paid
		case r.Product:
			to.call = product
		}
		all[strings.ToLower(r.From)] = to
	}
	return all
}()

// maxRenamed is longer than any name that is translated.
const maxRenamed = 64

// isBlank says whether a character round a name is none of it, as the envelope has it.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' || r == '\u200B' }

// renamed looks up what an event is called here.
func renamed(name *outline.Node) (named, bool) {
	if name.Kind() != jsontext.KindString {
		return named{}, false
	}
	said := strings.TrimFunc(name.Text(), isBlank)
	if len(said) > maxRenamed {
		return named{}, false
	}
	var buffer [maxRenamed]byte
	key := append(buffer[:0], said...)
	for i, b := range key {
		switch {
		case b == '_':
			key[i] = ' '
		case b >= 'A' && b <= 'Z':
			key[i] = b + 'a' - 'A'
		}
	}
	to, known := renames[string(key)]
	return to, known
}

// find looks for what the form's rows read, in the message and then in what its batch says for all.
func (t *Translator) find() {
	t.found = slices.Grow(t.found[:0], len(t.form.rows))[:len(t.form.rows)]
	clear(t.found)
	t.any, t.contacts, t.unread = 0, t.contacts[:0], t.unread[:0]
	t.look(t.message, 1, len(t.message), t.form.message, 0)
	if len(t.context) > 0 {
		t.look(t.context, 0, len(t.context), t.form.message.of("context"), ofBatch)
	}
	for _, raw := range t.contacts {
		if !t.isRead(t.form.email, raw) && !t.isRead(t.form.phone, raw) {
			t.unread = append(t.unread, raw)
		}
	}
}

// isRead says whether a value is the one that a row has read.
func (t *Translator) isRead(row int, raw string) bool {
	found := t.read(row)
	return len(found) > 0 && found[0].Raw == raw
}

// look goes through the members of an object, which are some of the values.
func (t *Translator) look(values []outline.Value, first, end int, in *place, rank int) {
	for i := first; i < end; i += 1 + values[i].Below {
		member := &values[i]
		at := in.of(member.Name)
		if at == nil || outline.Absent(member.Raw) {
			continue
		}
		if at.members != nil && member.Raw[0] == '{' {
			t.look(values, i+1, i+1+member.Below, at, rank)
		}
		if at.row < 0 {
			continue
		}
		if at.row == t.form.email || at.row == t.form.phone {
			t.contacts = append(t.contacts, member.Raw)
		}
		if found := &t.found[at.row]; (found.at == 0 || int(found.rank) > rank+at.rank) && t.form.rows[at.row].reads(member.Raw) {
			*found = finding{int32(i + 1), int32(rank + at.rank)}
			t.any |= 1 << at.row
		}
	}
}

// reads says whether a value is one of the row's.
func (r *Row) reads(raw string) bool { return r.takes.one(raw) && (r.edit == nil || r.edit(raw) != "") }

// one says whether a value is of a kind that is taken.
func (a accepts) one(raw string) bool {
	switch raw[0] {
	case '"':
		return a&texts != 0
	case '[':
		return a&lists != 0
	case '{':
		return a&objects != 0
	case 't', 'f':
		return a&others != 0
	default:
		return a&numbers != 0
	}
}

// when returns when an event happened by the receiver's clock: the sender's is as much off as it was when the message was
// sent. No event is from the future, whatever the clocks say.
func (t *Translator) when(r *Request, top *outline.Node, now time.Time) (time.Time, event.Errors) {
	said := top.Get(t.timestamp)
	if said.Absent() {
		t.timestamp = "originalTimestamp"
		if said = top.Get(t.timestamp); said.Absent() {
			return time.Time{}, nil
		}
	}
	if said.Kind() != jsontext.KindString {
		return time.Time{}, t.fail(t.timestamp, "must be a string.")
	}
	at, err := event.ParseTimestamp(said.Text())
	switch {
	case err != nil:
		return time.Time{}, t.fail(t.timestamp, "format is invalid.")
	case at.IsZero():
		return at, nil // as programs write a time that they do not have
	}
	sentAt := r.sentAt
	if own := top.Get("sentAt"); own.Kind() == jsontext.KindString {
		if parsed, err := event.ParseTimestamp(own.Text()); err == nil {
			sentAt = parsed
		}
	}
	if corrected := now.Add(at.Sub(sentAt)); isOfOneClock(at, sentAt, now) && !corrected.Before(time.Unix(0, 0)) {
		at = corrected
	}
	if at.Before(time.Unix(0, 0)) {
		return time.Time{}, t.fail(t.timestamp, "must be a date after or equal to 1970-01-01T00:00:00Z.")
	}
	if at.After(now) {
		at = now
	}
	return at, nil
}

// maxClockError is by how much sentAt may lie where no clock that is right could have put it.
const maxClockError = 24 * time.Hour

// isOfOneClock says whether a message's time and the one when it was sent may well be by the same clock, of which they tell how
// wrong it is. Nothing is sent before it happens, nor in the future by a clock by which it happened in the past.
func isOfOneClock(at, sentAt, now time.Time) bool {
	if sentAt.IsZero() || sentAt.Before(at.Add(-maxClockError)) {
		return false
	}
	return !sentAt.After(now.Add(maxClockError)) || at.After(now)
}

// maxIDLength is how many characters an event's id may have.
const maxIDLength = 255

// eventID returns a message's id as JSON. Whatever a client takes for one is one: what an event's id may not be, by its
// length or its characters, is hashed, and tells repeats all the same.
func eventID(n *outline.Node) string {
	switch n.Kind() {
	case jsontext.KindNumber:
		return `"` + n.Raw + `"`
	case jsontext.KindString:
		if id := n.Text(); utf8.RuneCountInString(id) > maxIDLength || strings.ContainsFunc(id, unicode.IsControl) {
			hash := sha256.Sum256([]byte(id))
			return `"` + hex.EncodeToString(hash[:]) + `"`
		}
	}
	return n.Raw
}

// members adds the members that the rows have read.
func (t *Translator) members(c call, properties *outline.Node) {
	form, open := t.form, sections[""]
	rows := t.any | form.always
	if t.listed = rows&(1<<form.contents) != 0; !t.listed && c == product && isProduct(properties) {
		rows |= 1 << form.contents
	}
	for ; rows != 0; rows &= rows - 1 {
		i := bits.TrailingZeros64(rows)
		row := &form.rows[i]
		raw := row.always
		if i != form.contents && raw == "" {
			raw = t.text(i)
		}
		if row.aside || raw == "" && i != form.contents {
			continue
		}
		open = t.enter(open, form.sections[i])
		switch {
		case i != form.contents:
			t.builder.Add(form.names[i], raw)
		case t.listed:
			products := outline.At(t.read(i))
			t.products(&products)
		default:
			t.product(properties)
		}
	}
	t.enter(open, sections[""])
}

// text returns what a row has read, as the envelope wants it, "" for nothing.
func (t *Translator) text(i int) string {
	row, raw := &t.form.rows[i], t.read(i)[0].Raw
	switch {
	case row.edit != nil:
		return row.edit(raw)
	case i == t.form.pageURL:
		if search := t.read(t.form.pageSearch); len(search) > 0 && strings.HasPrefix(search[0].Raw, `"?`) && !strings.Contains(raw, "?") {
			return raw[:len(raw)-1] + search[0].Raw[1:]
		}
	case row.takes&numbers != 0 && row.quoted && raw[0] != '"':
		return `"` + raw + `"`
	}
	return raw
}

// enter closes the objects that are open and opens those of another section.
func (t *Translator) enter(open, next *section) *section {
	for ; !next.within(open); open = open.in {
		t.builder.Close()
	}
	if next != open {
		t.enter(open, next.in)
		t.builder.Object(next.name)
	}
	return next
}
