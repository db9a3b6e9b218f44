package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// eventField is the one field of an entry of the events stream.
const eventField = "e"

// Group is a platform's consumer group.
type Group struct {
	Platform string
	// LastDelivered is the newest position handed to a deliverer.
	LastDelivered Position
	// Pending counts events that a deliverer holds, Waiting those that wait for another attempt.
	Pending, Waiting int64
	// Lag counts events that were not handed out yet; -1 where Redis cannot tell.
	Lag int64
}

// EnsureGroup makes the platform's group where it is missing, to be handed the events behind after: 0 for all of
// them. created says whether it was missing; an existing group stays where it is.
func (s *Stream) EnsureGroup(ctx context.Context, platform string, after Position) (created bool, err error) {
	err = s.redis.XGroupCreateMkStream(ctx, s.keys.events(), platform, after.String()).Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create consumer group of platform %s: %w", platform, err)
	}
	return true, nil
}

// Groups returns the property's groups, none where it has no events stream.
func (s *Stream) Groups(ctx context.Context) ([]Group, error) {
	infos, err := s.redis.XInfoGroups(ctx, s.keys.events()).Result()
	if isNoKey(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list consumer groups: %w", err)
	}
	groups := make([]Group, len(infos))
	for i, info := range infos {
		last, err := ParsePosition(info.LastDeliveredID)
		if err != nil {
			return nil, fmt.Errorf("consumer group of platform %s: %w", info.Name, err)
		}
		waiting, err := s.redis.ZCard(ctx, s.keys.open(info.Name)).Result()
		if err != nil {
			return nil, fmt.Errorf("count retries of platform %s: %w", info.Name, err)
		}
		groups[i] = Group{Platform: info.Name, LastDelivered: last, Pending: info.Pending, Waiting: waiting, Lag: info.Lag}
	}
	return groups, nil
}

// DestroyGroup removes the platform's group and what waits in it. A missing group is no error.
func (s *Stream) DestroyGroup(ctx context.Context, platform string) error {
	if err := s.redis.XGroupDestroy(ctx, s.keys.events(), platform).Err(); err != nil && !isNoKey(err) {
		return fmt.Errorf("destroy consumer group of platform %s: %w", platform, err)
	}
	if err := s.redis.Unlink(ctx, s.keys.retries(platform)...).Err(); err != nil {
		return fmt.Errorf("remove retries of platform %s: %w", platform, err)
	}
	return nil
}

// Read hands up to count new events to a consumer, in order, after waiting for at most block (0: not at all) for
// there to be any. They are the consumer's until settled, or until another reclaims them. It fails with [ErrNoGroup].
// When ctx ends it returns at once; what Redis hands out after that is released again.
func (s *Stream) Read(ctx context.Context, platform, consumer string, count int, block time.Duration) ([]Delivery, error) {
	read := func(ctx context.Context) ([]redis.XStream, error) {
		return s.redis.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: platform, Consumer: consumer, Streams: []string{s.keys.events(), ">"},
			Count: int64(count), Block: blockFor(block),
		}).Result()
	}
	release := func(streams []redis.XStream) {
		deliveries, err := deliveriesOf(streams)
		if err != nil {
			return
		}
		// Where this fails too the events are reclaimed later.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Release(ctx, platform, consumer, positionsOf(deliveries))
	}
	streams, err := await(ctx, read, release)
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, describe("read for platform "+platform, err)
	}
	return deliveriesOf(streams)
}

// releasedIdle is how long released events count as idle: longer than any reclaimer waits.
const releasedIdle = 24 * time.Hour

// Release gives events that a consumer holds back, to be reclaimed by whoever comes first.
func (s *Stream) Release(ctx context.Context, platform, consumer string, positions []Position) error {
	if len(positions) == 0 {
		return nil
	}
	args := []any{"XCLAIM", s.keys.events(), platform, consumer, 0}
	for _, p := range positions {
		args = append(args, p.String())
	}
	args = append(args, "IDLE", releasedIdle.Milliseconds(), "JUSTID")
	return describe("release events of platform "+platform, s.redis.Do(ctx, args...).Err())
}

// Reclaim takes up to count events that other consumers have held for minIdle or longer without settling them.
// gone are positions whose events were trimmed away meanwhile; they are no one's any more. It fails with [ErrNoGroup].
func (s *Stream) Reclaim(ctx context.Context, platform, consumer string, minIdle time.Duration, count int) (taken []Delivery, gone []Position, err error) {
	start := "0-0"
	for {
		messages, next, deleted, err := s.redis.XAutoClaimWithDeleted(ctx, &redis.XAutoClaimArgs{
			Stream: s.keys.events(), Group: platform, Consumer: consumer,
			MinIdle: minIdle, Start: start, Count: int64(count - len(taken)),
		}).Result()
		if err != nil {
			return taken, gone, describe("reclaim for platform "+platform, err)
		}
		some, err := deliveriesOf([]redis.XStream{{Messages: messages}})
		if err != nil {
			return taken, gone, err
		}
		taken = append(taken, some...)
		for _, id := range deleted {
			p, err := ParsePosition(id)
			if err != nil {
				return taken, gone, err
			}
			gone = append(gone, p)
		}
		if next == "0-0" || len(taken) >= count {
			return taken, gone, nil
		}
		start = next
	}
}

// Acknowledge closes events that the platform has no part in: nothing is recorded.
func (s *Stream) Acknowledge(ctx context.Context, platform string, positions []Position) error {
	if len(positions) == 0 {
		return nil
	}
	ids := make([]string, len(positions))
	for i, p := range positions {
		ids[i] = p.String()
	}
	return describe("acknowledge for platform "+platform, s.redis.XAck(ctx, s.keys.events(), platform, ids...).Err())
}

func deliveriesOf(streams []redis.XStream) ([]Delivery, error) {
	var deliveries []Delivery
	for _, stream := range streams {
		for _, message := range stream.Messages {
			entry, err := entryOf(message, eventField)
			if err != nil {
				return nil, err
			}
			deliveries = append(deliveries, Delivery{Entry: entry})
		}
	}
	return deliveries, nil
}

// entryOf reads the one field of a stream entry.
func entryOf(message redis.XMessage, field string) (Entry, error) {
	p, err := ParsePosition(message.ID)
	if err != nil {
		return Entry{}, err
	}
	data, _ := message.Values[field].(string)
	return Entry{Position: p, Data: []byte(data)}, nil
}

func positionsOf(deliveries []Delivery) []Position {
	positions := make([]Position, len(deliveries))
	for i, d := range deliveries {
		positions[i] = d.Position
	}
	return positions
}

// isNoKey says whether Redis complained that the stream does not exist. (go-redis drops "ERR " before comparing.)
func isNoKey(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "no such key") ||
		strings.Contains(err.Error(), "requires the key to exist"))
}
