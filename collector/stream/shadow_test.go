package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatAPlatformWouldBeSentIsBounded(t *testing.T) {
	now := time.UnixMilli(1700000000000).UTC()
	entry := func(n int, body string) ShadowEntry {
		return ShadowEntry{
			Event: At(now) + Position(n), EventID: fmt.Sprint(n), Name: "purchase", At: now,
			Request: &ShadowRequest{Method: "POST", URL: "https://x.example", Body: json.RawMessage(`"` + body + `"`), Encoding: "json"},
		}
	}
	many := make([]ShadowEntry, MaxShadow+5)
	for i := range many {
		many[i] = entry(i, "")
	}
	old := entry(0, "")
	old.Event = At(now.Add(-25 * time.Hour))
	tests := map[string]struct {
		do      func(s *Stream) error
		want    int
		newest  string
		tooLong bool
	}{
		"the newest thousand": {func(s *Stream) error { return s.KeepShadow(t.Context(), "p", many, now, 24*time.Hour) }, MaxShadow, fmt.Sprint(MaxShadow + 4), false},
		"an event once, however often it is kept": {func(s *Stream) error {
			return s.KeepShadow(t.Context(), "p", []ShadowEntry{entry(1, "a"), entry(1, "b")}, now, 24*time.Hour)
		}, 1, "1", false},
		"a long one without its request": {func(s *Stream) error {
			return s.KeepShadow(t.Context(), "p", []ShadowEntry{entry(1, strings.Repeat("a", maxShadowSize))}, now, 24*time.Hour)
		}, 1, "1", true},
		"none that is too old": {func(s *Stream) error {
			return s.KeepShadow(t.Context(), "p", []ShadowEntry{old, entry(1, "")}, now, 24*time.Hour)
		}, 1, "1", false},
		"none when its time is over": {func(s *Stream) error {
			if err := s.KeepShadow(t.Context(), "p", many[:3], now, 24*time.Hour); err != nil {
				return err
			}
			return s.TrimShadow(t.Context(), now.Add(25*time.Hour), 24*time.Hour, "p", "q")
		}, 0, "", false},
		"none that was dropped": {func(s *Stream) error {
			if err := s.KeepShadow(t.Context(), "p", many[:3], now, 24*time.Hour); err != nil {
				return err
			}
			return s.DropShadow(t.Context(), "p", "q")
		}, 0, "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStream(t)
			if err := test.do(s); err != nil {
				t.Fatal(err)
			}
			got, err := s.Shadow(t.Context(), "p", 2*MaxShadow)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != test.want {
				t.Fatalf("%d are kept, want %d", len(got), test.want)
			}
			if test.want > 0 && (got[0].EventID != test.newest || got[0].TooLong != test.tooLong || (got[0].Request == nil) != test.tooLong) {
				t.Errorf("the newest is %+v", got[0])
			}
			if few, err := s.Shadow(t.Context(), "p", 1); err != nil || len(few) != min(1, test.want) {
				t.Errorf("of limit 1: %d, %v", len(few), err)
			}
			if diff := cmp.Diff(0, len(must(s.Shadow(t.Context(), "q", 1)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// must is for what cannot fail here.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
