package deliver

import (
	"context"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// retry takes events whose next attempt is due, until taking ends. Other deliverers' retries are looked for
// now and then; while some of our own are waiting, often. They get at most half of the requests.
func (l *lane) retry(taking, sending context.Context) {
	for {
		p, err := l.gate.enter(taking, again)
		if err != nil {
			return
		}
		g := l.acquire(taking, p, again, false)
		if g.n == 0 {
			l.gate.giveBack(p)
			return
		}
		due, err := l.due(taking, l.stream.Due, l.count(p, g))
		switch {
		case err != nil:
			l.release(g)
			l.gate.giveBack(p)
			if !l.recover(taking, err) {
				return
			}
		case len(due) > 0:
			l.dispatch(sending, p, g, again, due)
		default:
			l.release(g)
			l.gate.giveBack(p)
			l.unsent.Store(true) // others may have put some back, and be gone
			if !pause(taking, l.retryPause()) {
				return
			}
		}
	}
}

// take is [stream.Stream.Due] or [stream.Stream.Unsent].
type take func(ctx context.Context, platform string, now time.Time, lease time.Duration, count int) ([]stream.Delivery, []stream.Position, error)

// due leases events whose next attempt is due, or their first. Those that this lane is still busy with, because what came of the attempt
// before is only just being written, are put off for a moment rather than for a lease.
func (l *lane) due(taking context.Context, take take, count int) ([]stream.Delivery, error) {
	due, _, err := take(taking, l.cfg.Name, l.now(), l.timing.lease, count)
	var busy []stream.Delivery
	l.mu.Lock()
	due = slices.DeleteFunc(due, func(d stream.Delivery) bool {
		_, held := l.held[d.Position]
		if held {
			busy = append(busy, d)
		}
		return held
	})
	l.mu.Unlock()
	if len(busy) > 0 {
		if err := l.stream.Postpone(taking, l.cfg.Name, busy, l.now().Add(l.timing.backoff.floor)); err != nil && taking.Err() == nil {
			l.logger.Warn("events that are due come again when their lease ends", "events", len(busy), "error", err)
		}
	}
	return due, err
}

// retryPause is how long to wait before looking for due events again.
func (l *lane) retryPause() time.Duration {
	latest := time.UnixMilli(l.latestRetry.Load())
	if l.now().Before(latest.Add(l.timing.idlePoll)) {
		return l.timing.poll
	}
	return l.timing.idlePoll
}
