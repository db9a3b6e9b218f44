package stream

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// archived are the deliveries that a history knows of, in order; it tells two at a time.
type archived struct {
	records []Record
	// asked is called each time.
	asked func()
}

func (a *archived) Ended(_ context.Context, _ string, statuses []Status, after, end Position) ([]Record, Position, error) {
	if a.asked != nil {
		a.asked()
	}
	var list []Record
	for _, r := range a.records {
		if r.Event <= after || r.Event >= end || !slices.Contains(statuses, r.Status) {
			continue
		}
		if list = append(list, r); len(list) == 2 {
			return list, r.Event, nil
		}
	}
	return list, 0, nil
}

// pastStream returns a stream whose first n events failed, are in the history, and have left the stream with their records.
func pastStream(t *testing.T, n int) (*Stream, []Position, *archived) {
	t.Helper()
	s, positions := platformStream(t, n+1)
	statuses := make([]Status, n)
	history := &archived{}
	for i := range n {
		statuses[i] = Failed
		history.records = append(history.records, Record{Event: positions[i], Status: Failed, Attempts: 3, At: positions[i].Time()})
	}
	finals(t, s, positions, statuses...)
	if err := s.redis.XTrimMinID(t.Context(), s.keys.events(), positions[n].String()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.redis.Del(t.Context(), s.keys.deliveries()).Err(); err != nil {
		t.Fatal(err)
	}
	return s, positions[:n], history
}

func TestAReplayPutsBackWhatTheHistoryHas(t *testing.T) {
	s, positions, history := pastStream(t, 5)
	request := replayAll("meta")
	request.Past = history
	if n, err := s.Replay(t.Context(), request); err != nil || n != 5 {
		t.Fatalf("Replay = %d, %v, want 5", n, err)
	}
	for _, r := range allRecords(t, s) {
		if r.Status != Retrying || r.Reason != ReasonReplayed || r.Attempts != 3 {
			t.Errorf("record of the replay = %+v", r)
		}
	}
	if n, err := s.Replay(t.Context(), request); err != nil || n != 0 {
		t.Errorf("the same again = %d, %v, want 0", n, err)
	}

	due := mustDue(t, s, request.Now, time.Minute)
	if len(due) != 5 {
		t.Fatalf("%d are due, want 5", len(due))
	}
	for i, d := range due {
		want := Delivery{Entry: Entry{positions[i], []byte{}}, Attempts: 3, Replayed: request.Now.UTC().Truncate(time.Millisecond), Past: true}
		if diff := cmp.Diff(want, d); diff != "" {
			t.Errorf("due (-want +got):\n%s", diff)
		}
	}

	// What waits stays what it is, holds up no trimming, and is not trimmed.
	mustSettle(t, s, retryAt(positions[0], 4, request.Now), decided(positions[1], Delivered, 4), decided(positions[2], Failed, 4))
	if err := s.Postpone(t.Context(), "meta", due[3:4], request.Now); err != nil {
		t.Fatal(err)
	}
	result, err := s.Trim(t.Context(), TrimPolicy{Age: time.Nanosecond, MaxEvents: 1})
	if err != nil || len(result.Undelivered) > 0 {
		t.Fatalf("trimmed %+v, %v", result, err)
	}
	again := mustDue(t, s, request.Now.Add(time.Second), time.Minute)
	if len(again) != 2 || again[0].Position != positions[0] || again[0].Attempts != 4 || !again[0].Past || !again[1].Past || again[1].Position != positions[3] {
		t.Errorf("due again = %+v", again)
	}
	if groups, err := s.Groups(t.Context()); err != nil || groups[0].Waiting != 3 {
		t.Errorf("groups = %+v, %v, want 3 that wait", groups, err)
	}
	if n, err := s.Replay(t.Context(), request); err != nil || n != 1 {
		t.Errorf("after one has failed again = %d, %v, want 1", n, err)
	}
}

func TestARecordInRedisCountsBeforeTheHistory(t *testing.T) {
	s, positions, history := pastStream(t, 2)
	delivered := decided(positions[0], Delivered, 1).Record
	request := replayAll("meta")
	request.Past = history
	// Which comes while the history is asked.
	history.asked = func() {
		history.asked = nil
		if err := s.Record(t.Context(), "meta", []Record{delivered}); err != nil {
			t.Error(err)
		}
	}
	if n, err := s.Replay(t.Context(), request); err != nil || n != 1 {
		t.Errorf("Replay = %d, %v, want 1", n, err)
	}
	if n, err := s.Replay(t.Context(), request); err != nil || n != 0 {
		t.Errorf("Replay again = %d, %v, want 0", n, err)
	}
}

func TestTwoReplaysAtOncePutBackOnceFromTheHistory(t *testing.T) {
	s, _, history := pastStream(t, 8)
	request := replayAll("meta")
	request.Past = history
	counts := make(chan int, 4)
	for range cap(counts) {
		go func() {
			n, err := s.Replay(t.Context(), request)
			if err != nil {
				t.Error(err)
			}
			counts <- n
		}()
	}
	total := 0
	for range cap(counts) {
		total += <-counts
	}
	if total != 8 {
		t.Errorf("%d were put back, want 8", total)
	}
}

func TestNoEventOfTheHistoryIsHandedToWhoKnowsOfNone(t *testing.T) {
	s, positions, history := pastStream(t, 1)
	request := replayAll("meta")
	request.Past = history
	if n, err := s.Replay(t.Context(), request); err != nil || n != 1 {
		t.Fatalf("Replay = %d, %v, want 1", n, err)
	}
	keys := append([]string{s.keys.events()}, s.keys.retries("meta")...)
	now := request.Now.UnixMilli()
	for _, function := range []string{"weir_lease", "weir_due"} {
		reply, err := s.redis.FCall(t.Context(), function, keys, 0, now+1, now+1, 10).Slice()
		if err != nil || len(reply[0].([]any)) != 0 || len(reply[1].([]any)) != 0 {
			t.Errorf("%s = %v, %v, want nothing", function, reply, err)
		}
	}
	if due := mustDue(t, s, request.Now.Add(time.Second), time.Minute); len(due) != 1 || due[0].Position != positions[0] {
		t.Errorf("due = %+v", due)
	}
}
