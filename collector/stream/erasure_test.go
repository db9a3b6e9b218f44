package stream

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func requestOf(identifiers ...byte) ErasureRequest {
	r := ErasureRequest{ID: uuid.NewString(), Origin: "api:test"}
	for _, id := range identifiers {
		r.Identifiers = append(r.Identifiers, event.Identifier{id})
	}
	return r
}

func entryOfLedger(id byte, at time.Time) erasure.Entry {
	return erasure.Entry{Digest: erasure.Digest{id}, At: at.UTC().Truncate(time.Millisecond)}
}

func TestARequestIsTakenWithTheLedgersEntriesInOneStep(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	first, second := requestOf(1, 2), requestOf(3)
	first.Linked, first.Suppress = true, true
	for _, r := range []ErasureRequest{first, second} {
		if err := s.RequestErasure(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Erasure(ctx, first.ID); !errors.Is(err, ErrNoErasure) {
		t.Errorf("before it stands in the ledger: %v, want ErrNoErasure", err)
	}
	requests, err := s.ErasureRequests(ctx, 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ErasureRequest{first, second}, requests, cmpopts.IgnoreFields(ErasureRequest{}, "At", "Key")); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	if since := time.Since(requests[0].At); since < 0 || since > time.Minute {
		t.Errorf("the request was made at %s", requests[0].At)
	}
	entries := []erasure.Entry{entryOfLedger(1, time.Now()), {Digest: erasure.Digest{2}, At: time.UnixMilli(5).UTC(), Suppress: true}}
	if err := s.Ledgered(ctx, requests[0], entries); err != nil {
		t.Fatal(err)
	}
	if left, err := s.ErasureRequests(ctx, 10); err != nil || len(left) != 1 || left[0].ID != second.ID {
		t.Errorf("left are %v, %v, want the second", left, err)
	}
	list, last, err := s.ReadLedger(ctx, 0, 10)
	if diff := cmp.Diff([]LedgerEntry{{first.ID, entries}}, list); diff != "" || err != nil {
		t.Errorf("ledger: %v (-want +got):\n%s", err, diff)
	}
	if again, after, err := s.ReadLedger(ctx, last, 10); len(again) != 0 || after != last || err != nil {
		t.Errorf("behind the last: %v, %s, %v", again, after, err)
	}
	open, err := s.OpenErasures(ctx, 10)
	if err != nil || len(open) != 1 || open[0].ID != first.ID || !open[0].Follow || !open[0].Suppress {
		t.Errorf("open are %+v, %v", open, err)
	}
	state, err := s.Erasure(ctx, first.ID)
	if err != nil || !state.Requested.Equal(requests[0].At) || state.Ledgered.IsZero() || !state.Hidden.IsZero() || !state.PurgeBy.IsZero() {
		t.Errorf("state %+v, %v", state, err)
	}
}

func TestAnErasureEndsWhenItIsPurged(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	r := requestOf(1)
	ledgered := func() OpenErasure {
		if err := s.Ledgered(ctx, r, []erasure.Entry{entryOfLedger(1, time.Now())}); err != nil {
			t.Fatal(err)
		}
		open, err := s.OpenErasures(ctx, 10)
		if err != nil || len(open) != 1 {
			t.Fatalf("open are %+v, %v", open, err)
		}
		return open[0]
	}
	hidden := func() []HiddenErasure {
		list, err := s.HiddenErasures(ctx, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	seen := ledgered()
	eventually(t, "another millisecond", func() bool { return time.Since(seen.Ledgered) > 2*time.Millisecond })
	newer := ledgered() // a further part of it
	if err := s.HideErasures(ctx, []OpenErasure{seen}); err != nil {
		t.Fatal(err)
	}
	if list := hidden(); len(list) != 0 {
		t.Errorf("hidden are %v, though there is a further part", list)
	}
	if err := s.HideErasures(ctx, []OpenErasure{newer}); err != nil {
		t.Fatal(err)
	}
	list := hidden()
	if open, err := s.OpenErasures(ctx, 10); len(list) != 1 || len(open) != 0 || err != nil {
		t.Fatalf("hidden are %v, open %v, %v", list, open, err)
	}
	if purged, err := s.NotePurged(ctx, []HiddenErasure{{r.ID, list[0].Hidden.Add(-time.Millisecond)}}); err != nil || len(purged) != 0 {
		t.Fatal(purged, err)
	}
	if left := hidden(); len(left) != 1 {
		t.Error("one that was hidden anew since the rewrite began counts as purged")
	}
	if purged, err := s.NotePurged(ctx, list); err != nil || len(purged) != 1 || purged[0] != list[0] {
		t.Fatal(purged, err)
	}
	state, err := s.Erasure(ctx, r.ID)
	if left := hidden(); len(left) != 0 || err != nil || state.Purged.IsZero() || !state.PurgeBy.Equal(state.Hidden.Add(24*time.Hour)) {
		t.Errorf("hidden are %v, state %+v, %v", left, state, err)
	}
	ledgered() // as after a restore
	if state, err := s.Erasure(ctx, r.ID); err != nil || !state.Hidden.IsZero() || !state.Purged.IsZero() {
		t.Errorf("begun again: %+v, %v", state, err)
	}
}

func TestTheLedgerStreamCountsEachIdentifierOnce(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	many := make([]erasure.Entry, ledgerAtOnce+5)
	for i := range many {
		many[i] = erasure.Entry{Digest: erasure.Digest{1, byte(i), byte(i >> 8)}, At: time.UnixMilli(1)}
	}
	for _, entries := range [][]erasure.Entry{many, many[:3], {entryOfLedger(2, time.Now())}} {
		if err := s.Ledgered(ctx, ErasureRequest{ID: "restored-1"}, entries); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.LedgerLength(ctx); n != int64(len(many)+1) || err != nil {
		t.Errorf("LedgerLength = %d, %v, want %d", n, err, len(many)+1)
	}
}

// Who may only ask may write what it likes.
func TestWhatIsNoRequestDoesNoHarm(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	fine := requestOf(1)
	text, err := encodeRequest(fine)
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.NewString()
	for _, junk := range [][]any{
		{requestField, ""},
		{requestField, "null"},
		{requestField, "[]"},
		{requestField, strings.Repeat("[", 16000)},
		{requestField, strings.Repeat("x", 5<<20)},
		{requestField, `{"id":"` + id + `","identifiers":"","origin":"api:x"}`},
		{requestField, `{"id":"` + id + `","identifiers":"AAAA","origin":"api:x"}`},
		{requestField, `{"id":"` + strings.ToUpper(id) + `","identifiers":"AAAAAAAAAAA=","origin":"api:x"}`},
		{requestField, `{"id":"../clock","identifiers":"AAAAAAAAAAA=","origin":"api:x"}`},
		{requestField, `{"id":"` + id + `","identifiers":"AAAAAAAAAAA=","origin":""}`},
		{requestField, `{"id":"` + id + `","identifiers":"AAAAAAAAAAA=","origin":"` + strings.Repeat("o", 300) + `"}`},
		{"another", text},
		{requestField, text, "more", "x"},
		slices.Repeat([]any{"f", "v"}, 5000),
	} {
		if err := s.redis.Do(ctx, append([]any{"XADD", s.keys.erasureRequests(), "*"}, junk...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RequestErasure(ctx, fine); err != nil {
		t.Fatal(err)
	}
	if err := s.redis.Do(ctx, "XADD", s.keys.erasureRequests(), "18446744073709551615-1", requestField, text).Err(); err != nil {
		t.Fatal(err)
	}
	var found []ErasureRequest
	for range 20 { // the large one ends a look
		if found, err = s.ErasureRequests(ctx, 100); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]ErasureRequest{fine}, found, cmpopts.IgnoreFields(ErasureRequest{}, "At", "Key")); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if n := s.redis.XLen(ctx, s.keys.erasureRequests()).Val(); n != 1 {
		t.Errorf("%d entries are left, want the request", n)
	}
}

func TestARequestThatCannotBeTakenIsNotMade(t *testing.T) {
	s := newStream(t)
	for name, change := range map[string]func(*ErasureRequest){
		"no id":                func(r *ErasureRequest) { r.ID = "" },
		"an id in upper case":  func(r *ErasureRequest) { r.ID = strings.ToUpper(r.ID) },
		"no identifier":        func(r *ErasureRequest) { r.Identifiers = nil },
		"too many identifiers": func(r *ErasureRequest) { r.Identifiers = make([]event.Identifier, MaxErasureIdentifiers+1) },
		"no origin":            func(r *ErasureRequest) { r.Origin = "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := requestOf(1)
			change(&r)
			if err := s.RequestErasure(t.Context(), r); err == nil {
				t.Error("it was made")
			}
		})
	}
	most := requestOf()
	most.Identifiers = make([]event.Identifier, MaxErasureIdentifiers)
	if err := s.RequestErasure(t.Context(), most); err != nil {
		t.Fatal(err)
	}
	if found, err := s.ErasureRequests(t.Context(), 1); err != nil || len(found) != 1 {
		t.Errorf("the largest: %v, %v", found, err)
	}
}

// Redis's clock, by which requests are dated, may be a year ahead.
func TestARequestIsDatedByTheClockThatIsBelieved(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"as it goes": 0, "a year ahead": 365 * 24 * time.Hour, "a day behind": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			address := redistest.URL(t)
			s, ctx := dial(t, address).Stream("default", "shop"), t.Context()
			// What a deliverer has seen of a clock that now is as far ahead.
			truth := time.Now().Add(-ahead)
			seen := fmt.Sprintf("%d:%d:%d", time.Now().UnixMilli(), ahead.Milliseconds(), truth.UnixMilli())
			if err := s.redis.Set(ctx, s.keys.clock(), seen, 0).Err(); err != nil {
				t.Fatal(err)
			}
			r := requestOf(1)
			if err := s.RequestErasure(ctx, r); err != nil {
				t.Fatal(err)
			}
			found, err := s.ErasureRequests(ctx, 1)
			if err != nil || found[0].At.Sub(truth).Abs() > time.Minute {
				t.Fatalf("%+v, %v, want it to be made at %s", found, err, truth)
			}
			if err := s.Ledgered(ctx, found[0], []erasure.Entry{entryOfLedger(1, truth)}); err != nil {
				t.Fatal(err)
			}
			state, err := s.Erasure(ctx, r.ID)
			if err != nil || state.Ledgered.Sub(truth).Abs() > time.Minute {
				t.Errorf("%+v, %v, want it in the ledger at %s", state, err, truth)
			}
		})
	}
}

func FuzzErasureRequest(f *testing.F) {
	text, err := encodeRequest(requestOf(1, 2, 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"id":"","identifiers":"AAAA"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := decodeRequest(text)
		if err != nil {
			return
		}
		again, err := encodeRequest(r)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", r, err)
		}
		if back, err := decodeRequest(string(again)); err != nil || !cmp.Equal(r, back) {
			t.Errorf("%+v reads back as %+v, %v", r, back, err)
		}
	})
}

func FuzzLedgerEntry(f *testing.F) {
	f.Add(encodeLedger("restored-1", []erasure.Entry{entryOfLedger(1, time.UnixMilli(5))}))
	f.Add([]byte{9, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		entry, err := decodeLedger(b)
		if err == nil && len(encodeLedger(entry.ErasureID, entry.Entries)) != len(b) {
			t.Errorf("%x reads as %+v", b, entry)
		}
	})
}

func TestWhatBecameOfHandingAnErasureOn(t *testing.T) {
	id, at := uuid.NewString(), func(state ErasureState) []string { return slices.Sorted(maps.Keys(state.Forwarded)) }
	for name, test := range map[string]struct {
		list   []Forwarding
		done   []string
		failed map[string]string
	}{
		"nothing is noted":      {},
		"a platform took it":    {list: []Forwarding{{id, "crm", ""}}, done: []string{"crm"}},
		"another did not":       {list: []Forwarding{{id, "crm", ""}, {id, "product", "http_503"}}, done: []string{"crm"}, failed: map[string]string{"product": "http_503"}},
		"one took a part":       {list: []Forwarding{{id, "crm", "timeout"}, {id, "crm", ""}}, done: []string{"crm"}, failed: map[string]string{"crm": "timeout"}},
		"a reason that is none": {list: []Forwarding{{id, "crm", "ada@example.com"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := newStream(t), t.Context()
			if err := s.Ledgered(ctx, ErasureRequest{ID: id, Identifiers: []event.Identifier{{1}}, Origin: "api:test"}, []erasure.Entry{{At: time.Now()}}); err != nil {
				t.Fatal(err)
			}
			if err := s.NoteForwarded(ctx, test.list); err != nil {
				t.Fatal(err)
			}
			state, err := s.Erasure(ctx, id)
			if err != nil || !slices.Equal(at(state), test.done) || !maps.Equal(state.Unforwarded, test.failed) {
				t.Errorf("%v, %v, %v", state.Forwarded, state.Unforwarded, err)
			}
			for _, moment := range state.Forwarded {
				if time.Since(moment).Abs() > time.Minute {
					t.Errorf("it was at %s", moment)
				}
			}
		})
	}
}
