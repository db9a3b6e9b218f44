package forget_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/forget"
	"github.com/weir-dev/weir/collector/history/schema"
)

const day = 24 * time.Hour

func TestWhatIsOlderThanItIsKeptGoes(t *testing.T) { whatIsOlderThanItIsKeptGoes(t, newHistory) }

func whatIsOlderThanItIsKeptGoes(t *testing.T, newHistory func(testing.TB) *history) {
	t.Helper()
	past := map[time.Duration]event.Event{
		100 * day: client("a"), 41 * day: client("a"), 39 * day: client("a"), 10 * day: client("a"), 9 * day: client("a"), 8 * day: client("a"), time.Hour: client("a"),
	}
	for name, test := range map[string]struct {
		days []int
		want []string
		gaps string
	}{
		"nothing where all is kept":                       {[]int{-1}, []string{"1h0m0s", "192h0m0s", "216h0m0s", "240h0m0s", "936h0m0s", "984h0m0s", "2400h0m0s"}, "[]"},
		"months that are over":                            {[]int{40}, []string{"1h0m0s", "192h0m0s", "216h0m0s", "240h0m0s", "936h0m0s"}, "['2026-03-30 23:59:59']"},
		"days of a month that is not over":                {[]int{9}, []string{"1h0m0s", "192h0m0s", "216h0m0s"}, "['2026-04-30 23:59:59']"},
		"more where less is kept from now on":             {[]int{40, 8}, []string{"1h0m0s", "192h0m0s"}, "['2026-05-01 23:59:59']"},
		"nothing more where more is to be kept":           {[]int{9, 40}, []string{"1h0m0s", "192h0m0s", "216h0m0s"}, "['2026-04-30 23:59:59']"},
		"everything that is not of today":                 {[]int{0}, []string{"1h0m0s"}, "['2026-05-09 23:59:59']"},
		"nothing, and it is no gap, where nothing is old": {[]int{400}, []string{"1h0m0s", "192h0m0s", "216h0m0s", "240h0m0s", "936h0m0s", "984h0m0s", "2400h0m0s"}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.insert(past)
			f := h.forgetter()
			for _, days := range test.days {
				h.limits.Oldest = 0
				if days >= 0 {
					h.limits.Oldest = schema.DaysBefore(noon, days)
				}
				h.step(f)
			}
			h.want("in the end", test.want...)
			if got := h.ask("SELECT toString(groupArray(toString(toDateTime(intDiv(bitShiftRight(end, 20), 1000), 'UTC')))) FROM gaps"); got[0] != test.gaps {
				t.Errorf("gaps end at %s, want %s", got[0], test.gaps)
			}
		})
	}
}

func TestANoteOfAnImportStaysHoweverOldItIs(t *testing.T) {
	h := newHistory(t)
	h.insert(map[time.Duration]event.Event{10 * day: client("a"), time.Hour: client("a")})
	h.ask("INSERT INTO gaps VALUES (5, 0), (3, 4), (0, 0)")
	h.limits.Oldest = schema.DaysBefore(noon, 9)
	h.step(h.forgetter())
	want := []string{"0 0", "0 old", "5 0"}
	if diff := cmp.Diff(want, h.ask("SELECT concat(toString(begin), end = 0 ? ' 0' : ' old') FROM gaps ORDER BY begin, end")); diff != "" {
		t.Errorf("the gaps (-want +got):\n%s", diff)
	}
}

func TestWhatIsTooOldToBeAnybodysIsNobodys(t *testing.T) {
	whatIsTooOldToBeAnybodysIsNobodys(t, newHistory)
}

func whatIsTooOldToBeAnybodysIsNobodys(t *testing.T, newHistory func(testing.TB) *history) {
	t.Helper()
	h := newHistory(t)
	older, newer := email(1), email(2)
	older.ClientID, newer.ClientID = "a", "a"
	older.Context.UTMSource = "x"
	h.insert(map[time.Duration]event.Event{40 * day: older, 10 * day: older, 9 * day: older, time.Hour: newer})
	h.limits = forget.Limits{Anonymous: schema.DaysBefore(noon, 9)}
	f := h.forgetter()
	h.step(f)
	sql := "SELECT concat(order_id, ' ', if(visitor = 0 AND client_id = '' AND identity = '' AND empty(identifiers) AND origin = '' AND origin_age = 0, 'nobody', 'somebody'), " +
		"' ', touch = '' ? 'direct' : 'touched') FROM events ORDER BY at DESC"
	want := []string{"1h0m0s somebody direct", "216h0m0s somebody touched", "240h0m0s nobody touched", "960h0m0s nobody touched"}
	if diff := cmp.Diff(want, h.ask(sql)); diff != "" {
		t.Errorf("whose they are (-want +got):\n%s", diff)
	}
	if prepared := h.ask("SELECT toString(count()) FROM events WHERE visitor != 0 SETTINGS force_optimize_projection = 1"); prepared[0] != "2" {
		t.Errorf("%s prepared rows are somebody's, want 2", prepared[0])
	}
}
