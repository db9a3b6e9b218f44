package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// work takes new events and sends them, until taking ends. It takes no more than it can send at once, so an
// event waits in Redis, where any deliverer can take it, and not here. While the gate is half open it is the
// one that probes.
func (l *lane) work(taking, sending context.Context) {
	rounds, idle := 0, false
	for {
		p, err := l.gate.enter(taking, fresh)
		if err != nil {
			return
		}
		g := l.acquire(taking, p, fresh, idle)
		if g.n == 0 {
			l.gate.giveBack(p)
			return
		}
		kind, deliveries := fresh, []stream.Delivery(nil)
		if p.probe {
			if p.nth == 0 {
				rounds++
			}
			// One of those that were attempted before in a round: the first where that is the only one, every second time.
			kind, deliveries, err = l.probe(taking, p.nth == (rounds+1)%2)
		} else {
			// Only where there were none does it wait for some, and then with one slot: the others are not kept from
			// those that are due again.
			block := time.Duration(0)
			if idle {
				block = l.timing.block
			}
			deliveries, err = l.fresh(taking, l.count(p, g), block)
			idle = len(deliveries) == 0
		}
		if len(deliveries) == 0 {
			l.release(g)
			l.gate.giveBack(p)
			if err != nil && !l.recover(taking, err) {
				return
			}
			continue
		}
		l.recovered()
		// While these are mapped the next are read; the slots that they hold bound how many can be on the way.
		l.sends.Go(func() { l.dispatch(sending, p, g, kind, deliveries) })
	}
}

// fresh takes events that were never sent: those that were put back, then new ones, for which it waits where block says so.
func (l *lane) fresh(taking context.Context, count int, block time.Duration) ([]stream.Delivery, error) {
	if l.unsent.Swap(false) {
		back, err := l.due(taking, l.stream.Unsent, count)
		if err != nil || len(back) > 0 {
			l.unsent.Store(true) // there may be more
			return back, err
		}
	}
	return l.stream.Read(taking, l.cfg.Name, l.consumer, count, block)
}

// probe takes one event for a probe, and says of what kind it is: one that was attempted before or one that never was, as is
// preferred; where there is neither, an abandoned one. Of events that have left the stream meanwhile the trimmer has written
// what became of them.
func (l *lane) probe(taking context.Context, attempted bool) (share, []stream.Delivery, error) {
	if !attempted {
		if unsent, err := l.fresh(taking, 1, 0); err != nil || len(unsent) > 0 {
			return fresh, unsent, err
		}
	}
	due, err := l.due(taking, l.stream.Due, 1)
	if err != nil || len(due) > 0 {
		return again, due, err
	}
	abandoned, _, err := l.stream.Reclaim(taking, l.cfg.Name, l.consumer, l.timing.claimIdle, 1)
	if err != nil || len(abandoned) > 0 {
		return again, abandoned, err
	}
	unsent, err := l.fresh(taking, 1, l.timing.block)
	return fresh, unsent, err
}

// recover does what can be done about a failure to take events and waits a moment, longer and longer. It returns
// false when taking has ended.
func (l *lane) recover(taking context.Context, err error) bool {
	if taking.Err() != nil {
		return false
	}
	if errors.Is(err, stream.ErrNoGroup) {
		if err = l.ensureGroup(taking); err == nil {
			return true
		}
	}
	failures := l.troubles.Add(1)
	if failures == 1 {
		l.logger.Error("events cannot be taken from Redis; it is tried again and again", "error", err)
	}
	return pause(taking, l.timing.redis.jittered(int(failures)-1))
}

// recovered notes that Redis answers.
func (l *lane) recovered() {
	if l.troubles.Swap(0) > 0 {
		l.logger.Info("events are taken from Redis again")
	}
}
