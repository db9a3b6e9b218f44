package stream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Rate is how many events a second may come by one way.
type Rate struct {
	// Key is 0 for the property's secret keys, which share a rate, or 1 to [MaxRatedKeys] for a key with a rate of its own.
	Key int
	// EventsPerSecond is at least 1.
	EventsPerSecond int
}

// MaxRatedKeys is how many keys of a property may have a rate of their own.
const MaxRatedKeys = 16

// Allowance is the answer of [Stream.Allow].
type Allowance struct {
	// OK says whether the events may be accepted now.
	OK bool
	// Limit is the events a second of the rate, Remaining how many more it allows at once now.
	Limit, Remaining int
	// RetryAfter is how long to wait before the same events would be allowed; 0 where OK.
	RetryAfter time.Duration
}

// Allow takes n events from the allowance of a rate that all collectors of the property share, and says whether they
// were there. A second's allowance may be used at once. More than that in one call is allowed when the allowance is
// whole, and is paid for with the time after it, so that a large batch passes under a small limit. n is at least 1. A
// failure of Redis is an error; nothing is taken then, as far as is known.
func (s *Stream) Allow(ctx context.Context, rate Rate, n int) (Allowance, error) {
	if rate.EventsPerSecond < 1 || n < 1 || rate.Key < 0 || rate.Key > MaxRatedKeys {
		return Allowance{}, fmt.Errorf("limit and number of events must be at least 1, and the key at most %d", MaxRatedKeys)
	}
	reply, err := s.redis.FCall(ctx, functionAllow, []string{s.keys.rate(rate.Key)}, rate.EventsPerSecond, n).Int64Slice()
	if err != nil {
		return Allowance{}, describe("count events against the rate limit", err)
	}
	if len(reply) != 3 {
		return Allowance{}, errors.New("count events against the rate limit: " + functionAllow + " must reply with three numbers")
	}
	return Allowance{
		OK: reply[0] == 1, Limit: rate.EventsPerSecond, Remaining: int(reply[1]), RetryAfter: time.Duration(reply[2]) * time.Microsecond,
	}, nil
}
