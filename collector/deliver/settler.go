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
	// passed are none of the platform's.
	passed []stream.Position
	// parked were held back by the gate before another attempt was made, until the latest of those times; unsent before
	// the first.
	parked []stream.Delivery
	until  time.Time
	unsent []stream.Delivery
}

func (o *outcomes) add(more outcomes) {
	o.settled = append(o.settled, more.settled...)
	o.passed = append(o.passed, more.passed...)
	o.parked = append(o.parked, more.parked...)
	o.unsent = append(o.unsent, more.unsent...)
	if more.until.After(o.until) {
		o.until = more.until
	}
}

func (o *outcomes) len() int { return len(o.settled) + len(o.passed) + len(o.parked) + len(o.unsent) }

// each calls f with every event's position.
func (o *outcomes) each(f func(stream.Position)) {
	for _, s := range o.settled {
		f(s.Event)
	}
	for _, p := range o.passed {
		f(p)
	}
	for _, d := range o.parked {
		f(d.Position)
	}
	for _, d := range o.unsent {
		f(d.Position)
	}
}

// settler writes what became of events. Outcomes that come in while it is writing are written together the
// next time; a request's slot is only freed when its outcomes have been written, so a slow Redis slows sending
// down rather than filling the memory.
type settler struct {
	stream   *stream.Stream
	platform string
	metrics  *Metrics
	logger   *slog.Logger
	backoff  backoff
	queue    chan settling
	// restore makes the platform's group where it is missing.
	restore func(context.Context) error
}

// settling is a request to the settler; written is called once, when the outcomes are in Redis or never will be.
type settling struct {
	outcomes
	written func()
}

// maxSettlements is about how many outcomes are written at a time.
const maxSettlements = 1000

func newSettler(s *stream.Stream, platform string, metrics *Metrics, logger *slog.Logger, restore func(context.Context) error) *settler {
	return &settler{
		stream: s, platform: platform, metrics: metrics, logger: logger, restore: restore,
		backoff: backoff{unit: 100 * time.Millisecond, cap: 2 * time.Second, floor: 50 * time.Millisecond},
		queue:   make(chan settling, 2*parallelRequests),
	}
}

// run writes until the queue is closed and empty. The context only bounds how long it goes on trying: what is
// not written then stays claimed, and is delivered again by whoever takes the claim over.
func (s *settler) run(ctx context.Context) {
	for first := range s.queue {
		round := []settling{first}
		all := outcomes{}
		all.add(first.outcomes)
	gather:
		for all.len() < maxSettlements {
			select {
			case next, ok := <-s.queue:
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
			if err = s.restore(ctx); err == nil {
				err = s.writeOnce(ctx, all)
			}
		}
		if err == nil {
			s.metrics.count(all.settled, s.platform)
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
	if err := s.stream.Settle(ctx, s.platform, all.settled); err != nil {
		return err
	}
	if err := s.stream.Postpone(ctx, s.platform, all.parked, all.until); err != nil {
		return err
	}
	if err := s.stream.PutBack(ctx, s.platform, all.unsent); err != nil {
		return err
	}
	return s.stream.Acknowledge(ctx, s.platform, all.passed)
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
