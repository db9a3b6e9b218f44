package deliver

import "context"

// retrier takes events whose next attempt is due. It looks for other deliverers' retries now and then, and often while
// some of our own are waiting. They get at most half of the requests.
type retrier struct {
	queue  *queue
	group  *group
	sender *sender
}

// run takes due events and sends them, until taking ends.
func (r *retrier) run(taking, sending context.Context) {
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
