package deliver

import (
	"context"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// worker takes new events. It takes no more than can be sent at once, so an event waits in Redis, where any
// deliverer can take it, and not here. While the circuit is half-open it is the one that probes.
type worker struct {
	queue  *queue
	group  *group
	sender *sender
	// block is how long to wait for new events.
	block time.Duration
}

// run takes new events and sends them, until taking ends.
func (w *worker) run(taking, sending context.Context) {
	rounds, idle := 0, false
	for {
		c, ok := w.sender.acquire(taking, newEvents, idle)
		if !ok {
			return
		}
		k := newEvents
		var deliveries []stream.Delivery
		var err error
		if c.probe {
			if c.nth == 0 {
				rounds++
			}
			// One of those that were attempted before in a round: the first where that is the only one, every second time.
			k, deliveries, err = w.probe(taking, c.nth == (rounds+1)%2)
		} else {
			// Only where there were none does it wait for some, and then with one request: the others are not kept from
			// those that are due again.
			block := time.Duration(0)
			if idle {
				block = w.block
			}
			deliveries, err = w.queue.read(taking, w.sender.events(c), block)
			idle = len(deliveries) == 0
		}
		if len(deliveries) == 0 {
			w.sender.release(c)
			if err != nil && !w.group.recover(taking, err) {
				return
			}
			continue
		}
		w.group.recovered()
		// While these are mapped the next are read; their capacity bounds how many can be on the way.
		w.sender.requests.Go(func() { w.sender.send(sending, c, k, deliveries) })
	}
}

// probe takes one event for a probe, and says of what kind it is: one that was attempted before or one that never was, as is
// preferred; where there is neither, an abandoned one. Of events that have left the stream meanwhile the trimmer has written
// what became of them.
func (w *worker) probe(taking context.Context, attempted bool) (kind, []stream.Delivery, error) {
	if !attempted {
		if unsent, err := w.queue.read(taking, 1, 0); err != nil || len(unsent) > 0 {
			return newEvents, unsent, err
		}
	}
	due, err := w.queue.due(taking, 1)
	if err != nil || len(due) > 0 {
		return retries, due, err
	}
	abandoned, err := w.queue.abandoned(taking, 1)
	if err != nil || len(abandoned) > 0 {
		return retries, abandoned, err
	}
	unsent, err := w.queue.read(taking, 1, w.block)
	return newEvents, unsent, err
}
