package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
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
		envelope, err := event.Decode(body)
		if err != nil {
			if _, ok := errors.AsType[*event.SyntaxError](err); !ok {
				t.Errorf("Decode fails with %T, want a SyntaxError", err)
			}
			return
		}
		if valid, errs := envelope.Validate(now, nil); len(errs) == 0 {
			roundTrip(t, event.Pseudonymise(valid, acceptance))
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
	envelope, err := event.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	valid, errs := envelope.Validate(now, nil)
	if len(errs) > 0 {
		return // a text that is too long
	}
	entry := bytes.ToLower(roundTrip(t, event.Pseudonymise(valid, acceptance)))
	for _, raw := range []string{markedEmail, markedPhone[1:]} {
		if bytes.Contains(entry, []byte(strings.ToLower(raw))) {
			t.Errorf("%q is in the entry of the body %s", raw, body)
		}
	}
}

// FuzzParseAmount checks every number against rational arithmetic.
func FuzzParseAmount(f *testing.F) {
	for _, text := range []string{"0", "-0.00005", "12.50", "1e2", "0.00015", "99999999999.99995", "1e-400", "1E+15", "0e999", "x", "1."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := event.ParseAmount(text)
		if errors.Is(err, event.ErrAmountSyntax) {
			if json.Valid([]byte(text)) && strings.Trim(text, "-+.eE0123456789") == "" && text != "" {
				t.Errorf("ParseAmount(%q) fails with %v, but it is a JSON number", text, err)
			}
			return
		}
		if _, exponent, _ := strings.Cut(strings.ToLower(text), "e"); len(exponent) > 4 {
			return // big.Rat would work out its digits
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("ParseAmount(%q) = %v, %v, but it is no number", text, got, err)
		}
		want := roundHalfEven(exact.Mul(exact, big.NewRat(10000, 1)))
		inRange := want.CmpAbs(big.NewInt(int64(event.MaxAmount))) <= 0
		switch {
		case inRange != (err == nil):
			t.Errorf("ParseAmount(%q) fails with %v, but the amount is %s", text, err, want)
		case inRange && want.Cmp(big.NewInt(int64(got))) != 0:
			t.Errorf("ParseAmount(%q) = %d, want %s", text, got, want)
		}
	})
}

// roundHalfEven rounds a rational number to an integer.
func roundHalfEven(r *big.Rat) *big.Int {
	floor, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	twice := rest.Lsh(rest, 1).Cmp(r.Denom())
	if twice > 0 || (twice == 0 && floor.Bit(0) == 1) {
		floor.Add(floor, big.NewInt(1))
	}
	return floor
}
