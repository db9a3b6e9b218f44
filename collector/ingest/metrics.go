package ingest

import "github.com/prometheus/client_golang/prometheus"

// metrics count what became of the events that were sent. Requests are counted by the server around us.
type metrics struct{ events *prometheus.CounterVec }

// counters are one property's, looked up once.
type counters struct{ accepted, duplicate, rejected, limited, unavailable prometheus.Counter }

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{events: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_collect_events_total",
		Help: "Events sent with a valid API key in a well-formed request, by what became of them: accepted, duplicate, " +
			"rejected as invalid, limited by the rate, or refused because the stream was unavailable.",
	}, []string{"property", "outcome"})}
	registerer.MustRegister(m.events)
	return m
}

func (m *metrics) of(property string) counters {
	outcome := func(name string) prometheus.Counter { return m.events.WithLabelValues(property, name) }
	return counters{
		accepted: outcome("accepted"), duplicate: outcome("duplicate"), rejected: outcome("rejected"),
		limited: outcome("limited"), unavailable: outcome("unavailable"),
	}
}
