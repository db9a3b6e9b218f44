package stream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// eraseCap is the most events of one call to Redis, and erasureCap the most erasures that these may have.
	eraseCap, erasureCap = 256, 255
	// stateCap is how many states are read, and erasures hidden, at once.
	stateCap = 1000
)

// OpenErasure is an erasure that stands in the ledger and that a deliverer has to do.
type OpenErasure struct {
	ID string
	// Ledgered is when the last part of it stood in the ledger.
	Ledgered time.Time
	// Follow says that what was seen with the subject is to go too, and that it has still to be found; Suppress that later
	// events of what is found are to be nobody's.
	Follow, Suppress bool
}

// OpenErasures returns the erasures that a deliverer has to do, at most limit, the oldest first.
func (s *Stream) OpenErasures(ctx context.Context, limit int) ([]OpenErasure, error) {
	members, err := s.redis.ZRangeWithScores(ctx, s.keys.openErasures(), 0, int64(limit)-1).Result()
	if err != nil {
		return nil, describe("list erasures", err)
	}
	open := make([]OpenErasure, 0, len(members))
	for some := range slices.Chunk(members, stateCap) {
		states := make([]*redis.MapStringStringCmd, len(some))
		_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, member := range some {
				id, _ := member.Member.(string)
				states[i] = pipe.HGetAll(ctx, s.keys.erasureState(id))
			}
			return nil
		})
		if err != nil {
			return nil, describe("read what has become of erasures", err)
		}
		for i, member := range some {
			id, _ := member.Member.(string)
			state := stateOf(id, states[i].Val())
			open = append(open, OpenErasure{
				ID: id, Ledgered: time.UnixMilli(int64(member.Score)).UTC(), Follow: state.follow && !state.followed, Suppress: state.suppress,
			})
		}
	}
	return open, nil
}

// NoteLinked notes how many identifiers were seen with an erasure's subject. Where there are none there is no further part
// of it to wait for.
func (s *Stream) NoteLinked(ctx context.Context, id string, identifiers int) error {
	fields := []any{stateLinked, identifiers, stateHistoryLinked, ""}
	if identifiers == 0 {
		fields = []any{stateFollowed, 1, stateHistoryLinked, ""} // what was found when the same was asked for before still counts
	}
	return describe("note what was seen with an erasure's subject", s.redis.HSet(ctx, s.keys.erasureState(id), fields...).Err())
}

// HideErasures notes that nothing is left of the erasures that can be asked for or is delivered. One that has got a further
// part since it was listed stays open.
func (s *Stream) HideErasures(ctx context.Context, done []OpenErasure) error {
	names := []string{s.keys.openErasures(), s.keys.hiddenErasures(), s.keys.erasureState(""), s.keys.clock()}
	for some := range slices.Chunk(done, stateCap) {
		args := make([]any, 0, 2*len(some))
		for _, one := range some {
			args = append(args, one.ID, one.Ledgered.UnixMilli())
		}
		if err := s.redis.FCall(ctx, functionHide, names, args...).Err(); err != nil {
			return describe("note that erasures are done", err)
		}
	}
	return nil
}

// ErasedEvent is an event that is to go, and what it has left behind elsewhere.
type ErasedEvent struct {
	Position Position
	// EventID and IDSpace are as in its [Addition]; OrderID is "" where the event is no purchase.
	EventID, OrderID string
	IDSpace          uint8
	// Erasures are those that it goes by, at least one; of more than 255 it counts for the first.
	Erasures []string
}

// digests returns those of the event's deduplication keys, one behind the other. Whether anybody could choose its id is not
// known any more, so there is one for each case.
func (e *ErasedEvent) digests() []byte {
	var packed []byte
	add := func(kind byte, id string) { packed = append(packed, idDigest(kind, e.IDSpace, id)...) }
	add('e', e.EventID)
	add('p', e.EventID)
	if e.OrderID != "" {
		add('o', e.OrderID)
	}
	return packed
}

// idDigest is that of a deduplication key: of an event's id, of one that anybody can choose, or of an order's.
func idDigest(kind, space byte, id string) []byte {
	sum := sha256.Sum256(append([]byte{kind + space<<5}, id...))
	return sum[:digestSize]
}

// EraseEvents removes events, in steps that are done wholly or not at all: from the stream, from what groups still have to
// do, and from the deduplication keys. It announces them to readers and counts them for their erasures. What is gone
// already is passed over. It sorts the events.
func (s *Stream) EraseEvents(ctx context.Context, events []ErasedEvent) error {
	slices.SortFunc(events, func(a, b ErasedEvent) int { return cmp.Compare(a.Position, b.Position) })
	names := []string{s.keys.events(), s.keys.deliveries(), s.keys.retryPrefix(), s.keys.dedup(), s.keys.erasureState("")}
	for len(events) > 0 {
		n, args := eraseArguments(events)
		seen, err := s.redis.FCall(ctx, functionErase, names, args...).Int()
		if err != nil {
			return describe("erase events", err)
		}
		if seen < 1 || seen > n {
			return malformedReply(functionErase)
		}
		events = events[seen:]
	}
	return nil
}

// eraseArguments returns the arguments of weir_erase for the first of the events, and how many these are.
func eraseArguments(events []ErasedEvent) (int, []any) {
	numbers := map[string]byte{} // of erasures, counted from 1
	var erasures []any
	args := []any{0}
	n := 0
	for i := range events[:min(len(events), eraseCap)] {
		event := &events[i]
		var by []byte
		for _, id := range event.Erasures {
			number, known := numbers[id]
			if !known && len(numbers) < erasureCap {
				number = byte(len(numbers) + 1)
				numbers[id] = number
				erasures = append(erasures, id, announcementHead(id))
			}
			if number > 0 {
				by = append(by, number)
			}
		}
		if len(by) == 0 || n > 0 && len(by) < len(event.Erasures) {
			break // with the next call
		}
		args = append(args, event.Position.String(), announced(event.Position), event.digests(), by)
		n++
	}
	args[0] = n
	return n, append(args, erasures...)
}

// lockReadable bounds what is read of the lock.
const lockReadable = 128

// ErasureLock returns what the deliverer that erases has written down, "" where there is none. That is only a way not to do
// the same twice at once, which would be harmless.
func (s *Stream) ErasureLock(ctx context.Context) (string, error) {
	text, err := s.redis.GetRange(ctx, s.keys.erasureLock(), 0, lockReadable-1).Result()
	return text, describe("look who erases", err)
}

// LockErasures writes down who erases. It expires after half a minute, by Redis's clock.
func (s *Stream) LockErasures(ctx context.Context, text string) error {
	if text == "" || len(text) > lockReadable {
		return errors.New("what a deliverer writes down must have 1 to " + fmt.Sprint(lockReadable) + " bytes")
	}
	return describe("note who erases", s.redis.Set(ctx, s.keys.erasureLock(), text, 30*time.Second).Err())
}

// UnlockErasures notes that nobody erases.
func (s *Stream) UnlockErasures(ctx context.Context) error {
	return describe("note that nobody erases", s.redis.Unlink(ctx, s.keys.erasureLock()).Err())
}
