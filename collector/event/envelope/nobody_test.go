package envelope_test

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
)

// acceptIDs accepts a purchase with the same value for each of its ids.
func acceptIDs(t *testing.T, id any) event.Event {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"event": "purchase", "client_id": id, "data": map[string]any{"value": 1, "currency": "EUR", "order_id": id},
		"context": map[string]any{"user_agent": "UA"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return accept(t, string(body), nil)
}

func TestIDsOfNobodyAreNone(t *testing.T) {
	hexOf := func(text string) string { return event.Hash(sha256.Sum256([]byte(text))).String() }
	for name, id := range map[string]any{
		"the word null": "null", "null in capitals": "NULL", "null between blanks": "\u00a0null\u200b", "undefined": "undefined",
		"none": "None", "nil": "nil", "not a number": "NaN", "not available": "N/A", "not set": "(not set)", "unknown": "unknown",
		"anonymous": "anonymous", "anon": "Anon", "guest": "guest", "true": "true", "false": "false", "an object": "[object Object]",
		"an empty list": "[]", "an empty object": "{}", "a quoted null": `"null"`, "null with something invisible in it": "nu\u200bll",
		"a Hangul filler": "\u3164", "null with a Hangul filler behind it": "null\u3164",
		"null in full width": "ｎｕｌｌ", "zero": "0", "the number zero": 0, "zero with decimals": 0.0, "zeros": "00000000",
		"zeros of another width": "０００", "minus one": "-1", "the number minus one": -1, "the nil UUID": "00000000-0000-0000-0000-000000000000",
		"the last UUID": "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "an advertising id that is off": "00000000-0000-0000-0000-000000000000",
		"a hyphen": "-", "a question mark": "?", "the hash of nothing": hexOf(""), "the hash of null": hexOf("null"),
		"the hash of zero": hexOf("0"), "the hash of not a number": hexOf("NaN"), "the hash of None": hexOf("None"), "the hash of NULL": hexOf("NULL"),
		"the hash of an object": hexOf("[object Object]"), "the hash of the nil UUID": hexOf("00000000-0000-0000-0000-000000000000"),
		"the hash of guest": hexOf("guest"), "the hash of a hyphen": hexOf("-"), "the hash of a space": hexOf(" "), "the hash of a line": hexOf("null\n"),
		"64 times f": strings.Repeat("f", 64), "a cookie's zeros": "GA1.1.0.0", "a cookie of nothing": "GA1.2.undefined", "a cookie's nulls": "GA1.1.null.null",
		"not a number twice": "NaN.NaN", "false twice": "false.false", "an object that is undefined": "[object Undefined]", "anonymous user": "Anonymous User",
		"deleted": "deleted", "opted out": "opted_out",
		"the hash of undefined in capitals": strings.ToUpper(hexOf("undefined")), "64 zeros": strings.Repeat("0", 64),
	} {
		t.Run(name, func(t *testing.T) {
			e := acceptIDs(t, id)
			if e.ClientID != "" || e.OrderID != "" {
				t.Errorf("%v is kept as client %q and order %q, want none", id, e.ClientID, e.OrderID)
			}
			if hash := personal.ExternalID(asText(id)); !hash.IsZero() {
				t.Errorf("%v has the external id %s, want none", id, hash)
			}
		})
	}
}

func asText(id any) string {
	if text, ok := id.(string); ok {
		return text
	}
	text, _ := json.Marshal(id)
	return string(text)
}

func TestIDsOfSomebodyStay(t *testing.T) {
	for name, id := range map[string]string{
		"one digit": "1", "a number": "10", "a cookie's": "GA1.1.1234567890.1700000000", "a UUID": "6f1d3c52-3b0a-4f0e-9a51-0c5f7a3f9e21",
		"a word": "nullable", "a word and a number": "guest-1", "anonymous and a number": "anonymous_42", "letters of another script": "用户",
		"an emoji": "🦊", "a hash": event.Hash(sha256.Sum256([]byte("client"))).String(), "a long one": strings.Repeat("null", 60),
		"a name": "Anna", "an id with zeros": "0001",
	} {
		t.Run(name, func(t *testing.T) {
			if e := acceptIDs(t, id); e.ClientID != id || e.OrderID != id {
				t.Errorf("%q is kept as client %q and order %q", id, e.ClientID, e.OrderID)
			}
		})
	}
}

func TestAnEventIDOfNothingIsNone(t *testing.T) {
	for id, want := range map[string]string{
		"null": "", "undefined": "", "None": "", "[object Object]": "", "00000000-0000-0000-0000-000000000000": "",
		"0": "0", "00": "00", "-": "", " ": "", "\u200b": "", "?": "", "e-1": "e-1",
	} {
		if want == "" {
			want = acceptance.DeliveryID.String()
		}
		if got := accept(t, `{"event":"lead","event_id":"`+id+`"}`, nil).ID; got != want {
			t.Errorf("the event id %q is kept as %q, want %q", id, got, want)
		}
	}
}

func TestSpaceAroundAnIDIsNoPartOfIt(t *testing.T) {
	for _, id := range []string{"A-1", "A-1 ", "A-1\u200b", "\ufeffA-1", "\u00a0 A-1\u200b"} {
		if e := acceptIDs(t, id); e.ClientID != "A-1" || e.OrderID != "A-1" {
			t.Errorf("%q is kept as client %q and order %q, want A-1", id, e.ClientID, e.OrderID)
		}
	}
}

func TestWhatStandsForNothingInTheContextIsNone(t *testing.T) {
	e := accept(t, `{"event":"lead","context":{"user_agent":"undefined","page_url":"https://a.example/?fbclid=null&gclid=G",
		"click_ids":{"fbp":"undefined","fbc":"null","ttclid":"0","ttp":"t"}}}`, nil)
	if e.Context.UserAgent != "" || len(e.Context.ClickIDs) != 2 || e.Context.ClickIDs["ttp"] != "t" || e.Context.ClickIDs["gclid"] != "G" {
		t.Errorf("got user agent %q and click ids %v, want ttp and gclid alone", e.Context.UserAgent, e.Context.ClickIDs)
	}
}
