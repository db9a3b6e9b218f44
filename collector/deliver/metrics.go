package deliver

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// Metrics count what becomes of events. They outlive an [Engine], so that a reload of the configuration does
// not set them back. Their labels are the platform's name, the delivery status and codes, nothing of the events.
type Metrics struct {
	settled     *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
	attempts    *prometheus.CounterVec
	paused      *prometheus.GaugeVec
	errors      *prometheus.GaugeVec
	lagSeconds  *prometheus.GaugeVec
	lagEvents   *prometheus.GaugeVec
	waiting     *prometheus.GaugeVec
	versionEnds *prometheus.GaugeVec
	clockAhead  prometheus.Gauge

	mu sync.Mutex
	// pausing is why and since when platforms are paused, by platform.
	pausing map[string]stream.Pause
}

// NewMetrics makes the metrics and registers them. It fails where the registerer has them already.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		pausing: map[string]stream.Pause{},
		settled: counter("weir_deliveries_total",
			"Delivery records written, by the status that they carry.", "platform", "status"),
		deadLetters: counter("weir_dead_letters_total",
			"Events given up on, failed or expired, by the record's reason.", "platform", "reason"),
		attempts: counter("weir_delivery_requests_total",
			"Requests made to the platform.", "platform"),
		paused: gauge("weir_platform_paused",
			"1 while the circuit breaker is open or half-open, so that nothing, or nothing but new events, is sent: the platform rate limits, refuses the credential, is misconfigured or is down.",
			"platform"),
		errors: gauge("weir_platform_error",
			"1 while the platform is paused, with the reason why.", "platform", "reason"),
		lagSeconds: gauge("weir_delivery_lag_seconds",
			"How long the oldest event that was not taken up yet has been waiting for that; 0 when there is none.", "platform"),
		lagEvents: gauge("weir_delivery_lag_events",
			"Events that were not taken up yet.", "platform"),
		waiting: gauge("weir_delivery_waiting_events",
			"Events that wait for another attempt.", "platform"),
		versionEnds: gauge("weir_platform_version_ends_timestamp_seconds",
			"When the platform stops taking the version of its interface that is spoken, in seconds since 1970; absent where it has announced no end.",
			"platform"),
		clockAhead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_redis_clock_ahead_seconds",
			Help: "How far Redis's clock is ahead of the time that is believed, below 0 where it is behind; 0 where it is believed.",
		}),
	}
	for _, collector := range []prometheus.Collector{
		m.settled, m.deadLetters, m.attempts, m.paused, m.errors, m.lagSeconds, m.lagEvents, m.waiting, m.versionEnds, m.clockAhead,
	} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("deliver: registering metrics: %w", err)
		}
	}
	return m, nil
}

// forget removes the gauges of a platform that is not delivered to any more; the counters stay.
func (m *Metrics) forget(platform string) {
	for _, gauge := range []*prometheus.GaugeVec{m.paused, m.errors, m.lagSeconds, m.lagEvents, m.waiting, m.versionEnds} {
		gauge.DeletePartialMatch(prometheus.Labels{"platform": platform})
	}
	m.pause(platform, "", "", time.Time{})
}

// speaks notes which version is spoken to a platform from now on: when it ends, where an end is announced.
func (m *Metrics) speaks(platform string, version platforms.Version) {
	if version.Ends.IsZero() {
		m.versionEnds.DeleteLabelValues(platform)
		return
	}
	m.versionEnds.WithLabelValues(platform).Set(float64(version.Ends.Unix()))
}

func (m *Metrics) count(settlements []stream.Settlement, platform string) {
	statuses := map[stream.Status]float64{}
	for i := range settlements {
		s := &settlements[i]
		if s.Silent {
			continue
		}
		statuses[s.Status]++
		if s.Status == stream.Failed || s.Status == stream.Expired {
			m.deadLetters.WithLabelValues(platform, s.Reason).Inc()
		}
	}
	for status, n := range statuses {
		m.settled.WithLabelValues(platform, status.String()).Add(n)
	}
}

func (m *Metrics) expired(platform, reason string, n int) {
	m.settled.WithLabelValues(platform, stream.Expired.String()).Add(float64(n))
	m.deadLetters.WithLabelValues(platform, reason).Add(float64(n))
}

// pauses returns what tells whether a platform is paused; it is not yet.
func (m *Metrics) pauses(platform string, now func() time.Time) *pauseMetrics {
	p := &pauseMetrics{platform: platform, metrics: m, now: now}
	p.resumed()
	return p
}

// pauseMetrics tell whether one platform is paused, and why.
type pauseMetrics struct {
	platform string
	metrics  *Metrics
	now      func() time.Time

	mu      sync.Mutex
	reason  string
	retired bool
}

// pausedFor notes the reason, and what a person has to mend; "" where that is nothing.
func (p *pauseMetrics) pausedFor(reason string, what Misconfiguration) { p.set(1, reason, what) }

func (p *pauseMetrics) resumed() { p.set(0, "", "") }

func (p *pauseMetrics) set(paused float64, reason string, what Misconfiguration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason = reason; p.retired {
		return
	}
	p.metrics.paused.WithLabelValues(p.platform).Set(paused)
	p.metrics.pause(p.platform, reason, what, p.now())
	p.metrics.errors.DeletePartialMatch(prometheus.Labels{"platform": p.platform})
	if reason != "" {
		p.metrics.errors.WithLabelValues(p.platform, reason).Set(1)
	}
}

// retire leaves the metrics to the next engine.
func (p *pauseMetrics) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
}

// pause notes why a platform is paused, and since when unless it was before; reason is "" where it is not.
func (m *Metrics) pause(platform, reason string, what Misconfiguration, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if reason == "" {
		delete(m.pausing, platform)
		return
	}
	since := now.UTC()
	if before, paused := m.pausing[platform]; paused {
		since = before.Since
	}
	m.pausing[platform] = stream.Pause{Misconfiguration: string(what), Reason: reason, Since: since}
}

// pausedPlatforms returns why and since when platforms are paused.
func (m *Metrics) pausedPlatforms() map[string]stream.Pause {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.pausing)
}
