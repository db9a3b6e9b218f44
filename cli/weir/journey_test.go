package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The test person. None of this may be found anywhere but in the request.
const (
	personEmail = "Jane.Roe+weir@Example.com"
	personPhone = "+4915112345678"
	personName  = "Janeroesa"
)

const personsPurchase = `{"event": "purchase", "event_id": "order-1001", "client_id": "c1",
	"user": {"email": " ` + personEmail + ` ", "phone": "` + personPhone + `", "first_name": "` + personName + `"},
	"data": {"value": "49.90", "currency": "eur", "order_id": "1001", "contents": [
		{"id": "sku-1", "quantity": 2, "price": 20, "note": "for ` + personName + `"},
		{"id": "sku-2", "quantity": 1, "price": 9.9, "reply_to": "` + personEmail + `"}]},
	"context": {"page_url": "https://shop.example.com/thanks?mail=Jane.Roe%2Bweir%40example.com&utm_source=newsletter&utm_medium=email",
		"referrer": "https://mail.example.com/?u=jane.roe%2Bweir%40example.com"}}`

func TestFromARequestToNumbers(t *testing.T) {
	receiver := newWebhookReceiver(t)
	state := filepath.Join(t.TempDir(), "state")
	file := shopFile(t, receiver.URL+"/hook")
	weir := startWeirDev(t, state, "-f", file, "--egress-allow-cidr", "127.0.0.0/8")

	for _, body := range []string{
		`{"event": "page_view", "client_id": "c1", "context": {"utm_source": "google", "utm_medium": "cpc"}}`,
		`{"event": "add_to_cart", "client_id": "c1", "data": {"value": 49.9, "currency": "EUR"}}`,
		personsPurchase,
		`{"event": "pageview", "client_id": "c2"}`,
		`{"event": "refund", "client_id": "c1", "data": {"value": 9.95, "currency": "EUR", "order_id": "1001"}}`,
		`{"event": "purchase", "client_id": "c3", "data": {"value": 20, "currency": "USD", "order_id": "1002"}}`,
	} {
		if got := weir.collect(body); got.status != http.StatusAccepted {
			t.Fatalf("collect %s: %d %s", body, got.status, got.body)
		}
	}

	t.Run("the listing shows every event with a delivery record per platform", func(t *testing.T) {
		want := map[string]string{"console": "delivered", "crm": "delivered"}
		await(t, "all deliveries are made", func() bool {
			records := weir.listing()
			for _, r := range records {
				if !cmp.Equal(r.statuses(), want) {
					return false
				}
			}
			return len(records) == 6
		})
		purchase := weir.listing()[3]
		if purchase.EventID != "order-1001" || purchase.Value != "49.9" || purchase.Currency != "EUR" {
			t.Errorf("the purchase is listed as %+v", purchase)
		}
		for _, d := range purchase.Delivery {
			if d.LatencyMS == nil {
				t.Errorf("delivery to %s has no latency", d.Platform)
			}
		}
	})

	t.Run("the webhook got the event hashed and signed", func(t *testing.T) {
		var body string
		for _, b := range receiver.received() {
			if strings.Contains(b, "order-1001") {
				body = b
			}
		}
		var hook struct {
			Type string
			Data struct {
				Value    json.Number
				Contents []struct{ ID string }
				User     map[string]any
			}
		}
		if err := json.Unmarshal([]byte(body), &hook); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		email, phone := sha256Hex("jane.roe+weir@example.com"), sha256Hex("+4915112345678")
		want := map[string]any{
			"email": email, "emails": []any{email}, "phone": phone, "phones": []any{phone}, "first_name": sha256Hex("janeroesa"),
		}
		maps.DeleteFunc(hook.Data.User, func(_ string, hash any) bool { return hash == nil })
		if diff := cmp.Diff(want, hook.Data.User); diff != "" {
			t.Errorf("user (-want +got):\n%s", diff)
		}
		if hook.Type != "purchase" || hook.Data.Value != "49.9" || len(hook.Data.Contents) != 2 {
			t.Errorf("webhook body: %s", body)
		}
	})

	for path, want := range map[string]string{
		"/analytics/summary": `"kpis":{"events":6,"unique_visitors":3,"purchases":2,"add_to_carts":1,"pageviews":2,"refunds":1,"revenue":39.95,`,
		"/analytics/funnel?steps[]=page_view&steps[]=add_to_cart&steps[]=purchase": `"conversion_rate":0.5}`,
		"/analytics/attribution?model=linear":                                      `{"channel":"Email","conversions":0.5,"revenue":24.95,"share":0.25}`,
		"/analytics/attribution?model=first_touch":                                 `{"channel":"Paid Search","conversions":1,"revenue":49.9,"share":0.5}`,
		"/events/stats?period=24h":                                                 `{"event":"pageview","count":2,"unique_visitors":2,"value":0,`,
		"/analytics/daily":                                                         `"purchases":2,"add_to_carts":1,"pageviews":2,"revenue":39.95,"unique_visitors":3,"events":6,"refunds":1,"revenue_by_currency":{"EUR":39.95,"USD":20}}]`,
	} {
		t.Run("numbers: "+path, func(t *testing.T) {
			if got := weir.read(path); got.status != http.StatusOK || !strings.Contains(got.body, want) {
				t.Errorf("got %d %s\nwant in it %s", got.status, got.body, want)
			}
		})
	}

	t.Run("after a drain and a new start the keys, events and deduplication keys are the same", func(t *testing.T) {
		before := weir.listing()
		if code := weir.stop(); code != 0 {
			t.Fatalf("exit code %d:\n%s", code, weir.stderr.String())
		}
		again := startWeirDev(t, state, "-f", file, "--egress-allow-cidr", "127.0.0.0/8")
		if diff := cmp.Diff([]any{weir.APIKeys, weir.AccessTokens}, []any{again.APIKeys, again.AccessTokens}); diff != "" {
			t.Errorf("credentials (-before +after):\n%s", diff)
		}
		await(t, "the view has replayed", func() bool { return again.read("/events").status == http.StatusOK })
		if diff := cmp.Diff(before, again.listing()); diff != "" {
			t.Errorf("listing (-before +after):\n%s", diff)
		}
		got := again.collect(`{"event": "purchase", "data": {"value": 1, "currency": "EUR", "order_id": "1001"}}`)
		if want := `{"ok":true,"event_id":"order-1001","duplicate":true}`; got.body != want {
			t.Errorf("the repeated order got %s, want %s", got.body, want)
		}
		if n := len(receiver.received()); n != 6 {
			t.Errorf("the webhook got %d requests, want 6", n)
		}
		again.stop()
		for name, text := range map[string]string{
			"the first run's log": weir.stderr.String(), "the second run's log": again.stderr.String(),
			"the first run's output": weir.stdout.String(), "the webhook's requests": strings.Join(receiver.received(), "\n"),
		} {
			assertNothingPersonal(t, name, text)
		}
		assertNothingPersonalBelow(t, state)
	})
}

// personal finds the test person in any of the forms that a careless program would leave behind.
var personal = regexp.MustCompile(`(?i)jane\.?roe|roe(\+|%2b)weir|(\+|%2b)?4915112345678`)

func assertNothingPersonal(t *testing.T, where, text string) {
	t.Helper()
	// The sample request that is printed for pasting is about another person.
	if found := personal.FindString(text); found != "" {
		t.Errorf("%s holds %q", where, found)
	}
}

// assertNothingPersonalBelow reads every file of the state directory, Redis's append-only file among them.
func assertNothingPersonalBelow(t *testing.T, directory string) {
	t.Helper()
	sawEvent := false
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sawEvent = sawEvent || strings.Contains(string(text), "order-1001")
		assertNothingPersonal(t, path, string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !sawEvent {
		t.Errorf("no file below %s holds the event at all: the test looks in the wrong place", directory)
	}
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
