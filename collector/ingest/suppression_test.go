package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/stream"
)

// suppression has identifiers whose events are to be nobody's.
type suppression []event.Identifier

func (s suppression) Suppresses() bool { return len(s) > 0 }

func (s suppression) Suppressed(ids event.Identifiers) bool {
	return slices.ContainsFunc(ids.List, func(id event.Identifier) bool { return slices.Contains(s, id) })
}

// suppressing suppresses a subject, an object's members.
func suppressing(t testing.TB, subject string) suppression {
	t.Helper()
	ids, errs := envelope.Subject("{"+subject+"}", "default/shop")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return ids
}

// janes is an event with all that there may be of a person.
const janes = `{"event": "purchase", "event_id": "purchase-4711", "client_id": "jane-client", "user_id": "jane-user", "session_id": "jane-session",
	"user": {"email": "Jane@Example.com", "phone": "+41791234567", "first_name": "Jane", "city": "Bern", "country": "CH"},
	"data": {"value": 49.9, "currency": "EUR", "order_id": "jane-order", "coupon": "jane-coupon", "search_term": "jane-search", "content_id": "sku",
		"contents": [{"id": "sku-1", "quantity": 1, "price": 49.9, "engraving": "jane-engraving"}]},
	"properties": {"plan": "jane-plan"},
	"consent": {"ad_storage": "granted", "tcf": "jane-tcf"},
	"context": {"ip": "203.0.113.7", "user_agent": "jane-agent", "page_url": "https://shop.example/jane-account?utm_source=mail&utm_content=jane-mail&gclid=jane-click",
		"referrer": "https://mail.example/jane-inbox", "page_title": "jane-title", "language": "de-CH", "click_ids": {"fbp": "jane-fbp"}}}`

func TestAnEventOfASuppressedPersonIsStoredAsANumber(t *testing.T) {
	for sentence, subject := range map[string]string{
		"by the e-mail address": `"email": "jane@example.com"`,
		"by the phone number":   `"phone": "+41791234567"`,
		"by the client id":      `"client_id": "jane-client"`,
		"by the user id":        `"user_id": "jane-user"`,
	} {
		for _, joined := range []bool{false, true} {
			t.Run(fmt.Sprint(sentence, ", identities joined: ", joined), func(t *testing.T) {
				tenant, kept := inMemory()
				tenant.Property.JoinIdentities = joined
				tenant.Suppression = suppressing(t, subject)
				s := newSite(t, tenant)
				if got := s.send(t, request{body: []byte(janes)}); got.status != 202 || got.body != accepted("purchase-4711") {
					t.Fatalf("answered %d %s", got.status, got.body)
				}
				value, one := event.Amount(499_000), event.Amount(10_000)
				stored := kept.stored(t)
				id := uuid.MustParse(stored[0].ID)
				want := event.Event{
					ID: id.String(), DeliveryID: id, Name: "purchase", Value: &value, Currency: "EUR", ContentID: "sku",
					Contents: []event.Item{{ID: "sku-1", Quantity: &one, Price: &value}},
					Context:  event.Context{PageURL: "https://shop.example/", Referrer: "https://mail.example/", UTMSource: "mail"},
				}
				if diff := cmp.Diff([]event.Event{want}, stored); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
				if entry := string(kept.additions[0].Entry); strings.Contains(strings.ToLower(entry), "jane") || kept.additions[0].Identifiers != nil {
					t.Errorf("the entry, or who is joined, tells of the person: %q, %q", entry, kept.additions[0].Identifiers)
				}
			})
		}
	}
}

func TestOthersAreStoredAsEver(t *testing.T) {
	tenant, kept := inMemory()
	s := newSite(t, tenant)
	s.send(t, request{body: []byte(janes)})
	tenant, suppressed := inMemory()
	tenant.Suppression = suppressing(t, `"client_id": "joe-client"`)
	other := newSite(t, tenant)
	other.send(t, request{body: []byte(janes)})
	if diff := cmp.Diff(kept.additions, suppressed.additions); diff != "" {
		t.Errorf("stored without and with a suppression (-without +with):\n%s", diff)
	}
}

func TestASuppressedOrderCountsOnce(t *testing.T) {
	client := newRedis(t)
	tenant, events := inRedis(t, client, property("shop"))
	tenant.Suppression = suppressing(t, `"email": "jane@example.com"`)
	s := newSite(t, tenant)
	for i, want := range []string{accepted("purchase-4711"), duplicate("purchase-4711"), duplicate("purchase-4711")} {
		body := janes
		if i == 2 {
			body = strings.Replace(janes, "purchase-4711", "the-page-s", 1)
		}
		if got := s.send(t, request{body: []byte(body)}); got.body != want {
			t.Errorf("answer %d: %s, want %s", i, got.body, want)
		}
	}
	if stored, err := events.ReadEvents(t.Context(), 0, 10, 0); err != nil || len(stored) != 1 {
		t.Errorf("%d events are stored, error %v", len(stored), err)
	}
}

func TestEventsOfSuppressedPersonsAreRefusedInEachProtocolsForm(t *testing.T) {
	const refused = `{"message":"The event is of a person who was erased, and the property refuses such events.","errors":{"event":["The event is of a person who was erased, and the property refuses such events."]}}`
	segmentRefused := `{"success":false,"code":"invalid_request",` + refused[1:]
	message := `{"type": "track", "event": "Signed Up", "messageId": "m-1", "userId": "jane-user", "context": {"traits": {"email": "jane@example.com"}}`
	for sentence, test := range map[string]struct {
		request request
		status  int
		want    string
		// listed are the rejections: endpoint, name, id, answer.
		listed []string
		stored int
	}{
		"an event": {request{body: []byte(janes)}, 422, refused, []string{`collect "" "" ` + refused}, 0},
		"an event with a UUID, which is not listed": {
			request{body: []byte(strings.Replace(janes, "purchase-4711", "0193485a-7b1c-7d2e-9f3a-4b5c6d7e8f90", 1))}, 422, refused, []string{`collect "" "" ` + refused}, 0,
		},
		"one of a batch": {
			request{suffix: "/batch", body: []byte(`{"events": [{"event": "lead", "event_id": "joe"}, ` + janes + `]}`)}, 202,
			`{"ok":true,"accepted":1,"duplicates":0,"rejected":1,"results":[{"ok":true,"event_id":"joe"},{"ok":false,` + refused[1:] + `]}`,
			[]string{`batch "" "" ` + refused}, 1,
		},
		"a call of Segment's API": {
			request{path: "/v1/track", body: []byte(message + `, "writeKey": "` + shopKey + `"}`)}, 400, segmentRefused, []string{`segment "" "" ` + refused}, 0,
		},
		"one of a batch of Segment's API": {
			request{path: "/v1/batch", body: []byte(`{"writeKey": "` + shopKey + `", "batch": [` + message + `}]}`)}, 200, `{"success": true}`,
			[]string{`segment "" "" ` + strings.NewReplacer(`The event`, `The batch[0].event`, `"event"`, `"batch[0].event"`).Replace(refused)}, 0,
		},
		"a shop's order": {
			signed("shopify", "orders/paid", fixture(t, "shopify-order"), signingSecret), 200, `{"ok":true,"rejected":1}`, []string{`sources/shopify "" "" ` + refused}, 0,
		},
		"not an event of somebody else": {request{body: []byte(`{"event": "lead", "event_id": "joe", "client_id": "joe"}`)}, 202, accepted("joe"), nil, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			tenant, kept := inMemory()
			tenant = withSources(tenant)
			tenant.Property.Suppression = config.Refuse
			tenant.Suppression = append(suppressing(t, `"email": "jane@example.com"`), suppressing(t, `"email": "jane.doe@example.com"`)...)
			list := new(refusals)
			tenant.Rejections = list
			s := newSite(t, tenant)
			if got := s.send(t, test.request); got.status != test.status || got.body != test.want {
				t.Errorf("got  %d %s\nwant %d %s", got.status, got.body, test.status, test.want)
			}
			var listed []string
			for _, one := range list.list {
				listed = append(listed, fmt.Sprintf("%s %q %q %s", one.Endpoint, one.Event, one.EventID, one.Answer))
			}
			if diff := cmp.Diff(test.listed, listed); diff != "" {
				t.Errorf("rejections (-want +got):\n%s", diff)
			}
			if stored := kept.stored(t); len(stored) != test.stored {
				t.Errorf("stored %+v", stored)
			}
			if text := strings.ToLower(s.log.String()); strings.Contains(text, "jane") {
				t.Errorf("the log tells of the person: %s", text)
			}
		})
	}
}

// eraser takes requests for erasures.
type eraser struct {
	requests []stream.ErasureRequest
	fail     error
	// until is how long it was to wait.
	until time.Duration
}

func (e *eraser) Erase(ctx context.Context, r stream.ErasureRequest) (stream.ErasureState, error) {
	deadline, _ := ctx.Deadline()
	e.requests, e.until = append(e.requests, r), time.Until(deadline)
	return stream.ErasureState{ID: r.ID, Ledgered: noon}, e.fail
}

func TestAShopsRequestToEraseACustomerIsCarriedOut(t *testing.T) {
	redact := func(customer string) request {
		r := signed("shopify", "customers/redact", []byte(`{"shop_id": 1, "customer": `+customer+`, "orders_to_redact": [299938]}`), signingSecret)
		r.header["X-Shopify-Webhook-Id"] = "b54557e4"
		return r
	}
	const askedOnly = `{"message":"The shop asks by customers/redact that a person's data be handed out or erased. Weir does not do that by itself: see to it, at the platforms too."}`
	for sentence, test := range map[string]struct {
		customer string
		// subjects are whom the request names, as members of an object each.
		subjects []string
	}{
		"all that the mapping names": {`{"id": 191167, "email": "Jane@Example.com", "phone": "0041 79 123 45 67"}`, []string{`"email": "jane@example.com"`, `"phone": "+41791234567"`, `"user_id": "191167"`}},
		"without what is empty, and without what no event could have": {
			`{"id": 191167, "email": "jane at example", "phone": "079 123 45 67"}`, []string{`"user_id": "191167"`},
		},
		"an address alone":                {`{"id": 0, "email": "jane@example.com", "phone": null}`, []string{`"email": "jane@example.com"`}},
		"nobody, which the owner is told": {`{}`, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			tenant, _ := inMemory()
			tenant = withSources(tenant)
			list, asked := new(refusals), new(eraser)
			tenant.Rejections, tenant.Eraser = list, asked
			s := newSite(t, tenant)
			if got := s.send(t, redact(test.customer)); got.status != 200 || got.body != `{"ok":true}` {
				t.Errorf("answered %d %s", got.status, got.body)
			}
			if len(test.subjects) == 0 {
				if len(asked.requests) > 0 || len(list.list) != 1 || string(list.list[0].Answer) != askedOnly {
					t.Errorf("asked %v, told %v", asked.requests, list.list)
				}
				return
			}
			var want []event.Identifier
			for _, subject := range test.subjects {
				want = append(want, suppressing(t, subject)...)
			}
			got := asked.requests[0]
			if diff := cmp.Diff(want, got.Identifiers); diff != "" || got.Origin != "sources/shopify" || got.Suppress || got.Linked {
				t.Errorf("asked by %s, identifiers (-want +got):\n%s", got.Origin, diff)
			}
			if told := string(list.list[0].Answer); !strings.Contains(told, got.ID) || strings.Contains(strings.ToLower(told), "jane") {
				t.Errorf("told %s", told)
			}
			s.send(t, redact(test.customer))
			if again := asked.requests[1]; again.ID != got.ID {
				t.Errorf("asked again under %s, want %s", again.ID, got.ID)
			}
		})
	}
}

func TestAShopAsksAgainWhereItsRequestStandsInNoLedger(t *testing.T) {
	for sentence, fail := range map[string]error{"nobody keeps it": stream.ErrNotLedgered, "no Redis": errors.New("redis is away")} {
		t.Run(sentence, func(t *testing.T) {
			tenant, _ := inMemory()
			tenant = withSources(tenant)
			tenant.Property.Limits.EventsPerSecond = 5 // which bounds what events wait for
			list, asked := new(refusals), &eraser{fail: fail}
			tenant.Rejections, tenant.Eraser, tenant.Limiter = list, asked, new(generous)
			s := newSite(t, tenant)
			got := s.send(t, signed("shopify", "customers/redact", []byte(`{"customer": {"id": 191167, "email": "jane@example.com"}}`), signingSecret))
			if got.status != 503 || got.header.Get("Retry-After") == "" {
				t.Errorf("answered %d %s, want 503 with Retry-After", got.status, got.body)
			}
			if asked.until > 4*time.Second || asked.until < 3*time.Second {
				t.Errorf("it waits for %s, want less than a shop's five seconds and more than an operator's look", asked.until)
			}
			if len(list.list) > 0 || strings.Contains(s.log.String(), "jane") {
				t.Errorf("told %v, log %s", list.list, s.log)
			}
		})
	}
}
