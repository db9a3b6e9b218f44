// Package ledger keeps a property's ledger of erasures where no Redis can forget it: it takes the requests that query pods
// and sources leave in the property's stream, writes digests of whom they name to a [Store], and only then tells the
// stream, where the deliverers erase. The operator does that in a cluster, and weir dev on one machine.
package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/stream"
)

// ErrConflict says that somebody else has saved the ledger since it was loaded.
var ErrConflict = errors.New("the ledger of erasures has changed meanwhile")

// Store is where one property's ledger lies. Nothing of it is ever lost with a Redis.
type Store interface {
	// Load returns the ledger, nil where none was saved yet. It is the caller's to add to.
	Load(ctx context.Context) (*erasure.Ledger, error)
	// Save replaces the ledger that was loaded last. It returns nil once the new one cannot get lost any more, and fails
	// with [ErrConflict] where that is not the one that is there.
	Save(ctx context.Context, l *erasure.Ledger) error
}

// How much is done at once.
const (
	// maxRequests is how many requests are taken in one look. They are written down together.
	maxRequests = 1000
	// maxEntries is how many identifiers are put back in one step: pods look at the newest one of these again and again.
	maxEntries = 256
	// readAtOnce is how many entries of the ledger stream are read at once.
	readAtOnce = 1000
	// attempts is how often a look begins anew where somebody else saves at the same time.
	attempts = 3
)

// kept is for how long an identifier stays in the ledger beyond the retention where later events of it are anybody's again:
// no backup has events that are older.
const kept = 24 * time.Hour

// ahead is how far the clock that dates events may be ahead of the keeper's: a Redis of somebody else's that claims more must
// not have its property's events erased for all time to come, nor its entries kept that long.
const ahead = 24 * time.Hour

// New returns an empty ledger with a salt of its own.
func New() *erasure.Ledger {
	l := &erasure.Ledger{}
	_, _ = rand.Read(l.Salt[:]) // which never fails
	return l
}

// Keeper keeps one property's ledger. It is not safe for concurrent use; several processes may each have one.
type Keeper struct {
	Stream *stream.Stream
	Store  Store
	// Retention is for how long the property keeps events.
	Retention time.Duration
	// Capacity is how many identifiers the ledger may have; 0 for any number.
	Capacity int

	// complete are the ends of the ledger stream when that was found to have all that the ledger has; nil before.
	complete *stream.Bounds
}

// FullError says that a request does not fit into a ledger. It waits in the stream until there is room.
type FullError struct{ Capacity int }

// Error says how many identifiers fit.
func (e *FullError) Error() string {
	return fmt.Sprintf("the ledger of erasures is full: it has room for %d identifiers", e.Capacity)
}

// Complete says whether the ledger stream was found to have all that the ledger has when it had so many entries.
func (k *Keeper) Complete(entries int64) bool {
	return k.complete != nil && k.complete.Length == entries
}

// Look is to be called every few seconds. It writes the requests that wait to the ledger and then tells the stream, where the
// deliverers take them up; and it appends what the ledger stream lacks of the ledger, as after a restore. It returns how
// many requests it has seen to. Where there is nothing to do it asks Redis two small questions, and nothing of the store but
// the first time. It fails with a [*FullError] when it has done what there was room for.
func (k *Keeper) Look(ctx context.Context, now time.Time) (int, error) {
	ends, err := k.Stream.LedgerBounds(ctx)
	if err != nil {
		return 0, err
	}
	requests, err := k.Stream.ErasureRequests(ctx, maxRequests)
	if err != nil {
		return 0, err
	}
	if len(requests) == 0 && k.complete != nil && *k.complete == ends {
		return 0, nil
	}
	for attempt := 1; ; attempt++ {
		done, err := k.write(ctx, requests, ends, now)
		if !errors.Is(err, ErrConflict) || attempt == attempts {
			return done, err
		}
	}
}

// write adds requests to the ledger and then tells the stream, of which the ends are given.
func (k *Keeper) write(ctx context.Context, requests []stream.ErasureRequest, ends stream.Bounds, now time.Time) (int, error) {
	l, err := k.Store.Load(ctx)
	if err != nil {
		return 0, err
	}
	created := l == nil
	if created {
		l = New()
	}
	if k.complete == nil || *k.complete != ends {
		if err := k.putBack(ctx, l, ends, requests); err != nil {
			return 0, err
		}
	}
	events, err := k.Stream.Bounds(ctx)
	if err != nil {
		return 0, err
	}
	added, full := k.add(l, requests, events.Newest.Time(), now)
	if created || len(added) > 0 {
		if err := k.Store.Save(ctx, l); err != nil {
			return 0, err
		}
	}
	for i, request := range requests[:len(added)] {
		if err := k.Stream.Ledgered(ctx, request, added[i]); err != nil {
			return i, err
		}
	}
	if len(added) > 0 && k.complete != nil && *k.complete == ends {
		k.complete = nil // unless nobody else has appended anything meanwhile, which is then not compared with the ledger
		if now, err := k.Stream.LedgerBounds(ctx); err == nil && now.Added == ends.Added+int64(len(added)) {
			k.complete = &now
		}
	}
	return len(added), full
}

// add adds the identifiers of requests to a ledger, and returns the entries for each of those that have room. newest is when
// the newest event was received: what was stored before the ledger knew is erased, whatever the clocks say.
func (k *Keeper) add(l *erasure.Ledger, requests []stream.ErasureRequest, newest, now time.Time) ([][]erasure.Entry, error) {
	if len(requests) > 0 {
		l.Forget(now.Add(-k.Retention - kept))
	}
	added := make([][]erasure.Entry, 0, len(requests))
	for _, request := range requests {
		if k.Capacity > 0 && l.Len()+len(request.Identifiers) > k.Capacity {
			return added, &FullError{k.Capacity}
		}
		at := request.At
		if newest.After(at) {
			at = newest
		}
		if most := now.Add(ahead); at.After(most) {
			at = most
		}
		entries := make([]erasure.Entry, len(request.Identifiers))
		for i, id := range request.Identifiers {
			entries[i] = erasure.Entry{Digest: l.Salt.Digest(id), At: at.Truncate(time.Millisecond), Suppress: request.Suppress}
			l.Add(entries[i])
		}
		added = append(added, entries)
	}
	return added, nil
}

// putBack compares the ledger stream with the ledger and appends what it lacks, as erasures of their own: the deliverers
// erase again what an older backup has brought back. What a request that waits is about is left to that: somebody was ended
// between the ledger and the stream. The next look compares again what it has appended.
func (k *Keeper) putBack(ctx context.Context, l *erasure.Ledger, ends stream.Bounds, waiting []stream.ErasureRequest) error {
	lacking := map[erasure.Digest]erasure.Entry{} // and not what the stream has: that may be anything
	for _, entry := range l.Entries() {
		lacking[entry.Digest] = entry
	}
	for after := stream.Position(0); ; {
		list, last, err := k.Stream.ReadLedger(ctx, after, readAtOnce)
		if err != nil {
			return err
		}
		if last == after {
			break
		}
		for _, read := range list {
			strike(lacking, read.Entries)
		}
		after = last
	}
	complete := len(lacking) == 0
	for _, request := range waiting {
		for _, id := range request.Identifiers {
			delete(lacking, l.Salt.Digest(id))
		}
	}
	for part := range slices.Chunk(slices.Collect(maps.Values(lacking)), maxEntries) {
		if err := k.Stream.Ledgered(ctx, stream.ErasureRequest{ID: stream.RestoredErasure + uuid.NewString()}, part); err != nil {
			return err
		}
	}
	if complete {
		k.complete = &ends
	}
	return nil
}

// strike takes those out of the entries that are lacking which a copy has, and knows as much of.
func strike(lacking map[erasure.Digest]erasure.Entry, copied []erasure.Entry) {
	for _, has := range copied {
		entry, found := lacking[has.Digest]
		if found && !has.At.Before(entry.At) && (has.Suppress || !entry.Suppress) {
			delete(lacking, has.Digest)
		}
	}
}
