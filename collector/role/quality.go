package role

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/quality"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// countInterval is how often what was counted is written, countTimeout how long that may take.
	countInterval, countTimeout = 10 * time.Second, 5 * time.Second
	// judgeDelay is how long after a slot's end it is judged: what was counted in it has been written by then.
	judgeDelay = 30 * time.Second
	// judgeTimeout is how long reading the counts may take.
	judgeTimeout = 20 * time.Second
	// reportKept is for how long a report stands when no other can be made.
	reportKept = 3 * quality.SlotLength
)

// keepCounting writes what was counted until ctx ends, and the rest then. A process that collects says that it is there; one that
// only reads shops' orders does not, for nobody sends it events.
func (p *property) keepCounting(ctx context.Context) {
	ticker := time.NewTicker(countInterval)
	defer ticker.Stop()
	failing := false
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-ticker.C:
		}
		err := p.writeCounts(context.WithoutCancel(ctx), time.Now())
		if err != nil && !failing {
			p.options.Logger.WarnContext(ctx, "what was counted cannot be written: it waits, or is lost where Redis has not answered", "property", p.String(), "error", err)
		}
		failing = err != nil
	}
}

// writeCounts writes what was counted. What was not written waits. Of what Redis did not answer nobody knows whether it was: it is
// lost, for it would be added again each time while Redis is slow.
func (p *property) writeCounts(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	if p.options.has(Collect) {
		p.tally.Present(now)
	}
	increments := p.tally.Take()
	counts := make([]stream.Count, len(increments))
	for i := range increments {
		counts[i] = stream.Count{Slot: increments[i].Slot, InSlot: increments[i].Counter, InHour: increments[i].HourCounter(), Count: increments[i].Count}
		if place, needed := increments[i].Place(); needed {
			counts[i].Place = stream.Place{Group: place.Group, Member: place.Member, Most: place.Most, Instead: place.Instead}
		}
	}
	fates, err := p.stream.AddCounts(ctx, counts, now)
	by := map[stream.Fate][]quality.Increment{}
	for i, fate := range fates {
		by[fate] = append(by[fate], increments[i])
	}
	p.tally.Return(by[stream.Uncounted])
	p.tally.Drop(by[stream.Unclear])
	return err
}

// counted implements [quality.Source] for a property's stream.
type counted struct{ *stream.Stream }

func (c counted) Slots(ctx context.Context, starts []time.Time) ([]quality.Period, error) {
	return periods(c.SlotCounts(ctx, starts))
}

func (c counted) Hours(ctx context.Context, starts []time.Time) ([]quality.Period, error) {
	return periods(c.HourCounts(ctx, starts))
}

func periods(counters []map[string]int64, err error) ([]quality.Period, error) {
	list := make([]quality.Period, len(counters))
	for i := range counters {
		list[i] = quality.ReadPeriod(counters[i])
	}
	return list, err
}

// watch judges a property's numbers, and has what was found last.
type watch struct {
	property string
	source   quality.Source
	logger   *slog.Logger
	now      func() time.Time
	location atomic.Pointer[time.Location]
	// orders returns how a source's orders compared; sources are those that are read.
	orders  func(ctx context.Context, source string) (stream.OrderComparison, bool, error)
	sources atomic.Pointer[[]string]

	mu          sync.Mutex
	report      quality.Report
	comparisons []stream.OrderComparison
}

// newWatch returns a watch that knows nothing yet, and registers its metrics.
func newWatch(p *property, registerer prometheus.Registerer) (*watch, error) {
	w := &watch{property: p.String(), source: counted{p.stream}, logger: p.options.Logger, now: time.Now}
	w.orders = p.stream.OrderComparison
	w.serve(&p.settings)
	return w, registerer.Register(w)
}

// Quality returns what was found last; found is false where nothing was judged lately.
func (w *watch) Quality() (report quality.Report, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.report, !w.report.At.IsZero() && w.now().Sub(w.report.At) <= reportKept
}

// serve has the watch go by settings from now on.
func (w *watch) serve(s *settings) {
	w.location.Store(s.location)
	names := []string{}
	for i := range s.config.Sources {
		if s.config.Sources[i].ReadsOrders {
			names = append(names, s.config.Sources[i].Name)
		}
	}
	w.sources.Store(&names)
}

// Orders returns how the shops' orders compared with the purchases stored, of the latest day of each.
func (w *watch) Orders() []stream.OrderComparison {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.comparisons
}

// follow judges at once and then behind each slot until ctx ends.
func (w *watch) follow(ctx context.Context) {
	var judge *quality.Judge
	var location *time.Location
	failing := false
	for {
		if now := w.location.Load(); now != location {
			location, judge = now, quality.NewJudge(w.source, now)
		}
		err := w.look(ctx, judge)
		if err != nil && ctx.Err() == nil && !failing {
			w.logger.WarnContext(ctx, "the counts cannot be read: nobody knows whether numbers go wrong", "property", w.property, "error", err)
		}
		failing = err != nil
		now := w.now()
		next := time.NewTimer(now.Add(-judgeDelay).Truncate(quality.SlotLength).Add(quality.SlotLength + judgeDelay).Sub(now))
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
		}
	}
}

// look judges once.
func (w *watch) look(ctx context.Context, judge *quality.Judge) error {
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	report, err := judge.At(ctx, w.now().Add(-judgeDelay))
	if err != nil {
		return err
	}
	comparisons := []stream.OrderComparison{}
	for _, source := range *w.sources.Load() {
		c, found, err := w.orders(ctx, source)
		if err != nil {
			return err
		}
		if found && !c.Skipped {
			comparisons = append(comparisons, c)
		}
	}
	w.mu.Lock()
	w.report, w.comparisons = report, comparisons
	w.mu.Unlock()
	return nil
}

var (
	findingDesc = prometheus.NewDesc("weir_quality_finding",
		"1 for each event and signal that has gone wrong by what was usual at this hour of the week. Only what is found is there; events whose names Weir does not know are other.",
		[]string{"event", "signal"}, nil)
	watchingDesc = prometheus.NewDesc("weir_quality_watching",
		"1 while events are compared with those of the weeks before, 0 while too little is known of these or of the last half hour.", nil, nil)
	ordersDesc = prometheus.NewDesc("weir_quality_orders",
		"Orders of the day that was compared last: missing are those of a shop that are not stored, different those with another amount, extra the purchases stored that the shop does not have.",
		[]string{"source", "kind"}, nil)
)

// Describe implements [prometheus.Collector].
func (w *watch) Describe(descs chan<- *prometheus.Desc) {
	descs <- findingDesc
	descs <- watchingDesc
	descs <- ordersDesc
}

// Collect implements [prometheus.Collector].
func (w *watch) Collect(metrics chan<- prometheus.Metric) {
	report, found := w.Quality()
	metrics <- prometheus.MustNewConstMetric(watchingDesc, prometheus.GaugeValue, truth(found && report.State == quality.Watching))
	if !found {
		return
	}
	comparisons := w.Orders()
	for i := range comparisons {
		for kind, list := range map[string]*stream.OrderList{"missing": &comparisons[i].Missing, "different": &comparisons[i].Different, "extra": &comparisons[i].Extra} {
			metrics <- prometheus.MustNewConstMetric(ordersDesc, prometheus.GaugeValue, float64(list.Count), comparisons[i].Source, kind)
		}
	}
	seen := map[[2]string]bool{}
	for i := range report.Findings {
		labels := [2]string{eventLabel(report.Findings[i].Event), string(report.Findings[i].Signal)}
		if !seen[labels] {
			metrics <- prometheus.MustNewConstMetric(findingDesc, prometheus.GaugeValue, 1, labels[0], labels[1])
		}
		seen[labels] = true
	}
}

// otherEvent is the label of all events whose names Weir does not know. Names are senders' own, and labels come from closed lists: the
// read API says which event it is.
const otherEvent = "other"

// eventLabel is an event's name as metrics have it.
func eventLabel(event string) string {
	if event != "" && quality.WellKnown(event) {
		return event
	}
	return otherEvent
}
