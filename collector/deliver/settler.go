package deliver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// outcomes are what became of events that were taken.
type outcomes struct {
	// settled are decided, or rescheduled after an attempt.
	settled []stream.Settlement
	// ignored are none of the platform's.
	ignored []stream.Position
	// postponed were held back by the circuit breaker before another attempt was made, until the latest of those times;
	// unsent before the first.
	postponed []stream.Delivery
	until     time.Time
	unsent    []stream.Delivery
}

func (o *outcomes) add(more outcomes) {
	o.settled = append(o.settled, more.settled...)
	o.ignored = append(o.ignored, more.ignored...)
	o.postponed = append(o.postponed, more.postponed...)
	o.unsent = append(o.unsent, more.unsent...)
	if more.until.After(o.until) {
		o.until = more.until
	}
}

func (o *outcomes) len() int {
	return len(o.settled) + len(o.ignored) + len(o.postponed) + len(o.unsent)
}

// each calls f with every event's position.
func (o *outcomes) each(f func(stream.Position)) {
	for _, s := range o.settled {
		f(s.Event)
	}
	for _, p := range o.ignored {
		f(p)
	}
	for _, d := range o.postponed {
		f(d.Position)
	}
	for _, d := range o.unsent {
		f(d.Position)
	}
}

// settler writes what became of events. Outcomes that come in while it is writing are written together the
// next time; a request counts against the limiter until its outcomes have been written, so a slow Redis slows sending
// down rather than filling the memory.
type settler struct {
	queue    *queue
	group    *group
	metrics  *Metrics
	logger   *slog.Logger
	backoff  backoff
	incoming chan settling
}

// settling is a request to the settler; written is called once, when the outcomes are in Redis or never will be.
type settling struct {
	outcomes
	written func()
}

// maxSettlements is about how many outcomes are written at a time.
const maxSettlements = 1000

func newSettler(q *queue, g *group, metrics *Metrics, logger *slog.Logger) *settler {
	return &settler{
		queue: q, group: g, metrics: metrics, logger: logger,
		backoff:  backoff{unit: 100 * time.Millisecond, cap: 2 * time.Second, floor: 50 * time.Millisecond},
		incoming: make(chan settling, 2*parallelRequests),
	}
}

// settle has outcomes written; written is called when they are, or never will be.
func (s *settler) settle(all outcomes, written func()) { s.incoming <- settling{all, written} }

// run writes until no more is incoming. The context only bounds how long it goes on trying: what is not written then
// stays pending, and is delivered again by whoever reclaims it.
func (s *settler) run(ctx context.Context) {
	for first := range s.incoming {
		round := []settling{first}
		all := outcomes{}
		all.add(first.outcomes)
	gather:
		for all.len() < maxSettlements {
			select {
			case next, ok := <-s.incoming:
				if !ok {
					break gather
				}
				round = append(round, next)
				all.add(next.outcomes)
			default:
				break gather
			}
		}
		s.write(ctx, all)
		for _, item := range round {
			s.queue.end(item.outcomes)
			item.written()
		}
	}
}

// write tries until it succeeds or the context ends. A repeat after an unclear answer is harmless. Where the group is
// gone it is made anew: what had been handed out waits in it then, and is settled as if nothing had been.
func (s *settler) write(ctx context.Context, all outcomes) {
	for failures := 0; ; failures++ {
		err := s.writeOnce(ctx, all)
		if errors.Is(err, stream.ErrNoGroup) {
			if err = s.group.ensure(ctx); err == nil {
				err = s.writeOnce(ctx, all)
			}
		}
		if err == nil {
			s.metrics.count(all.settled, s.queue.platform)
			return
		}
		if failures == 0 {
			s.logger.Error("delivery outcomes cannot be written yet", "events", all.len(), "error", err)
		}
		if !pause(ctx, s.backoff.jittered(failures)) {
			s.logger.Error("delivery outcomes were not written; the events will be delivered again", "events", all.len())
			return
		}
	}
}

func (s *settler) writeOnce(ctx context.Context, all outcomes) error {
	to, platform := s.queue.stream, s.queue.platform
	if err := to.Settle(ctx, platform, all.settled); err != nil {
		return err
	}
	if err := to.Postpone(ctx, platform, all.postponed, all.until); err != nil {
		return err
	}
	if err := to.PutBack(ctx, platform, all.unsent); err != nil {
		return err
	}
	return to.Acknowledge(ctx, platform, all.ignored)
}

// pause waits and says whether the context still stands.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
