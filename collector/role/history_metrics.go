package role

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
)

// historyMetrics tell of a property's questions to its history.
type historyMetrics struct {
	seconds *prometheus.HistogramVec
	errors  *prometheus.CounterVec
}

// newHistoryMetrics registers the metrics of a property's history, which are there where it is asked something.
func newHistoryMetrics(registerer prometheus.Registerer) (*historyMetrics, error) {
	m := &historyMetrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_history_question_seconds", Help: "How long questions to the history took, by kind.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"kind"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_history_errors_total", Help: "Questions to the history that were not answered, by reason.",
		}, []string{"reason"}),
	}
	return m, errors.Join(registerer.Register(m.seconds), registerer.Register(m.errors))
}

// watchHistory registers the metrics of the history that answers; there are none where a view does.
func watchHistory(engines *engines, registerer prometheus.Registerer) error {
	opened := time.Now()
	status := func() (analytics.Status, bool) {
		history := engines.latest().history
		if history == nil {
			return analytics.Status{}, false
		}
		return history.Status(context.Background()), true
	}
	return registerer.Register(newGauges(status,
		gauge[analytics.Status]{
			"weir_history_lag_seconds", "How long ago the history last held all that had been accepted. It grows while the archive catches up and while ClickHouse is away.",
			func(s analytics.Status) float64 { return secondsSince(s.CurrentAt, opened) },
		},
		gauge[analytics.Status]{"weir_history_ready", "1 once questions are answered from the history, 0 while it is filled for the first time.", func(s analytics.Status) float64 { return truth(s.Ready) }},
		gauge[analytics.Status]{"weir_history_connected", "1 while ClickHouse answers questions, 0 while it is away.", func(s analytics.Status) float64 { return truth(s.Connected) }},
	))
}

// reasons are what errors are counted as.
var reasons = map[clickhouse.Kind]string{
	clickhouse.Unreachable: "unreachable", clickhouse.Denied: "denied", clickhouse.TooOld: "too_old", clickhouse.DiskFull: "disk_full",
	clickhouse.ReadOnly: "read_only", clickhouse.TooManyParts: "too_many_parts", clickhouse.MemoryLimit: "memory_limit",
	clickhouse.Timeout: "timeout", clickhouse.Quota: "quota", clickhouse.Missing: "missing", clickhouse.Nonsense: "nonsense",
}

// observe counts a question. One that its asker has given up is none of the history's errors.
func (m *historyMetrics) observe(kind string, took time.Duration, err error) {
	m.seconds.WithLabelValues(kind).Observe(took.Seconds())
	problem := (*clickhouse.Problem)(nil)
	if !errors.As(err, &problem) {
		return
	}
	reason, known := reasons[problem.Kind]
	if !known {
		reason = "other"
	}
	m.errors.WithLabelValues(reason).Inc()
}
