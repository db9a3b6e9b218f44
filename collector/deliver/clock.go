package deliver

import (
	"context"
	"log/slog"
	"time"
)

// awaitClock looks at Redis's clock for the first time, however long that takes; false means that taking has ended.
func (e *Engine) awaitClock(taking context.Context) bool {
	for failures := 0; ; failures++ {
		err := e.lookAtClock(taking)
		if err == nil {
			return true
		}
		if failures == 0 && taking.Err() == nil {
			e.options.Logger.Error("redis cannot be asked for the time; deliveries begin when it can", "error", err)
		}
		if !pause(taking, e.timing.redis.jittered(failures)) {
			return false
		}
	}
}

// lookAtClock keeps the clock, and reports where Redis's is not believed.
func (e *Engine) lookAtClock(ctx context.Context) error {
	e.looking.Lock()
	defer e.looking.Unlock()
	ahead, err := e.clock.Look(ctx)
	if err != nil {
		return err
	}
	e.options.Metrics.clockAhead.Set(ahead.Seconds())
	refused := ahead != 0
	if refused == e.clockRefused {
		return nil
	}
	e.clockRefused = refused
	if !refused {
		e.options.Logger.Info("redis's clock is believed")
		return nil
	}
	e.options.Logger.LogAttrs(ctx, slog.LevelError, "redis's clock was set or is another's, and is not believed; events are dated as before",
		slog.String("ahead", ahead.Round(time.Second).String()),
		slog.String("advice", "set the clocks of Redis's node and of this one right; a day after they agree they are believed"))
	return nil
}
