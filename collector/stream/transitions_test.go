package stream

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// arrow is a transition in the drawing of docs/reference/delivery-states.md.
var arrow = regexp.MustCompile(`(?m)^ +([a-z]+) --> ([a-z]+)(?:$|:)`)

// An event's status moves along the drawn transitions and no others, whatever is asked of the stream.
func TestStatusesMoveAsDrawn(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/delivery-states.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]bool{}
	for _, match := range arrow.FindAllSubmatch(page, -1) {
		drawn[string(match[1])+" → "+string(match[2])] = true
	}

	settle := func(status Status) func(*testing.T, *Stream, Position) {
		return func(t *testing.T, s *Stream, p Position) {
			settlement := decided(p, status, 1)
			if status == Retrying {
				settlement.RetryAt = time.Now()
			}
			mustSettle(t, s, settlement)
		}
	}
	read := func(t *testing.T, s *Stream, _ Position) { mustRead(t, s, "pod-1", 10) }
	steps := func(list ...func(*testing.T, *Stream, Position)) func(*testing.T, *Stream, Position) {
		return func(t *testing.T, s *Stream, p Position) {
			for _, step := range list {
				step(t, s, p)
			}
		}
	}
	lease := func(t *testing.T, s *Stream, _ Position) { mustDue(t, s, time.Now().Add(time.Hour), time.Hour) }
	replay := func(t *testing.T, s *Stream, _ Position) {
		if _, err := s.Replay(t.Context(), replayAll("meta")); err != nil {
			t.Fatal(err)
		}
	}
	begin := map[string]struct {
		status string
		reach  func(*testing.T, *Stream, Position)
	}{
		"not handed out":                  {"pending", steps()},
		"pending":                         {"pending", read},
		"waiting for another attempt":     {"retrying", steps(read, settle(Retrying))},
		"at another attempt":              {"retrying", steps(read, settle(Retrying), lease)},
		"delivered":                       {"delivered", steps(read, settle(Delivered))},
		"delivered at a later attempt":    {"delivered", steps(read, settle(Retrying), lease, settle(Delivered))},
		"failed":                          {"failed", steps(read, settle(Failed))},
		"skipped":                         {"skipped", steps(read, settle(Skipped))},
		"expired":                         {"expired", steps(read, settle(Retrying), settle(Expired))},
		"put back":                        {"retrying", steps(read, settle(Failed), replay)},
		"delivered after it was put back": {"delivered", steps(read, settle(Failed), replay, lease, settle(Delivered))},
	}
	apply := map[string]func(*testing.T, *Stream, Position){
		"settled as retrying": settle(Retrying), "settled as delivered": settle(Delivered), "settled as failed": settle(Failed),
		"settled as skipped": settle(Skipped), "settled as expired": settle(Expired), "replayed": replay,
		"postponed": func(t *testing.T, s *Stream, p Position) {
			if err := s.Postpone(t.Context(), "meta", []Delivery{{Entry: Entry{Position: p}}}, time.Now()); err != nil {
				t.Fatal(err)
			}
		},
	}

	s := newStream(t)
	seen := map[string]bool{}
	for from, state := range begin {
		for how, change := range apply {
			s.redis.FlushDB(t.Context())
			position := fill(t, s, 1)[0]
			if _, err := s.EnsureGroup(t.Context(), "meta", GroupState{}); err != nil {
				t.Fatal(err)
			}
			state.reach(t, s, position)
			before := allRecords(t, s)
			if got := last(before); got != state.status {
				t.Fatalf("%s: the status is %s, want %s", from, got, state.status)
			}
			change(t, s, position)
			after := allRecords(t, s)
			if len(after) == len(before) {
				continue // passed over
			}
			move := state.status + " → " + last(after)
			if seen[move] = true; !drawn[move] {
				t.Errorf("an event that is %s and then %s moves %s, which is not drawn", from, how, move)
			}
			if pending, waiting := open(t, s); after[len(after)-1].Status.Final() != (pending+waiting == 0) {
				t.Errorf("an event that is %s and then %s has the status %s, and %d pending entries and %d retries", from, how, last(after), pending, waiting)
			}
		}
	}
	if diff := cmp.Diff(sorted(drawn), sorted(seen)); diff != "" {
		t.Errorf("transitions (-drawn +seen):\n%s", diff)
	}
}

// last is the status that an event's records give it.
func last(records []Record) string {
	if len(records) == 0 {
		return Pending.String()
	}
	return records[len(records)-1].Status.String()
}

func sorted(set map[string]bool) []string {
	var list []string
	for item := range set {
		list = append(list, item)
	}
	slices.Sort(list)
	return list
}
