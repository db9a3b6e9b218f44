package event_test

import (
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
)

// digest is an identifier as docs/internals/formats.md has it.
func digest(property, kind, id string) event.Identifier {
	sum := sha256.Sum256([]byte("weir person\x00" + property + "\x00" + kind + "\x00" + id))
	return event.Identifier(sum[:8])
}

func TestIdentifiersOfAnEvent(t *testing.T) {
	email, second, phone := event.Hash{1}, event.Hash{2}, event.Hash{3}
	user, client := digest("a/shop", "user", "7"), digest("a/shop", "client", "7")
	address, other, number := digest("a/shop", "email", string(email[:])), digest("a/shop", "email", string(second[:])), digest("a/shop", "phone", string(phone[:]))
	for sentence, test := range map[string]struct {
		event  event.Event
		list   []event.Identifier
		client int
		whose  event.Person
	}{
		"none":                       {event.Event{}, nil, -1, event.Person{}},
		"a client id":                {event.Event{ClientID: "7"}, []event.Identifier{client}, 0, client},
		"a user id goes first":       {event.Event{UserID: "7", ClientID: "7"}, []event.Identifier{user, client}, 1, client},
		"addresses and then numbers": {event.Event{User: event.Hashes{event.EmailLower: email, event.PhoneDigits: phone}, MoreContacts: []event.Hashes{{event.EmailLower: second}}}, []event.Identifier{address, other, number}, -1, address},
		"an address and a number that are said twice": {event.Event{
			User: event.Hashes{event.EmailLower: email, event.PhoneDigits: phone}, MoreContacts: []event.Hashes{{event.EmailLower: email, event.PhoneDigits: phone}, {event.EmailLower: email}},
		}, []event.Identifier{address, number}, -1, address},
		"a number among the other ones": {event.Event{MoreContacts: []event.Hashes{{event.PhoneDigits: phone}}}, []event.Identifier{number}, -1, number},
		"an event of a visitor who denied analytics is nobody's, though it has what an erasure finds it by": {
			event.Event{UserID: "7", ClientID: "7", User: event.Hashes{event.EmailLower: email}, Person: event.Person{9}, Anonymous: true},
			[]event.Identifier{user, client, address}, 1, event.Person{},
		},
		"a person that was found before": {event.Event{ClientID: "7", Person: event.Person{9}}, []event.Identifier{client}, 0, event.Person{9}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := test.event.Identifiers("a/shop", nil)
			if diff := cmp.Diff(event.Identifiers{List: test.list, Client: test.client}, got); diff != "" {
				t.Errorf("identifiers (-want +got):\n%s", diff)
			}
			whose, somebody := test.event.Whose("a/shop")
			if whose != test.whose || somebody != (test.whose != event.Person{}) {
				t.Errorf("it is %s's, %v, want %s's", whose, somebody, test.whose)
			}
		})
	}
	another := (&event.Event{ClientID: "7"}).Identifiers("b/shop", nil)
	if slices.Contains(another.List, client) {
		t.Error("an identifier is the same in another property")
	}
}

func TestAPersonIsReadFromNothingButItsText(t *testing.T) {
	want := event.Person{1, 2, 3, 4, 5, 6, 7, 0xff}
	if got, isOne := event.ParsePerson(want.String()); !isOne || got != want {
		t.Errorf("%q is read as %s, %v, want %s", want, got, isOne, want)
	}
	for sentence, text := range map[string]string{
		"no text":                            "",
		"a shorter one":                      want.String()[:10],
		"a longer one":                       want.String() + "A",
		"one with padding":                   want.String() + "=",
		"one with a line's end":              want.String()[:5] + "\n" + want.String()[5:],
		"one of another alphabet":            "AQID+AUGB_8",
		"one whose spare bits say something": "AQIDBAUGB_9",
		"the text of twice as many bytes":    "AQIDBAUGB_8AQIDBAUGB_8",
	} {
		t.Run(sentence, func(t *testing.T) {
			if got, isOne := event.ParsePerson(text); isOne {
				t.Errorf("%q is read as %s, want nobody", text, got)
			}
		})
	}
}
