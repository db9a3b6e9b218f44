package stream

import (
	"context"
	"errors"
	"net"
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
	// countersAtOnce is how many counters one call adds to.
	countersAtOnce = 500
)

// Count is to be added to a counter of a slot, and to one of its hour.
type Count struct {
	// Slot is when the slot begins.
	Slot time.Time
	// InSlot and InHour are the names of the counters.
	InSlot, InHour string
	Count          int64
	// Place is what the counters need to be kept; those that always are have the zero one.
	Place Place
}

// Place is one of a bounded number in a slot and in an hour, whoever adds to these.
type Place struct {
	// Group is what shares the places, and Most how many there are; "" is no bound. Member is whose place it is. Neither is a
	// counter's name.
	Group, Member string
	Most          int
	// Instead is what the counters are called behind their first byte where there is no place.
	Instead string
}

// groupMark and memberMark are before what tells which places are taken. No counter's name begins with one of these.
const groupMark, memberMark = '#', '@'

// Fate is what has become of a count.
type Fate int

// The fates.
const (
	// Counted says that it was added.
	Counted Fate = iota
	// Uncounted says that nothing of it was added: it may be tried again.
	Uncounted
	// Unclear says that it was added to the slot, to the hour, to both or to neither: it would count twice if it was tried again.
	Unclear
)

// addCall is one call of the function: the numbers of the counts that are in it.
type addCall struct {
	key    string
	counts []int
	reply  *redis.Cmd
}

// AddCounts adds to counters. Where it fails, fates says what has become of each count.
func (s *Stream) AddCounts(ctx context.Context, counts []Count, now time.Time) (fates []Fate, err error) {
	var calls []*addCall
	_, err = s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		calls = s.addCalls(ctx, pipe, counts, now)
		return nil
	})
	if len(calls) == 0 || err == nil {
		return nil, nil
	}
	arrived, refused := make([]bool, len(counts)), make([]bool, len(counts))
	for _, call := range calls {
		for _, i := range call.counts {
			if notDone(call.reply.Err()) {
				refused[i] = true
			} else {
				arrived[i] = true // or nobody knows
			}
		}
		if failed := call.reply.Err(); failed != nil {
			err = failed
		}
	}
	fates = make([]Fate, len(counts))
	for _, call := range calls {
		for _, i := range call.counts {
			switch {
			case refused[i] && !arrived[i]:
				fates[i] = Uncounted
			case call.reply.Err() != nil || refused[i]:
				fates[i] = Unclear
			}
		}
	}
	return fates, describe("add to the counts", err)
}

// addCalls puts the calls that add counts into a pipeline.
func (s *Stream) addCalls(ctx context.Context, pipe redis.Pipeliner, counts []Count, now time.Time) []*addCall {
	var calls []*addCall
	open := map[string]*addCall{}
	args := map[*addCall][]any{}
	add := func(key string, kept time.Duration, name string, i int) {
		call := open[key]
		if call == nil || len(call.counts) == countersAtOnce {
			call = &addCall{key: key}
			open[key], args[call], calls = call, []any{kept.Milliseconds()}, append(calls, call)
		}
		c := &counts[i]
		group, member, instead := "", "", ""
		if c.Place.Group != "" {
			group, member, instead = string(groupMark)+c.Place.Group, string(memberMark)+c.Place.Group+c.Place.Member, name[:1]+c.Place.Instead
		}
		call.counts, args[call] = append(call.counts, i), append(args[call], name, c.Count, group, member, c.Place.Most, instead)
	}
	for i := range counts {
		if now.Sub(counts[i].Slot) < hourCountsKept {
			add(s.keys.hourCounts(counts[i].Slot), hourCountsKept, counts[i].InHour, i)
		}
		if now.Sub(counts[i].Slot) < latestCount {
			add(s.keys.slotCounts(counts[i].Slot), slotCountsKept, counts[i].InSlot, i)
		}
	}
	for _, call := range calls {
		call.reply = pipe.FCall(ctx, functionCount, []string{call.key}, args[call]...)
	}
	return calls
}

// notDone says that an error shows for sure that Redis has not done what it was asked for: it answered so, for the function changes
// nothing before an error, or there was no connection to ask by.
func notDone(err error) bool {
	if _, answered := errors.AsType[redis.Error](err); answered || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed) {
		return true
	}
	operation, ok := errors.AsType[*net.OpError](err)
	return ok && operation.Op == "dial"
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
			if name != "" && (name[0] == groupMark || name[0] == memberMark) {
				continue
			}
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				list[i][name] = n
			}
		}
	}
	return list, nil
}
