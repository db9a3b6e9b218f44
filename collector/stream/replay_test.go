package stream

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// finals settles each of the positions with a status.
func finals(t testing.TB, s *Stream, positions []Position, statuses ...Status) {
	t.Helper()
	mustRead(t, s, "pod-1", len(positions))
	var settlements []Settlement
	for i, status := range statuses {
		settlements = append(settlements, decided(positions[i], status, 3))
	}
	mustSettle(t, s, settlements...)
}

func replayAll(platform string) ReplayRequest {
	return ReplayRequest{
		Platform: platform, To: time.Now().Add(time.Hour), Statuses: []Status{Failed, Expired}, Now: time.Now().Add(time.Minute),
	}
}

func TestReplayPutsBack(t *testing.T) {
	for name, test := range map[string]struct {
		ask  func(positions []Position, r *ReplayRequest)
		want []int // of delivered, failed, expired, skipped, retrying, pending, failed
	}{
		"what failed or expired":                {func([]Position, *ReplayRequest) {}, []int{1, 2, 6}},
		"what failed alone":                     {func(_ []Position, r *ReplayRequest) { r.Statuses = []Status{Failed} }, []int{1, 6}},
		"what expired alone":                    {func(_ []Position, r *ReplayRequest) { r.Statuses = []Status{Expired} }, []int{2}},
		"nothing of another platform":           {func(_ []Position, r *ReplayRequest) { r.Platform = "crm" }, nil},
		"nothing from before the period":        {func(p []Position, r *ReplayRequest) { r.From = p[6].Time().Add(time.Hour) }, nil},
		"nothing from behind the period":        {func(p []Position, r *ReplayRequest) { r.To = p[0].Time() }, nil},
		"the first millisecond of the period":   {func(p []Position, r *ReplayRequest) { r.From, r.To = p[1].Time(), p[2].Time() }, []int{1}},
		"the period's events though they began": {func(p []Position, r *ReplayRequest) { r.From = p[2].Time() }, []int{2, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newStreamAt(t, time.Now().Add(-time.Hour))
			a := newAppender(t, s, AppenderOptions{})
			for i := range 7 {
				mustAppend(t, a, addition(fmt.Sprint(i), ""))
				c.advance(time.Second)
			}
			positions := []Position{}
			for _, e := range allEvents(t, s) {
				positions = append(positions, e.Position)
			}
			if _, err := s.EnsureGroup(t.Context(), "crm", GroupState{}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.EnsureGroup(t.Context(), "meta", GroupState{}); err != nil {
				t.Fatal(err)
			}
			finals(t, s, positions, Delivered, Failed, Expired, Skipped)
			mustSettle(t, s, retryAt(positions[4], 1, time.Now().Add(time.Hour)), decided(positions[6], Failed, 3))
			request := replayAll("meta")
			test.ask(positions, &request)
			n, err := s.Replay(t.Context(), request)
			if err != nil || n != len(test.want) {
				t.Fatalf("Replay = %d, %v, want %d", n, err, len(test.want))
			}
			want := []Delivery{}
			for _, i := range test.want {
				want = append(want, Delivery{
					Entry: Entry{positions[i], fmt.Append(nil, "entry of ", i)}, Attempts: 3, Replayed: request.Now.UTC().Truncate(time.Millisecond),
				})
			}
			due := mustDue(t, s, request.Now, time.Minute)
			if diff := cmp.Diff(want, append([]Delivery{}, due...)); diff != "" {
				t.Errorf("due (-want +got):\n%s", diff)
			}
			records := allRecords(t, s)
			for i, r := range records[len(records)-n:] {
				if r.Event != want[i].Position || r.Status != Retrying || r.Reason != "replayed" || r.Attempts != 3 || !r.At.Equal(want[i].Replayed) {
					t.Errorf("record of the replay = %+v", r)
				}
			}
			if n, err := s.Replay(t.Context(), request); err != nil || n != 0 {
				t.Errorf("the same again = %d, %v, want 0", n, err)
			}
		})
	}
}

// A replayed event is remembered as such through its attempts, and may be replayed again when it has failed again.
func TestAReplayedEventFailsAgain(t *testing.T) {
	s, positions := platformStream(t, 1)
	finals(t, s, positions, Failed)
	request := replayAll("meta")
	for range 2 {
		if n, err := s.Replay(t.Context(), request); err != nil || n != 1 {
			t.Fatalf("Replay = %d, %v, want 1", n, err)
		}
		mustSettle(t, s, retryAt(positions[0], 4, request.Now))
		due := mustDue(t, s, request.Now.Add(time.Second), time.Minute)
		if len(due) != 1 || due[0].Attempts != 4 || due[0].Replayed.UnixMilli() != request.Now.UnixMilli() {
			t.Fatalf("due after a failure = %+v, want 4 attempts, replayed at %s", due, request.Now)
		}
		mustSettle(t, s, decided(positions[0], Failed, 5))
	}
	mustSettle(t, s, decided(positions[0], Delivered, 6)) // not under way: passed over
	if got := statuses(allRecords(t, s)); got[len(got)-1] != "failed" {
		t.Errorf("records = %v", got)
	}
}

func TestReplayLeavesWhatTheStreamHasLost(t *testing.T) {
	s, positions := platformStream(t, 2)
	finals(t, s, positions, Failed, Failed)
	if err := s.redis.XDel(t.Context(), s.keys.events(), positions[0].String()).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Replay(t.Context(), replayAll("meta")); err != nil || n != 1 {
		t.Errorf("Replay = %d, %v, want 1", n, err)
	}
}

func TestReplayNeedsTheGroup(t *testing.T) {
	s, positions := platformStream(t, 1)
	finals(t, s, positions, Failed)
	if err := s.DestroyGroup(t.Context(), "meta"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replay(t.Context(), replayAll("meta")); !errors.Is(err, ErrNoGroup) {
		t.Errorf("Replay = %v, want ErrNoGroup", err)
	}
}

// Replays that run together, while a deliverer settles what they put back, put every event back once, and none that
// was delivered.
func TestReplaysThatRunTogether(t *testing.T) {
	const events = 1200
	s, positions := platformStream(t, events)
	statuses := make([]Status, events)
	for i := range statuses {
		statuses[i] = Failed
	}
	finals(t, s, positions, statuses...)
	var replayed atomic.Int64
	var replays, deliverer sync.WaitGroup
	stop := make(chan struct{})
	deliverer.Go(func() {
		for {
			due, _, err := s.Due(t.Context(), "meta", time.Now().Add(time.Hour), time.Hour, 50)
			if err != nil {
				t.Error(err)
			}
			var settlements []Settlement
			for _, d := range due {
				settlements = append(settlements, decided(d.Position, Delivered, 4))
			}
			if err := s.Settle(t.Context(), "meta", settlements); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				if len(due) == 0 {
					return
				}
			default:
			}
		}
	})
	for range 4 {
		replays.Go(func() {
			n, err := s.Replay(t.Context(), replayAll("meta"))
			if err != nil {
				t.Error(err)
			}
			replayed.Add(int64(n))
		})
	}
	replays.Wait()
	close(stop)
	deliverer.Wait()
	if got := replayed.Load(); got != events {
		t.Errorf("the replays put %d events back, want %d", got, events)
	}
	history := map[Position]string{}
	for _, r := range allRecords(t, s) {
		history[r.Event] += r.Status.String() + " "
	}
	for _, p := range positions {
		if history[p] != "failed retrying delivered " {
			t.Fatalf("event %s: %s", p, history[p])
		}
	}
}
