package envelope_test

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
)

var variantNames = map[string]event.Variant{
	"EmailLower": event.EmailLower, "EmailGoogle": event.EmailGoogle, "EmailMicrosoft": event.EmailMicrosoft, "EmailAlnum": event.EmailAlnum,
	"PhoneDigits": event.PhoneDigits, "PhoneE164": event.PhoneE164, "FirstNameMeta": event.FirstNameMeta, "FirstNameLower": event.FirstNameLower,
	"LastNameMeta": event.LastNameMeta, "LastNameLower": event.LastNameLower, "Street": event.Street, "City": event.City,
	"State": event.State, "Zip": event.Zip, "DateOfBirth": event.DateOfBirth, "Gender": event.Gender,
}

// every is the set of all variants.
func every() event.VariantSet {
	var set event.VariantSet
	for _, v := range variantNames {
		set = set.Union(event.Variants(v))
	}
	return set
}

// userOf accepts a pageview of a user given as JSON and returns the wanted hashes.
func userOf(t *testing.T, user any, wanted event.VariantSet) event.Hashes {
	t.Helper()
	body, err := json.Marshal(map[string]any{"event": "pageview", "user": user})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := decode(body)
	if err != nil {
		t.Fatal(err)
	}
	valid, errs := sent.Validate(now, nil)
	if len(errs) > 0 {
		t.Fatalf("Validate(%s): %v", body, errs)
	}
	a := acceptance
	a.Variants = wanted
	return envelope.Pseudonymise(valid, a).User
}

func fieldOf(v event.Variant) string {
	switch {
	case v <= event.EmailAlnum:
		return "email"
	case v <= event.PhoneE164:
		return "phone"
	}
	return map[event.Variant]string{
		event.FirstNameMeta: "first_name", event.FirstNameLower: "first_name", event.LastNameMeta: "last_name", event.LastNameLower: "last_name",
		event.Street: "street", event.City: "city", event.State: "state", event.Zip: "zip", event.DateOfBirth: "date_of_birth",
		event.Gender: "gender",
	}[v]
}

// hashOf returns the hash of a text, of "" the zero Hash.
func hashOf(text string) event.Hash {
	if text == "" {
		return event.Hash{}
	}
	return sha256.Sum256([]byte(text))
}

func TestHashesAreThoseThatThePlatformsPublish(t *testing.T) {
	text, err := os.ReadFile("testdata/hash-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Variant, Input, Normalized, SHA256, Source string }
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, vector := range vectors {
		v, known := variantNames[vector.Variant]
		if !known {
			t.Fatalf("%q is no variant", vector.Variant)
		}
		user := userOf(t, map[string]string{fieldOf(v): vector.Input}, event.Variants(v))
		if got := user.Get(v).String(); got != vector.SHA256 {
			t.Errorf("%s of %q is %s, want %s (%s)", vector.Variant, vector.Input, got, vector.SHA256, vector.Source)
		}
		if got := hashOf(vector.Normalized).String(); got != vector.SHA256 {
			t.Errorf("the vector of %q is wrong in itself: %q has the hash %s", vector.Input, vector.Normalized, got)
		}
	}
}

func TestVariantsAreHashesOfTheirNormalisedText(t *testing.T) {
	tests := map[string]struct {
		input string
		// want maps variants to the text that is hashed.
		want map[event.Variant]string
	}{
		"a Gmail address loses dots and alias for Google, Microsoft and Reddit": {"Jane.D+shop@GoogleMail.com", map[event.Variant]string{
			event.EmailLower: "jane.d+shop@googlemail.com", event.EmailGoogle: "janed@googlemail.com",
			event.EmailMicrosoft: "janed@googlemail.com", event.EmailAlnum: "janed@googlemail.com"}},
		"any other address keeps them for Google": {"jane_d.x+shop@mail.example.com", map[event.Variant]string{
			event.EmailLower: "jane_d.x+shop@mail.example.com", event.EmailGoogle: "jane_d.x+shop@mail.example.com",
			event.EmailMicrosoft: "jane_dx@mail.example.com", event.EmailAlnum: "janedx@mail.example.com"}},
		"blanks and zero-width marks around an address are no part of it": {"\ufeff\u00a0Jane@Example.com\u200b\n", map[event.Variant]string{
			event.EmailLower: "jane@example.com"}},
		"an address of which nothing is left has no hash": {"+shop@gmail.com", map[event.Variant]string{
			event.EmailLower: "+shop@gmail.com", event.EmailGoogle: "", event.EmailMicrosoft: "", event.EmailAlnum: ""}},
		"a phone number with and without its plus": {"+4915112345678", map[event.Variant]string{
			event.PhoneDigits: "4915112345678", event.PhoneE164: "+4915112345678"}},
		"a first name loses blanks and ASCII punctuation for Meta": {" Anne-Marie O'Neil$ ", map[event.Variant]string{
			event.FirstNameMeta: "annemarieoneil", event.FirstNameLower: "anne-marie o'neil$"}},
		"accents and other punctuation stay": {"José·«X»", map[event.Variant]string{
			event.FirstNameMeta: "josé·«x»", event.FirstNameLower: "josé·«x»"}},
		"a decomposed accent is composed for Meta": {"Jose\u0301", map[event.Variant]string{
			event.FirstNameMeta: "jos\u00e9", event.FirstNameLower: "jose\u0301"}},
		"a final sigma becomes one": {"ΓΙΩΡΓΟΣ", map[event.Variant]string{
			event.FirstNameMeta: "γιωργος", event.FirstNameLower: "γιωργος"}},
		"a last name as a first name": {"O'Neil-Smith", map[event.Variant]string{
			event.LastNameMeta: "oneilsmith", event.LastNameLower: "o'neil-smith"}},
		"a street with single blanks":         {" Haupt\tSTR.  5 ", map[event.Variant]string{event.Street: "haupt str. 5"}},
		"a city without blanks and full stop": {"St. Gallen", map[event.Variant]string{event.City: "stgallen"}},
		"a state":                             {"New York", map[event.Variant]string{event.State: "newyork"}},
		"a ZIP+4 code is cut":                 {"94025-1234", map[event.Variant]string{event.Zip: "94025"}},
		"another code with a hyphen is not":   {"00-950", map[event.Variant]string{event.Zip: "00950"}},
		"a postcode with letters":             {"SW1A 1aa", map[event.Variant]string{event.Zip: "sw1a1aa"}},
		"a date of birth":                     {"1990-02-13", map[event.Variant]string{event.DateOfBirth: "19900213"}},
		"a date of birth without hyphens":     {"19900213", map[event.Variant]string{event.DateOfBirth: "19900213"}},
		"a gender as a word":                  {"Female", map[event.Variant]string{event.Gender: "f"}},
		"a gender that is neither":            {"diverse", map[event.Variant]string{event.Gender: "n"}},
		"a gender that nobody knows":          {"unknown", map[event.Variant]string{event.Gender: ""}},
		"for Meta the words are joined before they are lower-cased": {"ΓΙΩΡΓΟΣ ΜΑΡΙΟΣ", map[event.Variant]string{
			event.FirstNameMeta: "γιωργοσμαριος", event.FirstNameLower: "γιωργος μαριος"}},
		"a hyphen is gone by then as well": {"ΓΙΩΡΓΟΣ-ΜΑΡΙΑ", map[event.Variant]string{
			event.FirstNameMeta: "γιωργοσμαρια", event.FirstNameLower: "γιωργος-μαρια"}},
		"lower-case letters stay as they are written": {"Γιώργος Μάριος", map[event.Variant]string{
			event.FirstNameMeta: "γιώργοςμάριος", event.FirstNameLower: "γιώργος μάριος"}},
		"an i without a dot keeps being one, a capital I is one with": {"Işıl", map[event.Variant]string{
			event.FirstNameMeta: "işıl", event.FirstNameLower: "işıl"}},
		"a sharp s stays one": {"STRAẞE Groß", map[event.Variant]string{
			event.FirstNameMeta: "straßegroß", event.FirstNameLower: "straße groß"}},
		"a dotted capital I keeps its dot": {"İpek", map[event.Variant]string{
			event.FirstNameMeta: "i\u0307pek", event.FirstNameLower: "i\u0307pek"}},
		"a first name of punctuation has a hash where that counts": {"...", map[event.Variant]string{
			event.FirstNameMeta: "", event.FirstNameLower: "..."}},
		"a blank first name has no hash":                                       {" \u200b", map[event.Variant]string{event.FirstNameMeta: "", event.FirstNameLower: ""}},
		"a first name of Hangul fillers has no hash":                           {"\u115f\u1160\u3164\uffa0", map[event.Variant]string{event.FirstNameMeta: "", event.FirstNameLower: ""}},
		"a first name of a Braille blank, a joiner and a selector has no hash": {"\u2800\u200d\ufe0f", map[event.Variant]string{event.FirstNameMeta: "", event.FirstNameLower: ""}},
		"a Hangul filler within a first name belongs to it":                    {"\u115f\u1161", map[event.Variant]string{event.FirstNameLower: "\u115f\u1161"}},
		"a placeholder for a name has no hash":                                 {" NULL ", map[event.Variant]string{event.FirstNameMeta: "", event.FirstNameLower: ""}},
		"n/a has no hash, though na is left of it":                             {"N/A", map[event.Variant]string{event.FirstNameMeta: "", event.FirstNameLower: ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for v, text := range tt.want {
				user := userOf(t, map[string]string{fieldOf(v): tt.input}, every())
				if got, want := user.Get(v), hashOf(text); got != want {
					t.Errorf("variant %d of %q is %v, want %v, the hash of %q", v, tt.input, got, want, text)
				}
			}
		})
	}
}

func TestOnlyWantedVariantsAreMade(t *testing.T) {
	user := map[string]string{"email": "jane.doe@gmail.com", "phone": "+4915112345678", "first_name": "Jane"}
	var want event.Hashes
	want[event.EmailLower], want[event.PhoneDigits] = hashOf("jane.doe@gmail.com"), hashOf("4915112345678")
	if diff := cmp.Diff(want, userOf(t, user, 0)); diff != "" {
		t.Errorf("of no variants wanted, those that visitors are told apart by are made (-want +got):\n%s", diff)
	}
	want[event.EmailGoogle] = hashOf("janedoe@gmail.com")
	if diff := cmp.Diff(want, userOf(t, user, event.Variants(event.EmailGoogle))); diff != "" {
		t.Errorf("of one variant wanted (-want +got):\n%s", diff)
	}
}

func TestWhatIsHashedAlreadyIsNotHashedAgain(t *testing.T) {
	email, phone, name := hashOf("jane@example.com"), hashOf("4915112345678"), hashOf("jane")
	got := userOf(t, map[string]string{
		"email": " " + strings.ToUpper(email.String()), "phone": phone.String(), "first_name": strings.ToUpper(name.String()),
	}, every())
	want := event.Hashes{event.EmailLower: email, event.PhoneDigits: phone, event.FirstNameLower: name}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}
	nothing := event.Hash(sha256.Sum256(nil)).String()
	if got := userOf(t, map[string]string{"email": nothing, "phone": hashOf("null").String()}, every()); got != (event.Hashes{}) {
		t.Errorf("the hashes of nothing and of a placeholder are kept as %v, want none", got)
	}
}

func TestAnEventKeepsWhatWasSent(t *testing.T) {
	body := `{"event":" order_done ","event_id":"e-1","client_id":12345678901234567890,"timestamp":"2026-11-20T12:59:00.1239+01:00",` +
		`"consent":{"ad_user_data":"granted","ad_personalization":"denied"},"order_id":7,"content_name":"flat","value":99,` +
		`"data":{"value":"12.50","currency":"eur","content_id":1.50,"contents":[{"id":7,"quantity":2,"price":"6.25","name":"Mug",` +
		`"category":"Cups","brand": {"b" : 1},"sku":"S","tags":["\u0061"],"none":null},{"sku":"S2"}]},` +
		`"context":{"page_url":"https://shop.example.com/a?b=1#c","referrer":"https://www.example.net/","ip":"::ffff:203.0.113.7",` +
		`"user_agent":"UA","utm_source":"s","utm_medium":"m","utm_campaign":"c","utm_term":"t","utm_content":"co","click_ids":{"gclid":"G"}}}`
	value, quantity, price := event.Amount(125000), event.Amount(20000), event.Amount(62500)
	want := event.Event{
		ID: "e-1", DeliveryID: acceptance.DeliveryID, Name: "purchase", OccurredAt: time.Date(2026, 11, 20, 11, 59, 0, 123e6, time.UTC),
		Value: &value, Currency: "EUR", OrderID: "7", ContentID: "1.50", ContentName: "flat", ClientID: "12345678901234567890",
		Contents: []event.Item{
			{ID: "7", Name: "Mug", Category: "Cups", Quantity: &quantity, Price: &price, Extra: []byte(`{"brand":{"b":1},"sku":"S","tags":["a"]}`)},
			{ID: "S2"},
		},
		Context: event.Context{
			PageURL: "https://shop.example.com/a?b=1#c", Referrer: "https://www.example.net/", IP: "203.0.113.7", UserAgent: "UA",
			UTMSource: "s", UTMMedium: "m", UTMCampaign: "c", UTMTerm: "t", UTMContent: "co", ClickIDs: map[string]string{"gclid": "G"},
		},
		Consent:   event.Consent{AdUserData: event.Granted, AdPersonalization: event.Denied},
		Platforms: []string{"meta", "crm"},
	}
	got := accept(t, body, map[string]string{"order_done": "purchase"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestAnEventWithoutAnIDTakesItsDeliverys(t *testing.T) {
	e := accept(t, `{"event":"pageview"}`, nil)
	if want := acceptance.DeliveryID.String(); e.ID != want || e.DedupID() != want {
		t.Errorf("the event's id is %q and its deduplication id %q, want %q", e.ID, e.DedupID(), want)
	}
}

func TestAcceptingTwiceGivesTheSame(t *testing.T) {
	sent, err := decode([]byte(purchase + `,"context":{"page_url":"https://a.example/?gclid=G&x=jane.doe@example.com","click_ids":{"fbc":"jane.doe@example.com"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	valid, errs := sent.Validate(now, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	first, second := envelope.Pseudonymise(valid, acceptance), envelope.Pseudonymise(valid, acceptance)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second acceptance differs (-first +second):\n%s", diff)
	}
	want := map[string]string{"gclid": "G"}
	if diff := cmp.Diff(want, first.Context.ClickIDs); diff != "" {
		t.Errorf("click ids (-want +got):\n%s", diff)
	}
}

func TestACallersUUIDCanServeAsTheDeliveryID(t *testing.T) {
	const id = "6f1d3c52-3b0a-4f0e-9a51-0c5f7a3f9e21"
	for name, test := range map[string]struct {
		sent string
		want bool
	}{
		"a UUID in lower case":   {id, true},
		"one in upper case":      {strings.ToUpper(id), false},
		"one with a prefix":      {"urn:uuid:" + id, false},
		"the nil UUID":           {"00000000-0000-0000-0000-000000000000", false},
		"36 characters of other": {strings.Repeat("-", 36), false},
		"another text":           {"order-1", false},
		"none":                   {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			sent, err := decode([]byte(`{"event": "lead", "event_id": "` + test.sent + `"}`))
			if err != nil {
				t.Fatal(err)
			}
			valid, errs := sent.Validate(time.Now(), nil)
			if errs != nil {
				t.Fatal(errs)
			}
			got, ok := valid.UUID()
			if ok != test.want || (ok && got.String() != test.sent) {
				t.Errorf("got %s, %v; want %v", got, ok, test.want)
			}
		})
	}
}

func TestIdsThatHoldAContact(t *testing.T) {
	body := `{"event": "lead", "client_id": " Jane@Example.com", "user": {"email": "jane@example.com", "phone": "+4915112345678"},
		"data": {"content_id": "jane@example.com", "contents": [{"id": "+49 151 12345678"}, {"id": "sku-1"}]}}`
	sent, err := decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	valid, errs := sent.Validate(time.Now(), nil)
	if errs != nil {
		t.Fatal(errs)
	}
	got := envelope.Pseudonymise(valid, envelope.Acceptance{DeliveryID: uuid.New()})
	if want := event.Hash(sha256.Sum256([]byte("jane@example.com"))).String(); got.ClientID != want {
		t.Errorf("client id %q, want %q", got.ClientID, want)
	}
	if got.ContentID != "" || got.Contents[0].ID != "" || got.Contents[1].ID != "sku-1" {
		t.Errorf("content id %q, items' ids %q and %q; want the two with a contact to be empty", got.ContentID, got.Contents[0].ID, got.Contents[1].ID)
	}
}

// Google takes hashes with a user_id alone: without one they would only cost memory.
func TestHashesOfAccountsAreMadeForAccountsAlone(t *testing.T) {
	for sent, want := range map[string]bool{`"user_id":"4711",`: true, `"user_id":"null",`: false, ``: false} {
		decoded := new(envelope.Envelope)
		if err := decoded.Decode([]byte(`{"event":"lead",` + sent + `"user":{"email":"j.doe@gmail.com"}}`)); err != nil {
			t.Fatal(err)
		}
		valid, errs := decoded.Validate(time.Now(), nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		e := envelope.Pseudonymise(valid, envelope.Acceptance{AccountVariants: event.Variants(event.EmailGoogle)})
		if got := !e.User.Get(event.EmailGoogle).IsZero(); got != want {
			t.Errorf("with %q there is Google's hash: %t, want %t", sent, got, want)
		}
		if e.User.Get(event.EmailLower).IsZero() {
			t.Errorf("with %q the address has no hash", sent)
		}
	}
}
