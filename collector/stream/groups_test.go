package stream

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// platformStream returns a stream with n events and a group "meta" before them all.
func platformStream(t testing.TB, n int) (*Stream, []Position) {
	t.Helper()
	s := newStream(t)
	positions := fill(t, s, n)
	if _, err := s.EnsureGroup(t.Context(), "meta", 0); err != nil {
		t.Fatal(err)
	}
	return s, positions
}

func mustRead(t testing.TB, s *Stream, consumer string, count int) []Position {
	t.Helper()
	deliveries, err := s.Read(t.Context(), "meta", consumer, count, 0)
	if err != nil {
		t.Fatal(err)
	}
	return positionsOf(deliveries)
}

func mustDue(t testing.TB, s *Stream, now time.Time, lease time.Duration) []Delivery {
	t.Helper()
	deliveries, _, err := s.Due(t.Context(), "meta", now, lease, 100)
	if err != nil {
		t.Fatal(err)
	}
	return deliveries
}

func mustSettle(t testing.TB, s *Stream, settlements ...Settlement) {
	t.Helper()
	if err := s.Settle(t.Context(), "meta", settlements); err != nil {
		t.Fatal(err)
	}
}

// decided is a settlement's record, decided a quarter of a second after the event.
func decided(p Position, status Status, attempts int) Settlement {
	return Settlement{Record: Record{Event: p, Platform: "meta", Status: status, Attempts: attempts, At: p.Time().Add(250 * time.Millisecond)}}
}

func retryAt(p Position, attempts int, at time.Time) Settlement {
	settlement := decided(p, Retrying, attempts)
	settlement.RetryAt = at
	return settlement
}

// open returns what the group's platform still has to do: claimed and waiting events.
func open(t testing.TB, s *Stream) (pending, waiting int64) {
	t.Helper()
	groups, err := s.Groups(t.Context())
	if err != nil || len(groups) != 1 {
		t.Fatalf("Groups = %v, %v, want one", groups, err)
	}
	return groups[0].Pending, groups[0].Waiting
}

func TestGroupBeginsWhereItIsTold(t *testing.T) {
	s := newStream(t)
	positions := fill(t, s, 3)
	for platform, test := range map[string]struct {
		after Position
		want  []Position
	}{
		"beginning": {0, positions},
		"middle":    {positions[0], positions[1:]},
		"end":       {positions[2], nil},
	} {
		for i, want := range []bool{true, false} {
			if created, err := s.EnsureGroup(t.Context(), platform, test.after); err != nil || created != want {
				t.Errorf("%s: call %d of EnsureGroup = %v, %v, want %v", platform, i, created, err, want)
			}
		}
		got, err := s.Read(t.Context(), platform, "pod-1", 10, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, positionsOf(got), cmp.Transformer("nil", func(p []Position) []Position { return append([]Position{}, p...) })); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", platform, diff)
		}
	}
	groups, err := s.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Group{
		{Platform: "beginning", LastDelivered: positions[2], Pending: 3},
		{Platform: "end", LastDelivered: positions[2]},
		{Platform: "middle", LastDelivered: positions[2], Pending: 2},
	}
	slices.SortFunc(groups, func(a, b Group) int { return cmpString(a.Platform, b.Platform) })
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Errorf("Groups (-want +got):\n%s", diff)
	}
}

func cmpString(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func TestNewPropertyHasNoGroups(t *testing.T) {
	s := newStream(t)
	if groups, err := s.Groups(t.Context()); err != nil || len(groups) != 0 {
		t.Errorf("Groups = %v, %v, want none", groups, err)
	}
	if err := s.DestroyGroup(t.Context(), "meta"); err != nil {
		t.Errorf("DestroyGroup = %v, want that a missing group is no error", err)
	}
	if created, err := s.EnsureGroup(t.Context(), "meta", 0); err != nil || !created {
		t.Errorf("EnsureGroup = %v, %v, want a group before the first event", created, err)
	}
}

func TestMissingGroupIsTold(t *testing.T) {
	s, positions := platformStream(t, 1)
	mustRead(t, s, "pod-1", 1)
	mustSettle(t, s, retryAt(positions[0], 1, time.Now()))
	if err := s.DestroyGroup(t.Context(), "meta"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), "meta", "pod-1", 1, 0); !errors.Is(err, ErrNoGroup) {
		t.Errorf("Read = %v, want ErrNoGroup", err)
	}
	if _, _, err := s.Reclaim(t.Context(), "meta", "pod-1", 0, 1); !errors.Is(err, ErrNoGroup) {
		t.Errorf("Reclaim = %v, want ErrNoGroup", err)
	}
	if taken := mustDue(t, s, time.Now().Add(time.Hour), time.Minute); len(taken) != 0 {
		t.Errorf("Due = %v, want that its retries have gone with the group", taken)
	}
}

func TestReadWaits(t *testing.T) {
	s, _ := platformStream(t, 0)
	a := newAppender(t, s, AppenderOptions{})
	t.Run("for an event to come", func(t *testing.T) {
		got := make(chan []Delivery)
		go func() {
			deliveries, err := s.Read(t.Context(), "meta", "pod-1", 10, 10*time.Second)
			if err != nil {
				t.Error(err)
			}
			got <- deliveries
		}()
		mustAppend(t, a, addition("one", ""))
		if deliveries := <-got; len(deliveries) != 1 || string(deliveries[0].Data) != "entry of one" || deliveries[0].Attempts != 0 {
			t.Errorf("Read = %v, want the event", deliveries)
		}
	})
	t.Run("no longer than it is told", func(t *testing.T) {
		deliveries, err := s.Read(t.Context(), "meta", "pod-1", 10, 20*time.Millisecond)
		if err != nil || len(deliveries) != 0 {
			t.Errorf("Read = %v, %v, want nothing", deliveries, err)
		}
	})
	t.Run("no longer than its context, and loses nothing then", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := s.Read(ctx, "meta", "gone", 10, time.Minute)
			ended <- err
		}()
		eventually(t, "the read blocks", func() bool {
			return infoField(s.redis.Info(t.Context(), "clients").Val(), "blocked_clients") == "1"
		})
		cancel()
		begin := time.Now()
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(begin) > time.Second {
			t.Errorf("Read = %v after %s, want the context's end at once", err, time.Since(begin))
		}
		mustAppend(t, a, addition("two", ""))
		var taken []Delivery
		eventually(t, "the event that the abandoned read got is released", func() bool {
			some, _, err := s.Reclaim(t.Context(), "meta", "pod-2", time.Hour, 10)
			if err != nil {
				t.Error(err)
			}
			taken = append(taken, some...)
			return len(taken) > 0
		})
		if string(taken[0].Data) != "entry of two" {
			t.Errorf("Reclaim = %v, want the event", taken)
		}
	})
}

func TestReclaimTakesWhatOthersLeave(t *testing.T) {
	s, positions := platformStream(t, 300)
	mustRead(t, s, "crashed", 200)
	mustRead(t, s, "alive", 100)
	if err := s.Release(t.Context(), "meta", "crashed", positions[:200]); err != nil {
		t.Fatal(err)
	}
	if err := s.redis.XDel(t.Context(), s.keys.events(), positions[1].String()).Err(); err != nil {
		t.Fatal(err)
	}
	taken, gone, err := s.Reclaim(t.Context(), "meta", "alive", time.Hour, 150)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Position{positions[1]}, gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
	rest, _, err := s.Reclaim(t.Context(), "meta", "alive", time.Hour, 150)
	if err != nil {
		t.Fatal(err)
	}
	got := append(positionsOf(taken), positionsOf(rest)...)
	if diff := cmp.Diff(append([]Position{positions[0]}, positions[2:200]...), got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
}

func TestAcknowledgedEventsAreClosedWithoutRecord(t *testing.T) {
	s, _ := platformStream(t, 3)
	if err := s.Acknowledge(t.Context(), "meta", mustRead(t, s, "pod-1", 10)); err != nil {
		t.Fatal(err)
	}
	if pending, waiting := open(t, s); pending != 0 || waiting != 0 {
		t.Errorf("open = %d, %d, want none", pending, waiting)
	}
	if records := allRecords(t, s); len(records) != 0 {
		t.Errorf("records = %v, want none", records)
	}
}
