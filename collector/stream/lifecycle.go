package stream

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event/wire"
)

// scanBatch is how many keys are looked at, and removed, in one step.
const scanBatch = 1000

// Ages are for how long is kept what a property has.
type Ages struct {
	// Events are kept longest. Devices and Identities are for how long the keys are that those are sealed under; Identities also
	// for how long it is known who is who.
	Events, Devices, Identities time.Duration
}

// Expire gives the property's data a last day: whoever trimmed it is gone. [Stream.Keep] takes it back. What
// lives for a time of its own anyway is left alone. platforms are those that events may wait for.
func (s *Stream) Expire(ctx context.Context, ages Ages, platforms []string) error {
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, key := range s.lasting(platforms) {
			pipe.PExpire(ctx, key, ages.Events)
		}
		pipe.PExpire(ctx, s.keys.seal(wire.Device), ages.Devices)
		pipe.PExpire(ctx, s.keys.seal(wire.Identity), ages.Identities)
		pipe.PExpire(ctx, s.keys.join(), ages.Identities)
		for slot := range dedupSlots {
			pipe.PExpire(ctx, s.keys.join()+":"+strconv.Itoa(slot), ages.Identities)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set when the property's data expires: %w", err)
	}
	return nil
}

// Keep takes back what [Stream.Expire] did.
func (s *Stream) Keep(ctx context.Context, platforms []string) error {
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, key := range s.lasting(platforms) {
			pipe.Persist(ctx, key)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep the property's data: %w", err)
	}
	return nil
}

// lasting are the keys that live until somebody trims them.
func (s *Stream) lasting(platforms []string) []string {
	list := []string{s.keys.events(), s.keys.deliveries(), s.keys.clock(), s.keys.dedup(), s.keys.join(),
		s.keys.seal(wire.Device), s.keys.seal(wire.Identity), s.keys.sealDropped(),
		s.keys.erasureRequests(), s.keys.erasureLedger(), s.keys.openErasures(), s.keys.hiddenErasures(), s.keys.archive()}
	for slot := range dedupSlots {
		list = append(list, s.keys.dedup()+":"+strconv.Itoa(slot), s.keys.join()+":"+strconv.Itoa(slot))
	}
	for _, platform := range platforms {
		list = append(list, s.keys.retries(platform)...)
	}
	return list
}

// Erase removes everything that Redis has of the property, a thousand keys at a time, without blocking it. It looks
// through all keys of the node that holds them.
func (c *Client) Erase(ctx context.Context, namespace, name string) error {
	pattern := keysOf(namespace, name).pattern() // names hold nothing that patterns give a meaning
	return c.eachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
		for cursor := uint64(0); ; {
			found, next, err := node.Scan(ctx, cursor, pattern, scanBatch).Result()
			if err == nil && len(found) > 0 {
				err = node.Unlink(ctx, found...).Err() // one slot: they share the hash tag
			}
			if err != nil {
				return fmt.Errorf("erase the data of %s/%s: %w", namespace, name, err)
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
}

// PausedFor is how long [Stream.PausePlatform] holds, unless it is said again.
const PausedFor = 6 * time.Second

// longestReason is how much is read of why a platform is paused.
const longestReason = 64

// PausedPlatforms returns those of the platforms that a deliverer has paused, with the reason for each, as
// [Stream.PausePlatform] noted it.
func (s *Stream) PausedPlatforms(ctx context.Context, platforms []string) (map[string]string, error) {
	paused := map[string]string{}
	if len(platforms) == 0 {
		return paused, nil
	}
	values := make([]*redis.StringCmd, len(platforms))
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, platform := range platforms {
			values[i] = pipe.GetRange(ctx, s.keys.paused(platform), 0, longestReason-1)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read which platforms are paused: %w", err)
	}
	for i, value := range values {
		if reason := value.Val(); reason != "" {
			paused[platforms[i]] = reason
		}
	}
	return paused, nil
}

// PausePlatform notes for [PausedFor] that deliveries to a platform stand still until a person has fixed something,
// and why. Whoever cannot reach the API server tells the operator in this way, again and again: so what a process
// reported that is no more, or of which there are several, needs nobody to take it back.
func (s *Stream) PausePlatform(ctx context.Context, platform, reason string) error {
	if err := s.redis.Set(ctx, s.keys.paused(platform), reason, PausedFor).Err(); err != nil {
		return fmt.Errorf("note that platform %s is paused: %w", platform, err)
	}
	return nil
}
