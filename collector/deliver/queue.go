package deliver

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// queue is from where a platform's events are taken: its consumer group and the events that wait for another attempt. It
// knows which of them this deliverer is busy with.
type queue struct {
	stream   *stream.Stream
	platform string
	consumer string
	timing   timing
	// past reads what a replay has put back from the history.
	past *pastReader
	// now is the clock by which events are dated.
	now    func() time.Time
	logger *slog.Logger

	// latestRetry is when the last of the retries that were scheduled here is due, in Unix milliseconds.
	latestRetry atomic.Int64
	// unsent says that events which were put back without having been sent may wait.
	unsent atomic.Bool

	mu sync.Mutex
	// active are the events that this deliverer is busy with, so that nobody here takes them a second time.
	active map[stream.Position]struct{}
}

// read takes events that were never sent: those that were put back, then new ones, for which it waits as long as block says.
func (q *queue) read(ctx context.Context, count int, block time.Duration) ([]stream.Delivery, error) {
	if q.unsent.Swap(false) {
		back, err := q.lease(ctx, q.stream.Unsent, count)
		if err != nil || len(back) > 0 {
			q.unsent.Store(true) // there may be more
			return back, err
		}
	}
	return q.stream.Read(ctx, q.platform, q.consumer, count, block)
}

// due takes events whose next attempt is due.
func (q *queue) due(ctx context.Context, count int) ([]stream.Delivery, error) {
	return q.lease(ctx, q.stream.Due, count)
}

// abandoned takes events that a deliverer took and never settled, because it died: those whose pending entry is older than
// any attempt can be.
func (q *queue) abandoned(ctx context.Context, count int) ([]stream.Delivery, error) {
	taken, _, err := q.stream.Reclaim(ctx, q.platform, q.consumer, q.timing.pendingIdle, count)
	return taken, err
}

// lease takes events by [stream.Stream.Due] or [stream.Stream.Unsent]. Those that this deliverer is still busy with, because
// what came of the attempt before is only just being written, are put off for a moment rather than for a lease.
func (q *queue) lease(
	ctx context.Context,
	take func(ctx context.Context, platform string, now time.Time, lease time.Duration, count int) ([]stream.Delivery, []stream.Position, error),
	count int,
) ([]stream.Delivery, error) {
	due, _, err := take(ctx, q.platform, q.now(), q.timing.lease, count)
	var busy []stream.Delivery
	q.mu.Lock()
	due = slices.DeleteFunc(due, func(d stream.Delivery) bool {
		_, active := q.active[d.Position]
		if active {
			busy = append(busy, d)
		}
		return active
	})
	q.mu.Unlock()
	if len(busy) > 0 {
		if err := q.stream.Postpone(ctx, q.platform, busy, q.now().Add(q.timing.backoff.floor)); err != nil && ctx.Err() == nil {
			q.logger.Warn("events that are due come again when their lease ends", "events", len(busy), "error", err)
		}
	}
	if err != nil {
		return due, err
	}
	return q.past.read(ctx, due)
}

// begin marks an event as active; false means that it is already.
func (q *queue) begin(position stream.Position) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, active := q.active[position]; active {
		return false
	}
	q.active[position] = struct{}{}
	return true
}

// end lets go of events whose outcomes are written, and notes what waits because of them.
func (q *queue) end(all outcomes) {
	q.mu.Lock()
	all.each(func(position stream.Position) { delete(q.active, position) })
	q.mu.Unlock()
	if len(all.unsent) > 0 {
		q.unsent.Store(true)
	}
	latest := int64(0)
	if len(all.postponed) > 0 {
		latest = all.until.UnixMilli()
	}
	for i := range all.settled {
		// The next look at what a platform has queued is far away, or soon enough at the usual pace.
		if s := &all.settled[i]; s.Status == stream.Retrying && s.Ticket.IsZero() {
			latest = max(latest, s.RetryAt.UnixMilli())
		}
	}
	q.expect(latest)
}

// expect notes until when there are retries to look for, in Unix milliseconds.
func (q *queue) expect(latest int64) {
	for {
		known := q.latestRetry.Load()
		if latest <= known || q.latestRetry.CompareAndSwap(known, latest) {
			return
		}
	}
}

// hasten makes up to count events due soon that would wait for another attempt until their backoff ends, and returns how many
// those are. What may be leased by a deliverer that is just sending it is left alone, and what the platform itself asked to be
// sent after a longer time. They are spread, but for those of one call.
func (q *queue) hasten(ctx context.Context, count int) (int, error) {
	now := q.now()
	until := now.Add(rand.N(q.timing.lease / 2))
	n, err := q.stream.Hasten(ctx, q.platform, now.Add(q.timing.lease+q.timing.idlePoll), now.Add(q.timing.backoff.cap), until, count)
	if n > 0 {
		q.expect(until.UnixMilli())
	}
	return n, err
}

// pollInterval is how long to wait before looking for due events again.
func (q *queue) pollInterval() time.Duration {
	latest := time.UnixMilli(q.latestRetry.Load())
	if q.now().Before(latest.Add(q.timing.idlePoll)) {
		return q.timing.poll
	}
	return q.timing.idlePoll
}
