package wire_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/wire"
)

// now is when the tests' envelopes arrive.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var deliveryID = uuid.MustParse("019aa0b1-7b1e-7cc3-98c4-dc0c0c07398f")

// acceptance is that of a property with a Meta and a Webhook platform.
var acceptance = envelope.Acceptance{
	DeliveryID: deliveryID,
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
func accept(t testing.TB, body string) event.Event {
	t.Helper()
	var sent envelope.Envelope
	if err := sent.Decode([]byte(body)); err != nil {
		t.Fatalf("Decode(%s): %v", body, err)
	}
	valid, errs := sent.Validate(now, nil)
	if len(errs) > 0 {
		t.Fatalf("Validate(%s): %v", body, errs)
	}
	return envelope.Pseudonymise(valid, acceptance)
}

func TestAStoredPurchaseIsSmall(t *testing.T) {
	// What Redis adds to an entry of one field in a stream.
	const redisOverhead = 25
	tests := map[string]struct {
		body     string
		identity bool
		want     int
	}{
		"without a context":                      {purchase + "}", false, 275},
		"with a context":                         {purchase + purchaseContext + "}", false, 490},
		"without a context, the identity sealed": {purchase + "}", true, 310},
		"with a context, the identity sealed":    {purchase + purchaseContext + "}", true, 525},
	}
	keys := keysOf(t, 'd', 'i')
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := accept(t, tt.body)
			parts := wire.Split(&e, tt.identity)
			entry, _ := parts.Seal(nil, keys)
			got := len(entry) + redisOverhead
			t.Logf("a body of %d bytes takes %d bytes in the stream", len(tt.body), got)
			if got > tt.want {
				t.Errorf("a body of %d bytes takes %d bytes in the stream, want at most %d", len(tt.body), got, tt.want)
			}
		})
	}
}

func BenchmarkAcceptAndEncode(b *testing.B) {
	body := []byte(purchase + purchaseContext + "}")
	for name, identity := range map[string]bool{"device sealed": false, "device and identity sealed": true} {
		b.Run(name, func(b *testing.B) {
			entry, keys := make([]byte, 0, 1024), keysOf(b, 'd', 'i')
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				sent := new(envelope.Envelope)
				if err := sent.Decode(body); err != nil {
					b.Fatal(err)
				}
				valid, errs := sent.Validate(now, nil)
				if len(errs) > 0 {
					b.Fatal(errs)
				}
				accepted := envelope.Pseudonymise(valid, acceptance)
				parts := wire.Split(&accepted, identity)
				entry, _ = parts.Seal(entry[:0], keys)
			}
		})
	}
}

func BenchmarkOpenAndDecode(b *testing.B) {
	for name, identity := range map[string]bool{"device sealed": false, "device and identity sealed": true} {
		b.Run(name, func(b *testing.B) {
			e, keys := accept(b, purchase+purchaseContext+"}"), keysOf(b, 'd', 'i')
			parts := wire.Split(&e, identity)
			entry, _ := parts.Seal(nil, keys)
			key := held(keys, wire.Device, wire.Identity)
			b.ReportAllocs()
			for b.Loop() {
				opened, err := wire.Open(entry, key)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := wire.Decode(opened); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	e := accept(b, purchase+purchaseContext+"}")
	entry := wire.Encode(&e)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Decode(entry); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	e := accept(b, purchase+purchaseContext+"}")
	entry := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		entry = wire.Append(entry[:0], &e)
	}
}
