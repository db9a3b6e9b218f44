package query

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
)

// calendarNow is when the periods of these tests are asked for.
var calendarNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// show writes a period in UTC, with its local dates.
func show(p period) string {
	return fmt.Sprintf("%s to %s (%s to %s)", p.From.Format(time.RFC3339), p.To.Format(time.RFC3339), p.dates.From, p.dates.To)
}

func TestPeriods(t *testing.T) {
	tests := map[string]struct {
		query    periodQuery
		zone     string
		fallback defaultPeriod
		want     string
	}{
		"the default of a day":                   {periodQuery{}, "UTC", lastDay, "2026-11-19T12:00:00Z to 2026-11-20T12:00:00Z (2026-11-19 to 2026-11-20)"},
		"the default of thirty days":             {periodQuery{}, "Europe/Berlin", lastThirtyDays, "2026-10-21T22:00:00Z to 2026-11-20T12:00:00Z (2026-10-22 to 2026-11-20)"},
		"24h":                                    {periodQuery{Period: "24h"}, "UTC", lastThirtyDays, "2026-11-19T12:00:00Z to 2026-11-20T12:00:00Z (2026-11-19 to 2026-11-20)"},
		"7d":                                     {periodQuery{Period: "7d"}, "UTC", lastDay, "2026-11-13T12:00:00Z to 2026-11-20T12:00:00Z (2026-11-13 to 2026-11-20)"},
		"30d":                                    {periodQuery{Period: "30d"}, "UTC", lastDay, "2026-10-21T12:00:00Z to 2026-11-20T12:00:00Z (2026-10-21 to 2026-11-20)"},
		"dates are local":                        {periodQuery{From: "2026-11-01", To: "2026-11-02"}, "America/New_York", lastDay, "2026-11-01T04:00:00Z to 2026-11-03T05:00:00Z (2026-11-01 to 2026-11-02)"},
		"one date":                               {periodQuery{From: "2026-11-01", To: "2026-11-01"}, "UTC", lastDay, "2026-11-01T00:00:00Z to 2026-11-02T00:00:00Z (2026-11-01 to 2026-11-01)"},
		"timestamps":                             {periodQuery{From: "2026-11-01T00:00:00Z", To: "2026-11-02T00:00:00+02:00"}, "Asia/Tokyo", lastDay, "2026-11-01T00:00:00Z to 2026-11-01T22:00:00Z (2026-11-01 to 2026-11-02)"},
		"a date and a timestamp":                 {periodQuery{From: "2026-11-01", To: "2026-11-01T10:00:00Z"}, "UTC", lastDay, "2026-11-01T00:00:00Z to 2026-11-01T10:00:00Z (2026-11-01 to 2026-11-01)"},
		"the same timestamp twice":               {periodQuery{From: "2026-11-01T00:00:00Z", To: "2026-11-01T00:00:00Z"}, "UTC", lastDay, "2026-11-01T00:00:00Z to 2026-11-01T00:00:00Z (2026-11-01 to 2026-11-01)"},
		"from wins over period":                  {periodQuery{Period: "x", From: "2026-11-19"}, "UTC", lastDay, "2026-11-19T00:00:00Z to 2026-11-20T12:00:00Z (2026-11-19 to 2026-11-20)"},
		"only a date to":                         {periodQuery{To: "2026-11-30"}, "UTC", lastDay, "2026-11-01T00:00:00Z to 2026-12-01T00:00:00Z (2026-11-01 to 2026-11-30)"},
		"only a timestamp to":                    {periodQuery{To: "2026-11-10T08:00:00Z"}, "Europe/Berlin", lastDay, "2026-10-11T07:00:00Z to 2026-11-10T08:00:00Z (2026-10-11 to 2026-11-10)"},
		"a local time that New York leaves out":  {periodQuery{To: "2026-04-07T06:30:00Z"}, "America/New_York", lastDay, "2026-03-08T07:00:00Z to 2026-04-07T06:30:00Z (2026-03-08 to 2026-04-07)"},
		"a local time that Berlin leaves out":    {periodQuery{To: "2026-04-28T00:30:00Z"}, "Europe/Berlin", lastDay, "2026-03-29T01:00:00Z to 2026-04-28T00:30:00Z (2026-03-29 to 2026-04-28)"},
		"a local time that the Azores leave out": {periodQuery{To: "2026-04-28T00:30:00Z"}, "Atlantic/Azores", lastDay, "2026-03-29T01:00:00Z to 2026-04-28T00:30:00Z (2026-03-29 to 2026-04-28)"},
		"a local time that Berlin has twice":     {periodQuery{To: "2026-11-24T01:30:00Z"}, "Europe/Berlin", lastDay, "2026-10-25T00:30:00Z to 2026-11-24T01:30:00Z (2026-10-25 to 2026-11-24)"},
		"366 days":                               {periodQuery{From: "2024-01-01", To: "2024-12-31"}, "Europe/Berlin", lastDay, "2023-12-31T23:00:00Z to 2024-12-31T23:00:00Z (2024-01-01 to 2024-12-31)"},
		"days in the future":                     {periodQuery{From: "2027-01-01", To: "2027-01-01"}, "UTC", lastDay, "2027-01-01T00:00:00Z to 2027-01-02T00:00:00Z (2027-01-01 to 2027-01-01)"},
		"the first day of all":                   {periodQuery{From: "1970-01-01", To: "1970-01-01"}, "Europe/Berlin", lastDay, "1970-01-01T00:00:00Z to 1970-01-01T23:00:00Z (1970-01-01 to 1970-01-01)"},
		"thirty days before early 1970":          {periodQuery{To: "1970-01-05"}, "UTC", lastDay, "1970-01-01T00:00:00Z to 1970-01-06T00:00:00Z (1970-01-01 to 1970-01-05)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, errs := parsePeriod(tt.query, calendarNow, zone(t, tt.zone), tt.fallback)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := show(got); got != tt.want {
				t.Errorf("%+v is\n%s, want\n%s", tt.query, got, tt.want)
			}
		})
	}
}

func TestBadPeriods(t *testing.T) {
	fieldErr := func(field, message string) event.Errors { return event.Errors{{Field: field, Message: message}} }
	tests := map[string]struct {
		query periodQuery
		want  event.Errors
	}{
		"a period that there is not":     {periodQuery{Period: "1y"}, fieldErr("period", "The selected period is invalid.")},
		"no date":                        {periodQuery{From: "yesterday"}, fieldErr("from", "The from field format is invalid.")},
		"a day that there is not":        {periodQuery{To: "2026-02-29"}, fieldErr("to", "The to field format is invalid.")},
		"a timestamp without its offset": {periodQuery{From: "2026-11-01T00:00:00"}, fieldErr("from", "The from field format is invalid.")},
		"two errors": {periodQuery{From: "x", To: "y"}, event.Errors{
			{Field: "from", Message: "The from field format is invalid."}, {Field: "to", Message: "The to field format is invalid."}}},
		"from a later date":                 {periodQuery{From: "2026-11-02", To: "2026-11-01"}, fieldErr("to", "The to field must be a date after or equal to from.")},
		"from a later timestamp":            {periodQuery{From: "2026-11-01T00:00:01Z", To: "2026-11-01T00:00:00Z"}, fieldErr("to", "The to field must be a date after or equal to from.")},
		"from the future":                   {periodQuery{From: "2026-11-21"}, fieldErr("from", "The from field must be a date before or equal to 2026-11-20.")},
		"from a moment ahead":               {periodQuery{From: "2026-11-20T12:00:01Z"}, fieldErr("from", "The from field must be a date before or equal to 2026-11-20T12:00:00Z.")},
		"367 days":                          {periodQuery{From: "2024-01-01", To: "2025-01-01"}, fieldErr("from", "The period must not be longer than 366 days: the from field must be a date after or equal to 2024-01-02.")},
		"366 days and a millisecond":        {periodQuery{From: "2025-01-01T00:00:00Z", To: "2026-01-02T00:00:00.001Z"}, fieldErr("from", "The period must not be longer than 366 days: the from field must be a date after or equal to 2025-01-01T00:00:00.001Z.")},
		"a millisecond ahead":               {periodQuery{From: "2026-11-20T12:00:00.001Z"}, fieldErr("from", "The from field must be a date before or equal to 2026-11-20T12:00:00Z.")},
		"more than 366 days to calendarNow": {periodQuery{From: "2025-11-19T11:59:59Z"}, fieldErr("from", "The period must not be longer than 366 days: the from field must be a date after or equal to 2025-11-19T12:00:00Z.")},
		"before 1970": {periodQuery{From: "0001-01-01", To: "0001-01-02"}, event.Errors{
			{Field: "from", Message: "The from field must be a date after or equal to 1970-01-01."},
			{Field: "to", Message: "The to field must be a date after or equal to 1970-01-01."}}},
		"in centuries": {periodQuery{To: "9999-12-31"}, fieldErr("to", "The to field must be a date before or equal to 2199-12-31.")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, errs := parsePeriod(tt.query, calendarNow, time.UTC, lastDay)
			if diff := cmp.Diff(tt.want, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if got != (period{}) {
				t.Errorf("a bad period is %s, want none", show(got))
			}
		})
	}
}

func TestDaysBeginAtLocalMidnight(t *testing.T) {
	tests := map[string]struct {
		zone, from, to string
		want           []string // each day's date and its bounds in UTC
	}{
		"a day of 23 hours": {"Europe/Berlin", "2026-03-28", "2026-03-30", []string{
			"2026-03-28 27T23:00 28T23:00", "2026-03-29 28T23:00 29T22:00", "2026-03-30 29T22:00 30T22:00"}},
		"a day of 25 hours": {"Europe/Berlin", "2026-10-25", "2026-10-25", []string{"2026-10-25 24T22:00 25T23:00"}},
		"clocks that jump over midnight": {"America/Santiago", "2026-09-05", "2026-09-07", []string{
			"2026-09-05 05T04:00 06T04:00", "2026-09-06 06T04:00 07T03:00", "2026-09-07 07T03:00 08T03:00"}},
		"clocks that go back at midnight": {"America/Santiago", "2026-04-04", "2026-04-05", []string{
			"2026-04-04 04T03:00 05T04:00", "2026-04-05 05T04:00 06T04:00"}},
		"midnight that comes twice": {"America/Havana", "2026-10-31", "2026-11-01", []string{
			"2026-10-31 31T04:00 01T04:00", "2026-11-01 01T04:00 02T05:00"}},
		"a day that was left out": {"Pacific/Apia", "2011-12-29", "2011-12-31", []string{
			"2011-12-29 29T10:00 30T10:00", "2011-12-31 30T10:00 31T10:00"}},
		"the first and last day are cut": {"UTC", "2026-11-01T22:00:00Z", "2026-11-03T01:00:00Z", []string{
			"2026-11-01 01T22:00 02T00:00", "2026-11-02 02T00:00 03T00:00", "2026-11-03 03T00:00 03T01:00"}},
		"no time at all": {"UTC", "2026-11-01T22:00:00Z", "2026-11-01T22:00:00Z", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			loc := zone(t, tt.zone)
			period, errs := parsePeriod(periodQuery{From: tt.from, To: tt.to}, calendarNow, loc, lastDay)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got []string
			for _, day := range period.buckets(everyDay, loc) {
				got = append(got, day.From.In(loc).Format(time.DateOnly)+" "+day.From.Format("02T15:04")+" "+day.To.Format("02T15:04"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("days (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDaysOfAYearFollowEachOtherInEveryKindOfZone(t *testing.T) {
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/Santiago", "America/Havana", "Asia/Beirut", "Africa/Cairo", "Asia/Tehran", "Australia/Lord_Howe",
		"Asia/Kathmandu", "Pacific/Apia", "Pacific/Kiritimati", "Africa/Casablanca", "America/Asuncion", "Atlantic/Azores", "America/Nuuk",
	} {
		loc := zone(t, name)
		for year := 2015; year <= 2026; year++ {
			query := periodQuery{From: fmt.Sprintf("%d-01-01", year), To: fmt.Sprintf("%d-12-31", year)}
			period, errs := parsePeriod(query, calendarNow, loc, lastDay)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			days := period.buckets(everyDay, loc)
			date := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			for i, day := range days {
				if want := date.AddDate(0, 0, i).Format(time.DateOnly); day.From.In(loc).Format(time.DateOnly) != want {
					t.Fatalf("%s: day %d of %d is %s, want %s", name, i, year, day.From.In(loc).Format(time.DateOnly), want)
				}
				if before := day.From.Add(-1).In(loc).Format(time.DateOnly); before >= day.From.In(loc).Format(time.DateOnly) {
					t.Errorf("%s: %s has begun before %v", name, day.From.In(loc).Format(time.DateOnly), day.From)
				}
				if i > 0 && !days[i-1].To.Equal(day.From) {
					t.Errorf("%s: %s ends at %v, but %s begins at %v", name, days[i-1].From, days[i-1].To, day.From.In(loc).Format(time.DateOnly), day.From)
				}
			}
			if want := date.AddDate(1, 0, 0).Sub(date) / (24 * time.Hour); len(days) != int(want) {
				t.Errorf("%s: %d has %d days, want %d", name, year, len(days), want)
			}
		}
	}
}

func TestWindows(t *testing.T) {
	invalid := event.Errors{{Field: "window", Message: "The window field format is invalid."}}
	tooLong := event.Errors{{Field: "window", Message: "The window field must not be greater than 366d."}}
	tests := map[string]struct {
		text string
		want time.Duration
		errs event.Errors
	}{
		"an empty text":         {"", 0, invalid},
		"minutes":               {"90m", 90 * time.Minute, nil},
		"hours":                 {"1h", time.Hour, nil},
		"days":                  {"30d", 30 * 24 * time.Hour, nil},
		"the longest":           {"366d", 366 * 24 * time.Hour, nil},
		"none":                  {"none", 0, nil},
		"a day too long":        {"367d", 0, tooLong},
		"too many hours":        {"8785h", 0, tooLong},
		"more than any integer": {"99999999999999999999h", 0, tooLong},
		"nothing":               {"0d", 0, invalid},
		"below zero":            {"-1d", 0, invalid},
		"a fraction":            {"1.5h", 0, invalid},
		"no unit":               {"7", 0, invalid},
		"no number":             {"d", 0, invalid},
		"an unknown unit":       {"1w", 0, invalid},
		"two units":             {"1d1h", 0, invalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, errs := parseWindow("window", tt.text)
			if got != tt.want {
				t.Errorf("%q is %v, want %v", tt.text, got, tt.want)
			}
			if diff := cmp.Diff(tt.errs, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
