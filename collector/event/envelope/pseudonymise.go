package envelope

import (
	"maps"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/personal"
)

// Acceptance is what accepting an event adds to it.
type Acceptance struct {
	// DeliveryID is what [Valid.UUID] returns, where the caller gave one, or a new UUIDv7.
	DeliveryID uuid.UUID
	// Variants are the hashes that the platforms need; [event.EmailLower] and [event.PhoneDigits] are kept in any case.
	Variants event.VariantSet
	// AccountVariants are those that they need beside them where the event has a user_id.
	AccountVariants event.VariantSet
	// Class says who the event counts for.
	Class event.Class
	// Platforms names the platforms that the event is for, in the Property's order.
	Platforms []string
}

// Pseudonymise makes of a valid envelope what may be kept: the person as hashes, and everything else without
// what tells of the person. The result shares nothing with v that could change, save a.Platforms.
func Pseudonymise(v *Valid, a Acceptance) event.Event {
	e := v.event
	e.DeliveryID, e.Class, e.Platforms = a.DeliveryID, a.Class, a.Platforms
	wanted := a.Variants.Union(event.Variants(event.EmailLower, event.PhoneDigits))
	if e.UserID != "" {
		wanted = wanted.Union(a.AccountVariants)
	}
	var known personal.Finder
	e.User, e.MoreContacts, known = v.person.Pseudonymise(wanted)
	if e.ID = known.HashedContact(e.ID); e.ID == "" {
		e.ID = a.DeliveryID.String() // which is ours, whatever its digits look like
	}
	e.ClientID = known.HashedContact(e.ClientID)
	e.UserID = known.HashedContact(e.UserID)
	e.SessionID = known.HashedContact(e.SessionID)
	e.OrderID = known.HashedContact(e.OrderID)
	for _, field := range []*string{&e.ContentID, &e.ContentName, &e.Coupon, &e.SearchTerm, &e.ListID, &e.ListName} {
		*field = known.WithoutContact(*field)
	}
	e.Properties = cleanMembers(&known, v.properties)
	e.Context = cleanContext(&known, v.event.Context)
	e.Contents = slices.Clone(v.event.Contents)
	for i := range e.Contents {
		item := &e.Contents[i]
		for _, field := range []*string{&item.ID, &item.Name, &item.Brand, &item.Variant, &item.Category} {
			*field = known.WithoutContact(*field)
		}
		for i := range item.Categories {
			item.Categories[i] = known.WithoutContact(item.Categories[i])
		}
		if v.extras != nil {
			item.Extra = cleanMembers(&known, v.extras[i])
		}
	}
	for _, field := range []*string{&e.Consent.TCF, &e.Consent.GPP} {
		if known.ContactIn(*field) {
			*field = lostConsent
		}
	}
	e.Consent.Categories = maps.Clone(e.Consent.Categories)
	maps.DeleteFunc(e.Consent.Categories, func(name string, _ bool) bool { return known.ContactIn(name) })
	return e
}

// cleanContext returns the context with what only the page's URL carries read out of it, and without what
// tells of the person. The caller's own fields win over the URL's.
func cleanContext(known *personal.Finder, c event.Context) event.Context {
	c.ClickIDs = maps.Clone(c.ClickIDs)
	readQuery(&c)
	c.PageURL, c.Referrer = known.CleanURL(c.PageURL), known.CleanURL(c.Referrer)
	for _, field := range []*string{
		&c.UserAgent, &c.UTMSource, &c.UTMMedium, &c.UTMCampaign, &c.UTMTerm, &c.UTMContent, &c.Language,
	} {
		// Not the first name: a campaign may well be called like a visitor.
		*field = known.WithoutContact(*field)
	}
	if known.MentionedIn(c.PageTitle) { // an account's page may well be titled with who has it
		c.PageTitle = ""
	}
	maps.DeleteFunc(c.ClickIDs, func(_, id string) bool { return known.ContactIn(id) })
	if len(c.ClickIDs) == 0 {
		c.ClickIDs = nil
	}
	return c
}

// lineEnds are the escapes that would make a word of the letter behind the backslash and what follows it, however often they
// are escaped themselves.
var lineEnds = regexp.MustCompile(`\\+[nrt]`)

// cleanMembers returns members of the caller's own as a JSON object, without those that tell of the person, and
// nil where none is left.
func cleanMembers(known *personal.Finder, members []outline.Value) []byte {
	var object []byte
	for _, m := range members {
		// Formatting brings the value into its shortest form and undoes needless escapes, behind which an
		// address could hide. It fails on what a decoder would not have accepted.
		value, err := jsontext.AppendFormat(nil, m.Raw)
		if err != nil || known.MentionedIn(m.Name) || known.MentionedIn(lineEnds.ReplaceAllLiteralString(string(value), " ")) {
			continue
		}
		name, err := jsontext.AppendQuote(nil, m.Name)
		if err != nil {
			continue
		}
		if object == nil {
			object = append(object, '{')
		} else {
			object = append(object, ',')
		}
		object = append(append(append(object, name...), ':'), value...)
	}
	if object == nil {
		return nil
	}
	return append(object, '}')
}
