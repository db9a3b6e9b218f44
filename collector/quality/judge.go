package quality

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Source has what was counted. Both methods return a period for each beginning, in that order.
type Source interface {
	// Slots returns slots of [SlotLength]; those of the last two hours are asked for.
	Slots(ctx context.Context, starts []time.Time) ([]Period, error)
	// Hours returns UTC hours; those of the last four weeks and an hour are asked for.
	Hours(ctx context.Context, starts []time.Time) ([]Period, error)
}

const (
	// weeks is how many weeks are looked back, leastWeeks how many have to be known.
	weeks, leastWeeks = 4, 2
	// MostEvents is how many events of a Property are judged: the busiest.
	MostEvents = 50
	// windowSlots and windowHours are how long the windows are that are judged, in slots and in whole hours.
	slotsKept, hoursKept = 24, 24
)

// windows are those that are judged, the shortest first. Shorter ones find much soon, longer ones what is rare.
var windows = []struct {
	length time.Duration
	slots  int
	hours  int
}{
	{20 * time.Minute, 4, 0},
	{30 * time.Minute, 6, 0},
	{time.Hour, 12, 0},
	{2 * time.Hour, slotsKept, 0},
	{4 * time.Hour, 0, 4},
	{8 * time.Hour, 0, 8},
	{24 * time.Hour, 0, hoursKept},
}

// State says whether there is something to compare with.
type State string

// The states.
const (
	// Watching says that numbers are compared with those of the weeks before.
	Watching State = "watching"
	// Learning says that the same time of the week is not known of two weeks at least.
	Learning State = "learning"
	// Interrupted says that nobody has counted lately, or Redis was away: how much was sent is not known.
	Interrupted State = "interrupted"
)

// Finding is a number that has gone wrong.
type Finding struct {
	// Event is the event's name, "" for what was refused without a valid one, [OtherEvents] for all that are not told apart.
	Event  string
	Signal Signal
	// Currency is that whose share has changed the most, "" for events without one; only with the signal [Currency].
	Currency string
	// From and To are the window in which it is seen.
	From, To time.Time
	// Actual and Expected are numbers of events with the signal [Volume], else shares. Events is how many there were in the window.
	Actual, Expected float64
	Events           int64
}

// EventReport is what can be said of an event.
type EventReport struct {
	Event string
	// SeenWithin is the length of the shortest window in which it would be found now that no event comes any more; 0 where there
	// are too few for any.
	SeenWithin time.Duration
}

// Report is what was found at a moment.
type Report struct {
	// At is up to when was counted.
	At    time.Time
	State State
	// Weeks is of how many weeks this hour is known.
	Weeks    int
	Events   []EventReport
	Findings []Finding
}

// Judge compares. What it returns depends on the time and on what its source says alone, so that several of them say the same, and
// one that was restarted as well. It is not safe for concurrent use.
type Judge struct {
	source   Source
	location *time.Location
	// hours are whole hours that were read before.
	hours map[int64]*Period
	// slow has what the windows of whole hours say, of the hour that ends at slowAt.
	slow   []windowed
	slowAt time.Time
	names  []string
}

// NewJudge returns what compares by the same hour of the week in a location.
func NewJudge(source Source, location *time.Location) *Judge {
	return &Judge{source: source, location: location, hours: map[int64]*Period{}}
}

// span is a part of a window, and what was in the weeks before.
type span struct {
	now  *Period
	past [weeks]past
}

// past is what a span is compared with, of one week: an hour and those around it. A span that is shorter lies in a quarter of the
// hour, and is part of it.
type past struct {
	before, hour, after *Period
	quarter             int
	// part is the span's part of the quarter, 0 where the span is the hour.
	part float64
}

// windowed are the counts of a window by the event's name. It is not known where its counts are not.
type windowed struct {
	from, to time.Time
	known    bool
	weeks    int
	events   map[string]*compared
}

// At judges what was counted up to a time.
func (j *Judge) At(ctx context.Context, at time.Time) (Report, error) {
	end := at.UTC().Truncate(SlotLength)
	hour := end.Truncate(time.Hour)
	if !j.slowAt.Equal(hour) {
		if err := j.read(ctx, hour); err != nil {
			return Report{}, err
		}
		j.look(hour)
	}
	starts := make([]time.Time, slotsKept)
	for i := range starts {
		starts[i] = end.Add(time.Duration(i-slotsKept) * SlotLength)
	}
	found, err := j.source.Slots(ctx, starts)
	if err != nil {
		return Report{}, err
	}
	spans := make([]span, len(starts))
	for i := range starts {
		spans[i] = j.spanOf(&found[i], starts[i], SlotLength)
	}
	var all []windowed
	for _, w := range windows {
		if w.slots > 0 {
			all = append(all, j.window(spans[slotsKept-w.slots:], starts[slotsKept-w.slots], end))
		}
	}
	return j.report(end, append(all, j.slow...)), nil
}

// look looks at the windows of whole hours up to one.
func (j *Judge) look(hour time.Time) {
	j.slowAt, j.slow, j.names = hour, nil, nil
	spans := make([]span, hoursKept)
	for i := range spans {
		start := hour.Add(time.Duration(i-hoursKept) * time.Hour)
		spans[i] = j.spanOf(j.hours[start.Unix()], start, time.Hour)
	}
	j.names = busiest(spans)
	for _, w := range windows {
		if w.hours > 0 {
			j.slow = append(j.slow, j.window(spans[hoursKept-w.hours:], hour.Add(-w.length), hour))
		}
	}
}

// busiest returns the names of the events that were sent most in the weeks before.
func busiest(spans []span) []string {
	sent := map[string]int64{}
	for i := range spans {
		for _, before := range spans[i].past {
			for name, counts := range before.hour.Events {
				sent[name] += counts.Sent()
			}
		}
	}
	names := make([]string, 0, len(sent))
	for name := range sent {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sent[b], sent[a]), strings.Compare(a, b))
	})
	return names[:min(len(names), MostEvents)]
}

// read reads the whole hours that are needed in an hour and not known yet, and lets go of the others.
func (j *Judge) read(ctx context.Context, hour time.Time) error {
	needed := map[int64]bool{}
	for i := range hoursKept + 1 {
		now := hour.Add(time.Duration(i-hoursKept) * time.Hour)
		if i < hoursKept {
			needed[now.Unix()] = true
		}
		for week := 1; week <= weeks; week++ {
			for around := -1; around <= 2; around++ { // clocks may be off by half an hour
				needed[j.before(now, week).Truncate(time.Hour).Add(time.Duration(around)*time.Hour).Unix()] = true
			}
		}
	}
	var starts []time.Time
	for at := range needed {
		if j.hours[at] == nil {
			starts = append(starts, time.Unix(at, 0).UTC())
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	for at := range j.hours {
		if !needed[at] {
			delete(j.hours, at)
		}
	}
	if len(starts) == 0 {
		return nil
	}
	found, err := j.source.Hours(ctx, starts)
	if err != nil {
		return err
	}
	for i, start := range starts {
		j.hours[start.Unix()] = &found[i]
	}
	return nil
}

// before returns when the clocks of the Property showed the same on the same day of the week, some weeks before.
func (j *Judge) before(at time.Time, week int) time.Time {
	const daysInWeek = 7
	local := at.In(j.location)
	year, month, day := local.Date()
	return time.Date(year, month, day-week*daysInWeek, local.Hour(), local.Minute(), local.Second(), 0, j.location).UTC()
}

// spanOf returns what a span is compared with: the hours of the weeks before in which its middle lies.
func (j *Judge) spanOf(now *Period, start time.Time, length time.Duration) span {
	s := span{now: now}
	for i := range s.past {
		middle := j.before(start.Add(length/2), i+1) //nolint:mnd // a half
		hour := middle.Truncate(time.Hour)
		around := func(hours int) *Period { return j.hour(hour.Add(time.Duration(hours) * time.Hour)) }
		s.past[i] = past{before: around(-1), hour: around(0), after: around(1)}
		if length < time.Hour {
			s.past[i].quarter, s.past[i].part = middle.Minute()*quarters/60, float64(length)*quarters/float64(time.Hour)
		}
	}
	return s
}

// hour returns an hour that was read; one that was not is unknown.
func (j *Judge) hour(start time.Time) *Period {
	if p := j.hours[start.Unix()]; p != nil {
		return p
	}
	return &Period{}
}

// expected is how many events are stored in a span by what was in a week before. Where traffic begins or ends at once, as where a
// shop opens, it is the lesser of both sides: the minute may be another.
func (p *past) expected(event string) float64 {
	hour := p.hour.of(event)
	if p.part == 0 {
		return float64(hour.Stored)
	}
	own := hour.Quarters[p.quarter]
	least := own
	if p.quarter > 0 {
		least = min(least, hour.Quarters[p.quarter-1])
	} else if p.before.known() {
		least = min(least, p.before.of(event).Quarters[quarters-1])
	}
	if p.quarter < quarters-1 {
		least = min(least, hour.Quarters[p.quarter+1])
	} else if p.after.known() {
		least = min(least, p.after.of(event).Quarters[0])
	}
	if 2*least < own {
		own = least
	}
	return float64(own) * p.part
}
