package deliver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// reasonRemoved is what open deliveries to a platform that is no longer configured end with.
const reasonRemoved = "platform_removed"

// remove ends the groups of platforms that are no longer configured, until taking ends: their open events are
// recorded as skipped, and after a while, when all collectors have learnt of the removal, the group goes.
func (e *Engine) remove(taking context.Context) {
	seen := map[string]time.Time{}
	for {
		wait := e.timing.removalPoll
		removed, err := e.removed(taking)
		if len(removed) == 0 {
			wait = e.timing.trim // only a deliverer with an older configuration could bring one back
		}
		if err == nil {
			for _, name := range removed {
				if err = e.removePlatform(taking, name, seen); err != nil {
					break
				}
			}
		}
		if err != nil && taking.Err() == nil {
			e.options.Logger.Error("removed platforms cannot be closed yet", "error", err)
		}
		if !pause(taking, wait) {
			return
		}
	}
}

// removed lists the groups of platforms that are not configured.
func (e *Engine) removed(ctx context.Context) ([]string, error) {
	groups, err := e.options.Stream.Groups(ctx)
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, group := range groups {
		if !e.configured(group.Platform) {
			removed = append(removed, group.Platform)
		}
	}
	return removed, nil
}

func (e *Engine) configured(name string) bool {
	return e.options.Property.Platform(name) != nil
}

func (e *Engine) removePlatform(ctx context.Context, name string, seen map[string]time.Time) error {
	first, known := seen[name]
	if !known {
		first = time.Now()
		seen[name] = first
		e.options.Metrics.forget(name)
		e.options.Logger.Info("platform removed; its open deliveries are skipped", "platform", name)
	}
	if err := e.options.Stream.DropShadow(ctx, name); err != nil {
		return err
	}
	last := time.Since(first) >= e.timing.removal
	// Until the end, what a deliverer with the old configuration is just sending is left to it.
	idle := e.timing.pendingIdle
	if last {
		idle = 0
	}
	err := e.skipOpen(ctx, name, idle)
	if errors.Is(err, stream.ErrNoGroup) {
		return nil // another deliverer was first
	}
	if err != nil {
		return err
	}
	if !last {
		return nil
	}
	delete(seen, name)
	return e.options.Stream.DestroyGroup(ctx, name)
}

// skipOpen settles everything that the platform's group has not handed out, that is waiting for another
// attempt, or that has been pending for longer than idle.
func (e *Engine) skipOpen(ctx context.Context, name string, idle time.Duration) error {
	s, consumer := e.options.Stream, e.options.Consumer
	for _, take := range []func() ([]stream.Delivery, error){
		func() ([]stream.Delivery, error) { return s.Read(ctx, name, consumer, maxTaken, 0) },
		func() ([]stream.Delivery, error) {
			// Due in a year: all that wait.
			due, _, err := s.Due(ctx, name, e.clock.Now().AddDate(1, 0, 0), e.timing.lease, maxTaken)
			return due, err
		},
		func() ([]stream.Delivery, error) {
			unsent, _, err := s.Unsent(ctx, name, e.clock.Now(), e.timing.lease, maxTaken)
			return unsent, err
		},
		func() ([]stream.Delivery, error) {
			taken, _, err := s.Reclaim(ctx, name, consumer, idle, maxTaken)
			return taken, err
		},
	} {
		for {
			deliveries, err := take()
			if err != nil {
				return err
			}
			if len(deliveries) == 0 {
				break
			}
			if err := e.skip(ctx, name, deliveries); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Engine) skip(ctx context.Context, name string, deliveries []stream.Delivery) error {
	var settlements []stream.Settlement
	var passed []stream.Position
	for _, delivery := range deliveries {
		if decoded, err := wire.Decode(delivery.Data); err == nil && !slices.Contains(decoded.Platforms, name) {
			passed = append(passed, delivery.Position)
			continue
		}
		settlements = append(settlements, stream.Settlement{Record: stream.Record{
			Event: delivery.Position, Platform: name, Status: stream.Skipped,
			Attempts: delivery.Attempts, Reason: reasonRemoved, At: e.clock.Now(),
		}})
	}
	if err := e.options.Stream.Settle(ctx, name, settlements); err != nil {
		return err
	}
	e.options.Metrics.count(settlements, name)
	return e.options.Stream.Acknowledge(ctx, name, passed)
}
