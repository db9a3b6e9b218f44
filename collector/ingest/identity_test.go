package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/bots"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/ingest"
)

// TestEventsAreTheirPersons sends events to a collector with a Redis and reads from the stream whose they are.
func TestEventsAreTheirPersons(t *testing.T) {
	client := newRedis(t)
	detector, err := bots.New()
	if err != nil {
		t.Fatal(err)
	}
	const page, both, order = `"client_id":"c-1"`, `"client_id":"c-1","user":{"email":"Ada@Example.com"}`, `"user":{"email":" ada@example.com"}`
	shops := 0
	for sentence, test := range map[string]struct {
		apart  bool
		events []string
		// want has a letter for each event: the same for the same person, "-" for nobody.
		want string
	}{
		"an order with an e-mail address alone is the visitor's whose pages had a client id, once both were seen": {
			events: []string{page, order, both, order}, want: "a b a a",
		},
		"an account is one on two devices": {
			events: []string{`"client_id":"c-1","user_id":"7"`, `"client_id":"c-2"`, `"client_id":"c-2","user_id":"7"`, `"client_id":"c-2"`, `"user_id":"7"`}, want: "a b a a a",
		},
		"all addresses and numbers of a person are theirs": {
			events: []string{`"client_id":"c-1","user":{"email":["ada@example.com","a@example.net"],"phone":["+12025550143","+12025550144"]}`,
				`"user":{"email":"a@example.net"}`, `"user":{"phone":"+12025550144"}`, `"user":{"phone":"+12025550145"}`}, want: "a a a b",
		},
		"ids of nobody join nobody": {
			events: []string{`"client_id":"c-1","user_id":"null"`, `"client_id":"c-2","user_id":"null"`, `"user_id":"null"`}, want: "a b -",
		},
		"a user id that spells a client id is another": {events: []string{`"client_id":"7"`, `"user_id":"7"`}, want: "a b"},
		"a bot joins nobody": {
			events: []string{both + `,"context":{"user_agent":"` + crawler + `"}`, order, page}, want: "a b a",
		},
		"who denies analytics is nobody and joins nobody, whatever platforms get": {
			events: []string{both + `,"consent":{"analytics_storage":"denied"}`, page, order}, want: "- a b",
		},
		"a test joins nobody": {events: []string{both + `,"test":true`, order, page}, want: "a b a"},
		"a Property that keeps identifiers apart has each event's own": {
			apart: true, events: []string{page, both, order, `"user_id":"7"`, `"user_id":"7","client_id":"c-1"`}, want: "a a b c a",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			shops++
			p := property(fmt.Sprint("shop", shops))
			p.JoinIdentities = !test.apart
			tenant, s := inRedis(t, client, p)
			site := newSiteWith(t, ingest.Options{Bots: detector}, tenant)
			for _, members := range test.events {
				if a := site.send(t, request{body: []byte(`{"event":"lead",` + members + `}`)}); a.status != 202 {
					t.Fatalf("answered %d: %s", a.status, a.body)
				}
			}
			var got []string
			letters := map[string]string{}
			entries, err := s.ReadEvents(t.Context(), 0, 100, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				e, err := wire.Decode(entry.Data)
				if err != nil {
					t.Fatal(err)
				}
				person, somebody := e.Whose(p.Namespace + "/" + p.Name)
				letter := "-"
				if somebody {
					if letters[person.String()] == "" {
						letters[person.String()] = string(rune('a' + len(letters)))
					}
					letter = letters[person.String()]
				}
				got = append(got, letter)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("whose the events are (-want +got):\n%s", diff)
			}
		})
	}
}
