package stream

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Clock is a property's clock: Redis's, by which events are dated, as far as it is believed. Redis's clock may be set, or
// another node with another one takes over. A step of more than an hour that this process's monotonic clock has not seen is not
// believed: until Redis's clock is back, the time before goes on, and nothing becomes old by it. It is believed after all when a
// day later this process's own clock agrees with it.
//
// Between two looks it goes by the monotonic clock. How late Redis read its clock during a look is not known: [Clock.Now] is the
// earliest that it may be, so that nothing is due too early, [Clock.Latest] the latest. [Clock.Look] comes before all else. It is
// safe for concurrent use.
type Clock struct {
	stream *Stream
	// wall is this process's clock, monotonic how long something runs.
	wall      func() time.Time
	monotonic func() time.Duration
	last      atomic.Pointer[look]
}

// followed is up to which step back a [Clock] goes on as it went: those beyond are believed only after a day.
const followed = time.Hour

// look is what a [Clock] was told.
type look struct {
	at time.Duration // on the monotonic clock, when the answer was there
	// believed is the earliest that it was then, latest the latest.
	believed, latest time.Time
}

// NewClock makes a clock. wall is this process's, which may be set; monotonic says how long something runs, the same
// thing always.
func NewClock(s *Stream, wall func() time.Time, monotonic func() time.Duration) *Clock {
	return &Clock{stream: s, wall: wall, monotonic: monotonic}
}

// Look asks Redis for the time and notes there what is believed. It returns by how much Redis's clock is ahead of that, or
// behind where that is negative; 0 where it is believed. It is to be called once a minute.
func (c *Clock) Look(ctx context.Context) (ahead time.Duration, err error) {
	var passed any = ""
	asked := c.monotonic()
	if last := c.last.Load(); last != nil {
		passed = (asked - last.at).Milliseconds()
	}
	reply, err := c.stream.redis.FCall(ctx, functionLook, []string{c.stream.keys.clock()}, passed, c.wall().UnixMilli()).Int64Slice()
	if err != nil {
		return 0, describe("look at redis's clock", err)
	}
	if len(reply) != 2 {
		return 0, malformedReply(functionLook)
	}
	at, believed := c.monotonic(), time.UnixMilli(reply[0]).UTC()
	latest := believed.Add(at - asked + time.Millisecond) // Redis says full milliseconds
	if last := c.last.Load(); last != nil {
		// What waits for a time goes by this clock, and is not to wait longer where Redis's is set back a little.
		if own := last.believed.Add(at - last.at); own.After(believed) && own.Sub(believed) <= followed {
			believed = own
		}
	}
	if latest.Before(believed) {
		latest = believed
	}
	c.last.Store(&look{at, believed, latest})
	return time.Duration(reply[1]) * time.Millisecond, nil
}

// Now is the time that is believed; by Redis's clock it may be a little later.
func (c *Clock) Now() time.Time {
	last := c.last.Load()
	return last.believed.Add(c.monotonic() - last.at)
}

// Latest is the latest that it may be by Redis's clock where that is believed. What must not happen before some time has passed is
// due when that has passed since then.
func (c *Clock) Latest() time.Time {
	last := c.last.Load()
	return last.latest.Add(c.monotonic() - last.at)
}

// now is the time that is believed, as events are dated by it.
func (s *Stream) now(ctx context.Context) (time.Time, error) {
	var clock *redis.TimeCmd
	var seen *redis.StringCmd
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		clock, seen = pipe.Time(ctx), pipe.GetRange(ctx, s.keys.clock(), 0, 63)
		return nil
	})
	if err != nil {
		return time.Time{}, describe("ask for the time", err)
	}
	return believed(clock.Val(), seen.Val()), nil
}

// believed returns the time that is believed where Redis's clock says now and what a deliverer saw last is as weir.lua
// wrote it down: SEEN:AHEAD:SINCE.
func believed(now time.Time, seen string) time.Time {
	parts := strings.Split(seen, ":")
	if len(parts) != 3 {
		return now.UTC()
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	ahead, alsoErr := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || alsoErr != nil {
		return now.UTC()
	}
	if looked := time.UnixMilli(at); now.Sub(looked).Abs() > followed {
		now = looked
	}
	return now.Add(-time.Duration(ahead) * time.Millisecond).UTC()
}
