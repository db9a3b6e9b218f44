package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

const day = 24 * time.Hour

// realClock is a deliverer's.
func realClock(s *Stream) *Clock {
	started := time.Now()
	return NewClock(s, time.Now, func() time.Duration { return time.Since(started) })
}

// turn is what happens to the clocks of a property.
type turn struct {
	// passes is how much time passes first; a minute where 0.
	passes time.Duration
	// redis, deliverer and collector are how far each clock is ahead of the true time from then on.
	redis, deliverer, collector time.Duration
	// restart says that the deliverer and the collector are others than before; unseen that the deliverer has not looked yet.
	restart, unseen bool
	// ahead is what is to be reported of Redis's clock, and dated how far new events may be from the true time; a minute and a
	// half where 0.
	ahead, dated time.Duration
	// slow is how far the deliverer's time may be from the true one besides.
	slow time.Duration
	// forgotten says that old events may go: the time is believed.
	forgotten bool
}

// bothAhead is for machines that run both, whose clock is set.
func bothAhead(by time.Duration) turn { return turn{redis: by, deliverer: by, collector: by} }

var clockTurns = map[string][]turn{
	"Redis's is set ahead by minutes, and back":       {{redis: 5 * time.Minute, dated: 6 * time.Minute}, {dated: 6 * time.Minute}},
	"Redis's is set back by minutes, and forth":       {{redis: -5 * time.Minute, dated: 6 * time.Minute}, {}},
	"Redis's is set ahead by 12 days, and back":       {{redis: 12 * day, ahead: 12 * day}, {passes: day, redis: 12 * day, ahead: 12 * day}, {}},
	"Redis's is set back by 12 days, and forth":       {{redis: -12 * day, ahead: -12 * day}, {passes: day, redis: -12 * day, ahead: -12 * day}, {}},
	"Redis's is set ahead by 70 days, and back":       {{redis: 70 * day, ahead: 70 * day}, {passes: 2 * day, redis: 70 * day, ahead: 70 * day}, {}},
	"Redis's is set back by 70 days, and forth":       {{redis: -70 * day, ahead: -70 * day}, {passes: 2 * day, redis: -70 * day, ahead: -70 * day}, {}},
	"Redis's goes ahead and back before one looks":    {{redis: 12 * day, unseen: true}, {unseen: true}, {}},
	"Redis's goes back and forth before one looks":    {{redis: -12 * day, unseen: true}, {unseen: true}, {}},
	"Redis's is ahead, at first unseen":               {{redis: 70 * day, unseen: true}, {redis: 70 * day, ahead: 70 * day}, {}},
	"Redis's goes both ways":                          {{redis: 12 * day, ahead: 12 * day}, {redis: -70 * day, ahead: -70 * day}, {}},
	"Redis's is ahead when the pods restart":          {{redis: 70 * day, ahead: 70 * day, restart: true}, {redis: 70 * day, ahead: 70 * day, restart: true}, {restart: true}},
	"Redis's is behind when the pods restart":         {{redis: -12 * day, ahead: -12 * day, restart: true}, {restart: true}},
	"the deliverer's is set ahead by minutes":         {{deliverer: 5 * time.Minute}, {}},
	"the deliverer's is set ahead by 12 days":         {{deliverer: 12 * day}, {}},
	"the deliverer's is set ahead by 70 days":         {{deliverer: 70 * day}, {passes: 2 * day, deliverer: 70 * day}, {}},
	"the deliverer's is set back by 70 days":          {{deliverer: -70 * day}, {passes: 2 * day, deliverer: -70 * day}, {}},
	"the deliverer's is 70 days ahead at its start":   {{deliverer: 70 * day, restart: true}, {passes: 2 * day, deliverer: 70 * day}},
	"the deliverer's is 70 days behind at its start":  {{deliverer: -70 * day, restart: true}, {passes: 2 * day, deliverer: -70 * day}},
	"the collector's is set ahead by 70 days":         {{collector: 70 * day}, {collector: 70 * day, unseen: true}, {}},
	"the collector's is set back by 70 days":          {{collector: -70 * day}, {collector: -70 * day, unseen: true}, {}},
	"Redis's and the deliverer's differ by 140 days":  {{redis: 70 * day, deliverer: -70 * day, ahead: 70 * day}, {passes: 2 * day, redis: 70 * day, deliverer: -70 * day, ahead: 70 * day}, {}},
	"all are set ahead by minutes, and back":          {with(bothAhead(5*time.Minute), func(s *turn) { s.dated = 6 * time.Minute }), {dated: 6 * time.Minute}},
	"all are set ahead by 12 days, and back":          {with(bothAhead(12*day), func(s *turn) { s.ahead, s.collector = 12*day, 0 }), {}},
	"all are set ahead by 70 days, and back":          {with(bothAhead(70*day), func(s *turn) { s.ahead, s.collector = 70*day, 0 }), {}},
	"all are set back by 70 days, and forth":          {with(bothAhead(-70*day), func(s *turn) { s.ahead, s.collector = -70*day, 0 }), {}},
	"all are ahead by 70 days when the pods restart":  {with(bothAhead(70*day), func(s *turn) { s.ahead, s.restart, s.dated = 70*day, true, 71*day }), {restart: true, dated: 71 * day}},
	"all are ahead by 70 days for more than a day":    {with(bothAhead(70*day), func(s *turn) { s.ahead, s.collector = 70*day, 0 }), with(bothAhead(70*day), func(s *turn) { s.passes, s.dated, s.forgotten = day, 71*day, true })},
	"nothing ran for five hours":                      {{passes: 5 * time.Hour, restart: true}},
	"nothing ran for three days":                      {{passes: 3 * day, restart: true, unseen: true}, {restart: true, ahead: 3 * day, slow: 4 * day}, {passes: day}},
	"the deliverer did not run for five hours":        {{passes: 5 * time.Hour, unseen: true}, {restart: true}},
	"the deliverer restarts, and nothing else occurs": {{restart: true}, {restart: true}},
}

func with(s turn, change func(*turn)) turn {
	change(&s)
	return s
}

// clocks are those of a property: true time goes by hand.
type clocks struct {
	*testing.T
	stream                 *Stream
	server                 *redistest.Clock
	appender               *Appender
	deliverer              *Clock
	now                    time.Time
	wall, started, witness time.Duration
	appended               []string
}

func (c *clocks) restart() {
	c.started = time.Duration(c.now.UnixNano())
	c.deliverer = NewClock(c.stream, func() time.Time { return c.now.Add(c.wall) }, func() time.Duration {
		return time.Duration(c.now.UnixNano()) - c.started
	})
	c.appender = newAppender(c, c.stream, AppenderOptions{})
	c.appender.witness = func() time.Time { return c.now.Add(c.witness) }
}

// trim does what a deliverer does each minute, and returns how many events there are left of the first.
func (c *clocks) trim() (ahead time.Duration, left int) {
	c.Helper()
	ahead, err := c.deliverer.Look(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	trimAll(c, c.stream, TrimPolicy{Age: 62 * day, HardAge: 62 * day})
	for _, e := range allEvents(c, c.stream) {
		if string(e.Data) == "entry of old" || string(e.Data) == "entry of older" {
			left++
		}
	}
	return ahead, left
}

func TestClocks(t *testing.T) {
	for name, turns := range clockTurns {
		t.Run(name, func(t *testing.T) { runClocks(t, time.Now().Add(100*day), turns) })
	}
}

// Redis's real clock is far ahead here, by which Redis dates what it is left to.
func TestRedisDatesNothingWhereItsClockIsNotBelieved(t *testing.T) {
	for name, turns := range map[string][]turn{
		"the clock goes ahead":                  {{redis: 12 * day, unseen: true}, {redis: 12 * day, ahead: 12 * day}, {passes: time.Hour, redis: 12 * day, ahead: 12 * day}},
		"the clock goes back":                   {{redis: -12 * day, unseen: true}, {redis: -12 * day, ahead: -12 * day}, {}},
		"the deliverer looks, and then it goes": {{}, {passes: 30 * time.Second, unseen: true}, {passes: 10 * time.Second, redis: 70 * day, unseen: true}},
	} {
		t.Run(name, func(t *testing.T) { runClocks(t, time.Now().Add(-300*day), turns) })
	}
}

func runClocks(t *testing.T, start time.Time, turns []turn) {
	t.Helper()
	address := redistest.URL(t)
	c := &clocks{T: t, stream: dial(t, address).Stream("default", "shop"), server: redistest.TurnClock(t, address)}
	c.restart()
	for _, old := range []struct {
		id  string
		age time.Duration
	}{{"older", 57 * day}, {"old", 55 * day}, {"first", 0}} {
		c.now = start.Add(-old.age)
		c.server.Stop(c.now)
		mustAppend(t, c.appender, addition(old.id, "order-"+old.id))
	}
	c.appended = []string{"first"}
	c.restart()
	if ahead, left := c.trim(); ahead != 0 || left != 2 {
		t.Fatalf("at first Redis's clock is %s ahead, and %d old events are left", ahead, left)
	}
	for i, turn := range turns {
		c.turn(i+1, turn)
	}
}

func (c *clocks) turn(number int, s turn) {
	c.Helper()
	c.now = c.now.Add(max(s.passes, time.Duration(0)))
	if s.passes == 0 {
		c.now = c.now.Add(time.Minute)
	}
	c.server.Stop(c.now.Add(s.redis))
	c.wall, c.witness = s.deliverer, s.collector
	if s.restart {
		c.restart()
	}
	left := 2
	if !s.unseen {
		var ahead time.Duration
		if ahead, left = c.trim(); (ahead - s.ahead).Abs() > 5*time.Minute {
			c.Errorf("turn %d: Redis's clock is reported as %s ahead, want %s", number, ahead, s.ahead)
		}
		if believed := c.deliverer.Now().Sub(c.now).Abs(); believed > max(s.slow, s.dated, 90*time.Second) {
			c.Errorf("turn %d: the deliverer's time is %s from the true one", number, believed)
		}
	}
	if gone := 2 - left; (gone > 0) != s.forgotten {
		c.Errorf("turn %d: %d old events are gone", number, gone)
	}
	for _, id := range c.appended {
		if got := mustAppend(c, c.appender, addition(id, ""))[0]; !got.Duplicate && !s.forgotten {
			c.Errorf("turn %d: the event_id %s is new once more", number, id)
		}
		if got := mustAppend(c, c.appender, addition("", "order-"+id))[0]; got.EventID != id && !s.forgotten {
			c.Errorf("turn %d: the order_id of %s is answered with %+v", number, id, got)
		}
	}
	id := fmt.Sprint("turn-", number)
	if got := mustAppend(c, c.appender, addition(id, "order-"+id))[0]; got.Duplicate {
		c.Errorf("turn %d: a new event is a duplicate", number)
	}
	c.appended = append(c.appended, id)
	events := allEvents(c, c.stream)
	if off := events[len(events)-1].Position.Time().Sub(c.now).Abs(); off > max(s.dated, 90*time.Second) {
		c.Errorf("turn %d: a new event is dated %s from the true time", number, off)
	}
}

// The time lies between what a clock says is the earliest and the latest, however long Redis's answers take.
func TestClockIsBoundedByItsLooks(t *testing.T) {
	// way is how long a look took to reach Redis, and its answer to come back.
	type way struct{ there, back time.Duration }
	slow := 300 * time.Millisecond
	for name, ways := range map[string][]way{
		"a quick look":               {{}},
		"a slow way there":           {{there: slow}},
		"a slow way back":            {{back: slow}},
		"slow ways":                  {{slow, slow}, {slow, slow}},
		"slow back, then quick":      {{back: slow}, {}},
		"slow there, then quick":     {{there: slow}, {}},
		"quick, then slow back":      {{}, {back: slow}},
		"quick, then slow there":     {{}, {there: slow}},
		"slow there, then slow back": {{there: slow}, {back: slow}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			address := redistest.URL(t)
			s, server := dial(t, address).Stream("default", "shop"), redistest.TurnClock(t, address)
			// Redis's clock is this machine's, put forward by what the looks are made to take: a look asks for the monotonic time
			// before it asks Redis, and when it has the answer.
			ahead, delays := time.Duration(0), []time.Duration(nil)
			truth := func() time.Time { return time.Now().Add(ahead) }
			pass := func(d time.Duration) {
				ahead += d
				server.Ahead(ahead)
			}
			started := truth()
			c := NewClock(s, truth, func() time.Duration {
				if len(delays) == 1 {
					pass(delays[0])
				}
				at := truth().Sub(started)
				if len(delays) == 2 {
					pass(delays[0])
				}
				delays = delays[min(1, len(delays)):]
				return at
			})
			for i, w := range ways {
				delays = []time.Duration{w.there, w.back}
				if _, err := c.Look(t.Context()); err != nil {
					t.Fatal(err)
				}
				before := truth()
				earliest, latest := c.Now(), c.Latest()
				if after := truth(); earliest.After(after) || latest.Before(before) {
					t.Errorf("after look %d it is %s, and said to be %s at the earliest and %s at the latest", i+1, after, earliest, latest)
				}
			}
		})
	}
}
