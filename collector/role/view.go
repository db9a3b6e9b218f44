package role

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/analytics"
)

// gauge is a metric that is read when it is asked for.
type gauge[S any] struct {
	name, help string
	value      func(S) float64
}

// gauges are the metrics of one thing, which are there as long as the thing is.
type gauges[S any] struct {
	list   []gauge[S]
	descs  []*prometheus.Desc
	status func() (status S, found bool)
}

func newGauges[S any](status func() (S, bool), list ...gauge[S]) *gauges[S] {
	g := &gauges[S]{list: list, status: status}
	for _, one := range list {
		g.descs = append(g.descs, prometheus.NewDesc(one.name, one.help, nil, nil))
	}
	return g
}

// Describe implements [prometheus.Collector].
func (g *gauges[S]) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range g.descs {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (g *gauges[S]) Collect(metrics chan<- prometheus.Metric) {
	status, found := g.status()
	if !found {
		return
	}
	for i := range g.list {
		metrics <- prometheus.MustNewConstMetric(g.descs[i], prometheus.GaugeValue, g.list[i].value(status))
	}
}

// watchView registers the metrics of the view that answers; there are none where a history does.
func watchView(engines *engines, registerer prometheus.Registerer) error {
	opened := time.Now()
	status := func() (analytics.Status, bool) {
		view := engines.latest().view
		if view == nil {
			return analytics.Status{}, false
		}
		return view.Status(context.Background()), true
	}
	return registerer.Register(newGauges(status,
		gauge[analytics.Status]{
			"weir_view_lag_seconds", "How long ago the view last held all that the events stream had. It grows while the view replays and while Redis is away.",
			func(s analytics.Status) float64 { return secondsSince(s.CurrentAt, opened) },
		},
		gauge[analytics.Status]{"weir_view_ready", "1 while the view answers, 0 while it replays the streams.", func(s analytics.Status) float64 { return truth(s.Ready) }},
		gauge[analytics.Status]{"weir_view_connected", "1 while the view reads the streams, 0 while Redis is away.", func(s analytics.Status) float64 { return truth(s.Connected) }},
		gauge[analytics.Status]{"weir_view_events", "Events that the view holds.", func(s analytics.Status) float64 { return float64(s.Events) }},
		gauge[analytics.Status]{"weir_view_bytes", "About how much memory the view takes.", func(s analytics.Status) float64 { return float64(s.Bytes) }},
		gauge[analytics.Status]{
			"weir_view_max_bytes", "How much memory the view may take before it leaves out the oldest events; 0 for any.",
			func(s analytics.Status) float64 { return float64(s.MaxBytes) },
		},
		gauge[analytics.Status]{"weir_view_unreadable_entries", "Entries that could not be decoded and are in no number.", func(s analytics.Status) float64 { return float64(s.Unreadable) }},
	))
}

// secondsSince is how long ago a time was; where it is zero, how long ago something was opened.
func secondsSince(at, opened time.Time) float64 {
	if at.IsZero() {
		at = opened
	}
	return max(0, time.Since(at).Seconds())
}

func truth(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
