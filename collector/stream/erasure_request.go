package stream

import (
	"context"
	"errors"
	"time"
)

// ErrNotLedgered says that nobody has written a request for an erasure to the ledger in time. The request waits on.
var ErrNotLedgered = errors.New("nobody has written the request for an erasure to the ledger")

// After how long it is looked first whether a request stands in the ledger, and how far apart two looks are at most: a thousand
// who wait at once shall not keep Redis busy.
const ledgerLook, longestLedgerLook = 50 * time.Millisecond, 500 * time.Millisecond

// ErasureRequester has persons erased, for whoever may only ask for that.
type ErasureRequester struct{ Stream *Stream }

// Erase requests an erasure and waits until it stands in the ledger, where no Redis can forget it, at most until ctx ends: then it
// fails with [ErrNotLedgered], and the erasure is carried out when there is somebody to do that. What stands there already is
// not requested again.
func (r ErasureRequester) Erase(ctx context.Context, request ErasureRequest) (ErasureState, error) {
	if state, err := r.Stream.Erasure(ctx, request.ID); err == nil && !state.Ledgered.IsZero() {
		return state, nil
	}
	if err := r.Stream.RequestErasure(ctx, request); err != nil {
		return ErasureState{}, err
	}
	timer := time.NewTimer(ledgerLook)
	defer timer.Stop()
	for wait := ledgerLook; ; wait = min(wait*3/2, longestLedgerLook) {
		select {
		case <-ctx.Done():
			return ErasureState{}, ErrNotLedgered
		case <-timer.C:
			timer.Reset(wait)
		}
		state, err := r.Stream.Erasure(ctx, request.ID)
		if err == nil && !state.Ledgered.IsZero() {
			return state, nil
		}
		// A Redis that is away for a moment has the request all the same.
	}
}

// Erasure is [Stream.Erasure].
func (r ErasureRequester) Erasure(ctx context.Context, id string) (ErasureState, error) {
	return r.Stream.Erasure(ctx, id)
}

// LedgerBounds returns the ends of the ledger stream; all zero where it does not exist. Where they are those of before, it
// has the entries of before.
func (s *Stream) LedgerBounds(ctx context.Context) (Bounds, error) {
	return s.bounds(ctx, s.keys.erasureLedger())
}
