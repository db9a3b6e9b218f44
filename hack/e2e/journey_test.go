package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// journey is what three visitors do in the shop, in order; fromInside says which events come from a pod of the namespace through the
// Service, where there is one, rather than from outside.
var journey = []struct {
	fromInside bool
	body       string
}{
	{body: `{"event": "pageview", "event_id": "j1", "client_id": "ann", "context": {"utm_source": "google", "utm_medium": "cpc", "utm_campaign": "autumn"}}`},
	{fromInside: true, body: `{"event": "add_to_cart", "event_id": "j2", "client_id": "ann", "data": {"content_id": "lamp"}}`},
	{body: `{"event": "purchase", "event_id": "j3", "client_id": "ann", "user": {"email": " Ann@Example.com ", "phone": "+4915112345678", "first_name": "Ann"}, "data": {"value": 100.00, "currency": "EUR", "order_id": "A-1"}}`},
	{body: `{"event": "pageview", "event_id": "j4", "client_id": "bob", "context": {"utm_source": "newsletter", "utm_medium": "email"}}`},
	{fromInside: true, body: `{"event": "add_to_cart", "event_id": "j5", "client_id": "bob", "data": {"content_id": "desk"}}`},
	{body: `{"event": "pageview", "event_id": "j6", "client_id": "cat"}`},
	{fromInside: true, body: `{"event": "purchase", "event_id": "j7", "client_id": "cat", "data": {"value": "50.50", "currency": "eur", "order_id": "A-2"}}`},
	{body: `{"event": "refund", "event_id": "j8", "client_id": "ann", "data": {"value": 20.25, "currency": "EUR", "order_id": "A-1"}}`},
}

func collects(t *testing.T, s *suite) {
	shop := s.tenantOf(t, "shop")
	key := shop.key(t, "first")
	for _, event := range journey {
		want := struct{ ok, id any }{true, nil}
		var sent struct {
			EventID string `json:"event_id"`
		}
		if err := json.Unmarshal([]byte(event.body), &sent); err != nil {
			t.Fatal(err)
		}
		want.id = sent.EventID
		begin := time.Now()
		status, body := s.collect(t, shop, key, event.body, event.fromInside)
		var answer map[string]any
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusAccepted || answer["ok"] != want.ok || answer["event_id"] != want.id {
			t.Fatalf("event %s: %d %s, want 202 with ok and its id", sent.EventID, status, body)
		}
		if event.body == journey[0].body {
			s.figure(t, "the first event's 202", "%.0f ms", 1000*time.Since(begin).Seconds())
		}
	}
	for _, inside := range []bool{false, true} {
		status, body := s.collect(t, shop, key, journey[2].body, inside)
		if want := `"duplicate":true`; status != http.StatusAccepted || !contains(body, want) {
			t.Errorf("an order that is sent again, from inside %t: %d %s, want 202 and %s", inside, status, body, want)
		}
		status, body = s.collect(t, shop, key, `{"event": "purchase", "value": 1, "currency": "EUR"}`, inside)
		if want := `{"message":"The data.value field is required. (and 1 more error)","errors":{"data.currency":["The data.currency field is required."],"data.value":["The data.value field is required."]}}`; status != http.StatusUnprocessableEntity || !sameJSON(body, want) {
			t.Errorf("a purchase without money, from inside %t: %d %s, want 422 %s", inside, status, body, want)
		}
		status, body = s.collect(t, shop, "wk_nobody", journey[0].body, inside)
		if want := `{"message":"Invalid API key."}`; status != http.StatusUnauthorized || !sameJSON(body, want) {
			t.Errorf("an unknown key, from inside %t: %d %s, want 401 %s", inside, status, body, want)
		}
	}
}

// collect sends an event from outside or, where the cluster is the node, from a pod through the Service.
func (s *suite) collect(t *testing.T, to *tenant, key, body string, inside bool) (int, string) {
	t.Helper()
	if !inside || !s.node {
		return to.send(t, key, body)
	}
	status, answer, failure := s.peerIn(t, to.namespace).request(t, http.MethodPost, to.service("collector")+"/collect/"+key,
		map[string]string{"Content-Type": "application/json"}, body)
	if failure != "" {
		t.Fatalf("through the Service: %s", failure)
	}
	return status, answer
}

// service is the URL of a role's Service.
func (it *tenant) service(role string) string {
	return fmt.Sprintf("http://%s-%s.%s.svc.cluster.local", it.name, role, it.namespace)
}

func delivers(t *testing.T, s *suite) {
	peer := s.peerIn(t, s.namespaceOf("shop"))
	var got []received
	took := within(t, 30*time.Second, "the webhook has all events", func() error {
		if got = peer.received(t); len(got) < len(journey) {
			return fmt.Errorf("it has %d of %d", len(got), len(journey))
		}
		return nil
	})
	s.figure(t, "webhook deliveries, seen after", "%.1f s", took.Seconds())
	verifier, err := standardwebhooks.NewWebhook(signingSecret)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, one := range got {
		if err := verifier.Verify([]byte(one.Body), one.Header); err != nil {
			t.Errorf("the signature of %s: %v", one.Body, err)
		}
		var event struct {
			Type string `json:"type"`
			Data struct {
				EventID string         `json:"event_id"`
				Value   *json.Number   `json:"value"`
				User    map[string]any `json:"user"`
			} `json:"data"`
		}
		if err := json.Unmarshal([]byte(one.Body), &event); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, event.Data.EventID)
		for _, raw := range []string{"xample.com", "15112345678", "Ann"} {
			if contains(one.Body, raw) {
				t.Errorf("event %s has %q in it, which should have been hashed", event.Data.EventID, raw)
			}
		}
		if event.Data.EventID == "j3" {
			maps.DeleteFunc(event.Data.User, func(_ string, hash any) bool { return hash == nil })
			email, phone := hashed("ann@example.com"), hashed("+4915112345678")
			want := map[string]any{
				"email": email, "emails": []any{email}, "phone": phone, "phones": []any{phone}, "first_name": hashed("ann"),
			}
			if diff := cmp.Diff(want, event.Data.User); diff != "" {
				t.Errorf("the buyer's hashes (-want +got):\n%s", diff)
			}
			if event.Type != "purchase" || event.Data.Value == nil || event.Data.Value.String() != "100" {
				t.Errorf("the purchase arrived as %s", one.Body)
			}
		}
	}
	slices.Sort(ids)
	if diff := cmp.Diff([]string{"j1", "j2", "j3", "j4", "j5", "j6", "j7", "j8"}, ids); diff != "" {
		t.Errorf("the events that the webhook got, each once (-want +got):\n%s", diff)
	}
}

func hashed(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// answers are what the six reads say about the journey; of each, the members that do not depend on the day.
var answers = map[string]struct {
	path string
	want string
	pick func(map[string]any) any
}{
	"summary": {
		path: "analytics/summary",
		want: `{"events": 8, "purchases": 2, "add_to_carts": 2, "pageviews": 3, "revenue": 130.25, "unique_visitors": 3, "gross_revenue": 150.5, "refunds": 1,
			"refunded": 20.25, "average_order_value": 75.25, "conversion_rate": 0.6667, "revenue_by_currency": {"EUR": 130.25}}`,
		pick: func(answer map[string]any) any { return member(answer, "data", "kpis") },
	},
	"daily": { // the sums of the days, for midnight may fall into the journey
		path: "analytics/daily",
		want: `{"days": 30, "purchases": 2, "add_to_carts": 2, "pageviews": 3, "revenue": 130.25, "events": 8, "refunds": 1}`,
		pick: func(answer map[string]any) any {
			days, _ := member(answer, "data").([]any)
			sums := map[string]any{"days": float64(len(days))}
			for _, name := range []string{"purchases", "add_to_carts", "pageviews", "revenue", "events", "refunds"} {
				sum := 0.0
				for _, day := range days {
					number, _ := member(day, name).(float64)
					sum += number
				}
				sums[name] = sum
			}
			return sums
		},
	},
	"statistics": {
		path: "events/stats",
		want: `[{"event": "pageview", "count": 3, "unique_visitors": 3, "value": 0, "share": 0.375},
			{"event": "add_to_cart", "count": 2, "unique_visitors": 2, "value": 0, "share": 0.25},
			{"event": "purchase", "count": 2, "unique_visitors": 2, "value": 150.5, "share": 0.25},
			{"event": "refund", "count": 1, "unique_visitors": 1, "value": 20.25, "share": 0.125}]`,
		pick: func(answer map[string]any) any {
			return members(member(answer, "data"), "event", "count", "unique_visitors", "value", "share")
		},
	},
	"funnel": {
		path: "analytics/funnel?steps[]=pageview&steps[]=add_to_cart&steps[]=purchase",
		want: `[{"event": "pageview", "visitors": 3, "drop_off": 0, "conversion_rate": 1},
			{"event": "add_to_cart", "visitors": 2, "drop_off": 1, "conversion_rate": 0.6667},
			{"event": "purchase", "visitors": 1, "drop_off": 1, "conversion_rate": 0.3333}]`,
		pick: func(answer map[string]any) any {
			return members(member(answer, "data", "steps"), "event", "visitors", "drop_off", "conversion_rate")
		},
	},
	"attribution": {
		path: "analytics/attribution?model=first_touch",
		want: `[{"channel": "Paid Search", "conversions": 1, "revenue": 100, "share": 0.5}, {"channel": "Direct", "conversions": 1, "revenue": 50.5, "share": 0.5}]`,
		pick: func(answer map[string]any) any { return member(answer, "data", "results") },
	},
}

func reads(t *testing.T, s *suite) {
	shop := s.tenantOf(t, "shop")
	within(t, 30*time.Second, "the listing has every event, delivered everywhere", func() error {
		records, err := shop.list(t, "")
		if err != nil {
			return err
		}
		return wholeListing(records, len(shop.get(t).Spec.Platforms))
	})
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		question := answers[name]
		t.Run(name, func(t *testing.T) {
			var want any
			if err := json.Unmarshal([]byte(question.want), &want); err != nil {
				t.Fatal(err)
			}
			var answer map[string]any
			begin := time.Now()
			if err := shop.ask(t, question.path, &answer); err != nil {
				t.Fatal(err)
			}
			s.figure(t, question.path, "%.0f ms", 1000*time.Since(begin).Seconds())
			if diff := cmp.Diff(want, question.pick(answer)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", question.path, diff)
			}
		})
	}
	status, body, err := shop.request(t, "wt_nobody", "analytics/summary")
	if want := `{"message":"Unauthenticated."}`; err != nil || status != http.StatusUnauthorized || !sameJSON(body, want) {
		t.Errorf("an unknown token: %d %s %v, want 401 %s", status, body, err, want)
	}
}

// wholeListing says what is missing of the journey in the listing: newest first, each event delivered to each platform.
func wholeListing(records []record, platforms int) error {
	if len(records) != len(journey) {
		return fmt.Errorf("it has %d events of %d", len(records), len(journey))
	}
	for i, one := range records {
		if want := fmt.Sprintf("j%d", len(journey)-i); one.EventID != want {
			return fmt.Errorf("event %d is %s, want %s", i, one.EventID, want)
		}
		if err := one.delivered(platforms); err != nil {
			return err
		}
	}
	if last := records[0]; last.Event != "refund" || last.Value != "20.25" || last.Currency != "EUR" {
		return errors.New("the refund of 20.25 EUR is listed as " + last.Event + " " + last.Value.String() + " " + last.Currency)
	}
	return nil
}
