package erasure

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
)

var noon = time.Date(2026, 7, 8, 12, 0, 0, 0, time.UTC)

func TestADigestIsAnHMACOfItsSalt(t *testing.T) {
	salt, id := Salt{1, 2, 3}, event.Identifier{4, 5, 6}
	mac := hmac.New(sha256.New, salt[:])
	mac.Write(id[:])
	want := Digest(mac.Sum(nil))
	digester := salt.Digester()
	for range 3 {
		if got := digester.Digest(id); got != want {
			t.Errorf("%x, want %x", got, want)
		}
	}
	if got := salt.Digest(id); got != want {
		t.Errorf("%x, want %x", got, want)
	}
	if other := (Salt{9}); other.Digest(id) == want {
		t.Error("another salt makes the same digest")
	}
}

func TestWhoIsErased(t *testing.T) {
	salt := Salt{1}
	ids := func(numbers ...byte) event.Identifiers {
		found := event.Identifiers{Client: -1}
		for _, n := range numbers {
			found.List = append(found.List, event.Identifier{n})
		}
		return found
	}
	ledger := &Ledger{Salt: salt}
	add := func(n byte, at time.Time, suppress bool) {
		ledger.Add(Entry{Digest: salt.Digest(event.Identifier{n}), At: at, Suppress: suppress})
	}
	add(1, noon, false)
	add(2, noon, true)
	add(3, noon, true) // asked for twice
	add(3, noon.Add(time.Hour), false)
	add(4, noon.Add(time.Hour), false)
	add(4, noon, false)
	for name, c := range map[string]struct {
		ledger             *Ledger
		ids                event.Identifiers
		received           time.Time
		erased, suppressed bool
	}{
		"nobody where there is no ledger":                       {nil, ids(1), noon, false, false},
		"nobody where it is empty":                              {&Ledger{}, ids(1), noon, false, false},
		"nobody who has no identifier":                          {ledger, ids(), noon, false, false},
		"nobody who is not in it":                               {ledger, ids(9), noon, false, false},
		"who was received before":                               {ledger, ids(1), noon.Add(-time.Hour), true, false},
		"who was received in the same millisecond":              {ledger, ids(1), noon, true, false},
		"not who comes later":                                   {ledger, ids(1), noon.Add(time.Millisecond), false, false},
		"who comes later and is suppressed":                     {ledger, ids(2), noon.Add(time.Hour), true, true},
		"who has it among other identifiers":                    {ledger, ids(9, 8, 1), noon, true, false},
		"who was asked for twice, for as long as either holds":  {ledger, ids(3), noon.Add(2 * time.Hour), true, true},
		"until the later of two times, whichever is told first": {ledger, ids(4), noon.Add(time.Hour), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.ledger.Erased(c.ids, c.received); got != c.erased {
				t.Errorf("erased: %v, want %v", got, c.erased)
			}
			if got := c.ledger.Suppressed(c.ids); got != c.suppressed {
				t.Errorf("suppressed: %v, want %v", got, c.suppressed)
			}
		})
	}
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for range 100 {
				if !ledger.Erased(ids(9, 1), noon) || ledger.Erased(ids(9), noon) {
					t.Error("it says otherwise where many ask")
				}
			}
		})
	}
	asking.Wait()
}

func filled() *Ledger {
	l := &Ledger{Salt: Salt{1, 2}}
	l.Add(Entry{Digest: Digest{1}, At: noon, Suppress: true})
	l.Add(Entry{Digest: Digest{2}, At: time.UnixMilli(0).UTC()})
	l.Add(Entry{Digest: Digest{3}, At: time.UnixMilli(1<<48 - 1).UTC()})
	return l
}

func sorted(l *Ledger) []Entry {
	list := l.Entries()
	slices.SortFunc(list, func(a, b Entry) int { return bytes.Compare(a.Digest[:], b.Digest[:]) })
	return list
}

func TestALedgerReadsAsItWasWritten(t *testing.T) {
	for name, want := range map[string]*Ledger{"with entries": filled(), "without": {Salt: Salt{9}}} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(want.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" || got.Salt != want.Salt || got.Len() != want.Len() {
				t.Errorf("salt %x, %d entries (-want +got):\n%s", got.Salt, got.Len(), diff)
			}
		})
	}
	if n := len(filled().Encode()); n != 1+32+3*15 {
		t.Errorf("three entries take %d bytes", n)
	}
}

func TestWhatIsNoLedgerIsRefused(t *testing.T) {
	fine := filled().Encode()
	for name, b := range map[string][]byte{
		"nothing": nil, "a version alone": fine[:1], "a salt that is cut": fine[:20], "an entry that is cut": fine[:len(fine)-1], "more than entries": append(slices.Clone(fine), 1),
		"another version": append([]byte{2}, fine[1:]...),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(b); !errors.Is(err, ErrMalformed) {
				t.Errorf("%v, want ErrMalformed", err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(filled().Encode())
	f.Add((&Ledger{}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(l.Encode())
		if err != nil || again.Salt != l.Salt || !cmp.Equal(sorted(again), sorted(l)) {
			t.Errorf("%x reads back otherwise: %v", b, err)
		}
	})
}

func BenchmarkErased(b *testing.B) {
	l := filled()
	ids := event.Identifiers{List: []event.Identifier{{1}, {2}, {3}}, Client: 1}
	b.ReportAllocs()
	for b.Loop() {
		l.Erased(ids, noon)
	}
}
