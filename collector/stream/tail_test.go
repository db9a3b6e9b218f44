package stream

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadEventsPages(t *testing.T) {
	s := newStream(t)
	positions := fill(t, s, 25)
	var got []Position
	after := Position(0)
	for {
		page, err := s.ReadEvents(t.Context(), after, 10, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			got = append(got, e.Position)
		}
		after = got[len(got)-1]
	}
	if diff := cmp.Diff(positions, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

func TestEntriesAreFoundByTheirPositions(t *testing.T) {
	s := newStream(t)
	positions := fill(t, s, 25)
	for name, test := range map[string]struct{ asked, want []Position }{
		"none":                     {nil, nil},
		"some, the newest first":   {[]Position{positions[20], positions[3], positions[4]}, []Position{positions[20], positions[3], positions[4]}},
		"one that is gone":         {[]Position{positions[1], positions[24] + 1, positions[0] - 1, positions[2]}, []Position{positions[1], positions[2]}},
		"the same again and again": {[]Position{positions[5], positions[5]}, []Position{positions[5], positions[5]}},
	} {
		t.Run(name, func(t *testing.T) {
			entries, err := s.Entries(t.Context(), test.asked)
			if err != nil {
				t.Fatal(err)
			}
			var got []Position
			for _, e := range entries {
				if got = append(got, e.Position); len(e.Data) == 0 {
					t.Errorf("entry %s is empty", e.Position)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("positions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTailing(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	t.Run("waits for an event", func(t *testing.T) {
		got := make(chan []Entry)
		go func() {
			entries, err := s.ReadEvents(t.Context(), 0, 10, 10*time.Second)
			if err != nil {
				t.Error(err)
			}
			got <- entries
		}()
		eventually(t, "the read blocks", func() bool {
			return infoField(s.redis.Info(t.Context(), "clients").Val(), "blocked_clients") == "1"
		})
		mustAppend(t, a, addition("one", ""))
		if entries := <-got; len(entries) != 1 || string(entries[0].Data) != "entry of one" {
			t.Errorf("ReadEvents = %v, want the event", entries)
		}
	})
	t.Run("waits for records", func(t *testing.T) {
		got := make(chan Records)
		go func() {
			records, err := s.ReadRecords(t.Context(), 0, 10, 10*time.Second)
			if err != nil {
				t.Error(err)
			}
			got <- records
		}()
		want := decided(At(time.UnixMilli(1000)), Failed, 2).Record
		if err := s.Record(t.Context(), "meta", []Record{want}); err != nil {
			t.Fatal(err)
		}
		a := <-got
		if diff := cmp.Diff([]Record{want}, a.Records); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		if n := s.redis.XLen(t.Context(), s.keys.deliveries()).Val(); n != 1 || a.Last == 0 {
			t.Errorf("the last of %d entries of records is at %s", n, a.Last)
		}
	})
	t.Run("ends with its time", func(t *testing.T) {
		bounds, err := s.Bounds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entries, err := s.ReadEvents(t.Context(), bounds.Last, 10, 20*time.Millisecond)
		if err != nil || len(entries) != 0 {
			t.Errorf("ReadEvents = %v, %v, want nothing", entries, err)
		}
		records, err := s.ReadRecords(t.Context(), bounds.Last, 10, 20*time.Millisecond)
		if err != nil || records.Last < bounds.Last {
			t.Errorf("last = %v, %v, want no way back", records.Last, err)
		}
	})
	t.Run("ends with its context, at once", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := s.ReadEvents(ctx, 1<<62, 10, time.Minute)
			ended <- err
		}()
		eventually(t, "the read blocks", func() bool {
			return infoField(s.redis.Info(t.Context(), "clients").Val(), "blocked_clients") == "1"
		})
		cancel()
		begin := time.Now()
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(begin) > time.Second {
			t.Errorf("ReadEvents = %v after %s, want the context's end at once", err, time.Since(begin))
		}
	})
}

func TestBounds(t *testing.T) {
	s := newStream(t)
	if bounds, err := s.Bounds(t.Context()); err != nil || bounds != (Bounds{}) {
		t.Errorf("Bounds of a new property = %+v, %v, want none", bounds, err)
	}
	if bounds, err := s.RecordBounds(t.Context()); err != nil || bounds != (Bounds{}) {
		t.Errorf("RecordBounds of a new property = %+v, %v, want none", bounds, err)
	}
	p := fill(t, s, 3)
	if err := s.redis.XDel(t.Context(), s.keys.events(), p[2].String()).Err(); err != nil {
		t.Fatal(err)
	}
	want := Bounds{First: p[0], Last: p[1], Newest: p[2], MaxDeleted: p[2], Length: 2, Added: 3}
	if bounds, err := s.Bounds(t.Context()); err != nil || bounds != want {
		t.Errorf("Bounds = %+v, %v, want %+v", bounds, err, want)
	}
	for position, want := range map[Position]bool{p[0]: true, p[2]: false, p[1] + 1: false} {
		if got, err := s.Exists(t.Context(), position); err != nil || got != want {
			t.Errorf("Exists(%s) = %v, %v, want %v", position, got, err, want)
		}
	}
}

func TestUnreadableRecordsAreNamed(t *testing.T) {
	s := newStream(t)
	good := decided(At(time.UnixMilli(1000)), Delivered, 1).Record
	record := func() {
		if err := s.Record(t.Context(), "meta", []Record{good}); err != nil {
			t.Fatal(err)
		}
	}
	record()
	id, err := s.redis.Do(t.Context(), "XADD", s.keys.deliveries(), "*", recordField, "\xff\xff").Text()
	if err != nil {
		t.Fatal(err)
	}
	record()
	records, err := s.ReadRecords(t.Context(), 0, 10, 0)
	var unreadable *RecordsError
	if !errors.As(err, &unreadable) || unreadable.Position.String() != id || records.Last != unreadable.Position || len(records.Records) != 1 {
		t.Fatalf("ReadRecords = %v, %s, %v, want the first record and an error about %s", records.Records, records.Last, err, id)
	}
	records, err = s.ReadRecords(t.Context(), records.Last, 10, 0)
	if diff := cmp.Diff([]Record{good}, records.Records); diff != "" || err != nil {
		t.Errorf("reading on: %v, records (-want +got):\n%s", err, diff)
	}
}

func TestAnEntryOfAnotherFormHasNoDataAndTheNextOneFollows(t *testing.T) {
	s := newStream(t)
	for _, fields := range [][]any{{eventField, "x", "more", "y"}, {"another", "x"}, {eventField, "\r\n"}} {
		if err := s.redis.Do(t.Context(), append([]any{"XADD", s.keys.events(), "*"}, fields...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := s.ReadEvents(t.Context(), 0, 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, string(entry.Data))
	}
	if diff := cmp.Diff([]string{"", "", "\r\n"}, got); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestFewEntriesMayHoldManyRecords(t *testing.T) {
	s := newStream(t)
	const entries, each = 5, recordsAtOnce / 2
	for n := range entries {
		records := make([]Record, each)
		for i := range records {
			records[i] = decided(At(time.UnixMilli(int64(1000+n*each+i))), Delivered, 1).Record
		}
		if err := s.Record(t.Context(), "meta", records); err != nil {
			t.Fatal(err)
		}
	}
	got, after := 0, Position(0)
	for {
		records, err := s.ReadRecords(t.Context(), after, 1000, 0)
		if err != nil {
			t.Fatal(err)
		}
		if records.Last == after {
			break
		}
		if len(records.Records) >= recordsAtOnce+each {
			t.Errorf("%d records at once, want at most those of the entry with which %d are reached", len(records.Records), recordsAtOnce)
		}
		for _, r := range records.Records {
			if want := At(time.UnixMilli(int64(1000 + got))); r.Event != want {
				t.Fatalf("record %d is of event %s, want %s", got, r.Event, want)
			}
			got++
		}
		after = records.Last
	}
	if got != entries*each {
		t.Errorf("%d records, want %d", got, entries*each)
	}
}

func FuzzParsePosition(f *testing.F) {
	for _, id := range []string{"0-0", "1700000000000-5", "17592186044415-1048575", "1-1048576", "1", "-1", "1-", "01-02"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		p, err := ParsePosition(id)
		if err == nil {
			if again, err := ParsePosition(p.String()); again != p || err != nil {
				t.Errorf("%q: %s reads back as %s, %v", id, p, again, err)
			}
		}
	})
}
