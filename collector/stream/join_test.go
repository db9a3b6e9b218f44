package stream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// identifiers makes the identifiers of an event of words: u1 is a user id, c1 a client id, e1 an e-mail address, p1 a phone number.
func identifiers(words string) event.Identifiers {
	told := event.Identifiers{Client: -1}
	for i, word := range strings.Fields(words) {
		var one event.Identifier
		copy(one[:], word)
		told.List = append(told.List, one)
		if word[0] == 'c' {
			told.Client = i
		}
	}
	return told
}

// seen is an addition that can be told by its entry, whose identifiers stand in it.
func seen(words string) Addition {
	a := addition("", "")
	a.Entry, a.Identifiers = []byte("entry of "+words+";"), identifiers(words).Packed()
	return a
}

// personIn reads from an entry of [seen] whose it is, and by what identifiers that was found.
func personIn(t testing.TB, entry Entry) (person, words string) {
	t.Helper()
	head, tail, found := strings.Cut(string(entry.Data), ";")
	words = strings.TrimPrefix(head, "entry of ")
	if !found || len(tail) != 0 && (len(tail) != 10 || tail[:2] != "\xe9\x03") {
		t.Fatalf("the entry is %q, want it as it was, with a person behind it or none", entry.Data)
	}
	if tail == "" {
		told := identifiers(words)
		if len(told.List) == 0 {
			return "", words
		}
		one := told.Default()
		return strings.TrimRight(string(one[:]), "\x00"), words
	}
	return strings.TrimRight(tail[2:], "\x00"), words
}

func personsIn(t testing.TB, s *Stream) []string {
	t.Helper()
	var persons []string
	for _, entry := range allEvents(t, s) {
		person, _ := personIn(t, entry)
		persons = append(persons, person)
	}
	return persons
}

func TestWhoIsWho(t *testing.T) {
	client := dial(t, redistest.URL(t))
	for name, test := range map[string]struct{ events, want []string }{
		"whoever has one identifier is called after it": {[]string{"c1", "u1", "e1", "p1", "c1", "e1"}, []string{"c1", "u1", "e1", "p1", "c1", "e1"}},
		"an event without identifiers is nobody's":      {[]string{"", "c1", ""}, []string{"", "c1", ""}},
		"a purchase with an e-mail alone belongs to the visitor whose pageviews had a client id once an event had both": {
			[]string{"c1", "c1 e1", "e1", "c1"}, []string{"c1", "c1", "c1", "c1"},
		},
		"what came before they were seen together stays apart": {[]string{"e1", "c1", "c1 e1", "e1"}, []string{"e1", "c1", "c1", "c1"}},
		"one account on two devices":                           {[]string{"c1", "u1 c1", "c2", "u1 c2", "c2", "u1"}, []string{"c1", "c1", "c2", "c1", "c1", "c1"}},
		"identifiers that have no client id are called after the strongest": {
			[]string{"u1 e1 p1", "p1", "e1", "u1", "e1 p1"}, []string{"u1", "u1", "u1", "u1", "u1"},
		},
		"e-mail goes before phone where two persons meet": {
			[]string{"c1 e1", "c2 p1", "e1 p1", "p1", "e1", "c2"}, []string{"c1", "c2", "c1", "c1", "c1", "c2"},
		},
		"client id goes before e-mail where two persons meet, and what else stood for the other goes on": {
			[]string{"c1 e1", "c2 p2", "c2 e1", "e1", "c1"}, []string{"c1", "c2", "c2", "c2", "c1"},
		},
		"user id goes before client id where two persons meet": {
			[]string{"u1 c1", "c2 e2", "u1 c2", "c2", "e2"}, []string{"c1", "c2", "c1", "c1", "c2"},
		},
		"two accounts on one device that both are known": {
			[]string{"u1 c1", "u2 c2", "u2 c1", "c1", "u1 c1", "c1"}, []string{"c1", "c2", "c2", "c2", "c1", "c1"},
		},
		"a client id that stood for another and is its own again": {
			[]string{"u1 c1", "u1 c2", "c2", "e9 p9", "u3 c3"}, []string{"c1", "c1", "c1", "e9", "c3"},
		},
		"several e-mail addresses and phone numbers of one person": {
			[]string{"c1 e1 e2 e3 e4 e5 p1 p2 p3 p4 p5", "e5", "p5 ", "e3 p9", "p9"}, []string{"c1", "c1", "c1", "c1", "c1"},
		},
	} {
		for _, how := range []string{"one by one", "in one batch"} {
			t.Run(name+", "+how, func(t *testing.T) {
				s := client.Stream("default", fmt.Sprint("shop-", rand.Uint64()))
				a := newAppender(t, s, AppenderOptions{})
				var additions []Addition
				for _, words := range test.events {
					additions = append(additions, seen(words))
				}
				if how == "in one batch" {
					mustAppend(t, a, additions...)
				} else {
					for _, one := range additions {
						mustAppend(t, a, one)
					}
				}
				if diff := cmp.Diff(test.want, personsIn(t, s)); diff != "" {
					t.Errorf("of the events %q the persons are (-want +got):\n%s", test.events, diff)
				}
			})
		}
	}
}

func TestAnAddressThatAnEventSaysTwiceJoinsNothing(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	hash := event.Hash{1}
	twice := event.Event{User: event.Hashes{event.EmailLower: hash}, MoreContacts: []event.Hashes{{event.EmailLower: hash}}}
	withClient := twice
	withClient.ClientID = "c1"
	say := func(e *event.Event) Addition {
		one := addition("", "")
		one.Identifiers = e.Identifiers("default/shop", nil).Packed()
		return one
	}
	mustAppend(t, a, say(&twice))
	if n := s.redis.Exists(t.Context(), s.keys.join()+":0").Val(); n != 0 {
		t.Error("the address stands for itself, though it was seen with nothing else")
	}
	mustAppend(t, a, say(&withClient), say(&twice))
	client, _ := (&event.Event{ClientID: "c1"}).Whose("default/shop")
	address := twice.Identifiers("default/shop", nil).List[0]
	record := s.redis.HGet(t.Context(), s.keys.join()+":0", string(address[:])).Val()
	if person := record[:min(len(record), len(client))]; person != string(client[:]) {
		t.Errorf("the address stands for %q, want the client id %q", person, client[:])
	}
}

func TestARepeatJoinsNothing(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	first, repeat := seen("c1"), seen("c1 e1")
	repeat.EventID = first.EventID
	mustAppend(t, a, first)
	mustAppend(t, a, repeat, seen("e1"))
	if diff := cmp.Diff([]string{"c1", "e1"}, personsIn(t, s)); diff != "" {
		t.Errorf("persons (-want +got):\n%s", diff)
	}
}

func TestWhoeverHasOneIdentifierCostsNothing(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	for i := range 50 {
		mustAppend(t, a, seen(fmt.Sprint("c", i)), seen(fmt.Sprint("e", i)), seen(fmt.Sprint("u", i)))
	}
	if n := s.redis.Exists(t.Context(), s.keys.join()+":0").Val(); n != 0 {
		t.Error("something is written of them")
	}
	mustAppend(t, a, seen("c1 e1"))
	if n := s.redis.HLen(t.Context(), s.keys.join()+":0").Val(); n != 1 {
		t.Errorf("%d identifiers are written, want that of the e-mail address alone", n)
	}
}

func TestForHowLongIdentifiersStandForAPerson(t *testing.T) {
	for name, test := range map[string]struct {
		// seen says after what time what is seen; the last tells whom it stands for.
		seen []string
		want string
	}{
		"as long as the retention":                          {[]string{"0 c1 e1", "8 c9", "48h e1"}, "c1"},
		"not twice as long":                                 {[]string{"0 c1 e1", "60h c9", "36h e1"}, "e1"},
		"longer where one of them is seen meanwhile":        {[]string{"0 c1 e1", "40h e1", "40h e1", "40h e1"}, "c1"},
		"the other is forgotten all the same":               {[]string{"0 c1 e1 p1", "40h e1", "40h e1", "40h p1"}, "p1"},
		"seen with others too":                              {[]string{"0 c1 e1", "40h c2 e1", "40h e1"}, "c2"},
		"as long as a retention that is shorter meanwhile":  {[]string{"0 c1 e1", "=24h", "23h e1"}, "c1"},
		"no longer than that":                               {[]string{"0 c1 e1", "=24h", "50h c9", "24h e1"}, "e1"},
		"and what was joined last counts, whatever changed": {[]string{"0 c1 e1", "=24h", "1h c2 e1", "=48h", "1h e1"}, "c2"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newStreamAt(t, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
			a := newAppender(t, s, AppenderOptions{JoinedFor: 48 * time.Hour})
			for _, step := range test.seen {
				if retention, changed := strings.CutPrefix(step, "="); changed {
					a.SetJoinedFor(duration(t, retention))
					continue
				}
				after, words, _ := strings.Cut(step, " ")
				c.advance(duration(t, after))
				mustAppend(t, a, seen(words))
			}
			persons := personsIn(t, s)
			if got := persons[len(persons)-1]; got != test.want {
				t.Errorf("after %q it stands for %s, want %s", test.seen, got, test.want)
			}
		})
	}
}

func duration(t testing.TB, text string) time.Duration {
	t.Helper()
	if !strings.HasSuffix(text, "h") {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// whoIsWho is the rule, as one would write it down without thinking of what it costs.
type whoIsWho map[event.Identifier]event.Person

func (w whoIsWho) see(told event.Identifiers) event.Person {
	person := told.List[0]
	for i, one := range told.List {
		known, joined := w[one]
		if joined {
			person = known
			break
		}
		if i == told.Client {
			person = one
			break
		}
	}
	if len(told.List) > 1 {
		for _, one := range told.List {
			w[one] = person
		}
	}
	return person
}

// TestEveryReaderFindsWhoIsWho has collectors append at the same time, repeats among their events, and follows the rule along
// the stream.
func TestEveryReaderFindsWhoIsWho(t *testing.T) {
	client := dial(t, redistest.URL(t))
	s := client.Stream("default", "shop")
	const collectors, calls = 4, 60
	var group sync.WaitGroup
	for collector := range collectors {
		a := newAppender(t, s, AppenderOptions{})
		random := rand.New(rand.NewPCG(7, uint64(collector)))
		group.Go(func() {
			for range calls {
				var additions []Addition
				for range 1 + random.IntN(20) {
					one := seen(randomIdentifiers(random))
					if random.IntN(4) == 0 {
						one.EventID = fmt.Sprint("shared-", random.IntN(50))
					}
					additions = append(additions, one)
				}
				if _, err := a.Append(t.Context(), additions); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	rule, others := whoIsWho{}, 0
	for _, entry := range allEvents(t, s) {
		got, words := personIn(t, entry)
		told := identifiers(words)
		if len(told.List) == 0 {
			continue
		}
		person := rule.see(told)
		if want := strings.TrimRight(string(person[:]), "\x00"); got != want {
			t.Fatalf("the event %s of %q is %s's, want %s's", entry.Position, words, got, want)
		}
		if person != told.Default() {
			others++
		}
	}
	if others < 100 {
		t.Errorf("%d events have a person of their own: the test says little", others)
	}
}

func randomIdentifiers(random *rand.Rand) string {
	var words []string
	for _, kind := range []string{"u", "c", "e", "p"} {
		if random.IntN(2) == 0 {
			words = append(words, fmt.Sprint(kind, random.IntN(60)))
		}
	}
	return strings.Join(words, " ")
}
