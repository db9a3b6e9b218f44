package envelope_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/wire"
)

// markedUser is a person whose data are told from anything that a fuzzer makes up.
const (
	markedEmail = "zq9x.marked@zq9x-mail.example"
	markedPhone = "+998877665544332"
	markedName  = "Zq9xname"
)

// FuzzDecode takes anything the whole way: nothing panics, what is accepted can be read back, and where the
// marked user is the body's, neither its e-mail address nor its phone number is in the entry, wherever else they
// stand. (Its first name may be, as a part of some other word.)
func FuzzDecode(f *testing.F) {
	f.Add([]byte(purchase+purchaseContext+"}"), "", "")
	f.Add([]byte(`{"event":"refund","data":{"value":"1e3"}}`), "https://a.example/?m="+markedEmail+"#"+markedEmail, markedName)
	f.Add([]byte(`{"event":"x","value":-1,"contents":[{"id":1,"a":{"b":[null]}}],"timestamp":"2026-11-20T12:00:00Z"}`), "//@?&&=#", "tel:00"+markedPhone[1:])
	f.Add([]byte(`{"event":"x"}`), "?tel=%2B998%20877665544332&n="+markedName, `{"to":"`+markedName+`"}`)
	f.Add([]byte(`{"event":"x"}`), "http://"+markedEmail+":pw@a.example/"+markedPhone, markedEmail)
	f.Fuzz(func(t *testing.T, body []byte, url, extra string) {
		sent, err := decode(body)
		if err != nil {
			if _, ok := errors.AsType[*outline.SyntaxError](err); !ok {
				t.Errorf("Decode fails with %T, want a SyntaxError", err)
			}
			return
		}
		if valid, errs := sent.Validate(now, nil); len(errs) == 0 {
			roundTrip(t, envelope.Pseudonymise(valid, acceptance))
		} else if valid != nil {
			t.Error("Validate returns errors and a valid envelope")
		}
		checkMarked(t, url, extra)
	})
}

// roundTrip reads an accepted event back from its entry, which it returns.
func roundTrip(t *testing.T, e event.Event) []byte {
	t.Helper()
	entry := wire.Encode(&e)
	got, err := wire.Decode(entry)
	if err != nil {
		t.Fatalf("an accepted event cannot be read back: %v", err)
	}
	if len(e.Contents) == 0 {
		e.Contents = nil
	}
	if diff := cmp.Diff(e, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	return entry
}

// checkMarked accepts an event of the marked user, with texts of the fuzzer's where people's data turn up.
func checkMarked(t *testing.T, url, extra string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"event":   "lead",
		"user":    map[string]any{"email": markedEmail, "phone": markedPhone, "first_name": markedName},
		"context": map[string]any{"page_url": url, "referrer": url, "utm_source": extra, "user_agent": extra},
		"data":    map[string]any{"content_name": extra, "contents": []any{map[string]any{"note": extra, "more": []string{url}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := decode(body)
	if err != nil {
		t.Fatal(err)
	}
	valid, errs := sent.Validate(now, nil)
	if len(errs) > 0 {
		return // a text that is too long
	}
	entry := bytes.ToLower(roundTrip(t, envelope.Pseudonymise(valid, acceptance)))
	for _, raw := range []string{markedEmail, markedPhone[1:]} {
		if bytes.Contains(entry, []byte(strings.ToLower(raw))) {
			t.Errorf("%q is in the entry of the body %s", raw, body)
		}
	}
}
