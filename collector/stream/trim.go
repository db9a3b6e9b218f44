package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// trimLimit is about how many entries one call removes, so that none blocks Redis for long.
const trimLimit = 1000

// TrimPolicy says which events may go.
type TrimPolicy struct {
	// Before: older events go unless a group still has to hand them out, a deliverer holds them or they wait for
	// another attempt. The zero time keeps all.
	Before time.Time
	// HardBefore: older events go whoever still needs them. The zero time is no such ceiling.
	HardBefore time.Time
	// MaxEvents is how many events stay at most, whoever still needs the oldest; 0 is no such ceiling.
	MaxEvents int64
}

// Undelivered is an event that a ceiling took from a platform before it was settled.
type Undelivered struct {
	Platform string
	// Entry tells whether the platform had a part in it at all; Data is empty where the event was gone before.
	Entry Entry
}

// TrimResult is what one [Stream.Trim] did.
type TrimResult struct {
	// Removed counts the events that went.
	Removed int64
	// More says that there are more to remove.
	More bool
	// Undelivered are the events that a ceiling took from a platform. The platform's group knows nothing of them
	// any more; they are to be recorded as expired.
	Undelivered []Undelivered
}

// Trim removes events that the policy lets go, in one step of about 1,000, and the delivery records older than the
// oldest event that stays. Call it again while More.
func (s *Stream) Trim(ctx context.Context, policy TrimPolicy) (TrimResult, error) {
	reply, err := s.redis.FCall(ctx, functionTrim,
		[]string{s.keys.events(), s.keys.deliveries(), s.keys.prefix + "retry:"},
		millisOrZero(policy.Before), millisOrZero(policy.HardBefore), policy.MaxEvents, trimLimit).Slice()
	if err != nil {
		return TrimResult{}, describe("trim events", err)
	}
	if len(reply) != 3 {
		return TrimResult{}, malformedReply(functionTrim)
	}
	var result TrimResult
	result.Removed, _ = reply[0].(int64)
	result.More = reply[1] == int64(1)
	lost, _ := reply[2].([]any)
	for _, item := range lost {
		fields, ok := item.([]any)
		if !ok || len(fields) != 3 {
			return result, malformedReply(functionTrim)
		}
		p, err := positionOf(fields[1])
		if err != nil {
			return result, err
		}
		platform, _ := fields[0].(string)
		data, _ := fields[2].(string)
		result.Undelivered = append(result.Undelivered, Undelivered{platform, Entry{Position: p, Data: []byte(data)}})
	}
	return result, nil
}

func millisOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Delete removes everything that Redis holds of the property. Roles that still run would write anew.
func (s *Stream) Delete(ctx context.Context) error {
	groups, err := s.Groups(ctx)
	if err != nil {
		return err
	}
	names := []string{s.keys.events(), s.keys.deliveries(), s.keys.rate(), s.keys.claims()}
	for _, group := range groups {
		names = append(names, s.keys.retries(group.Platform)...)
	}
	newest, err := s.redis.HGetAll(ctx, s.keys.claims()).Result()
	if err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	for length, bucket := range newest {
		millis, err := strconv.ParseInt(length, 10, 64)
		last, lastErr := strconv.ParseInt(bucket, 10, 64)
		if err = errors.Join(err, lastErr); err != nil {
			return fmt.Errorf("list claims: %w", err)
		}
		for age := range int64(claimBuckets) {
			names = append(names, s.keys.claimBucket(time.Duration(millis)*time.Millisecond, last-age))
		}
	}
	now, err := s.redis.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("ask redis for the time: %w", err)
	}
	const periodMillis, remembered = 30_000, 4
	for age := range int64(remembered + 1) {
		for shard := range 256 {
			names = append(names, s.keys.batchShard(now.UnixMilli()/periodMillis-age, shard))
		}
	}
	// The claims' list goes last, so that an interrupted deletion can be repeated.
	for len(names) > 0 {
		n := min(len(names), 1000)
		if err := s.redis.Unlink(ctx, names[len(names)-n:]...).Err(); err != nil {
			return fmt.Errorf("remove keys: %w", err)
		}
		names = names[:len(names)-n]
	}
	return nil
}
