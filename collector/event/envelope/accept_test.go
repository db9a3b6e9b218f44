package envelope_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
)

// now is when the tests' envelopes arrive.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// acceptance is that of a property with a Meta and a Webhook platform.
var acceptance = envelope.Acceptance{
	DeliveryID: uuid.MustParse("019aa0b1-7b1e-7cc3-98c4-dc0c0c07398f"),
	Variants: event.Variants(
		event.EmailLower, event.PhoneDigits, event.PhoneE164, event.FirstNameMeta, event.FirstNameLower),
	Platforms: []string{"meta", "crm"},
}

const purchase = `{"event":"purchase","event_id":"6f1d3c52-3b0a-4f0e-9a51-0c5f7a3f9e21","client_id":"1234567890.1700000000",` +
	`"user":{"email":"jane.doe@example.com","phone":"+4915112345678","first_name":"Jane"},` +
	`"data":{"value":129.90,"currency":"EUR","order_id":"A-10482","contents":[` +
	`{"id":"SKU-1","quantity":2,"price":49.95},{"id":"SKU-2","quantity":1,"price":30}]}`

const purchaseContext = `,"context":{"page_url":"https://shop.example.com/checkout/done?utm_source=google&utm_medium=cpc",` +
	`"ip":"203.0.113.7","user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"}`

// accept takes a body the whole way.
func accept(t testing.TB, body string, aliases map[string]string) event.Event {
	t.Helper()
	sent, err := decode([]byte(body))
	if err != nil {
		t.Fatalf("Decode(%s): %v", body, err)
	}
	valid, errs := sent.Validate(now, aliases)
	if len(errs) > 0 {
		t.Fatalf("Validate(%s): %v", body, errs)
	}
	return envelope.Pseudonymise(valid, acceptance)
}

// decode reads one envelope.
func decode(body []byte) (*envelope.Envelope, error) {
	sent := new(envelope.Envelope)
	if err := sent.Decode(body); err != nil {
		return nil, err
	}
	return sent, nil
}
