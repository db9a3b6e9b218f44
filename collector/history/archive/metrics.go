package archive

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what one property's archives count and measure.
type Metrics struct {
	rows, blocks, errors, unreadable  *prometheus.CounterVec
	gaps                              prometheus.Counter
	inserts                           *prometheus.HistogramVec
	lagEntries, lagSeconds, delayedBy *prometheus.GaugeVec
}

// NewMetrics registers the metrics of one property.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		rows:       counter("weir_archive_rows_total", "Rows that ClickHouse has taken.", "lane"),
		blocks:     counter("weir_archive_blocks_total", "Blocks that ClickHouse has taken.", "lane"),
		errors:     counter("weir_archive_errors_total", "Attempts to archive that failed, by reason.", "reason"),
		unreadable: counter("weir_archive_unreadable_entries_total", "Entries that could not be decoded and are not in the history.", "lane"),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_archive_gaps_total", Help: "Ranges of which events may be missing in the history, because they left the stream before they were archived.",
		}),
		inserts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_archive_insert_duration_seconds", Help: "From sending a block to ClickHouse until it was answered or given up.",
			Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 30, 60},
		}, []string{"lane"}),
		lagEntries: gauge("weir_archive_lag_entries", "About how many entries of the stream are not archived yet.", "lane"),
		lagSeconds: gauge("weir_archive_lag_seconds", "For how long something that is not archived yet has been in the stream.", "lane"),
		delayedBy:  gauge("weir_archive_block_delay_seconds", "How long entries are gathered for a block. It grows while ClickHouse merges parts more slowly than they come, or takes long for a block."),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.rows, m.blocks, m.errors, m.unreadable, m.gaps, m.inserts, m.lagEntries, m.lagSeconds, m.delayedBy} {
		errs = append(errs, registerer.Register(c))
	}
	return m, errors.Join(errs...)
}
