package adapter

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
	"github.com/weir-dev/weir/collector/platforms"
)

// tester is an adapter of a type whose test mode is no setting.
type tester interface {
	// testing returns an adapter that sends in the test mode.
	testing() Adapter
}

// OpenTest makes a platform in the test mode of its type, as far as that has one, for [Platform.MapTest]. Code is the platform's
// own for test events; "" for that of the settings, or for none. Its errors are those of [Open].
func OpenTest(cfg platforms.Platform, code string, credentials map[string]string, rule platforms.ConsentRule) (*Platform, error) {
	cfg.Settings = cfg.Type.InTestMode(&cfg.Settings, code)
	cfg.Events = nil // which events the platform gets is not what is tried
	opened, err := Open(cfg, credentials, rule)
	if err != nil {
		return nil, err
	}
	if own, ok := opened.Adapter.(tester); ok {
		opened.Adapter = own.testing()
	}
	return opened, nil
}

// TestMade is what a test event is made of.
type TestMade struct {
	// Type is the platform's.
	Type platforms.Type
	// ID is the event's.
	ID uuid.UUID
	// Currency is the property's.
	Currency string
	Now      time.Time
}

// MapTest renders a made-up event: a purchase or, where the platform has no name for that, the first of the events that the
// Property gives it a name for. The verdict is final where none of them can be sent.
func (p *Platform) MapTest(made TestMade) (Payload, Verdict) {
	traits, _ := made.Type.Traits()
	names := append([]string{cmp.Or(traits.TestMode.Event, event.Purchase)}, slices.Sorted(maps.Keys(p.names))...)
	var payload Payload
	var first Verdict
	for i, name := range names {
		made := testEvent(name, made)
		rendered, verdict := p.Map(&made)
		if verdict.Class == Undecided {
			return rendered, verdict
		}
		if i == 0 {
			payload, first = rendered, verdict
		}
	}
	return payload, first
}

// The person of a test event. Nobody has these: example.com and the number are reserved for examples.
const (
	testEmail, testPhone                      = "weir-test@example.com", "+12025550100"
	testFirstName, testLastName               = "Weir", "Test"
	testCity, testState, testZIP              = "Testville", "CA", "90210"
	testClientID, testUserID                  = "1234567890.1600000000", "weir-test-person"
	testPage                                  = "https://example.com/weir-test"
	testUserAgent                             = "Mozilla/5.0 (compatible; Weir test event)"
	testProductID, testProduct                = "weir-test", "Weir test event"
	testValue                    event.Amount = 10_000 // 1.00
)

// testEvent is an event of nobody who lives, to which nobody has objected.
func testEvent(name string, made TestMade) Event {
	person := personal.Person{
		Emails: []personal.Datum{{Text: testEmail}}, Phones: []personal.Datum{{Text: testPhone}},
		FirstName: personal.Datum{Text: testFirstName}, LastName: personal.Datum{Text: testLastName},
		City: personal.Datum{Text: testCity}, State: personal.Datum{Text: testState}, ZIP: personal.Datum{Text: testZIP},
	}
	hashes, _, _ := person.Pseudonymise(^event.VariantSet(0))
	id, value, pieces := "weir-test-"+made.ID.String()[24:], testValue, event.Amount(10_000)
	at := made.Now.UTC().Truncate(time.Millisecond)
	return Event{
		ReceivedAt: at,
		Event: event.Event{
			ID: id, DeliveryID: made.ID, Name: name, OccurredAt: at, Value: &value, Currency: made.Currency, OrderID: id,
			Contents: []event.Item{{ID: testProductID, Name: testProduct, Quantity: &pieces, Price: &value}},
			ClientID: testClientID, UserID: testUserID, User: hashes, Country: "US",
			Context: event.Context{PageURL: testPage, UserAgent: testUserAgent, ActionSource: event.OnWebsite},
			Consent: event.Consent{
				AdUserData: event.Granted, AdPersonalization: event.Granted, AdStorage: event.Granted, AnalyticsStorage: event.Granted,
			},
		},
	}
}
