package deliver

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// reclaimer takes over events that a deliverer took and never settled, because it died. What such an event's platform
// has seen of it is not known, so it is sent again, with the same id.
type reclaimer struct {
	queue  *queue
	group  *group
	sender *sender
	// own is the newest of the events that a process of our name may have been busy with when it was killed; 0 where there
	// are none.
	own stream.Position
	// first is how long after the start to look for a second time, interval how often from then on.
	first, interval time.Duration
	logger          *slog.Logger
}

// run takes abandoned events and sends them, until taking ends.
func (r *reclaimer) run(taking, sending context.Context) {
	if !r.resume(taking, sending) {
		return
	}
	// The first look is soon followed by a second: a reader that was stopped gives back what Redis handed it
	// too late.
	wait := r.first
	for {
		c, ok := r.sender.acquire(taking, retries, false)
		if !ok {
			return
		}
		abandoned, err := r.queue.abandoned(taking, r.sender.events(c))
		if len(abandoned) > 0 {
			r.logger.Info("events of a deliverer that is gone were taken over", "events", len(abandoned))
			r.sender.send(sending, c, retries, abandoned)
			continue
		}
		r.sender.release(c)
		if err != nil {
			if !r.group.recover(taking, err) {
				return
			}
			continue
		}
		if !pause(taking, wait) {
			return
		}
		wait = r.interval
	}
}

// resume sends what a process of our own name was busy with when it was killed; nobody else is, so there is nothing to
// wait for. It returns false when taking has ended.
func (r *reclaimer) resume(taking, sending context.Context) bool {
	for after := stream.Position(0); after < r.own; {
		c, ok := r.sender.acquire(taking, retries, false)
		if !ok {
			return false
		}
		pending, last, err := r.queue.stream.Held(taking, r.queue.platform, r.queue.consumer, after, r.sender.events(c))
		if err != nil {
			r.sender.release(c)
			if !r.group.recover(taking, err) {
				return false
			}
			continue
		}
		if last == after {
			last = r.own
		}
		after = last
		// What was handed out since is the worker's.
		for len(pending) > 0 && pending[len(pending)-1].Position > r.own {
			pending = pending[:len(pending)-1]
		}
		if len(pending) > 0 {
			r.logger.Info("events that this deliverer was busy with when it was killed are sent again", "events", len(pending))
		}
		r.sender.send(sending, c, retries, pending)
	}
	return true
}
