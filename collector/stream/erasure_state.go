package stream

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The fields of an erasure's state.
const (
	stateRequested   = "requested"
	stateLedgered    = "ledgered"
	stateHidden      = "hidden"
	statePurged      = "purged"
	stateEvents      = "events"
	stateRecords     = "records"
	stateIdentifiers = "identifiers"
	stateLinked      = "linked"
	// stateFollow is "1" where what was seen with the subject is to go too, stateFollowed when that has been found.
	stateFollow   = "follow"
	stateFollowed = "followed"
	stateSuppress = "suppress"
	// stateUnpurged is why Redis's files still have it.
	stateUnpurged = "unpurged"
	// stateUnhidden is why it is not hidden though Redis has nothing of it any more.
	stateUnhidden = "unhidden"
	// statePlatform begins a field for each platform that may have got something.
	statePlatform = "platform:"
	// stateForwarded begins a field for each platform that has taken an erasure, stateUnforwarded one for each that has not.
	stateForwarded, stateUnforwarded = "forwarded:", "unforwarded:"
)

// ErasureState is what has become of an erasure. Times are zero where it has not come that far.
type ErasureState struct {
	ID string
	// Requested is when it was asked for, Ledgered when it was written to the ledger (the last part of it, where what was
	// seen with the subject goes too).
	Requested, Ledgered time.Time
	// Hidden is when nothing that can be asked for or is delivered had the person any more, Purged when Redis's files had
	// not either; PurgeBy is until when that will be.
	Hidden, Purged, PurgeBy time.Time
	// Unhidden is why it is not hidden though Redis has nothing of the person any more: [UnhiddenHistory], or "".
	Unhidden string
	// Unpurged is why files still have the person: [UnpurgedDenied], [UnpurgedSnapshots], [UnpurgedFailed] or [UnpurgedHistory]; ""
	// where nothing stands in the way.
	Unpurged string
	// History is how far it is in the property's history, where there is one.
	History HistoryState
	// Events, Records and Identifiers count what was removed: events, what became of them on platforms, and who was joined
	// with whom. Linked counts the identifiers that were seen with the subject.
	Events, Records, Identifiers, Linked int64
	// Platforms are those that may have got something of the person, in order; there it has to be deleted by the owner.
	Platforms []string
	// Forwarded is when platforms were handed the erasure on last, by their names; Unforwarded why one was not handed all of it,
	// as a short code.
	Forwarded   map[string]time.Time
	Unforwarded map[string]string

	// follow says that what was seen with the subject is to go too, followed that it is in the ledger.
	follow, followed, suppress bool
}

// Erasure returns what has become of an erasure, or [ErrNoErasure].
func (s *Stream) Erasure(ctx context.Context, id string) (ErasureState, error) {
	fields, err := s.redis.HGetAll(ctx, s.keys.erasureState(id)).Result()
	if err != nil {
		return ErasureState{}, describe("read an erasure's state", err)
	}
	if len(fields) == 0 {
		return ErasureState{}, ErrNoErasure
	}
	return stateOf(id, fields), nil
}

// stateOf reads an erasure's state; what is no number counts for none.
func stateOf(id string, fields map[string]string) ErasureState {
	number := func(field string) int64 {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	moment := func(field string) time.Time {
		if n := number(field); n > 0 {
			return time.UnixMilli(n).UTC()
		}
		return time.Time{}
	}
	state := ErasureState{
		ID: id, Requested: moment(stateRequested), Ledgered: moment(stateLedgered), Hidden: moment(stateHidden), Purged: moment(statePurged),
		Events: number(stateEvents), Records: number(stateRecords), Identifiers: number(stateIdentifiers), Linked: number(stateLinked),
		follow: fields[stateFollow] == "1", followed: number(stateFollowed) > 0, suppress: fields[stateSuppress] == "1",
		History: historyOf(fields),
	}
	if !state.Hidden.IsZero() {
		state.PurgeBy = state.Hidden.Add(PurgedWithin)
	}
	if reason := fields[stateUnpurged]; slices.Contains([]string{UnpurgedDenied, UnpurgedSnapshots, UnpurgedFailed, UnpurgedHistory}, reason) {
		state.Unpurged = reason
	}
	if state.Hidden.IsZero() && fields[stateUnhidden] == UnhiddenHistory {
		state.Unhidden = UnhiddenHistory
	}
	for field, value := range fields {
		if platform, found := strings.CutPrefix(field, statePlatform); found {
			state.Platforms = append(state.Platforms, platform)
		}
		if platform, found := strings.CutPrefix(field, stateForwarded); found && number(field) > 0 {
			state.Forwarded = added(state.Forwarded, platform, moment(field))
		}
		if platform, found := strings.CutPrefix(field, stateUnforwarded); found && forwardReason.MatchString(value) {
			state.Unforwarded = added(state.Unforwarded, platform, value)
		}
	}
	slices.Sort(state.Platforms)
	return state
}

// forwardReason is why a platform was not handed an erasure on. Anything else is none that a deliverer says.
var forwardReason = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)

// added returns the map with one more entry; it may be nil.
func added[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}

// Forwarding is what became of handing an erasure on to a platform.
type Forwarding struct {
	ErasureID, Platform string
	// Reason is why it failed, as a short code; "" where the platform has taken it.
	Reason string
}

// NoteForwarded notes what became of handing erasures on to platforms. What has failed once stays so: what was to be handed on is
// about to be erased.
func (s *Stream) NoteForwarded(ctx context.Context, list []Forwarding) error {
	if len(list) == 0 {
		return nil
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	_, err = s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, one := range list {
			field, value := stateForwarded+one.Platform, strconv.FormatInt(now.UnixMilli(), 10)
			if one.Reason != "" {
				field, value = stateUnforwarded+one.Platform, one.Reason
			}
			pipe.HSet(ctx, s.keys.erasureState(one.ErasureID), field, value)
		}
		return nil
	})
	return describe("note what became of handing erasures on", err)
}

// HiddenErasures returns the ids of up to limit erasures that are hidden and not purged, the oldest first, and since when
// each is hidden.
func (s *Stream) HiddenErasures(ctx context.Context, limit int) ([]HiddenErasure, error) {
	members, err := s.redis.ZRangeWithScores(ctx, s.keys.hiddenErasures(), 0, int64(limit)-1).Result()
	if err != nil {
		return nil, describe("list erasures that are to be purged", err)
	}
	hidden := make([]HiddenErasure, 0, len(members))
	for _, member := range members {
		id, _ := member.Member.(string)
		hidden = append(hidden, HiddenErasure{ID: id, Hidden: time.UnixMilli(int64(member.Score)).UTC()})
	}
	return hidden, nil
}

// HiddenErasure is an erasure whose bytes may still be in Redis's files.
type HiddenErasure struct {
	ID string
	// Hidden is since when.
	Hidden time.Time
}

// NotePurged notes of erasures that Redis's files have nothing of them any more. They are named as
// [Stream.HiddenErasures] returned them: one that was begun again meanwhile stays to be purged, as does one of which the
// history's files still have something. It returns the others, beside an
// error those that it has come to.
func (s *Stream) NotePurged(ctx context.Context, hidden []HiddenErasure) (purged []HiddenErasure, err error) {
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range hidden {
		noted := false
		key, state := s.keys.hiddenErasures(), s.keys.erasureState(one.ID)
		err := s.redis.Watch(ctx, func(tx *redis.Tx) error {
			score, err := tx.ZScore(ctx, key, one.ID).Result()
			if errors.Is(err, redis.Nil) || err == nil && int64(score) != one.Hidden.UnixMilli() {
				return nil
			}
			if err != nil {
				return err
			}
			if waits, err := awaitsHistory(ctx, tx, state); err != nil || waits {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.ZRem(ctx, key, one.ID)
				pipe.HSet(ctx, state, statePurged, now.UnixMilli())
				pipe.HDel(ctx, state, stateUnpurged)
				pipe.PExpire(ctx, state, erasureStateKept)
				return nil
			})
			noted = err == nil
			return err
		}, key)
		if err != nil && !errors.Is(err, redis.TxFailedErr) {
			return purged, describe("note that an erasure is purged", err)
		}
		if noted {
			purged = append(purged, one)
		}
	}
	return purged, nil
}
