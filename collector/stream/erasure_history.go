package stream

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
)

// The fields of an erasure's state that say how far it is in the property's history: the moment in milliseconds in which the part
// of it stood in the ledger that they are of, so that a further part makes them void; and what was seen with the subject, one
// identifier behind the other, until the deliverer has taken it over.
const (
	stateHistoryFound  = "history_found"
	stateHistoryLinked = "history_linked"
	stateHistoryHidden = "history_hidden"
	stateHistoryPurged = "history_purged"
)

// maxHistoryErasures is how many erasures a history does together.
const maxHistoryErasures = 5000

// HistoryErasure is an erasure that is not done in the property's history.
type HistoryErasure struct {
	ID string
	// Ledgered is when the last part of it stood in the ledger: what is noted is of this part.
	Ledgered time.Time
	// Follow says that it has still to be found what was seen with the subject, Found that the history has said what it knows of
	// that.
	Follow, Found bool
	// Hidden says that no answer of the history has anything of it.
	Hidden bool
}

// HistoryStep is how far an erasure is in the history.
type HistoryStep int

// The steps.
const (
	// HistoryFound: what was seen with the subject is known.
	HistoryFound HistoryStep = iota + 1
	// HistoryHidden: nothing of it is in answers.
	HistoryHidden
	// HistoryPurged: nothing of it is in files.
	HistoryPurged
)

// HistoryNote is how far an erasure is, as it stood in the ledger at a time.
type HistoryNote struct {
	ID       string
	Ledgered time.Time
	Step     HistoryStep
	// Linked is what was seen with the subject, where that is the step.
	Linked []event.Identifier
}

// HistoryState is how far an erasure is in the history, as it stands in the ledger.
type HistoryState struct {
	Found, Hidden, Purged bool
	// Linked is what was seen with the subject.
	Linked []event.Identifier
}

// historyOf reads that of an erasure's state.
func historyOf(fields map[string]string) HistoryState {
	is := func(field string) bool { return fields[field] != "" && fields[field] == fields[stateLedgered] }
	state := HistoryState{Found: is(stateHistoryFound), Hidden: is(stateHistoryHidden), Purged: is(stateHistoryPurged)}
	if state.Found {
		for id := range slices.Chunk([]byte(fields[stateHistoryLinked]), len(event.Identifier{})) {
			if len(id) == len(event.Identifier{}) {
				state.Linked = append(state.Linked, event.Identifier(id))
			}
		}
	}
	return state
}

// HistoryErasures returns erasures that stand in the ledger and are not done in the history, the oldest first; so many at most as a
// history does together.
func (s *Stream) HistoryErasures(ctx context.Context) ([]HistoryErasure, error) {
	var lists [2]*redis.StringSliceCmd
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range []string{s.keys.openErasures(), s.keys.hiddenErasures()} {
			lists[i] = pipe.ZRange(ctx, key, 0, maxHistoryErasures-1)
		}
		return nil
	})
	if err != nil {
		return nil, describe("list erasures", err)
	}
	var open []HistoryErasure
	for some := range slices.Chunk(slices.Concat(lists[0].Val(), lists[1].Val()), stateCap) {
		states := make([]*redis.MapStringStringCmd, len(some))
		_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, id := range some {
				states[i] = pipe.HGetAll(ctx, s.keys.erasureState(id))
			}
			return nil
		})
		if err != nil {
			return nil, describe("read what has become of erasures", err)
		}
		for i, id := range some {
			state := stateOf(id, states[i].Val())
			if state.Ledgered.IsZero() || state.History.Purged {
				continue
			}
			open = append(open, HistoryErasure{
				ID: id, Ledgered: state.Ledgered, Follow: state.follow && !state.followed, Found: state.History.Found, Hidden: state.History.Hidden,
			})
		}
	}
	return open, nil
}

// NoteHistory notes how far erasures are in the history.
func (s *Stream) NoteHistory(ctx context.Context, notes []HistoryNote) error {
	for some := range slices.Chunk(notes, stateCap) {
		_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, one := range some {
				at := strconv.FormatInt(one.Ledgered.UnixMilli(), 10)
				var fields []any
				switch one.Step {
				case HistoryFound:
					packed := make([]byte, 0, len(one.Linked)*len(event.Identifier{}))
					for _, id := range one.Linked {
						packed = append(packed, id[:]...)
					}
					fields = []any{stateHistoryFound, at, stateHistoryLinked, packed}
				case HistoryHidden:
					fields = []any{stateHistoryHidden, at}
				case HistoryPurged:
					fields = []any{stateHistoryPurged, at}
				}
				pipe.HSet(ctx, s.keys.erasureState(one.ID), fields...)
			}
			return nil
		})
		if err != nil {
			return describe("note how far erasures are in the history", err)
		}
	}
	return nil
}

// awaitsHistory says whether files of the history still have something of an erasure, and notes that it waits for these. Whoever
// keeps a Redis of their own may have given the operator no right to ask since there was no history: then it does not wait.
func awaitsHistory(ctx context.Context, tx *redis.Tx, state string) (bool, error) {
	fields, err := tx.HMGet(ctx, state, stateLedgered, stateHistoryHidden, stateHistoryPurged).Result()
	if Denied(err) {
		return false, nil
	}
	if err != nil || fields[1] == nil || fields[2] == fields[0] {
		return false, err
	}
	return true, tx.HSet(ctx, state, stateUnpurged, UnpurgedHistory).Err()
}

// NoteUnhidden notes why erasures are not hidden that are done in Redis: [UnhiddenHistory].
func (s *Stream) NoteUnhidden(ctx context.Context, ids []string, reason string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, id := range ids {
			pipe.HSet(ctx, s.keys.erasureState(id), stateUnhidden, reason)
		}
		return nil
	})
	return describe("note why erasures are not hidden", err)
}

// historyGrants are what the archive needs to erase persons from the history: it reads which erasures there are and the ledger's
// copy, and notes how far it is.
func historyGrants(k keys) []grant {
	return []grant{
		{[]string{"zrange"}, []string{"%R~" + k.openErasures(), "%R~" + k.hiddenErasures()}},
		{[]string{"hgetall"}, []string{"%R~" + k.erasureState("?*")}},
		{[]string{"hset"}, []string{"%W~" + k.erasureState("?*")}},
		{[]string{"xrange"}, []string{"%R~" + k.erasureLedger()}},
	}
}

// ErasureEntries returns what the ledger stream has of each of some erasures.
func (s *Stream) ErasureEntries(ctx context.Context, ids []string) (map[string][]erasure.Entry, error) {
	entries := map[string][]erasure.Entry{}
	for after := Position(0); ; {
		list, last, err := s.ReadLedger(ctx, after, ledgerRead)
		if err != nil || last == after {
			return entries, err
		}
		for _, entry := range list {
			if slices.Contains(ids, entry.ErasureID) {
				entries[entry.ErasureID] = append(entries[entry.ErasureID], entry.Entries...)
			}
		}
		after = last
	}
}
