package envelope_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/wire"
)

// FuzzPseudonymise accepts any person that is valid: nothing of the person is in the entry, no hash is that of
// nothing, and how the person's data are spelt makes no difference.
func FuzzPseudonymise(f *testing.F) {
	f.Add("Jane.Roe+shop@Example.COM", "+4915112345678", "Jaqueline")
	f.Add("jane@bücher.example", "+12025550123", "Renée-Łucja")
	f.Add(hex.EncodeToString(make([]byte, 32)), strings.Repeat("aB", 32), strings.Repeat("0f", 32))
	f.Add(" jane@example.com\u200b", "+998877665544332", "ΜΆΙΟΣ")
	f.Add("null@null.example", "", "n/a")
	f.Fuzz(func(t *testing.T, email, phone, name string) {
		e, ok := acceptPerson(t, email, phone, name)
		if !ok {
			return
		}
		nothing := sha256.Sum256(nil)
		for variant, hash := range e.User {
			if hash == event.Hash(nothing) {
				t.Errorf("variant %d of %q, %q, %q is the hash of nothing", variant, email, phone, name)
			}
		}
		nobody, _ := acceptPerson(t, "", "", "")
		entry, without := wire.Encode(&e), wire.Encode(&nobody)
		for _, said := range []string{email, phone, name} {
			for _, raw := range [][]byte{[]byte(said), []byte(strings.ToLower(strings.TrimSpace(said)))} {
				if len(raw) > 6 && bytes.Contains(entry, raw) && !bytes.Contains(without, raw) {
					t.Errorf("%q is in the entry", raw)
				}
			}
		}
		again, ok := acceptPerson(t, " "+email+"\t", phone, "\n"+name+" ")
		if !ok {
			return // too long by the blanks
		}
		if diff := cmp.Diff(e.User, again.User); diff != "" {
			t.Errorf("with blanks around, %q and %q are somebody else (-want +got):\n%s", email, name, diff)
		}
	})
}

// acceptPerson accepts an event of a person; ok is false where the data are not valid.
func acceptPerson(t *testing.T, email, phone, name string) (e event.Event, ok bool) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"event": "lead", "event_id": "1", "user": map[string]string{"email": email, "phone": phone, "first_name": name},
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
		return event.Event{}, false
	}
	return envelope.Pseudonymise(valid, acceptance), true
}
