package stream

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOneArchiveAtATimeNotesHowFarItIs(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	state := func() ArchiveState {
		t.Helper()
		found, err := s.ArchiveState(ctx)
		if err != nil {
			t.Fatal(err)
		}
		found.Beat = 0
		return found
	}
	if diff := cmp.Diff(ArchiveState{}, state()); diff != "" {
		t.Errorf("before anybody has begun (-want +got):\n%s", diff)
	}
	begin := func() uint64 {
		t.Helper()
		epoch, err := s.BeginArchive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return epoch
	}
	first := begin()
	at := time.UnixMilli(1_700_000_000_123).UTC()
	if _, _, err := s.NoteArchive(ctx, first, at, ArchiveNote{EventsLane, 5<<20 + 1, ArchiveIntent{7 << 20, "token"}}, ArchiveNote{RecordsLane, 6 << 20, ArchiveIntent{}}); err != nil {
		t.Fatal(err)
	}
	want := ArchiveState{Epoch: 1, Events: 5<<20 + 1, EventsIntent: ArchiveIntent{7 << 20, "token"}, Records: 6 << 20, Current: at}
	if diff := cmp.Diff(want, state()); diff != "" {
		t.Errorf("after a note (-want +got):\n%s", diff)
	}
	if err := s.NoteBeyond(ctx, 4<<20+1<<19); err != nil {
		t.Fatal(err)
	}
	want.Beyond = 4<<20 + 1<<19
	if diff := cmp.Diff(want, state()); diff != "" {
		t.Errorf("after a note of what the history alone has (-want +got):\n%s", diff)
	}
	second := begin()
	if _, _, err := s.NoteArchive(ctx, first, time.Time{}, ArchiveNote{EventsLane, 9 << 20, ArchiveIntent{}}); !errors.Is(err, ErrArchiveDeposed) {
		t.Errorf("the first one notes with %v, want %v", err, ErrArchiveDeposed)
	}
	want.Epoch = 2
	if diff := cmp.Diff(want, state()); diff != "" {
		t.Errorf("after a note that was refused (-want +got):\n%s", diff)
	}
	if _, _, err := s.NoteArchive(ctx, second, time.Time{}, ArchiveNote{EventsLane, 7 << 20, ArchiveIntent{}}); err != nil {
		t.Fatal(err)
	}
	want.Events, want.EventsIntent = 7<<20, ArchiveIntent{}
	if diff := cmp.Diff(want, state()); diff != "" {
		t.Errorf("after the second one's note (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotedAndMakesNoSenseIsAsThoughItWereNot(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	for _, field := range []string{"epoch", "events", "records", "lost", "beyond", "current", "events:intent", "beat"} {
		if err := s.redis.HSet(ctx, s.keys.archive(), field, "x").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if state, err := s.ArchiveState(ctx); err != nil || state != (ArchiveState{}) {
		t.Errorf("ArchiveState = %+v, %v; want none", state, err)
	}
	if epoch, err := s.BeginArchive(ctx); epoch != 1 || err != nil {
		t.Errorf("BeginArchive = %d, %v; want 1", epoch, err)
	}
	if lost, records, err := s.NoteArchive(ctx, 1, time.Time{}); lost != 0 || records != 0 || err != nil {
		t.Errorf("NoteArchive = %s, %s, %v; want nothing lost", lost, records, err)
	}
}

func TestTrimKeepsWhatIsNotArchived(t *testing.T) {
	since := func(hour int) time.Duration { return time.Duration(trimHour-hour) * time.Hour }
	all := TrimPolicy{Age: since(100), HardAge: since(100), Archived: true}
	for name, test := range map[string]struct {
		// confirmed is how many of ten events and of their records are archived; -1 is that no archive has ever begun.
		events, records int
		policy          TrimPolicy
		// left and recordsLeft are how many stay, lost whether something is noted to be lost.
		left, recordsLeft int
		lost              bool
	}{
		"by age goes what is archived":                                 {4, 4, all, 6, 6, false},
		"all is archived, and goes by age":                             {10, 10, all, 0, 0, false},
		"records that are not archived stay":                           {10, 3, all, 0, 7, false},
		"records go no further than events":                            {3, 10, all, 7, 7, false},
		"before an archive has begun nothing goes by age":              {-1, -1, all, 10, 10, false},
		"before an archive has confirmed anything nothing goes by age": {0, 0, all, 10, 10, false},
		"beyond the number of events goes what is archived":            {8, 8, TrimPolicy{MaxEvents: 4, Archived: true}, 4, 4, false},
		"beyond the number of events goes what is not":                 {2, 1, TrimPolicy{MaxEvents: 4, Archived: true}, 4, 4, true},
		"where there is no history any more all goes, and is noted":    {2, 2, TrimPolicy{HardAge: since(5)}, 5, 5, true},
		"without a history nothing is noted":                           {-1, -1, TrimPolicy{HardAge: since(5)}, 5, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, positions := hourly(t, 10)
			ctx := t.Context()
			mustRead(t, s, "pod-1", 10)
			if err := s.Acknowledge(ctx, "meta", positions); err != nil {
				t.Fatal(err)
			}
			recorded := make([]Position, len(positions))
			for i, p := range positions {
				entry := recordsEntry(s.keys.deliveries(), "meta", []Record{decided(p, Delivered, 1).Record})
				recorded[i] = At(p.Time().Add(time.Second))
				entry.ID = recorded[i].String()
				if err := s.redis.XAdd(ctx, entry).Err(); err != nil {
					t.Fatal(err)
				}
			}
			at := func(list []Position, n int) Position {
				if n == 0 {
					return 0
				}
				return list[n-1]
			}
			if test.events >= 0 {
				epoch, err := s.BeginArchive(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := s.NoteArchive(ctx, epoch, time.Time{}, ArchiveNote{EventsLane, at(positions, test.events), ArchiveIntent{}},
					ArchiveNote{RecordsLane, at(recorded, test.records), ArchiveIntent{}}); err != nil {
					t.Fatal(err)
				}
			}
			trimAll(t, s, test.policy)
			if left, records := len(allEvents(t, s)), len(allRecords(t, s)); left != test.left || records != test.recordsLeft {
				t.Errorf("%d events and %d records stay, want %d and %d", left, records, test.left, test.recordsLeft)
			}
			state, err := s.ArchiveState(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var lost, lostRecords Position
			if test.lost {
				lost = positions[10-test.left] - 1
				lostRecords = At(positions[10-test.recordsLeft].Time()) - 1
			}
			if state.Lost != lost || state.LostRecords != lostRecords {
				t.Errorf("up to %s and %s are lost, want %s and %s", state.Lost, state.LostRecords, lost, lostRecords)
			}
		})
	}
}
