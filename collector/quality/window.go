package quality

import (
	"slices"
	"time"
)

// window adds up what the spans of a window have.
func (j *Judge) window(spans []span, from, to time.Time) windowed {
	w := windowed{from: from, to: to, events: map[string]*compared{}}
	known := make([]*span, 0, len(spans))
	for i := range spans {
		if spans[i].now.known() {
			known = append(known, &spans[i])
		}
	}
	const most, of = 3, 4 // so many have to be known
	w.known = len(known)*of >= len(spans)*most
	var told []int
	for week := range weeks {
		if !slices.ContainsFunc(known, func(s *span) bool { return !s.past[week].hour.known() }) {
			told = append(told, week)
		}
	}
	if w.weeks = len(told); !w.known || w.weeks < leastWeeks {
		return w
	}
	for _, name := range j.names {
		w.events[name] = compare(name, known, told)
	}
	if nameless := w.events[""]; nameless != nil { // what was refused without a name is compared with all that was sent
		for name, c := range w.events {
			if name != "" {
				nameless.now.Stored += c.now.Sent()
				nameless.past.Stored += c.past.Sent()
				nameless.before.Stored += c.before.Sent()
				nameless.after.Stored += c.after.Sent()
			}
		}
	}
	return w
}

// compare adds up the counts of an event.
func compare(name string, spans []*span, told []int) *compared {
	c := &compared{spans: make([]*Counts, len(spans)), times: 1}
	if len(spans) > 0 && spans[0].past[0].part > 0 { // what is known of the shares is what the hours have in which the spans lie
		c.times = float64(min(len(spans), int(time.Hour/SlotLength)))
	}
	for i, s := range spans {
		c.spans[i] = s.now.of(name)
		c.now.addTimes(c.spans[i], 1)
	}
	expected := make([]float64, 0, weeks)
	there := 0
	for _, week := range told {
		sum, seen := 0.0, int64(0)
		for i, s := range spans {
			before := &s.past[week]
			sum += before.expected(name)
			if i+1 < len(spans) && spans[i+1].past[week].hour == before.hour {
				continue
			}
			first := i // of those that lie in the same hour
			for first > 0 && spans[first-1].past[week].hour == before.hour {
				first--
			}
			times := int64(i - first + 1)
			seen += before.hour.of(name).Sent()
			c.past.addTimes(before.hour.of(name), times)
			c.before.addTimes(before.before.of(name), times)
			c.after.addTimes(before.after.of(name), times)
		}
		expected = append(expected, sum)
		if seen > 0 {
			there++
		}
	}
	if there < leastWeeks { // the event is new: it has no past
		c.past, c.before, c.after = Counts{}, Counts{}, Counts{}
	}
	c.median = median(expected)
	return c
}

// median returns that of some numbers, which it sorts.
func median(numbers []float64) float64 {
	slices.Sort(numbers)
	half := len(numbers) / 2
	if len(numbers)%2 == 1 {
		return numbers[half]
	}
	return (numbers[half-1] + numbers[half]) / 2 //nolint:mnd // their middle
}

// report says what the windows have found.
func (j *Judge) report(at time.Time, all []windowed) Report {
	r := Report{At: at, State: Watching, Weeks: all[0].weeks}
	switch {
	case !all[0].known:
		r.State = Interrupted
		return r
	case r.Weeks < leastWeeks:
		r.State = Learning
		return r
	}
	for _, name := range j.names {
		if name != "" {
			r.Events = append(r.Events, EventReport{name, seenWithin(name, all)})
		}
		for _, signal := range signals {
			if finding, found := find(name, signal, all); found {
				r.Findings = append(r.Findings, finding)
			}
		}
	}
	return r
}

// seenWithin is the length of the shortest window in which the loss of an event would be found.
func seenWithin(name string, all []windowed) time.Duration {
	for i := range all {
		if c := all[i].events[name]; c != nil && seesLossOf(c.median) {
			return windows[i].length
		}
	}
	return 0
}

// signals are all of them.
var signals = []Signal{Volume, ClientID, Email, ClickID, Duplicates, Refused, Currency}

// find looks for a signal of an event, from the shortest window to the longest. Where a shorter one says that all is well a longer
// one says nothing: it may be wrong still of what is over.
func find(name string, signal Signal, all []windowed) (Finding, bool) {
	if name == "" && signal != Refused {
		return Finding{}, false
	}
	for i := range all {
		c := all[i].events[name]
		if c == nil {
			continue
		}
		v := c.judge(signal)
		if v.wrong && v.sure {
			return Finding{
				Event: name, Signal: signal, Currency: v.currency, From: all[i].from, To: all[i].to,
				Actual: v.actual, Expected: v.expected, Events: v.of,
			}, true
		}
		if v.fine {
			break
		}
	}
	return Finding{}, false
}

// judge says what the counts say of a signal.
func (c *compared) judge(signal Signal) verdict {
	if signal == Volume {
		return judgeVolume(c)
	}
	if c.past.Sent() == 0 {
		return verdict{}
	}
	switch signal {
	case ClientID:
		return judgeFall(func(c *Counts) int64 { return c.Client }, c, identifiersKept)
	case Email:
		return judgeFall(func(c *Counts) int64 { return c.Email }, c, identifiersKept)
	case ClickID:
		return judgeFall(func(c *Counts) int64 { return c.Click }, c, clicksKept)
	case Duplicates:
		return judgeRise(func(c *Counts) int64 { return c.Duplicates }, func(c *Counts) int64 { return c.Stored + c.Duplicates }, c, leastDuplicates)
	case Currency:
		return judgeCurrency(c)
	default:
		return judgeRise(func(c *Counts) int64 { return c.Refused }, (*Counts).Sent, c, leastRefused)
	}
}
