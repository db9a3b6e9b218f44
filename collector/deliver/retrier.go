package deliver

import (
	"context"
	"time"
)

// retry takes events whose next attempt is due, until taking ends. Other deliverers' retries are looked for
// now and then; while some of our own are waiting, often.
func (l *lane) retry(taking, sending context.Context) {
	for {
		p, err := l.gate.enterOpen(taking)
		if err != nil {
			return
		}
		slots := l.acquire(taking, l.room(p))
		if slots == 0 {
			return
		}
		count := min(slots*l.platform.Limits.Events, maxTaken)
		due, _, err := l.stream.Due(taking, l.cfg.Name, l.now(), l.timing.lease, count)
		switch {
		case err != nil:
			l.release(slots)
			if !l.recover(taking, err) {
				return
			}
		case len(due) > 0:
			l.dispatch(sending, p, slots, due)
		default:
			l.release(slots)
			if !pause(taking, l.retryPause()) {
				return
			}
		}
	}
}

// retryPause is how long to wait before looking for due events again.
func (l *lane) retryPause() time.Duration {
	latest := time.UnixMilli(l.latestRetry.Load())
	if l.now().Before(latest.Add(l.timing.idlePoll)) {
		return l.timing.poll
	}
	return l.timing.idlePoll
}
