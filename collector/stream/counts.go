package stream

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// CountSlot is how long the slots are that are counted in.
	CountSlot = 5 * time.Minute
	// slotCountsKept and hourCountsKept are for how long counts are kept after something was added to them last.
	slotCountsKept, hourCountsKept = 3 * time.Hour, 31 * 24 * time.Hour
	// slotCounts and hourCounts are how many slots and hours have a key of their own, more than are kept.
	slotCounts, hourCounts = 100, 1000
	// latestCount is how late something may be added to a slot.
	latestCount = time.Hour
	// mostCounters is how many counters of a slot or an hour are read.
	mostCounters = 20_000
)

// Count is to be added to a counter of a slot, and to one of its hour.
type Count struct {
	// Slot is when the slot begins.
	Slot time.Time
	// InSlot and InHour are the names of the counters.
	InSlot, InHour string
	Count          int64
}

// AddCounts adds to counters. Where it fails some may have been added.
func (s *Stream) AddCounts(ctx context.Context, counts []Count, now time.Time) error {
	if len(counts) == 0 {
		return nil
	}
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		expiries := map[string]time.Duration{}
		for _, c := range counts {
			if hour := s.keys.hourCounts(c.Slot); now.Sub(c.Slot) < hourCountsKept {
				pipe.HIncrBy(ctx, hour, c.InHour, c.Count)
				expiries[hour] = hourCountsKept
			}
			if slot := s.keys.slotCounts(c.Slot); now.Sub(c.Slot) < latestCount {
				pipe.HIncrBy(ctx, slot, c.InSlot, c.Count)
				expiries[slot] = slotCountsKept
			}
		}
		for key, kept := range expiries {
			pipe.PExpire(ctx, key, kept)
		}
		return nil
	})
	return describe("add to the counts", err)
}

// SlotCounts returns the counters of slots by their names, in the order of the slots' beginnings; none where nothing was counted.
func (s *Stream) SlotCounts(ctx context.Context, starts []time.Time) ([]map[string]int64, error) {
	return s.counts(ctx, starts, s.keys.slotCounts)
}

// HourCounts returns those of UTC hours.
func (s *Stream) HourCounts(ctx context.Context, starts []time.Time) ([]map[string]int64, error) {
	return s.counts(ctx, starts, s.keys.hourCounts)
}

func (s *Stream) counts(ctx context.Context, starts []time.Time, key func(time.Time) string) ([]map[string]int64, error) {
	found := make([]*redis.MapStringStringCmd, len(starts))
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, start := range starts {
			found[i] = pipe.HGetAll(ctx, key(start))
		}
		return nil
	})
	if err != nil {
		return nil, describe("read the counts", err)
	}
	list := make([]map[string]int64, len(starts))
	for i := range found {
		list[i] = map[string]int64{}
		for name, text := range found[i].Val() {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && len(list[i]) < mostCounters {
				list[i][name] = n
			}
		}
	}
	return list, nil
}
