package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErasureWork is what there is to do about a property's erasures for whoever keeps its ledger.
type ErasureWork struct {
	// Requests is how many wait to be written to the ledger, Ledger how many entries the ledger stream has: fewer than before
	// where a Redis has lost some.
	Requests, Ledger int64
	// Hidden is how many erasures are done whose bytes may still be in Redis's files.
	Hidden int64
	// Dropped says that keys of sealed parts were dropped which may have been in Redis's files for half a day since.
	Dropped bool
}

// Unpurged says that Redis's files are to be rewritten.
func (w ErasureWork) Unpurged() bool { return w.Hidden > 0 || w.Dropped }

// droppedFor is for how long Redis's files may have keys that are dropped until they are rewritten: with the time that takes, for
// less than a day.
const droppedFor = 12 * time.Hour

// ErasureWork returns the work of each of several properties, which Redis is asked in one go. Of one whose keys are not what
// they shall be it returns none. The error is [ErrDenied] where the connection's own user may not look.
func (c *Client) ErasureWork(ctx context.Context, streams []*Stream) ([]ErasureWork, error) {
	if len(streams) == 0 {
		return nil, nil
	}
	work := make([]ErasureWork, len(streams))
	replies := make([]*redis.IntCmd, 0, 3*len(streams))
	dropped := make([]*redis.SliceCmd, len(streams))
	clock := make([]*redis.StringCmd, len(streams))
	var now *redis.TimeCmd
	_, err := c.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		now = pipe.Time(ctx)
		for i, s := range streams {
			dropped[i], clock[i] = s.askDropped(ctx, pipe), pipe.GetRange(ctx, s.keys.clock(), 0, 63)
			replies = append(replies, pipe.XLen(ctx, s.keys.erasureRequests()), pipe.XLen(ctx, s.keys.erasureLedger()), pipe.ZCard(ctx, s.keys.hiddenErasures()))
		}
		return nil
	})
	if Denied(err) {
		return nil, ErrDenied
	}
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		return nil, fmt.Errorf("look for erasures: %w", err)
	}
	for i := range streams {
		requests, ledger, hidden := replies[3*i], replies[3*i+1], replies[3*i+2]
		if err := errors.Join(requests.Err(), ledger.Err(), hidden.Err()); err == nil {
			work[i] = ErasureWork{Requests: requests.Val(), Ledger: ledger.Val(), Hidden: hidden.Val()}
			if keys, err := droppedOf(dropped[i]); err == nil {
				since := believed(now.Val(), clock[i].Val()).Sub(keys.Rewritten)
				work[i].Dropped = keys.At.After(keys.Rewritten) && since >= droppedFor
			}
		}
	}
	return work, nil
}

// Why Redis's files still have what was erased, as an erasure's state says it.
const (
	// UnpurgedDenied: whoever keeps the ledger may not have the files rewritten.
	UnpurgedDenied = "denied"
	// UnpurgedSnapshots: Redis writes snapshots, which hold the bytes of deleted entries.
	UnpurgedSnapshots = "snapshots"
	// UnpurgedFailed: Redis could not rewrite its files; that is tried again.
	UnpurgedFailed = "failed"
	// UnpurgedHistory: the files of the history still have it, which take some minutes longer, or are away.
	UnpurgedHistory = "history"
)

// UnhiddenHistory is why an erasure is not hidden: the history still answers with the person, or is away.
const UnhiddenHistory = "history"

// UnpurgedReason is how an erasure's state words an error of a [Rewriter]; "" for any other.
func UnpurgedReason(err error) string {
	switch {
	case errors.Is(err, ErrRewriteDenied), errors.Is(err, ErrInfoDenied):
		return UnpurgedDenied
	case errors.Is(err, ErrSnapshots):
		return UnpurgedSnapshots
	case errors.Is(err, ErrRewriteFailed):
		return UnpurgedFailed
	default:
		return ""
	}
}

// NoteUnpurged notes of hidden erasures why Redis's files still have them.
func (s *Stream) NoteUnpurged(ctx context.Context, hidden []HiddenErasure, reason string) error {
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, one := range hidden {
			pipe.HSet(ctx, s.keys.erasureState(one.ID), stateUnpurged, reason)
			pipe.PExpire(ctx, s.keys.erasureState(one.ID), erasureStateKept)
		}
		return nil
	})
	return describe("note why erasures are not purged", err)
}
