package role

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/analytics"
)

// watchView registers the metrics of a view. They are read when they are asked for.
func watchView(view *analytics.View, registerer prometheus.Registerer) error {
	opened := time.Now()
	var errs []error
	for _, gauge := range []struct {
		name, help string
		value      func(analytics.Status) float64
	}{
		{"weir_view_lag_seconds", "How long ago the view last held all that the events stream had. It grows while the view replays and while Redis is away.",
			func(s analytics.Status) float64 {
				current := s.CurrentAt
				if current.IsZero() {
					current = opened
				}
				return max(0, time.Since(current).Seconds())
			}},
		{"weir_view_ready", "1 while the view answers, 0 while it replays the streams.", func(s analytics.Status) float64 { return truth(s.Ready) }},
		{"weir_view_connected", "1 while the view reads the streams, 0 while Redis is away.", func(s analytics.Status) float64 { return truth(s.Connected) }},
		{"weir_view_events", "Events that the view holds.", func(s analytics.Status) float64 { return float64(s.Events) }},
		{"weir_view_bytes", "About how much memory the view takes.", func(s analytics.Status) float64 { return float64(s.Bytes) }},
		{"weir_view_max_bytes", "How much memory the view may take before it leaves out the oldest events; 0 for any.",
			func(s analytics.Status) float64 { return float64(s.MaxBytes) }},
		{"weir_view_unreadable_entries", "Entries that could not be decoded and are in no number.", func(s analytics.Status) float64 { return float64(s.Unreadable) }},
	} {
		errs = append(errs, registerer.Register(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: gauge.name, Help: gauge.help}, func() float64 { return gauge.value(view.Status(context.Background())) },
		)))
	}
	return errors.Join(errs...)
}

func truth(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
