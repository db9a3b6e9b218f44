package stream

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// platformStream returns a stream with n events and a group "meta" before them all.
func platformStream(t testing.TB, n int) (*Stream, []Position) {
	t.Helper()
	s := newStream(t)
	positions := fill(t, s, n)
	if _, err := s.EnsureGroup(t.Context(), "meta", GroupState{}); err != nil {
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

// open returns what the group's platform still has to do: pending and waiting events.
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
		state GroupState
		want  []Position
	}{
		"beginning": {GroupState{}, positions},
		"middle":    {GroupState{After: positions[0], Passed: 1}, positions[1:]},
		"end":       {GroupState{After: positions[2], Passed: 3}, nil},
	} {
		for i, want := range []bool{true, false} {
			if created, err := s.EnsureGroup(t.Context(), platform, test.state); err != nil || created != want {
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
	if created, err := s.EnsureGroup(t.Context(), "meta", GroupState{}); err != nil || !created {
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
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(begin) > 3*time.Second {
			t.Errorf("Read = %v after %s, want the context's end soon", err, time.Since(begin))
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

func TestReadGivesBackWhatItIsHandedAfterItsEndBeforeItReturns(t *testing.T) {
	url := redistest.URL(t)
	staying := dial(t, url).Stream("default", "shop")
	ending, err := Dial(url, DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := newAppender(t, staying, AppenderOptions{})
	if _, err := staying.EnsureGroup(t.Context(), "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := ending.Stream("default", "shop").Read(ctx, "meta", "replaced", 10, 2*time.Second)
		ended <- err
	}()
	eventually(t, "the read blocks", func() bool {
		return infoField(staying.redis.Info(t.Context(), "clients").Val(), "blocked_clients") == "1"
	})
	cancel()
	mustAppend(t, a, addition("late", ""))
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Read = %v, want the context's end", err)
	}
	if err := ending.Close(); err != nil { // as where the process ends
		t.Fatal(err)
	}
	taken, _, err := staying.Reclaim(t.Context(), "meta", "successor", time.Hour, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(taken) != 1 || string(taken[0].Data) != "entry of late" {
		t.Errorf("Reclaim = %v, want the event", taken)
	}
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

// A group that is made anew waits for what is told to wait, hands out what lies behind, and is there only when all of
// it is.
func TestGroupBeginsWithWhatWaits(t *testing.T) {
	s := newStream(t)
	const events = 2*ensureCap + 10
	a := newAppender(t, s, AppenderOptions{})
	var additions []Addition
	for range events {
		additions = append(additions, addition("", ""))
	}
	for list := range slices.Chunk(additions, 500) {
		mustAppend(t, a, list...)
	}
	var positions []Position
	for _, entry := range allEvents(t, s) {
		positions = append(positions, entry.Position)
	}
	state := GroupState{After: positions[events-3], Passed: events - 2, Due: time.Now()}
	for _, p := range positions[:events-2] {
		state.Waiting = append(state.Waiting, Delivery{Entry: Entry{Position: p}, Attempts: 2})
	}

	// The process dies before the last step.
	if err := s.redis.FCall(t.Context(), functionEnsureGroup, append([]string{s.keys.events()}, s.keys.retries("meta")...),
		"meta", "", 0, state.Due.UnixMilli(), positions[0].String(), 2).Err(); err != nil {
		t.Fatal(err)
	}
	if groups, err := s.Groups(t.Context()); err != nil || len(groups) != 0 {
		t.Fatalf("Groups = %v, %v, want none yet", groups, err)
	}
	for i, want := range []bool{true, false} {
		if created, err := s.EnsureGroup(t.Context(), "meta", state); err != nil || created != want {
			t.Fatalf("call %d of EnsureGroup = %v, %v, want %v", i, created, err, want)
		}
	}
	groups, err := s.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Group{{Platform: "meta", LastDelivered: positions[events-3], Waiting: events - 2, Lag: 2}}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Errorf("Groups (-want +got):\n%s", diff)
	}
	if newest, err := s.LastWaiting(t.Context(), "meta"); err != nil || newest < positions[events-3] || newest.Time() != positions[events-3].Time() {
		t.Errorf("LastWaiting = %s, %v, want the millisecond of %s", newest, err, positions[events-3])
	}
	if diff := cmp.Diff(positions[events-2:], mustRead(t, s, "pod-1", 10)); diff != "" {
		t.Errorf("handed out (-want +got):\n%s", diff)
	}
	if got := mustDue(t, s, time.Now(), time.Minute); len(got) != 100 || got[0].Attempts != 2 {
		t.Errorf("due = %d of them, the first %+v", len(got), got[0])
	}
	// Another engine that has found the group missing too is late: what has been settled since stays so.
	mustSettle(t, s, decided(positions[0], Delivered, 3))
	if created, err := s.EnsureGroup(t.Context(), "meta", state); err != nil || created {
		t.Errorf("EnsureGroup = %v, %v, want that the group is there", created, err)
	}
	if groups, err := s.Groups(t.Context()); err != nil || groups[0].Waiting != events-3 {
		t.Errorf("Groups = %v, %v, want that what was settled does not wait again", groups, err)
	}
}

func TestGroupIsDestroyedWithWhatWaits(t *testing.T) {
	s, positions := platformStream(t, 2)
	mustRead(t, s, "pod-1", 2)
	mustSettle(t, s, retryAt(positions[0], 1, time.Now()))
	for range 2 {
		if err := s.DestroyGroup(t.Context(), "meta"); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range s.keys.retries("meta") {
		if s.redis.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%s is left over", key)
		}
	}
	if groups, err := s.Groups(t.Context()); err != nil || len(groups) != 0 {
		t.Errorf("Groups = %v, %v, want none", groups, err)
	}
}

func TestHeldEventsAreTheConsumersOwn(t *testing.T) {
	s, positions := platformStream(t, 5)
	mustRead(t, s, "pod-1", 3)
	mustRead(t, s, "pod-2", 1)
	mustSettle(t, s, decided(positions[1], Delivered, 1))
	var held []Position
	for after := Position(0); ; {
		some, last, err := s.Held(t.Context(), "meta", "pod-1", after, 1)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, positionsOf(some)...)
		if last == after {
			break
		}
		after = last
	}
	if diff := cmp.Diff([]Position{positions[0], positions[2]}, held); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if err := s.redis.XDel(t.Context(), s.keys.events(), positions[0].String()).Err(); err != nil {
		t.Fatal(err)
	}
	some, last, err := s.Held(t.Context(), "meta", "pod-1", 0, 1)
	if err != nil || len(some) != 0 || last != positions[0] {
		t.Errorf("Held = %v, %s, %v, want that an event which is gone is passed over", some, last, err)
	}
}
