package history

import (
	"context"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/stream"
)

// statusTimeout is how long the history may take to say how far it is: whoever asks goes on with what was known last.
const statusTimeout = 2 * time.Second

// Status returns how far the history is; where it does not say, what it said last. It is ready once it has said so. Its
// CurrentAt is left to whoever sees the stream that it is filled from.
func (e *Engine) Status(ctx context.Context) analytics.Status {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := e.look(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.status.Connected = false
		return e.status
	}
	e.status = status
	return status
}

// look asks how far the history is.
func (e *Engine) look(ctx context.Context) (analytics.Status, error) {
	m, err := e.now(ctx)
	if err != nil {
		return analytics.Status{}, err
	}
	status := analytics.Status{Ready: true, Connected: true, Events: int(m.count)}
	if m.last != 0 {
		status.Last = stream.Position(m.last)
		status.AsOf = status.Last.Time()
	}
	status.CompleteFrom, err = e.completeFrom(ctx)
	return status, err
}

// completeFrom returns the time from which on no event is missing; zero where none ever was. It is asked when everything else of
// an answer is there: what was removed meanwhile, as too old, is then known to be missing.
func (e *Engine) completeFrom(ctx context.Context) (time.Time, error) {
	end, err := one[uint64](ctx, e, clickhouse.Query{SQL: "SELECT max(end) FROM gaps"})
	if err != nil || end == 0 {
		return time.Time{}, err
	}
	// Events of the position's millisecond may be among those that are missing.
	return stream.Position(end).Time().Add(time.Millisecond), nil
}
