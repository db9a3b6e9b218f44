package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// purchaseWith returns a valid purchase with more members in its data.
func purchaseWith(members string) string {
	return `{"event": "purchase", "data": {"value": 10, "currency": "EUR"` + members + `}}`
}

func fieldError(field, message string) string {
	return fmt.Sprintf(`{"message":%q,"errors":{%q:[%q]}}`, message, field, message)
}

const (
	anyEventID = `{"ok":true,"event_id":"UUID"}`
	noMoney    = `{"message":"The data.value field is required. (and 1 more error)","errors":` +
		`{"data.value":["The data.value field is required."],"data.currency":["The data.currency field is required."]}}`
)

var uuidV7 = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// TestCollectSpec walks the contract of the collection endpoint against the whole program.
func TestCollectSpec(t *testing.T) {
	receiver := newWebhookReceiver(t)
	weir := startWeirDev(t, filepath.Join(t.TempDir(), "state"), "-f", shopFile(t, receiver.URL), "--egress-allow-cidr", "127.0.0.0/8")

	long := strings.Repeat("x", 256)
	for _, test := range []struct {
		name string
		body string
		// want is the status and the body, in which UUID stands for any UUIDv7.
		want string
	}{
		// Accepted.
		{"an event with a name alone is accepted and gets a UUIDv7", `{"event": "page_view"}`, "202 " + anyEventID},
		{"the caller's event_id is answered verbatim", `{"event": "pageview", "event_id": "Ab/1 ü"}`, `202 {"ok":true,"event_id":"Ab/1 ü"}`},
		{"the same event_id again is a duplicate, whatever its name", `{"event": "search", "event_id": "Ab/1 ü"}`, `202 {"ok":true,"event_id":"Ab/1 ü","duplicate":true}`},
		{"a purchase with value and currency is accepted", `{"event": "purchase", "event_id": "p-1", "data": {"value": 12.5, "currency": "EUR", "order_id": "o-1"}}`, `202 {"ok":true,"event_id":"p-1"}`},
		{"a purchase with the same order_id gets the first one's event_id", `{"event": "purchase", "event_id": "p-2", "data": {"value": 99, "currency": "USD", "order_id": "o-1"}}`, `202 {"ok":true,"event_id":"p-1","duplicate":true}`},
		{"where both ids match different events, event_id's wins", `{"event": "purchase", "event_id": "Ab/1 ü", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, `202 {"ok":true,"event_id":"Ab/1 ü","duplicate":true}`},
		{"a refund with the order_id of a purchase is no duplicate", `{"event": "refund", "data": {"value": 12.5, "currency": "EUR", "order_id": "o-1"}}`, "202 " + anyEventID},
		{"unknown members are ignored", `{"event": "lead", "foo": {"bar": [1]}, "data": {"baz": null}}`, "202 " + anyEventID},
		{"null and empty strings count as absent", `{"event": "lead", "event_id": "", "client_id": null, "user": null, "data": {"order_id": ""}}`, "202 " + anyEventID},
		{"numbers are taken for order_id, content_id and client_id", `{"event": "view_content", "client_id": 12.50, "data": {"order_id": 7, "content_id": 8}}`, "202 " + anyEventID},
		{"a value may be a decimal string", `{"event": "purchase", "data": {"value": "12.50", "currency": "eur"}}`, "202 " + anyEventID},
		{"a hashed e-mail and phone are taken as they are", `{"event": "lead", "user": {"email": "` + strings.Repeat("aB", 32) + `", "phone": "` + strings.Repeat("0f", 32) + `"}}`, "202 " + anyEventID},
		{"the flat form is read where data lacks a field", `{"event": "add_to_cart", "value": 3, "currency": "EUR", "content_id": "c"}`, "202 " + anyEventID},
		{"top-level money beside complete data is ignored", `{"event": "purchase", "value": "junk", "currency": 5, "data": {"value": 1, "currency": "EUR"}}`, "202 " + anyEventID},

		// Required.
		{"the event is required", `{}`, "422 " + fieldError("event", "The event field is required.")},
		{"an empty event is a missing one", `{"event": "  "}`, "422 " + fieldError("event", "The event field is required.")},
		{"a purchase without data lacks value and currency", `{"event": "purchase"}`, "422 " + noMoney},
		{"a refund with empty data lacks value and currency", `{"event": "refund", "data": {}}`, "422 " + noMoney},
		{"top-level value and currency do not satisfy a purchase", `{"event": "purchase", "value": 10, "currency": "EUR"}`, "422 " + noMoney},
		{"a purchase without a currency", `{"event": "purchase", "data": {"value": 1}}`, "422 " + fieldError("data.currency", "The data.currency field is required.")},
		{"several errors are counted by messages and keep their order", `{"event": 5, "event_id": {}, "client_id": true, "data": []}`,
			`422 {"message":"The event field must be a string. (and 3 more errors)","errors":{"event":["The event field must be a string."],` +
				`"event_id":["The event_id field must be a string."],"client_id":["The client_id field must be a string."],"data":["The data field must be an object."]}}`},

		// Types and forms.
		{"a name of 101 characters", `{"event": "` + strings.Repeat("é", 101) + `"}`, "422 " + fieldError("event", "The event field must not be greater than 100 characters.")},
		{"a name of 100 characters", `{"event": "` + strings.Repeat("é", 100) + `"}`, "202 " + anyEventID},
		{"an event_id of 256 characters", `{"event": "lead", "event_id": "` + long + `"}`, "422 " + fieldError("event_id", "The event_id field must not be greater than 255 characters.")},
		{"an order_id of 256 characters", purchaseWith(`, "order_id": "` + long + `"`), "422 " + fieldError("data.order_id", "The data.order_id field must not be greater than 255 characters.")},
		{"user that is no object", `{"event": "lead", "user": "jane"}`, "422 " + fieldError("user", "The user field must be an object.")},
		{"a malformed e-mail", `{"event": "lead", "user": {"email": "jane at example"}}`, "422 " + fieldError("user.email", "The user.email field must be a valid email address.")},
		{"a phone that is not E.164", `{"event": "lead", "user": {"phone": "0151 2345678"}}`, "422 " + fieldError("user.phone", "The user.phone field format is invalid.")},
		{"a phone with space around it", `{"event": "lead", "user": {"phone": " +4915112345678"}}`, "422 " + fieldError("user.phone", "The user.phone field format is invalid.")},
		{"a first name that is no string", `{"event": "lead", "user": {"first_name": 5}}`, "422 " + fieldError("user.first_name", "The user.first_name field must be a string.")},
		{"a value with a comma", `{"event": "purchase", "data": {"value": "12,50", "currency": "EUR"}}`, "422 " + fieldError("data.value", "The data.value field must be a number.")},
		{"a value that is a boolean", `{"event": "purchase", "data": {"value": true, "currency": "EUR"}}`, "422 " + fieldError("data.value", "The data.value field must be a number.")},
		{"a hexadecimal value", `{"event": "purchase", "data": {"value": "0x1A", "currency": "EUR"}}`, "422 " + fieldError("data.value", "The data.value field must be a number.")},
		{"a negative value", `{"event": "purchase", "data": {"value": -1, "currency": "EUR"}}`, "422 " + fieldError("data.value", "The data.value field must be at least 0.")},
		{"a value of 16 digits", `{"event": "purchase", "data": {"value": 100000000000, "currency": "EUR"}}`, "422 " + fieldError("data.value", "The data.value field must not be greater than 99999999999.9999.")},
		{"a currency of four letters", `{"event": "purchase", "data": {"value": 1, "currency": "EURO"}}`, "422 " + fieldError("data.currency", "The data.currency field must be 3 characters.")},
		{"a currency that there is not", `{"event": "purchase", "data": {"value": 1, "currency": "ZZZ"}}`, "422 " + fieldError("data.currency", "The selected data.currency is invalid.")},
		{"contents that are no array", purchaseWith(`, "contents": {}`), "422 " + fieldError("data.contents", "The data.contents field must be an array.")},
		{"a price that is no number", purchaseWith(`, "contents": [{"id": "a"}, {"id": "b", "price": "x"}]`), "422 " + fieldError("data.contents.1.price", "The data.contents.1.price field must be a number.")},
		{"consent that is neither granted nor denied", `{"event": "lead", "consent": {"ad_user_data": "yes"}}`, "422 " + fieldError("consent.ad_user_data", "The consent.ad_user_data field must be granted or denied.")},

		// Not an event at all.
		{"no JSON", `{"event": `, `400`},
		{"no object", `["event"]`, `400`},
		{"two members of one name", `{"event": "a", "event": "b"}`, `400`},
		{"a body over 64 KiB", `{"event": "lead", "x": "` + strings.Repeat("x", 64<<10) + `"}`, `413`},
	} {
		t.Run(test.name, func(t *testing.T) {
			reply := weir.collect(test.body)
			got := fmt.Sprintf("%d %s", reply.status, uuidV7.ReplaceAllString(reply.body, "UUID"))
			if len(test.want) == 3 {
				got = got[:3] // what the message says is not settled, only that there is one
				if reply.object(t)["message"] == "" {
					t.Errorf("no message in %s", reply.body)
				}
			}
			if got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestCollectSpecRequests walks what the contract says of requests rather than of envelopes.
func TestCollectSpecRequests(t *testing.T) {
	weir := startWeirDev(t, filepath.Join(t.TempDir(), "state"), "-f", shopFile(t, "http://127.0.0.1:9/"))
	endpoint := weir.CollectURL + "/collect/" + weir.APIKeys[0].Key
	asJSON := map[string]string{"Content-Type": "application/json"}
	const wrongKey = `401 {"message":"Invalid API key."}`

	for _, test := range []struct {
		name, method, address, body string
		header                      map[string]string
		want                        string
	}{
		{"a charset is fine", "POST", endpoint, `{"event": "lead"}`, map[string]string{"Content-Type": "application/json; charset=utf-8"}, "202 " + anyEventID},
		{"another content type", "POST", endpoint, `{"event": "lead"}`, map[string]string{"Content-Type": "text/plain"}, "415"},
		{"no content type", "POST", endpoint, `{"event": "lead"}`, nil, "415"},
		{"an unknown encoding", "POST", endpoint, `{"event": "lead"}`, map[string]string{"Content-Type": "application/json", "Content-Encoding": "br"}, "415"},
		{"a key that there is not", "POST", weir.CollectURL + "/collect/nope", `{"event": "lead"}`, asJSON, wrongKey},
		{"a key that is nearly right", "POST", endpoint[:len(endpoint)-1], `{"event": "lead"}`, asJSON, wrongKey},
		{"a wrong key with a wrong body", "POST", weir.CollectURL + "/collect/nope", `{`, nil, wrongKey},
		{"an access token is no API key", "POST", weir.CollectURL + "/collect/" + weir.AccessTokens[0].Token, `{"event": "lead"}`, asJSON, wrongKey},
		{"GET is not allowed", "GET", endpoint, "", nil, "405"},
		{"another path", "POST", weir.CollectURL + "/collect", `{"event": "lead"}`, asJSON, "404"},
		{"a batch answers for each event", "POST", endpoint + "/batch", `{"events": [{"event": "lead", "event_id": "b1"}, {"event": "lead", "event_id": "b1"}, {}]}`, asJSON,
			`202 {"ok":true,"accepted":1,"duplicates":1,"rejected":1,"results":[{"ok":true,"event_id":"b1"},{"ok":true,"event_id":"b1","duplicate":true},` +
				`{"ok":false,"message":"The event field is required.","errors":{"event":["The event field is required."]}}]}`},
		{"a batch without events", "POST", endpoint + "/batch", `{}`, asJSON, "422 " + fieldError("events", "The events field is required.")},
	} {
		t.Run(test.name, func(t *testing.T) {
			reply := do(t, test.method, test.address, test.body, test.header)
			got := fmt.Sprintf("%d %s", reply.status, uuidV7.ReplaceAllString(reply.body, "UUID"))
			if len(test.want) == 3 {
				got = got[:3]
				if reply.object(t)["message"] == "" {
					t.Errorf("no message in %s", reply.body)
				}
			}
			if got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			if allow := reply.header.Get("Allow"); reply.status == http.StatusMethodNotAllowed && allow != "POST, OPTIONS" {
				t.Errorf("Allow is %q, want POST, OPTIONS", allow)
			}
		})
	}
	t.Run("an event_id that was made up is one like any other", func(t *testing.T) {
		var first struct {
			EventID string `json:"event_id"`
		}
		if err := json.Unmarshal([]byte(weir.collect(`{"event": "lead"}`).body), &first); err != nil {
			t.Fatal(err)
		}
		got := weir.collect(`{"event": "lead", "event_id": "` + first.EventID + `"}`)
		if want := `{"ok":true,"event_id":"` + first.EventID + `","duplicate":true}`; got.body != want {
			t.Errorf("got %s, want %s", got.body, want)
		}
	})
	if strings.Contains(weir.stderr.String(), weir.APIKeys[0].Key) {
		t.Error("the API key stands in the log")
	}
}
