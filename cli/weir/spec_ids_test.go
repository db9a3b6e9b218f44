package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestIDsThatHoldAContact sends a contact as each id: what is answered and listed is its SHA-256, and the ids go on doing what
// they are for.
func TestIDsThatHoldAContact(t *testing.T) {
	weir := startWeirDev(t, filepath.Join(t.TempDir(), "state"), "-f", shopFile(t, "http://127.0.0.1:9/"))
	hashed := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	for name, test := range map[string]struct {
		body string
		// member is the record's in which the hash of contact stands.
		member, contact string
	}{
		"an address as client_id":     {`{"event": "ids", "event_id": "1", "client_id": "Jane.1@Example.com"}`, "client_id", "jane.1@example.com"},
		"an address as order_id":      {`{"event": "ids", "event_id": "2", "data": {"order_id": "jane.2@example.com"}}`, "order_id", "jane.2@example.com"},
		"an address as event_id":      {`{"event": "ids", "event_id": "jane.3@example.com"}`, "event_id", "jane.3@example.com"},
		"an encoded address":          {`{"event": "ids", "event_id": "jane.4%2540example.com"}`, "event_id", "jane.4%2540example.com"},
		"an address in a longer id":   {`{"event": "ids", "event_id": "5", "client_id": "crm:jane.5@example.com:7"}`, "client_id", "crm:jane.5@example.com:7"},
		"the person's own number":     {`{"event": "ids", "event_id": "6", "client_id": "4915112345678", "user": {"phone": "+4915112345678"}}`, "client_id", "4915112345678"},
		"the number in the event_id":  {`{"event": "ids", "event_id": "+49 151 12345679", "user": {"phone": "+4915112345679"}}`, "event_id", "+49 151 12345679"},
		"an address and a space":      {`{"event": "ids", "event_id": "8", "client_id": " jane.8@example.com"}`, "client_id", "jane.8@example.com"},
		"the number of a national id": {`{"event": "ids", "event_id": "9", "data": {"order_id": "0151 12345680"}, "user": {"phone": "+4915112345680"}}`, "order_id", "0151 12345680"},
	} {
		t.Run(name, func(t *testing.T) {
			want := hashed(test.contact)
			first := weir.collect(test.body)
			id, _ := first.object(t)["event_id"].(string)
			if first.status != http.StatusAccepted || (test.member == "event_id" && id != want) {
				t.Errorf("answered %d %s, want the id %s", first.status, first.body, want)
			}
			if again := weir.collect(test.body); again.object(t)["duplicate"] != true || again.object(t)["event_id"] != id {
				t.Errorf("the same again is answered %s", again.body)
			}
			batch := do(t, http.MethodPost, weir.CollectURL+"/collect/"+weir.APIKeys[0].Key+"/batch", `{"events": [`+test.body+`]}`,
				map[string]string{"Content-Type": "application/json"})
			if !strings.Contains(batch.body, `"event_id":"`+id+`"`) || !strings.Contains(batch.body, `"duplicate":true`) {
				t.Errorf("the same in a batch is answered %d %s", batch.status, batch.body)
			}
			await(t, "it is listed", func() bool { return strings.Contains(weir.read("/events?limit=100").body, `"event_id":"`+id+`"`) })
			list := weir.read("/events?limit=100").body
			if !strings.Contains(list, fmt.Sprintf(`%q:%q`, test.member, want)) {
				t.Errorf("no %s is %s: %s", test.member, want, list)
			}
			for _, answer := range []string{first.body, batch.body, list} {
				if strings.Contains(answer, test.contact) {
					t.Errorf("%s stands in %s", test.contact, answer)
				}
			}
		})
	}
}

// TestIDsOfNobodyAreNoVisitor counts visitors after events whose client_id is what programs write for none.
func TestIDsOfNobodyAreNoVisitor(t *testing.T) {
	weir := startWeirDev(t, filepath.Join(t.TempDir(), "state"), "-f", shopFile(t, "http://127.0.0.1:9/"))
	ids := []string{`null`, `"null"`, `"NULL"`, `"undefined"`, `0`, `"0"`, `"00000000-0000-0000-0000-000000000000"`, `"anonymous"`, `"(not set)"`, `" "`, `"somebody"`}
	for _, id := range ids {
		if got := weir.collect(`{"event": "pageview", "client_id": ` + id + `}`); got.status != http.StatusAccepted {
			t.Fatalf("%s: %d %s", id, got.status, got.body)
		}
	}
	pageviews := fmt.Sprintf(`"pageviews":%d,`, len(ids))
	await(t, "all are counted", func() bool { return strings.Contains(weir.read("/analytics/summary").body, pageviews) })
	for path, want := range map[string]string{
		"/analytics/summary": `"unique_visitors":1,`,
		"/events/stats":      fmt.Sprintf(`"count":%d,"unique_visitors":1,`, len(ids)),
		"/analytics/daily":   `"unique_visitors":1,`,
		"/analytics/funnel?steps[]=pageview&steps[]=purchase": `"visitors":1,`,
	} {
		if got := weir.read(path); !strings.Contains(got.body, want) {
			t.Errorf("%s: no %s in %s", path, want, got.body)
		}
	}
}
