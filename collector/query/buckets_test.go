package query

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
)

// periodOf reads a period as of [calendarNow].
func periodOf(t *testing.T, q periodQuery, loc *time.Location) period {
	t.Helper()
	p, errs := parsePeriod(q, calendarNow, loc, lastThirtyDays)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

// clocks writes when buckets begin by the clock on the wall, and how long they are.
func clocks(buckets []analytics.Range, layout string, loc *time.Location) []string {
	list := make([]string, len(buckets))
	for i, b := range buckets {
		list[i] = b.From.In(loc).Format(layout) + " " + b.To.Sub(b.From).String()
	}
	return list
}

func TestHoursAreThoseOfTheClockOnTheWall(t *testing.T) {
	for name, test := range map[string]struct {
		zone, from, to string
		want           []string
	}{
		"the first and last hour are cut": {"UTC", "2026-11-01T22:30:00Z", "2026-11-02T00:00:00.001Z", []string{
			"22:30 +0000 30m0s", "23:00 +0000 1h0m0s", "00:00 +0000 1ms"}},
		"an hour that comes twice in Berlin is two hours": {"Europe/Berlin", "2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z", []string{
			"01:00 +0200 1h0m0s", "02:00 +0200 1h0m0s", "02:00 +0100 1h0m0s", "03:00 +0100 1h0m0s"}},
		"an hour that is left out in Berlin is none": {"Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z", []string{
			"01:00 +0100 1h0m0s", "03:00 +0200 1h0m0s"}},
		"half an hour comes twice on Lord Howe": {"Australia/Lord_Howe", "2026-04-04T14:00:00Z", "2026-04-04T16:30:00Z", []string{
			"01:00 +1100 1h0m0s", "01:30 +1030 30m0s", "02:00 +1030 1h0m0s"}},
		"half an hour is left out on Lord Howe": {"Australia/Lord_Howe", "2026-10-03T14:30:00Z", "2026-10-03T17:00:00Z", []string{
			"01:00 +1030 1h0m0s", "02:30 +1100 30m0s", "03:00 +1100 1h0m0s"}},
		"midnight is left out in São Paulo": {"America/Sao_Paulo", "2018-11-04T02:00:00Z", "2018-11-04T04:00:00Z", []string{
			"23:00 -0300 1h0m0s", "01:00 -0200 1h0m0s"}},
		"hours strike at a quarter past UTC's in Kathmandu": {"Asia/Kathmandu", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z", []string{
			"05:45 +0545 15m0s", "06:00 +0545 1h0m0s", "07:00 +0545 15m0s"}},
		"the hours of Kiritimati's day": {"Pacific/Kiritimati", "2026-02-27T09:00:00Z", "2026-02-27T11:00:00Z", []string{
			"23:00 +1400 1h0m0s", "00:00 +1400 1h0m0s"}},
		"no time at all has none": {"UTC", "2026-11-01T22:00:00Z", "2026-11-01T22:00:00Z", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			loc := zone(t, test.zone)
			period := periodOf(t, periodQuery{From: test.from, To: test.to}, loc)
			if diff := cmp.Diff(test.want, clocks(period.buckets(everyHour, loc), "15:04 -0700", loc)); diff != "" {
				t.Errorf("hours (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADayHasAsManyHoursAsItIsLong(t *testing.T) {
	for name, test := range map[string]struct {
		zone, date string
		want       int
	}{
		"a usual day in Berlin":                        {"Europe/Berlin", "2026-11-20", 24},
		"the short day in Berlin":                      {"Europe/Berlin", "2026-03-29", 23},
		"the long day in Berlin":                       {"Europe/Berlin", "2026-10-25", 25},
		"the short day of old in São Paulo":            {"America/Sao_Paulo", "2018-11-04", 23},
		"the long day of old in São Paulo":             {"America/Sao_Paulo", "2018-02-17", 25},
		"the long day on Lord Howe, by half an hour":   {"Australia/Lord_Howe", "2026-04-05", 25},
		"the short day on Lord Howe, by half an hour":  {"Australia/Lord_Howe", "2026-10-04", 24},
		"midnight that comes twice in Havana":          {"America/Havana", "2026-11-01", 25},
		"a day in Kathmandu":                           {"Asia/Kathmandu", "2026-01-01", 24},
		"a day on Kiritimati":                          {"Pacific/Kiritimati", "2026-02-28", 24},
		"a day on which the zone has only other names": {"Asia/Kolkata", "2026-02-28", 24},
	} {
		t.Run(name, func(t *testing.T) {
			loc := zone(t, test.zone)
			period := periodOf(t, periodQuery{From: test.date, To: test.date}, loc)
			if got := period.buckets(everyHour, loc); len(got) != test.want {
				t.Errorf("got %d hours, want %d: %v", len(got), test.want, clocks(got, "15:04 -0700", loc))
			}
		})
	}
}

func TestWeeksAndMonthsOfTheCalendar(t *testing.T) {
	for name, test := range map[string]struct {
		zone, from, to string
		every          interval
		want           []string
	}{
		"weeks begin on Mondays, the first and the last are cut": {"Europe/Berlin", "2026-10-23", "2026-11-03", everyWeek, []string{
			"Fri 2026-10-23 00:00 73h0m0s", "Mon 2026-10-26 00:00 168h0m0s", "Mon 2026-11-02 00:00 48h0m0s"}},
		"a Sunday is its week's last day": {"UTC", "2026-11-01", "2026-11-02", everyWeek, []string{
			"Sun 2026-11-01 00:00 24h0m0s", "Mon 2026-11-02 00:00 24h0m0s"}},
		"a week goes over the new year": {"Pacific/Kiritimati", "2025-12-29", "2026-01-04", everyWeek, []string{"Mon 2025-12-29 00:00 168h0m0s"}},
		"months are as long as they are": {"Europe/Berlin", "2026-01-31T11:00:00Z", "2026-04-01T10:00:00Z", everyMonth, []string{
			"Sat 2026-01-31 12:00 12h0m0s", "Sun 2026-02-01 00:00 672h0m0s", "Sun 2026-03-01 00:00 743h0m0s", "Wed 2026-04-01 00:00 12h0m0s"}},
		"February of a leap year": {"UTC", "2024-02-01", "2024-03-01", everyMonth, []string{
			"Thu 2024-02-01 00:00 696h0m0s", "Fri 2024-03-01 00:00 24h0m0s"}},
		"a month goes over the new year": {"America/Sao_Paulo", "2018-12-30", "2019-01-02", everyMonth, []string{
			"Sun 2018-12-30 00:00 48h0m0s", "Tue 2019-01-01 00:00 48h0m0s"}},
		"a month with a midnight that does not exist": {"America/Sao_Paulo", "2018-11-01", "2018-11-30", everyMonth, []string{"Thu 2018-11-01 00:00 719h0m0s"}},
		"a day that was left out belongs to no week":  {"Pacific/Apia", "2011-12-26", "2012-01-01", everyWeek, []string{"Mon 2011-12-26 00:00 144h0m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			loc := zone(t, test.zone)
			period := periodOf(t, periodQuery{From: test.from, To: test.to}, loc)
			if diff := cmp.Diff(test.want, clocks(period.buckets(test.every, loc), "Mon 2006-01-02 15:04", loc)); diff != "" {
				t.Errorf("buckets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBucketsOfAYearFollowEachOtherInEveryKindOfZone(t *testing.T) {
	for _, name := range []string{
		"UTC", "Europe/Berlin", "Europe/Dublin", "America/Santiago", "America/Havana", "America/Sao_Paulo", "Africa/Cairo", "Asia/Tehran", "Australia/Lord_Howe",
		"Asia/Kathmandu", "Pacific/Apia", "Pacific/Kiritimati", "Africa/Casablanca", "America/Nuuk",
	} {
		loc := zone(t, name)
		for year := 2011; year <= 2026; year += 3 {
			period := periodOf(t, periodQuery{From: fmt.Sprintf("%d-01-01", year), To: fmt.Sprintf("%d-12-31", year)}, loc)
			for every, most := range map[interval]time.Duration{everyHour: time.Hour, everyDay: 25 * time.Hour, everyWeek: 169 * time.Hour, everyMonth: 745 * time.Hour} {
				buckets := period.buckets(every, loc)
				if first, last := buckets[0], buckets[len(buckets)-1]; !first.From.Equal(period.From) || !last.To.Equal(period.To) {
					t.Errorf("%s: the %ss of %d are from %v to %v, want %v to %v", name, every, year, first.From, last.To, period.From, period.To)
				}
				for i, b := range buckets {
					if length := b.To.Sub(b.From); length <= 0 || length > most {
						t.Errorf("%s: the %s from %v is %v long", name, every, b.From.In(loc), length)
					}
					if i > 0 && !buckets[i-1].To.Equal(b.From) {
						t.Errorf("%s: the %s from %v begins %v after the one before", name, every, b.From, b.From.Sub(buckets[i-1].To))
					}
				}
			}
			if months := len(period.buckets(everyMonth, loc)); months != 12 {
				t.Errorf("%s: %d has %d months, want 12", name, year, months)
			}
		}
	}
}

func TestThePeriodBefore(t *testing.T) {
	for name, test := range map[string]struct {
		zone  string
		query periodQuery
		want  string
	}{
		"a day is compared with the day before":                   {"UTC", periodQuery{From: "2026-11-20", To: "2026-11-20"}, "2026-11-19T00:00:00Z to 2026-11-20T00:00:00Z (2026-11-19 to 2026-11-19)"},
		"days until now end at the same time of day":              {"Europe/Berlin", periodQuery{}, "2026-09-21T22:00:00Z to 2026-10-21T11:00:00Z (2026-09-22 to 2026-10-21)"},
		"the long day in Berlin with the usual one before":        {"Europe/Berlin", periodQuery{From: "2026-10-25", To: "2026-10-25"}, "2026-10-23T22:00:00Z to 2026-10-24T22:00:00Z (2026-10-24 to 2026-10-24)"},
		"the day after the long one with 25 hours":                {"Europe/Berlin", periodQuery{From: "2026-10-26", To: "2026-10-26"}, "2026-10-24T22:00:00Z to 2026-10-25T23:00:00Z (2026-10-25 to 2026-10-25)"},
		"a week over the change of clocks with seven days":        {"Europe/Berlin", periodQuery{From: "2026-10-20", To: "2026-10-26"}, "2026-10-12T22:00:00Z to 2026-10-19T22:00:00Z (2026-10-13 to 2026-10-19)"},
		"a rolling week with the 168 hours before":                {"Europe/Berlin", periodQuery{Period: "7d"}, "2026-11-06T12:00:00Z to 2026-11-13T12:00:00Z (2026-11-06 to 2026-11-13)"},
		"hours within a day with as many before":                  {"UTC", periodQuery{From: "2026-11-20T10:00:00Z", To: "2026-11-20T11:30:00Z"}, "2026-11-20T08:30:00Z to 2026-11-20T10:00:00Z (2026-11-20 to 2026-11-20)"},
		"an hour before midnight begins none":                     {"Europe/Berlin", periodQuery{From: "2026-10-25T22:00:00Z", To: "2026-10-26T10:00:00Z"}, "2026-10-25T10:00:00Z to 2026-10-25T22:00:00Z (2026-10-25 to 2026-10-25)"},
		"a timestamp at a local midnight begins a day":            {"Europe/Berlin", periodQuery{From: "2026-10-25T23:00:00Z", To: "2026-10-26T10:00:00Z"}, "2026-10-24T22:00:00Z to 2026-10-25T10:00:00Z (2026-10-25 to 2026-10-25)"},
		"a time of day that the day before leaves out":            {"Europe/Berlin", periodQuery{From: "2026-03-30", To: "2026-03-30T00:30:00Z"}, "2026-03-28T23:00:00Z to 2026-03-29T01:00:00Z (2026-03-29 to 2026-03-29)"},
		"such a one in New York":                                  {"America/New_York", periodQuery{From: "2026-03-09", To: "2026-03-09T06:30:00Z"}, "2026-03-08T05:00:00Z to 2026-03-08T07:00:00Z (2026-03-08 to 2026-03-08)"},
		"such a one in St. John's":                                {"America/St_Johns", periodQuery{From: "2026-03-09", To: "2026-03-09T05:00:00Z"}, "2026-03-08T03:30:00Z to 2026-03-08T05:30:00Z (2026-03-08 to 2026-03-08)"},
		"such a one on Lord Howe":                                 {"Australia/Lord_Howe", periodQuery{From: "2026-10-05", To: "2026-10-04T15:15:00Z"}, "2026-10-03T13:30:00Z to 2026-10-03T15:30:00Z (2026-10-04 to 2026-10-04)"},
		"such a one at midnight on the Azores":                    {"Atlantic/Azores", periodQuery{From: "2026-03-30", To: "2026-03-30T00:30:00Z"}, "2026-03-29T01:00:00Z to 2026-03-29T01:00:00Z (2026-03-29 to 2026-03-29)"},
		"a time of day that the day before has twice":             {"Europe/Berlin", periodQuery{From: "2026-10-26", To: "2026-10-26T01:30:00Z"}, "2026-10-24T22:00:00Z to 2026-10-25T00:30:00Z (2026-10-25 to 2026-10-25)"},
		"a day whose midnight does not exist in São Paulo":        {"America/Sao_Paulo", periodQuery{From: "2018-11-04", To: "2018-11-04"}, "2018-11-03T03:00:00Z to 2018-11-04T03:00:00Z (2018-11-03 to 2018-11-03)"},
		"half past midnight the day after that":                   {"America/Sao_Paulo", periodQuery{From: "2018-11-05", To: "2018-11-05T02:30:00Z"}, "2018-11-04T03:00:00Z to 2018-11-04T03:00:00Z (2018-11-04 to 2018-11-04)"},
		"a day on Lord Howe with one that is half an hour longer": {"Australia/Lord_Howe", periodQuery{From: "2026-04-06", To: "2026-04-06"}, "2026-04-04T13:00:00Z to 2026-04-05T13:30:00Z (2026-04-05 to 2026-04-05)"},
		"a day on Kiritimati":                                     {"Pacific/Kiritimati", periodQuery{From: "2026-03-01", To: "2026-03-01"}, "2026-02-27T10:00:00Z to 2026-02-28T10:00:00Z (2026-02-28 to 2026-02-28)"},
		"the day before a day that was left out in Apia":          {"Pacific/Apia", periodQuery{From: "2011-12-31", To: "2011-12-31"}, "2011-12-29T10:00:00Z to 2011-12-30T10:00:00Z (2011-12-29 to 2011-12-29)"},
		"no time at all with none":                                {"UTC", periodQuery{From: "2026-11-01T00:00:00Z", To: "2026-11-01T00:00:00Z"}, "2026-11-01T00:00:00Z to 2026-11-01T00:00:00Z (2026-11-01 to 2026-11-01)"},
		"nothing is before 1970":                                  {"UTC", periodQuery{From: "1970-01-02", To: "1970-01-05"}, "1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z (1970-01-01 to 1970-01-01)"},
	} {
		t.Run(name, func(t *testing.T) {
			loc := zone(t, test.zone)
			if got := show(periodOf(t, test.query, loc).before(loc)); got != test.want {
				t.Errorf("got\n%s, want\n%s", got, test.want)
			}
		})
	}
}
