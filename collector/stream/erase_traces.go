package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event"
)

// traceCap is about how many identifiers are looked at, and removed, at once.
const traceCap = 1000

// The memory of committed batches has a hash for each half minute and first byte of a batch's id.
const batchPeriods, batchShards = 5, 256

// EraseJoins goes through all identifiers that stand for a person and removes those by which somebody is to be erased, and
// those that stand for such a one. erasures returns what an identifier is to be erased by, nothing for most; each that is
// removed is counted for these. What is counted may be less than what was removed, where this is broken off.
func (s *Stream) EraseJoins(ctx context.Context, erasures func(event.Identifier) []string) error {
	for slot := range dedupSlots {
		key := s.keys.join() + ":" + strconv.Itoa(slot)
		for cursor := uint64(0); ; {
			found, next, err := s.redis.HScan(ctx, key, cursor, "", traceCap).Result()
			if err != nil {
				return describe("look through the identifiers", err)
			}
			doomed := map[string][]string{}
			for pair := range slices.Chunk(found, 2) {
				if by := joinedBy(pair, erasures); len(by) > 0 {
					doomed[pair[0]] = by
				}
			}
			if err := s.removeJoins(ctx, key, doomed); err != nil {
				return err
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return nil
}

// joinedBy returns what an identifier and the person that it stands for, as they are kept, are to be erased by.
func joinedBy(pair []string, erasures func(event.Identifier) []string) []string {
	var by []string
	for _, text := range pair {
		if len(text) >= len(event.Identifier{}) {
			by = append(by, erasures(event.Identifier([]byte(text[:len(event.Identifier{})])))...)
		}
	}
	slices.Sort(by)
	return slices.Compact(by)
}

func (s *Stream) removeJoins(ctx context.Context, key string, doomed map[string][]string) error {
	if len(doomed) == 0 {
		return nil
	}
	fields, counts := make([]string, 0, len(doomed)), map[string]int64{}
	for field, by := range doomed {
		fields = append(fields, field)
		for _, id := range by {
			counts[id]++
		}
	}
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HDel(ctx, key, fields...)
		for id, n := range counts {
			pipe.HIncrBy(ctx, s.keys.erasureState(id), stateIdentifiers, n)
		}
		return nil
	})
	return describe("remove identifiers", err)
}

// EraseReplies removes what the memory of committed batches has of batches whose reply names a doomed event, as the one that
// had an order first. Such a batch, sent once more, is answered by the deduplication keys.
func (s *Stream) EraseReplies(ctx context.Context, doomed func(eventID string) bool) error {
	memories := make([]string, 0, batchPeriods*batchShards)
	for period := range batchPeriods {
		for shard := range batchShards {
			memories = append(memories, fmt.Sprintf("%s:%d:%02x", s.keys.batches(), period, shard))
		}
	}
	for some := range slices.Chunk(memories, batchShards) {
		found := make([]*redis.ScanCmd, len(some))
		_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, key := range some {
				found[i] = pipe.HScan(ctx, key, 0, "", traceCap)
			}
			return nil
		})
		if err != nil {
			return describe("look through the memory of batches", err)
		}
		for i, key := range some {
			list, cursor := found[i].Val()
			for {
				if err := s.eraseRepliesIn(ctx, key, list, doomed); err != nil {
					return err
				}
				if cursor == 0 {
					break
				}
				if list, cursor, err = s.redis.HScan(ctx, key, cursor, "", traceCap).Result(); err != nil {
					return describe("look through the memory of batches", err)
				}
			}
		}
	}
	return nil
}

// eraseRepliesIn does so with batches and their replies, by turns, of one hash.
func (s *Stream) eraseRepliesIn(ctx context.Context, key string, list []string, doomed func(eventID string) bool) error {
	var batches []string
	for pair := range slices.Chunk(list, 2) {
		if len(pair) == 2 && slices.ContainsFunc(repliedIDs(pair[1]), doomed) {
			batches = append(batches, pair[0])
		}
	}
	if len(batches) == 0 {
		return nil
	}
	return describe("remove the memory of a batch", s.redis.HDel(ctx, key, batches...).Err())
}

// repliedIDs returns the event ids in a packed reply of weir_append: behind its first byte there are exceptions, each with
// two bytes that say which event it is, one that says what, and a text behind the two bytes of its length.
func repliedIDs(packed string) []string {
	var ids []string
	for rest := packed[min(1, len(packed)):]; len(rest) >= 5; {
		end := 5 + int(rest[3])<<8 + int(rest[4])
		if end > len(rest) {
			break
		}
		if rest[2] == 'd' && end > 5 {
			ids = append(ids, rest[5:end])
		}
		rest = rest[end:]
	}
	return ids
}

// EraseRejections removes the rejections of which the event id or the name is doomed.
func (s *Stream) EraseRejections(ctx context.Context, doomed func(text string) bool) error {
	messages, err := s.redis.XRangeN(ctx, s.keys.rejections(), "-", "+", 2*MaxRejections).Result()
	if err != nil {
		return describe("look through the rejections", err)
	}
	var ids []string
	for _, message := range messages {
		text, _ := message.Values[rejectionField].(string)
		var rejection Rejection
		if json.Unmarshal([]byte(text), &rejection) == nil && slices.ContainsFunc([]string{rejection.EventID, rejection.Event}, doomed) {
			ids = append(ids, message.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return describe("remove rejections", s.redis.XDel(ctx, s.keys.rejections(), ids...).Err())
}
