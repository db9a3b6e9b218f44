package stream

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var trimStart = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// trimHour is the hour since trimStart in which hourly's streams are trimmed.
const trimHour = 1000

// hourly returns a stream with n events, one an hour since trimStart, and a group "meta" before them all.
func hourly(t testing.TB, n int) (*Stream, []Position) {
	t.Helper()
	s, c := newStreamAt(t, trimStart)
	a := newAppender(t, s, AppenderOptions{})
	var positions []Position
	for i := range n {
		mustAppend(t, a, addition(fmt.Sprint("hour-", i), ""))
		positions = append(positions, At(c.at))
		c.advance(time.Hour)
	}
	c.set(trimStart.Add(trimHour * time.Hour))
	if _, err := s.EnsureGroup(t.Context(), "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
	return s, positions
}

// trimAll trims until nothing more is to be removed.
func trimAll(t testing.TB, s *Stream, policy TrimPolicy) TrimResult {
	t.Helper()
	var total TrimResult
	for {
		result, err := s.Trim(t.Context(), policy)
		if err != nil {
			t.Fatal(err)
		}
		total.Removed += result.Removed
		total.Undelivered = append(total.Undelivered, result.Undelivered...)
		if !result.More {
			return total
		}
	}
}

func TestTrim(t *testing.T) {
	since := func(hour int) time.Duration { return time.Duration(trimHour-hour) * time.Hour }
	deliver := func(from, to int) func(*testing.T, *Stream, []Position) {
		return func(t *testing.T, s *Stream, p []Position) {
			mustRead(t, s, "pod-1", to)
			var settlements []Settlement
			for _, position := range p[from:to] {
				settlements = append(settlements, decided(position, Delivered, 1))
			}
			mustSettle(t, s, settlements...)
		}
	}
	retryFirst := func(t *testing.T, s *Stream, p []Position) {
		deliver(1, 10)(t, s, p)
		mustSettle(t, s, retryAt(p[0], 1, trimStart.Add(trimHour*time.Hour)))
	}
	for name, test := range map[string]struct {
		before func(*testing.T, *Stream, []Position)
		policy TrimPolicy
		// left is how many of ten events stay; lost are the events taken from the platform.
		left int
		lost []int
	}{
		"removes what is old, to the event":                        {deliver(0, 10), TrimPolicy{Age: since(4)}, 6, nil},
		"removes everything where all is old and delivered":        {deliver(0, 10), TrimPolicy{Age: since(100)}, 1, nil},
		"keeps everything without a policy":                        {deliver(0, 10), TrimPolicy{}, 10, nil},
		"keeps what was not handed out":                            {deliver(0, 3), TrimPolicy{Age: since(100)}, 8, nil},
		"keeps what a deliverer holds":                             {deliver(2, 10), TrimPolicy{Age: since(100)}, 10, nil},
		"keeps what waits for another attempt":                     {retryFirst, TrimPolicy{Age: since(100)}, 10, nil},
		"takes what was not handed out at the hard age":            {deliver(0, 3), TrimPolicy{HardAge: since(5)}, 5, []int{3, 4}},
		"takes what a deliverer holds at the hard age":             {deliver(2, 10), TrimPolicy{HardAge: since(1)}, 9, []int{0}},
		"takes what waits at the hard age":                         {retryFirst, TrimPolicy{HardAge: since(2)}, 8, []int{0}},
		"takes what is beyond the number of events":                {deliver(0, 0), TrimPolicy{MaxEvents: 8}, 8, []int{0, 1}},
		"takes no more than is beyond the number of events":        {deliver(0, 10), TrimPolicy{MaxEvents: 10}, 10, nil},
		"loses nothing where what is beyond it has been delivered": {deliver(0, 10), TrimPolicy{MaxEvents: 4}, 4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, positions := hourly(t, 10)
			test.before(t, s, positions)
			result := trimAll(t, s, test.policy)
			var left []Position
			for _, e := range allEvents(t, s) {
				left = append(left, e.Position)
			}
			if diff := cmp.Diff(positions[10-test.left:], left); diff != "" {
				t.Errorf("what stays (-want +got):\n%s", diff)
			}
			if result.Removed != int64(10-test.left) {
				t.Errorf("Removed = %d, want %d", result.Removed, 10-test.left)
			}
			var want []Undelivered
			for _, i := range test.lost {
				want = append(want, Undelivered{"meta", Entry{positions[i], fmt.Append(nil, "entry of hour-", i)}})
			}
			slices.SortFunc(result.Undelivered, func(a, b Undelivered) int { return int(a.Entry.Position>>20) - int(b.Entry.Position>>20) })
			if diff := cmp.Diff(want, result.Undelivered); diff != "" {
				t.Errorf("undelivered (-want +got):\n%s", diff)
			}
			if again := trimAll(t, s, test.policy); again.Removed != 0 || len(again.Undelivered) != 0 {
				t.Errorf("a second trim = %+v, want nothing", again)
			}
			for _, lost := range test.lost {
				mustSettle(t, s, decided(positions[lost], Delivered, 1))
			}
			for _, r := range allRecords(t, s) {
				if slices.ContainsFunc(test.lost, func(i int) bool { return positions[i] == r.Event }) && r.Status == Delivered {
					t.Errorf("event %s was taken and is settled all the same", r.Event)
				}
			}
		})
	}
}

func TestTrimReportsEveryPlatform(t *testing.T) {
	s, positions := hourly(t, 3)
	if _, err := s.EnsureGroup(t.Context(), "webhook", GroupState{After: positions[0]}); err != nil {
		t.Fatal(err)
	}
	result := trimAll(t, s, TrimPolicy{MaxEvents: 1})
	got := map[string]int{}
	for _, lost := range result.Undelivered {
		got[lost.Platform]++
	}
	if diff := cmp.Diff(map[string]int{"meta": 2, "webhook": 1}, got); diff != "" {
		t.Errorf("undelivered (-want +got):\n%s", diff)
	}
}

func TestTrimTakesManySteps(t *testing.T) {
	s, c := newStreamAt(t, trimStart)
	a := newAppender(t, s, AppenderOptions{})
	const n = 5000
	for i := 0; i < n; i += 500 {
		var additions []Addition
		for range 500 {
			additions = append(additions, addition("", ""))
		}
		mustAppend(t, a, additions...)
	}
	c.advance(time.Hour)
	mustAppend(t, a, addition("last", ""))
	for name, policy := range map[string]TrimPolicy{
		"by age":    {Age: 30 * time.Minute},
		"by number": {MaxEvents: n / 5},
	} {
		first, err := s.Trim(t.Context(), policy)
		if err != nil {
			t.Fatal(err)
		}
		if first.Removed > 2*trimLimit {
			t.Errorf("%s: one step removed %d events, want about %d", name, first.Removed, trimLimit)
		}
		trimAll(t, s, TrimPolicy{MaxEvents: n / 2})
	}
	trimAll(t, s, TrimPolicy{Age: 30 * time.Minute})
	if left := allEvents(t, s); len(left) != 1 || string(left[0].Data) != "entry of last" {
		t.Errorf("%d events stay, want the last", len(left))
	}
}

func TestTrimRemovesTheRecordsOfWhatIsGone(t *testing.T) {
	s, positions := hourly(t, 4)
	for i, p := range positions {
		entry := recordsEntry(s.keys.deliveries(), "meta", []Record{decided(p, Delivered, 1).Record})
		entry.ID = At(p.Time().Add(time.Second)).String()
		if err := s.redis.XAdd(t.Context(), entry).Err(); err != nil {
			t.Fatal(i, err)
		}
	}
	trimAll(t, s, TrimPolicy{MaxEvents: 2})
	var got []Position
	for _, r := range allRecords(t, s) {
		got = append(got, r.Event)
	}
	if diff := cmp.Diff(positions[2:], got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestTrimOfANewPropertyDoesNothing(t *testing.T) {
	s := newStream(t)
	result, err := s.Trim(t.Context(), TrimPolicy{Age: time.Nanosecond, HardAge: time.Nanosecond, MaxEvents: 1})
	if err != nil || result.Removed != 0 || result.More {
		t.Errorf("Trim = %+v, %v, want nothing", result, err)
	}
}
