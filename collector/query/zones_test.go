package query

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// TestDaysAreThoseOfTheClockOnTheWall counts events by the date that a clock in the property's time zone shows,
// around the days on which its clocks change.
func TestDaysAreThoseOfTheClockOnTheWall(t *testing.T) {
	for name, test := range map[string]struct {
		zone string
		// around is a day near which the events are received.
		around string
	}{
		"spring in Berlin":                             {"Europe/Berlin", "2026-03-29"},
		"autumn in Berlin":                             {"Europe/Berlin", "2025-10-26"},
		"spring in New York":                           {"America/New_York", "2026-03-08"},
		"autumn in New York":                           {"America/New_York", "2025-11-02"},
		"half an hour beside the others in St. John's": {"America/St_Johns", "2026-03-08"},
		"half an hour of daylight saving on Lord Howe": {"Australia/Lord_Howe", "2026-04-05"},
		"the other half hour on Lord Howe":             {"Australia/Lord_Howe", "2025-10-05"},
		"a quarter of an hour in Kathmandu":            {"Asia/Kathmandu", "2026-01-01"},
		"a midnight that does not exist in São Paulo":  {"America/Sao_Paulo", "2018-11-04"},
		"a midnight that comes twice in Havana":        {"America/Havana", "2025-11-02"},
		"fourteen hours ahead on Kiritimati":           {"Pacific/Kiritimati", "2026-02-28"},
	} {
		t.Run(name, func(t *testing.T) {
			location, err := time.LoadLocation(test.zone)
			if err != nil {
				t.Fatal(err)
			}
			middle, err := time.Parse(time.DateOnly, test.around)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, uint64(middle.Unix())))
			at := middle.AddDate(0, 0, -2)
			var received []string
			for at.Before(middle.AddDate(0, 0, 3)) {
				at = at.Add(time.Duration(1+r.Int64N(3_600_000)) * time.Millisecond)
				received = append(received, at.Format("2006-01-02T15:04:05.000Z07:00"))
			}
			api := serveReceived(t, test.zone, received)
			for from := -2; from <= 1; from++ {
				for to := from; to <= 1; to++ {
					first, last := middle.AddDate(0, 0, from).Format(time.DateOnly), middle.AddDate(0, 0, to).Format(time.DateOnly)
					want := map[string]int{}
					for day := from; day <= to; day++ {
						want[middle.AddDate(0, 0, day).Format(time.DateOnly)] = 0
					}
					for _, text := range received {
						moment, err := time.Parse(time.RFC3339, text)
						if err != nil {
							t.Fatal(err)
						}
						if date := moment.In(location).Format(time.DateOnly); date >= first && date <= last {
							want[date]++
						}
					}
					if diff := cmp.Diff(want, eventsByDay(t, api, fmt.Sprintf("from=%s&to=%s", first, last))); diff != "" {
						t.Errorf("%s to %s (-want +got):\n%s", first, last, diff)
					}
				}
			}
		})
	}
}

// eventsByDay asks for days and returns their counts of events.
func eventsByDay(t *testing.T, api http.Handler, query string) map[string]int {
	t.Helper()
	answer := get(api, "wt_days", "days/analytics/daily?"+query)
	var got struct {
		Data []struct {
			Date   string `json:"date"`
			Events int    `json:"events"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("%s: got %d %s, %v", query, answer.Code, answer.Body, err)
	}
	counts := map[string]int{}
	for _, day := range got.Data {
		counts[day.Date] = day.Events
	}
	return counts
}
