package deliver

import (
	"context"

	"github.com/weir-dev/weir/collector/stream"
)

// measureLag tells the metrics, and whoever reads, what each platform still has to be handed and whether it is paused, until taking
// ends.
func (e *Engine) measureLag(taking context.Context) {
	for failed := false; ; {
		// While Redis does not answer the lag is not known; that it does not is told by those who need it.
		if groups, err := e.options.Stream.Groups(taking); err == nil {
			err = e.report(taking, groups)
			if err != nil && !failed && taking.Err() == nil {
				e.options.Logger.Warn("how it stands with the platforms cannot be reported", "error", err)
			}
			failed = err != nil
		}
		if !pause(taking, e.timing.lag) {
			return
		}
	}
}

// report measures the lags of the platforms' groups and says how it stands with the platforms.
func (e *Engine) report(taking context.Context, groups []stream.Group) error {
	states, paused := make([]stream.PlatformState, 0, len(groups)), e.options.Metrics.pausedPlatforms()
	for _, group := range groups {
		if !e.configured(group.Platform) {
			continue
		}
		state, err := e.measureLagOf(taking, group)
		if err != nil {
			return err
		}
		if reason, is := paused[group.Platform]; is {
			state.Pause = &reason
		}
		states = append(states, state)
	}
	return e.options.Stream.ReportPlatforms(taking, e.options.Consumer, states, e.clock.Now())
}

func (e *Engine) measureLagOf(taking context.Context, group stream.Group) (stream.PlatformState, error) {
	unread, err := e.options.Stream.ReadEvents(taking, group.LastDelivered, 1, 0)
	if err != nil {
		return stream.PlatformState{}, err
	}
	state := stream.PlatformState{Platform: group.Platform, LagEvents: group.Lag, Waiting: group.Waiting}
	if len(unread) == 0 {
		state.LagEvents = 0 // Redis does not know how many were handed out where it has read its append-only file since
	} else {
		state.LagSeconds = max(0, e.clock.Now().Sub(unread[0].Position.Time()).Seconds())
	}
	m := e.options.Metrics
	m.lagSeconds.WithLabelValues(group.Platform).Set(state.LagSeconds)
	m.waiting.WithLabelValues(group.Platform).Set(float64(group.Waiting))
	if state.LagEvents >= 0 {
		m.lagEvents.WithLabelValues(group.Platform).Set(float64(state.LagEvents))
	}
	return state, nil
}
