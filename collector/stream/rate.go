package stream

import (
	"context"
	"errors"
	"time"
)

// Allowance is the answer of [Stream.Allow].
type Allowance struct {
	// OK says whether the events may be accepted now.
	OK bool
	// Limit is the events a second of the property, Remaining how many more it may accept at once now.
	Limit, Remaining int
	// RetryAfter is how long to wait before the same events would be allowed; 0 where OK.
	RetryAfter time.Duration
}

// Allow takes n events from the allowance of limit events a second that all collectors of the property share, and
// says whether they were there. A second's allowance may be used at once. More than that in one call is allowed when
// the allowance is whole, and is paid for with the time after it, so that a large batch passes under a small limit.
// limit and n are at least 1. A failure of Redis is an error; nothing is taken then, as far as is known.
func (s *Stream) Allow(ctx context.Context, limit, n int) (Allowance, error) {
	if limit < 1 || n < 1 {
		return Allowance{}, errors.New("limit and number of events must be at least 1")
	}
	reply, err := s.redis.FCall(ctx, functionAllow, []string{s.keys.rate()}, limit, n).Int64Slice()
	if err != nil {
		return Allowance{}, describe("count events against the rate limit", err)
	}
	if len(reply) != 3 {
		return Allowance{}, errors.New("count events against the rate limit: " + functionAllow + " must reply with three numbers")
	}
	return Allowance{
		OK: reply[0] == 1, Limit: limit, Remaining: int(reply[1]), RetryAfter: time.Duration(reply[2]) * time.Microsecond,
	}, nil
}
