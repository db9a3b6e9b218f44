package deliver

import (
	"context"

	"github.com/weir-dev/weir/collector/stream"
)

// measureLag tells the metrics what each platform still has to be handed, until taking ends.
func (e *Engine) measureLag(taking context.Context) {
	for {
		// While Redis does not answer the lag is not known; that it does not is told by those who need it.
		if groups, err := e.options.Stream.Groups(taking); err == nil {
			for _, group := range groups {
				e.measureLagOf(taking, group)
			}
		}
		if !pause(taking, e.timing.lag) {
			return
		}
	}
}

func (e *Engine) measureLagOf(taking context.Context, group stream.Group) {
	if !e.configured(group.Platform) {
		return
	}
	unread, err := e.options.Stream.ReadEvents(taking, group.LastDelivered, 1, 0)
	if err != nil {
		return
	}
	m := e.options.Metrics
	seconds, events := 0.0, group.Lag
	if len(unread) == 0 {
		events = 0 // Redis does not know how many were handed out where it has read its append-only file since
	} else {
		seconds = max(0, e.clock.Now().Sub(unread[0].Position.Time()).Seconds())
	}
	m.lagSeconds.WithLabelValues(group.Platform).Set(seconds)
	m.waiting.WithLabelValues(group.Platform).Set(float64(group.Waiting))
	if events >= 0 {
		m.lagEvents.WithLabelValues(group.Platform).Set(float64(events))
	}
}
