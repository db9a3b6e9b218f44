package stream

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event"
)

// traceCap is about how many identifiers are looked at, and removed, at once.
const traceCap = 1000

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

// EraseRejections removes the rejections whose event ids are doomed.
func (s *Stream) EraseRejections(ctx context.Context, doomed func(eventID string) bool) error {
	messages, err := s.redis.XRangeN(ctx, s.keys.rejections(), "-", "+", 2*MaxRejections).Result()
	if err != nil {
		return describe("look through the rejections", err)
	}
	var ids []string
	for _, message := range messages {
		text, _ := message.Values[rejectionField].(string)
		var rejection Rejection
		if json.Unmarshal([]byte(text), &rejection) == nil && rejection.EventID != "" && doomed(rejection.EventID) {
			ids = append(ids, message.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return describe("remove rejections", s.redis.XDel(ctx, s.keys.rejections(), ids...).Err())
}
