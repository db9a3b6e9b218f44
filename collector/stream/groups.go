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

// GroupState is where a platform's group begins.
type GroupState struct {
	// After is the position behind which events are handed out: 0 for all of them.
	After Position
	// Passed is how many of the stream's events lie at or before After.
	Passed int64
	// Waiting are events at or before After that have no final record, to be attempted (again) when they are due.
	// Their Data is not read.
	Waiting []Delivery
	// Due is when those are.
	Due time.Time
}

// ensureCap is the most waiting events of one call to Redis.
const ensureCap = 1000

// EnsureGroup makes the platform's group where it is missing. created says whether it was; an existing group stays as
// it is. The group is there once everything that waits is, so that an interrupted call leaves it missing, to be made by
// another one.
func (s *Stream) EnsureGroup(ctx context.Context, platform string, state GroupState) (created bool, err error) {
	names := append([]string{s.keys.events()}, s.keys.retries(platform)...)
	for waiting, last := state.Waiting, false; !last; {
		n := min(len(waiting), ensureCap)
		last = n == len(waiting)
		begin := ""
		if last {
			begin = state.After.String()
		}
		args := make([]any, 0, 4+2*n)
		args = append(args, platform, begin, state.Passed, state.Due.UnixMilli())
		for _, d := range waiting[:n] {
			args = append(args, d.Position.String(), d.Attempts)
		}
		waiting = waiting[n:]
		missing, err := s.redis.FCall(ctx, functionEnsureGroup, names, args...).Int()
		if err != nil {
			return false, describe("create consumer group of platform "+platform, err)
		}
		if missing == 0 {
			return false, nil
		}
	}
	return true, nil
}

// LastWaiting returns the millisecond's last position in which the newest of the platform's waiting events was
// received; 0 where none waits.
func (s *Stream) LastWaiting(ctx context.Context, platform string) (Position, error) {
	newest, err := s.redis.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{Key: s.keys.open(platform), Start: 0, Stop: 0, Rev: true}).Result()
	if err != nil {
		return 0, fmt.Errorf("look for retries of platform %s: %w", platform, err)
	}
	if len(newest) == 0 {
		return 0, nil
	}
	return At(time.UnixMilli(int64(newest[0].Score))) | MaxSequence, nil
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
		waiting, err := s.redis.ZCard(ctx, s.keys.due(info.Name)).Result()
		if err != nil {
			return nil, fmt.Errorf("count retries of platform %s: %w", info.Name, err)
		}
		groups[i] = Group{Platform: info.Name, LastDelivered: last, Pending: info.Pending, Waiting: waiting, Lag: info.Lag}
	}
	return groups, nil
}

// DestroyGroup removes the platform's group and what waits in it, in one atomic step. A missing group is no error.
func (s *Stream) DestroyGroup(ctx context.Context, platform string) error {
	names := append([]string{s.keys.events()}, s.keys.retries(platform)...)
	return describe("destroy consumer group of platform "+platform, s.redis.FCall(ctx, functionDestroyGroup, names, platform).Err())
}

// Read hands up to count new events to a consumer, in order, after waiting for at most block (0: not at all) for
// there to be any. They are the consumer's until settled, or until another reclaims them. It fails with [ErrNoGroup].
// When ctx ends it waits for at most [lateWait] until the read has ended; what Redis hands out after ctx is released again.
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
	deliveries, err := deliveriesOf(streams)
	if err != nil {
		return nil, err
	}
	return s.opener.deliveries(ctx, deliveries)
}

// Held returns up to count events behind after that the consumer holds already: those of a process of that name that
// was killed. last is the position to go on from; it is after itself where no more are held. It fails with [ErrNoGroup].
func (s *Stream) Held(ctx context.Context, platform, consumer string, after Position, count int) (held []Delivery, last Position, err error) {
	streams, err := s.redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: platform, Consumer: consumer, Streams: []string{s.keys.events(), after.String()}, Count: int64(count), Block: -1,
	}).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, after, describe("read held events of platform "+platform, err)
	}
	last = after
	for _, stream := range streams {
		for _, message := range stream.Messages {
			entry, err := entryOf(message, eventField)
			if err != nil {
				return held, last, err
			}
			last = entry.Position
			if message.Values != nil { // else it has left the stream, and reclaiming lets go of it
				held = append(held, Delivery{Entry: entry})
			}
		}
	}
	if held, err = s.opener.deliveries(ctx, held); err != nil {
		return nil, after, err
	}
	return held, last, nil
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
		if some, err = s.opener.deliveries(ctx, some); err != nil {
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

// entryOf reads the one field of a stream entry. One that has others is none of ours and has no data.
func entryOf(message redis.XMessage, field string) (Entry, error) {
	p, err := ParsePosition(message.ID)
	if err != nil {
		return Entry{}, err
	}
	if len(message.Values) > 1 {
		return Entry{Position: p}, nil
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
