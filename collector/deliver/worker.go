package deliver

import (
	"context"
	"errors"

	"github.com/weir-dev/weir/collector/stream"
)

// work takes new events and sends them, until taking ends. It takes no more than it can send at once, so an
// event waits in Redis, where any deliverer can take it, and not here. While the gate is half open it is the
// one that probes: with an event that is due again or, where there is none, with a new one.
func (l *lane) work(taking, sending context.Context) {
	for {
		p, err := l.gate.enter(taking)
		if err != nil {
			return
		}
		slots := l.acquire(taking, l.room(p))
		if slots == 0 {
			l.gate.giveBack(p)
			return
		}
		deliveries, err := l.take(taking, p, slots*l.platform.Limits.Events)
		if len(deliveries) == 0 {
			l.release(slots)
			l.gate.giveBack(p)
			if err != nil && !l.recover(taking, err) {
				return
			}
			continue
		}
		l.dispatch(sending, p, slots, deliveries)
	}
}

// take returns events to send: for a probe, first those that are due again. Of events that have left the stream
// meanwhile the trimmer has written what became of them.
func (l *lane) take(taking context.Context, p pass, count int) ([]stream.Delivery, error) {
	count = min(count, maxTaken)
	if p.probe {
		due, _, err := l.stream.Due(taking, l.cfg.Name, l.now(), l.timing.lease, count)
		if err != nil || len(due) > 0 {
			return due, err
		}
	}
	deliveries, err := l.stream.Read(taking, l.cfg.Name, l.consumer, count, l.timing.block)
	if err != nil {
		return nil, err
	}
	lag := 0.0
	if len(deliveries) > 0 {
		lag = l.now().Sub(deliveries[len(deliveries)-1].Position.Time()).Seconds()
	}
	l.metrics.lag.WithLabelValues(l.cfg.Name).Set(max(0, lag))
	return deliveries, nil
}

// recover does what can be done about a failure to take events and waits a moment. It returns false when
// taking has ended.
func (l *lane) recover(taking context.Context, err error) bool {
	if taking.Err() != nil {
		return false
	}
	if errors.Is(err, stream.ErrNoGroup) {
		if err = l.ensureGroup(taking); err == nil {
			return true
		}
	}
	l.logger.Error("events cannot be taken from Redis", "error", err)
	return pause(taking, l.timing.redisPause)
}
