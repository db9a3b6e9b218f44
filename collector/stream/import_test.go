package stream

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// told is a past of two batches, with the records of the first event in both.
func told() (past iter.Seq2[[]Entry, []Record], entries []Entry, records []Record) {
	start := time.UnixMilli(1_700_000_000_000).UTC()
	for i := range 3000 {
		p := At(start.Add(time.Duration(i/2)*time.Millisecond)) + Position(i%2)
		entries = append(entries, Entry{Position: p, Data: []byte{byte(i), byte(i >> 8)}})
		records = append(records, Record{
			Event: p, Platform: "crm", Status: Delivered, Attempts: 1, Latency: 20 * time.Millisecond, At: start.Add(time.Duration(i) * time.Second),
		})
	}
	late := Record{Event: entries[0].Position, Platform: "meta", Status: Expired, Attempts: 9, Reason: "too_old", At: start.Add(time.Hour)}
	past = func(yield func([]Entry, []Record) bool) {
		if yield(entries[:1000], records[:1000]) && yield(nil, nil) {
			yield(entries[1000:], append(records[1000:3000:3000], late))
		}
	}
	return past, entries, append(records, late)
}

func TestAnImportedPastIsRead(t *testing.T) {
	s := newStream(t)
	past, entries, records := told()
	if err := s.Import(t.Context(), past); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(entries, allEvents(t, s)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(records, allRecords(t, s)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	bounds, err := s.RecordBounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bounds.Last.Time(), records[3000].At; !got.Equal(want) {
		t.Errorf("the records are dated %s, want %s: as they were decided", got, want)
	}
	if keys := keysIn(t, s); len(keys) != 2 {
		t.Errorf("got the keys %v, want the two streams alone", keys)
	}
	// What comes now comes behind the past.
	mustAppend(t, newAppender(t, s, AppenderOptions{}), addition("new", ""))
	all := allEvents(t, s)
	if len(all) != len(entries)+1 || all[len(all)-1].Position <= entries[len(entries)-1].Position {
		t.Errorf("got %d events after another one, the last at %s", len(all), all[len(all)-1].Position)
	}
}

func TestAnImportTakesAFreshPropertyAlone(t *testing.T) {
	past, _, _ := told()
	for name, test := range map[string]struct {
		before func(t *testing.T, s *Stream)
		want   error
	}{
		"nothing was ever there":           {func(*testing.T, *Stream) {}, nil},
		"a deliverer has made its groups":  {func(t *testing.T, s *Stream) { ensure(t, s, "crm") }, nil},
		"an import was broken off":         {func(t *testing.T, s *Stream) { brokenOff(t, s) }, nil},
		"an event is there":                {func(t *testing.T, s *Stream) { fill(t, s, 1) }, ErrNotEmpty},
		"all events were trimmed":          {func(t *testing.T, s *Stream) { fill(t, s, 1); s.redis.XTrimMaxLen(t.Context(), s.keys.events(), 0) }, ErrNotEmpty},
		"another import has come before":   {func(t *testing.T, s *Stream) { imported(t, s) }, ErrNotEmpty},
		"a record without event was there": {func(t *testing.T, s *Stream) { record(t, s) }, ErrNotEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(t)
			test.before(t, s)
			events, records := allEvents(t, s), allRecords(t, s)
			if err := s.Import(t.Context(), past); !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if test.want == nil {
				events, records = nil, nil
				imported, _, _ := told()
				for e, r := range imported {
					events, records = append(events, e...), append(records, r...)
				}
			}
			if diff := cmp.Diff(events, allEvents(t, s)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(records, allRecords(t, s)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABrokenImportLeavesNothing(t *testing.T) {
	past, entries, _ := told()
	for name, change := range map[string]struct {
		past func(s *Stream, stop context.CancelFunc) iter.Seq2[[]Entry, []Record]
		want error
	}{
		"the caller has gone": {func(_ *Stream, stop context.CancelFunc) iter.Seq2[[]Entry, []Record] {
			return func(yield func([]Entry, []Record) bool) {
				stop()
				past(yield)
			}
		}, context.Canceled},
		"the events are out of order": {func(*Stream, context.CancelFunc) iter.Seq2[[]Entry, []Record] {
			return func(yield func([]Entry, []Record) bool) {
				yield([]Entry{entries[1], entries[0]}, nil)
			}
		}, nil},
		"an event comes in the meantime": {func(s *Stream, _ context.CancelFunc) iter.Seq2[[]Entry, []Record] {
			return func(yield func([]Entry, []Record) bool) {
				past(yield)
				fill(t, s, 1)
			}
		}, ErrNotEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := s.Import(ctx, change.past(s, cancel))
			if err == nil || (change.want != nil && !errors.Is(err, change.want)) {
				t.Errorf("got %v, want %v", err, change.want)
			}
			left := 0
			if errors.Is(change.want, ErrNotEmpty) {
				left = 1
			}
			if got := len(allEvents(t, s)); got != left {
				t.Errorf("%d events are left, want %d", got, left)
			}
			for _, key := range keysIn(t, s) {
				if key == s.keys.importedEvents() || key == s.keys.importedDeliveries() {
					t.Errorf("%s is left", key)
				}
			}
		})
	}
}

func keysIn(t *testing.T, s *Stream) []string {
	t.Helper()
	found, err := s.redis.Keys(context.Background(), s.keys.pattern()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func ensure(t *testing.T, s *Stream, platform string) {
	t.Helper()
	if _, err := s.EnsureGroup(t.Context(), platform, GroupState{}); err != nil {
		t.Fatal(err)
	}
}

// brokenOff leaves the beginning of an import that had come further than the next one begins.
func brokenOff(t *testing.T, s *Stream) {
	t.Helper()
	_, entries, records := told()
	half := func(yield func([]Entry, []Record) bool) { yield(entries[500:], records[500:]) }
	if err := s.writeDrafts(t.Context(), half); err != nil {
		t.Fatal(err)
	}
}

func imported(t *testing.T, s *Stream) {
	t.Helper()
	past, _, _ := told()
	if err := s.Import(t.Context(), past); err != nil {
		t.Fatal(err)
	}
}

func record(t *testing.T, s *Stream) {
	t.Helper()
	r := Record{Event: At(time.UnixMilli(1_700_000_000_000)), Platform: "crm", Status: Skipped, Reason: "platform_removed", At: time.UnixMilli(1_700_000_000_001).UTC()}
	if err := s.Record(t.Context(), "crm", []Record{r}); err != nil {
		t.Fatal(err)
	}
}

func TestAPastIsImportedIntoACluster(t *testing.T) {
	client := dial(t, redistest.StartCluster(t).URL)
	past, entries, records := told()
	for _, name := range []string{"shop", "blog", "forum"} { // on different nodes
		s := client.Stream("default", name)
		if err := s.Import(t.Context(), past); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(entries, allEvents(t, s)); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(records, allRecords(t, s)); diff != "" {
			t.Errorf("%s: records (-want +got):\n%s", name, diff)
		}
		if err := s.Import(t.Context(), past); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("%s: a second time: %v", name, err)
		}
	}
}
