package forget_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/forget"
	"github.com/weir-dev/weir/collector/history/schema"
)

const year = 365 * day

// told is what clocks say when so much time has passed: how far what is believed is ahead of the truth, and the process's own.
type told struct {
	passed, believed, own time.Duration
	// anew says that the process begins anew.
	anew bool
}

func TestAClockThatJumpsRemovesNothing(t *testing.T) {
	const kept = 40
	var (
		all     = []string{"1h0m0s", "720h0m0s", "2400h0m0s"}
		right   = []string{"1h0m0s", "720h0m0s"} // of which none is older than forty days
		nothing []string
	)
	for name, test := range map[string]struct {
		said []told
		want []string
	}{
		"what is too old goes where all clocks are right":             {[]told{{}}, right},
		"and where a process begins anew":                             {[]told{{anew: true}}, right},
		"nothing goes where a new Redis is a year ahead":              {[]told{{believed: year}}, all},
		"for however long that is":                                    {[]told{{believed: year}, {passed: 3 * day, believed: year}}, all},
		"and what is too old goes when it is right again":             {[]told{{believed: year}, {passed: time.Hour, believed: year}, {passed: 2 * time.Hour}}, right},
		"nothing more goes where it jumps ahead and back":             {[]told{{}, {passed: time.Minute, believed: year}, {passed: time.Hour, believed: year}, {passed: 2 * time.Hour}}, right},
		"nor where the process's own clock is set with it":            {[]told{{}, {passed: time.Minute, believed: year, own: year}, {passed: 23 * time.Hour, believed: year, own: year}, {passed: day}}, right},
		"nor where it jumps again and again":                          {[]told{{}, {passed: time.Hour, believed: year, own: year}, {passed: 20 * time.Hour, believed: 2 * year, own: 2 * year}, {passed: 30 * time.Hour, believed: 2 * year, own: 2 * year}}, right},
		"but where both have said so for a day it is believed":        {[]told{{}, {passed: time.Minute, believed: year, own: year}, {passed: 25 * time.Hour, believed: year, own: year}}, nothing},
		"and where a process begins anew that has seen nothing else":  {[]told{{}, {passed: time.Minute, believed: year, own: year, anew: true}}, nothing},
		"time goes on, by however few looks":                          {[]told{{}, {passed: 20 * day}}, []string{"1h0m0s"}},
		"a clock that is behind removes nothing":                      {[]told{{believed: -year}, {passed: 2 * day, believed: -year}}, all},
		"and what is too old goes a day after it is right again":      {[]told{{believed: -year}, {passed: time.Hour}, {passed: 26 * time.Hour}}, right},
		"which nothing does before":                                   {[]told{{believed: -year}, {passed: time.Hour}, {passed: 20 * time.Hour}}, all},
		"an hour is not worth a doubt":                                {[]told{{}, {passed: 10*day - 13*time.Hour, believed: time.Hour}}, right},
		"nothing goes where the process's own clock is a year behind": {[]told{{own: -year}, {passed: 2 * day, own: -year}}, all},
		"and where that is ahead it is what is believed that counts":  {[]told{{own: year}}, right},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.insert(map[time.Duration]event.Event{100 * day: client("a"), 30 * day: client("a"), time.Hour: client("a")})
			f := h.forgetter()
			for _, said := range test.said {
				h.passed = said.passed
				if said.anew {
					f = h.forgetter()
				}
				now := noon.Add(said.passed + said.believed)
				h.wall = noon.Add(said.passed + said.own)
				h.limits = forget.Limits{Now: now, Oldest: schema.DaysBefore(now, kept)}
				h.step(f)
			}
			h.want("in the end", test.want...)
		})
	}
}

func TestAClockThatJumpsMakesNothingNobodys(t *testing.T) {
	h := newHistory(t)
	h.insert(map[time.Duration]event.Event{10 * day: client("a"), time.Hour: client("a")})
	h.wall = noon
	h.limits = forget.Limits{Now: noon.Add(year), Anonymous: schema.DaysBefore(noon.Add(year), 9)}
	f := h.forgetter()
	h.step(f)
	somebodys := "SELECT toString(countIf(visitor != 0)) FROM events"
	if got := h.ask(somebodys); got[0] != "2" {
		t.Errorf("%s events are somebody's, want 2", got[0])
	}
	h.limits = forget.Limits{Now: noon, Anonymous: schema.DaysBefore(noon, 9)}
	h.step(f)
	if got := h.ask(somebodys); got[0] != "1" {
		t.Errorf("when it is right again %s events are somebody's, want 1", got[0])
	}
}
