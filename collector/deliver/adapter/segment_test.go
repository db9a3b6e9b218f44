package adapter_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/segment"
	"github.com/weir-dev/weir/collector/platforms"
)

// What goes out to Segment, and comes in by Weir's own endpoint for Segment's clients, is the event that it was, but for what
// returning says: the page docs/reference/platforms/segment.md has it for users.
func TestWhatSegmentGetsMeansTheSameToWeirsOwnEndpoint(t *testing.T) {
	returned := 0
	for _, path := range pairs(t, "testdata/segment/requests/*.in.json") {
		t.Run(name(path), func(t *testing.T) {
			var in requestCase
			readJSON(t, path, &in)
			opened, err := adapter.Open(in.Config, credentials, in.Consent.Rule(&in.Config))
			if err != nil {
				t.Fatal(err)
			}
			for i, body := range in.Envelopes {
				sent := accept(t, in, body, i)
				payload, verdict := opened.Map(sent)
				if verdict.Class != adapter.Undecided || in.Config.EventNames[sent.Name] != "" {
					continue
				}
				returned++
				want, wantProperties := returning(t, sent)
				got := comeIn(t, opened.Build([]adapter.Payload{payload}, in.Now).Body, in.Now)
				gotProperties := propertiesIn(t, got.Properties)
				got.Properties, got.DeliveryID = nil, uuid.Nil
				if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(time.Millisecond)); diff != "" {
					t.Errorf("event %d (-sent +come in):\n%s", i, diff)
				}
				if diff := gocmp.Diff(wantProperties, gotProperties, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("properties of event %d (-sent +come in):\n%s", i, diff)
				}
			}
		})
	}
	if returned < 60 {
		t.Errorf("%d events returned, which proves little", returned)
	}
}

// comeIn takes a batch of one message as the collector does.
func comeIn(t *testing.T, body []byte, now time.Time) event.Event {
	t.Helper()
	request, err := segment.Decode(body, segment.Batch)
	if err != nil {
		t.Fatal(err)
	}
	var translator segment.Translator
	translated, errs := translator.Translate(request, 0, now)
	if len(errs) > 0 {
		t.Fatalf("%v: %s", errs, body)
	}
	sent := new(envelope.Envelope)
	sent.Take(envelope.Translation{Outline: translated.Outline, OccurredAt: translated.OccurredAt, Optional: segment.Optional, Unread: translated.Unread})
	valid, errs := sent.Validate(now, nil)
	if len(errs) > 0 {
		t.Fatalf("%v: %s", errs, body)
	}
	property := config.Property{Platforms: []platforms.Platform{configured(platforms.TypeSegment)}}
	return envelope.Pseudonymise(valid, envelope.Acceptance{Variants: property.Variants(), Platforms: []string{"p"}})
}

// flatNames are of events about one product, which has its members among the event's own.
var flatNames = []string{"select_item", "view_content", "add_to_cart", "remove_from_cart", "add_to_wishlist", "share"}

var (
	// ofPersons are members of the golden pairs that do not go out, since they tell of a person.
	ofPersons = []string{
		"email", "Email", "phone", "Phone", "LastName", "lastName", "address", "birthday", "birth-date", "ssn", "callback", "note", "buyer", "list of numbers",
	}
	// productNames do not go out as properties of events about one product, nor eventNames as members of their item.
	productNames = []string{"name", "brand", "category", "category2", "variant", "price", "quantity", "item_discount"}
	eventNames   = []string{"content_id", "action_source", "engagement_time_msec", "gclid", "value", "total", "order_id", "coupon"}
)

// returning is what an event shall be when it has come back, and its properties.
func returning(t *testing.T, sent *adapter.Event) (event.Event, map[string]any) {
	t.Helper()
	e := sent.Event
	properties := propertiesIn(t, e.Properties)
	for _, kept := range slices.Concat([]string{"total", "revenue", "products", "gclid"}, ofPersons) {
		delete(properties, kept) // which have a meaning there, or tell of a person
	}
	isFlat := slices.Contains(flatNames, e.Name)
	for _, kept := range productNames {
		if isFlat {
			delete(properties, kept)
		}
	}
	e.Properties, e.DeliveryID, e.Platforms = nil, uuid.Nil, []string{"p"}
	// Nothing of the person goes out but ids.
	e.User, e.MoreContacts, e.Country, e.Person = event.Hashes{}, nil, "", event.Person{}
	e.OccurredAt = sent.Time()
	if len(e.ID) > 99 {
		sum := sha256.Sum256([]byte(e.ID))
		e.ID = hex.EncodeToString(sum[:])
	}
	if e.Context.IP == "10.0.0.1" {
		e.Context.IP = ""
	}
	if source := e.Context.ActionSource; source != event.InApp && source != event.NoActionSource {
		properties["action_source"], e.Context.ActionSource = source.String(), event.NoActionSource
	}
	if e.EngagementTime > 0 {
		properties["engagement_time_msec"], e.EngagementTime = float64(e.EngagementTime.Milliseconds()), 0
	}
	if e.Value != nil && (e.Tax != nil || e.Shipping != nil) && (e.Name == event.Purchase || e.Name == event.Refund) {
		properties["revenue"] = number(t, *e.Value-amountOf(e.Tax)-amountOf(e.Shipping))
	}
	e.Contents = slices.Clone(e.Contents)
	for i := range e.Contents {
		e.Contents[i].Extra = without(t, e.Contents[i].Extra, ofPersons)
	}
	switch {
	case isFlat && len(e.Contents) == 1:
		item := &e.Contents[0]
		own := propertiesIn(t, item.Extra)
		if coupon, ok := own["coupon"].(string); ok && e.Coupon == "" {
			e.Coupon = coupon
		}
		item.Extra = without(t, item.Extra, eventNames)
		returningProduct(t, item, properties)
		if e.ContentID != "" && e.ContentID != item.ID {
			properties["content_id"] = e.ContentID
		}
		e.ContentID, e.ContentName = cmp.Or(item.ID, e.ContentID), cmp.Or(item.Name, e.ContentName)
	case isFlat && len(e.Contents) == 0 && (e.ContentID != "" || e.ContentName != ""):
		e.Contents = []event.Item{{ID: e.ContentID, Name: e.ContentName}}
	case !isFlat && e.ContentName != "" && e.Name != event.Pageview && e.Name != "screen_view":
		properties["content_name"], e.ContentName = e.ContentName, ""
	}
	switch e.Name {
	case event.Pageview:
		delete(properties, "title")
	case "view_category":
		e.Name = "view_item_list" // Segment has one name for both
	case "screen_view":
		e.Context.ActionSource = event.InApp
	}
	return e, properties
}

// returningProduct leaves of an item what an event about one product tells of it; the rest are properties of the event.
func returningProduct(t *testing.T, item *event.Item, properties map[string]any) {
	t.Helper()
	for i, category := range item.Categories {
		if category != "" {
			properties["category"+strconv.Itoa(i+2)] = category
		}
	}
	if item.Discount != nil {
		properties["item_discount"] = number(t, *item.Discount)
	}
	extra := propertiesIn(t, item.Extra)
	item.Categories, item.Discount, item.Extra = [4]string{}, nil, nil
	if sku, ok := extra["sku"]; ok { // of a product's members it is one that only a product has
		item.Extra = fmt.Appendf(nil, `{"sku":%q}`, sku)
		delete(extra, "sku")
	}
	maps.Copy(properties, extra)
}

// without returns an object without some members; nil where none is left.
func without(t *testing.T, object []byte, names []string) []byte {
	t.Helper()
	members := propertiesIn(t, object)
	found := len(members)
	for _, name := range names {
		delete(members, name)
	}
	switch len(members) {
	case found:
		return object
	case 0:
		return nil
	}
	rest, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return rest
}

func amountOf(amount *event.Amount) event.Amount {
	if amount == nil {
		return 0
	}
	return *amount
}

func number(t *testing.T, amount event.Amount) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(amount.String(), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func propertiesIn(t *testing.T, object jsontext.Value) map[string]any {
	t.Helper()
	members := map[string]any{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &members); err != nil {
			t.Fatal(err)
		}
	}
	return members
}

// Each name that Weir's own endpoint translates is what an event of that name goes out as, or kept from events of other names.
func TestSegmentGetsTheNamesThatWeirsOwnEndpointTranslates(t *testing.T) {
	opened, err := adapter.Open(configured(platforms.TypeSegment), credentials, ruleOf(configured(platforms.TypeSegment)))
	if err != nil {
		t.Fatal(err)
	}
	reached := map[string]bool{}
	for _, rename := range segment.Renames {
		for _, items := range []int{1, 2} {
			payload, verdict := opened.Map(&adapter.Event{Event: event.Event{Name: rename.To, ClientID: "1.2", Contents: make([]event.Item, items)}})
			var sent struct{ Event string }
			if err := json.Unmarshal(payload.Body, &sent, json.MatchCaseInsensitiveNames(true)); err != nil || verdict.Class != adapter.Undecided {
				t.Fatalf("%s: %v, %v", rename.To, verdict, err)
			}
			reached[sent.Event] = true
		}
		_, verdict := opened.Map(&adapter.Event{Event: event.Event{Name: rename.From, ClientID: "1.2"}})
		if want := adapter.Skip("name_reserved"); verdict != want {
			t.Errorf("an event of the name %s: got %v, want %v", rename.From, verdict, want)
		}
	}
	for _, rename := range segment.Renames[:slices.IndexFunc(segment.Renames, func(r segment.Rename) bool { return r.From == "Viewed Product Category" })] {
		if !reached[rename.From] {
			t.Errorf("no event goes out as %s", rename.From)
		}
	}
}
