package deliver

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/stream"
)

// Metrics count what becomes of events. They outlive an [Engine], so that a reload of the configuration does
// not set them back. Their labels are the platform's name and the delivery status, nothing of the events.
type Metrics struct {
	settled  *prometheus.CounterVec
	attempts *prometheus.CounterVec
	paused   *prometheus.GaugeVec
	lag      *prometheus.GaugeVec
}

// NewMetrics makes the metrics and registers them. It fails where the registerer has them already.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_deliveries_total",
			Help: "Delivery records written, by the status that they carry.",
		}, []string{"platform", "status"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_delivery_requests_total",
			Help: "Requests made to the platform.",
		}, []string{"platform"}),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_platform_paused",
			Help: "1 while nothing is sent because the platform wants a pause, refuses the credential or is misconfigured.",
		}, []string{"platform"}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_delivery_lag_seconds",
			Help: "How long the event that was taken up last had waited since it was received; 0 when no more wait.",
		}, []string{"platform"}),
	}
	for _, collector := range []prometheus.Collector{m.settled, m.attempts, m.paused, m.lag} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("deliver: registering metrics: %w", err)
		}
	}
	return m, nil
}

// forget removes the gauges of a platform that is not delivered to any more; the counters stay.
func (m *Metrics) forget(platform string) {
	m.paused.DeleteLabelValues(platform)
	m.lag.DeleteLabelValues(platform)
}

func (m *Metrics) count(platform string, settlements []stream.Settlement) {
	for _, s := range settlements {
		m.settled.WithLabelValues(platform, s.Status.String()).Inc()
	}
}

func (m *Metrics) expired(platform string, n int) {
	m.settled.WithLabelValues(platform, stream.Expired.String()).Add(float64(n))
}
