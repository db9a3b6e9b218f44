package deliver

import "context"

const (
	// maxHastened is how many events are hastened when the Secret or the Property has changed; the others come when their
	// backoff ends. hastenedTogether is how many of them are due at one time.
	maxHastened      = 10_000
	hastenedTogether = 100
)

// retrier takes events whose next attempt is due. It looks for other deliverers' retries now and then, and often while
// some of our own are waiting. They get at most half of the requests.
type retrier struct {
	queue  *queue
	group  *group
	sender *sender
	// changed says that the Secret or the Property has changed: what was refused may be taken now.
	changed bool
}

// run takes due events and sends them, until taking ends.
func (r *retrier) run(taking, sending context.Context) {
	if r.changed && !r.hasten(taking) {
		return
	}
	for {
		c, ok := r.sender.acquire(taking, retries, false)
		if !ok {
			return
		}
		due, err := r.queue.due(taking, r.sender.events(c))
		switch {
		case err != nil:
			r.sender.release(c)
			if !r.group.recover(taking, err) {
				return
			}
		case len(due) > 0:
			r.sender.send(sending, c, retries, due)
		default:
			r.sender.release(c)
			r.queue.unsent.Store(true) // others may have put some back, and be gone
			if !pause(taking, r.queue.pollInterval()) {
				return
			}
		}
	}
}

// hasten has what waits tried soon. It returns false when taking has ended.
func (r *retrier) hasten(taking context.Context) bool {
	for hastened := 0; hastened < maxHastened; {
		n, err := r.queue.hasten(taking, hastenedTogether)
		if err != nil {
			if !r.group.recover(taking, err) {
				return false
			}
			continue
		}
		if n == 0 {
			return true
		}
		hastened += n
	}
	return true
}
