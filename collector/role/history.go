package role

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/query"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// stateInterval is how often the archive's state is read, and a history that is away asked whether it is back.
	stateInterval = 500 * time.Millisecond
	// stateTimeout is how long Redis and ClickHouse may take to answer that.
	stateTimeout = 5 * time.Second
	// tryInterval is how often one that answers is asked whether it still does, tryTimeout how long it may take to say so.
	tryInterval, tryTimeout = 2 * time.Second, 3 * time.Second
	// freshWithin is how old a history may be that takes over from a view which has everything.
	freshWithin = 30 * time.Second
	// statementBytes is how much of ClickHouse's memory one statement may take. What does not fit is sorted and grouped on its disk.
	statementBytes = 1 << 30
	// eventsAtOnce is how many whole events are read at once.
	eventsAtOnce = 300
)

// errUnreached, errReplaying and errFilling say why a property's questions are not answered yet.
var (
	errReplaying = errors.New("still replaying the stream")
	errUnreached = errors.New("ClickHouse has not been reached yet")
	errFilling   = errors.New("the events are still being copied to the history")
)

// historyEngine answers a property's questions from its history. It has no memory of events: what it knows itself is how far the
// archive has come, and from when on events are somebody's. It is made again by no change of how ClickHouse is reached.
type historyEngine struct {
	property, currency string
	stream             archived
	logger             *slog.Logger
	metrics            *historyMetrics

	// days is for how many days events are kept, identifiersDays for how many it is told whose they are; 0 for as long as the event.
	days, identifiersDays atomic.Int64
	// asked is what questions are asked of at the moment.
	asked atomic.Pointer[dialled]
	// current is the time up to which the history is known to have everything that was accepted; zero before it ever had. oldest is the
	// position before which none are kept, anonymous that before which they are nobody's.
	current           atomic.Pointer[time.Time]
	oldest, anonymous atomic.Uint64
	// tried is when the history was tried last; it is follow's alone.
	tried time.Time

	mu sync.Mutex
	// reached says that the history has answered, away that its last answer was none.
	reached, away bool
}

// archived is a property's stream, as far as it tells of its history.
type archived interface {
	ArchiveState(ctx context.Context) (stream.ArchiveState, error)
	Dropped(ctx context.Context) (stream.Dropped, error)
	// Now is the time that is believed.
	Now(ctx context.Context) (time.Time, error)
}

// dialled is one way to reach the history.
type dialled struct {
	how    config.ClickHouse
	client *clickhouse.Client
	engine *history.Engine
}

// newHistoryEngine prepares an engine for a property. It asks nothing before it is followed.
func newHistoryEngine(p *property, s *settings) (*historyEngine, error) {
	h := &historyEngine{
		property: p.String(), currency: p.config.Currency, stream: p.stream,
		logger: p.options.Logger.With("property", p.String()), metrics: p.historyMetrics,
	}
	h.current.Store(&time.Time{})
	return h, h.change(s)
}

// change has the engine go by settings from now on.
func (h *historyEngine) change(s *settings) error {
	days, identifiersDays := keptFor(&s.config)
	h.days.Store(int64(days))
	h.identifiersDays.Store(int64(identifiersDays))
	return h.reach(*s.history)
}

// reach has questions asked of the history in another way from now on, as after its password has changed. Those that are being
// answered are answered.
func (h *historyEngine) reach(how config.ClickHouse) error {
	before := h.asked.Load()
	if before != nil && before.how == how {
		return nil
	}
	client, err := clickhouse.Dial(how.URL, clickhouse.Options{TLS: how.TLS, Settings: schema.Cluster(how.Cluster).Settings()})
	if err != nil {
		return err
	}
	h.asked.Store(&dialled{how, client, history.New(history.Options{
		Client: client, Currency: h.currency, MaxBytes: statementBytes, Anonymous: func() stream.Position { return stream.Position(h.anonymous.Load()) },
		Oldest: func() stream.Position { return stream.Position(h.oldest.Load()) },
	})})
	if before != nil {
		before.client.Close()
	}
	return nil
}

// follow looks how far the archive has come, and whether a history that is away is back, until ctx ends.
func (h *historyEngine) follow(ctx context.Context) {
	ticker := time.NewTicker(stateInterval)
	defer ticker.Stop()
	defer func() { h.asked.Load().client.Close() }()
	for {
		h.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look does that once. A Redis that is away lets what is known stand: others say so.
func (h *historyEngine) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	h.try(ctx)
	h.readLimits(ctx)
	if state, err := h.stream.ArchiveState(ctx); err == nil && !state.Current.IsZero() {
		h.current.Store(&state.Current)
	}
}

// readLimits reads from when on there are events, and from when on they are somebody's. What has become nobody's stays so.
func (h *historyEngine) readLimits(ctx context.Context) {
	now, err := h.stream.Now(ctx)
	if err != nil {
		return
	}
	dropped, err := h.stream.Dropped(ctx)
	if err != nil {
		return
	}
	limits := limitsAt(now, dropped, func() (days, identifiersDays int) { return int(h.days.Load()), int(h.identifiersDays.Load()) })
	h.oldest.Store(uint64(limits.Oldest))
	h.anonymous.Store(max(h.anonymous.Load(), uint64(limits.Anonymous)))
}

// try asks one that is away, or was never reached, something small, of each table; and now and then one that answers whether it
// still does: who asks one that hangs would wait for as long as a question may take.
func (h *historyEngine) try(ctx context.Context) {
	answers := h.answers()
	if answers && time.Since(h.tried) < tryInterval {
		return
	}
	h.tried = time.Now()
	asking, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	asked := h.asked.Load()
	err := asked.client.Ping(asking)
	if err == nil && !answers {
		now := time.Now()
		_, err = asked.engine.Summary(asking, analytics.Range{From: now, To: now}, nil)
	}
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		err = &clickhouse.Problem{Kind: clickhouse.Unreachable, Message: "it does not answer in time"}
	}
	h.noticed(ctx, err)
}

// isAway says whether the history has answered once and did not when it was asked last.
func (h *historyEngine) isAway() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.away
}

// answers says whether the history answered when it was asked last.
func (h *historyEngine) answers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reached && !h.away
}

// ready says why questions are not answered yet; nil where they are. A history that has been reached once stays ready: all pods lose it
// at the same time, and callers are to be told so rather than by a balancer.
func (h *historyEngine) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.reached:
		return errUnreached
	case h.current.Load().IsZero():
		return errFilling
	default:
		return nil
	}
}

// fresh says whether the history has everything but what was accepted a moment ago.
func (h *historyEngine) fresh() bool { return time.Since(*h.current.Load()) < freshWithin }

// noticed notes what a question was answered with. That the history is away, and that it is back, is logged once each.
func (h *historyEngine) noticed(ctx context.Context, err error) {
	unavailable := isUnavailable(err)
	if err != nil && !unavailable && !isAnswer(err) {
		return // which says nothing of the history
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case unavailable && !h.away:
		h.logger.WarnContext(ctx, "the history cannot be read; questions are answered with 503 until it can", "error", err)
	case !unavailable && h.away:
		h.logger.InfoContext(ctx, "the history can be read again")
	}
	h.away = unavailable
	h.reached = h.reached || !unavailable
}

// isUnavailable says whether an error is that of a history that is away, or cannot be used.
func isUnavailable(err error) bool {
	return errors.As(err, new(*clickhouse.Problem)) && !isAnswer(err)
}

// isAnswer says whether an error is one of a server that works.
func isAnswer(err error) bool {
	return errors.Is(err, clickhouse.MemoryLimit) || errors.Is(err, clickhouse.Quota) || errors.Is(err, clickhouse.Timeout)
}

// Status implements [query.Engine]. What was accepted up to AsOf is in the answers.
func (h *historyEngine) Status(context.Context) analytics.Status {
	current := *h.current.Load()
	s := analytics.Status{Ready: h.ready() == nil, Connected: h.answers(), CurrentAt: current}
	if !current.IsZero() {
		s.AsOf = current.Add(-time.Millisecond) // of the millisecond itself something may be missing
		s.Last = stream.At(s.AsOf)
	}
	return s
}

// Summary implements [query.Engine].
func (h *historyEngine) Summary(ctx context.Context, r analytics.Range, filter analytics.Filter) (analytics.Summary, error) {
	return ask(ctx, h, "summary", func(e *history.Engine) (analytics.Summary, error) { return e.Summary(ctx, r, filter) })
}

// Series implements [query.Engine].
func (h *historyEngine) Series(ctx context.Context, ranges []analytics.Range, filter analytics.Filter) (analytics.Series, error) {
	return ask(ctx, h, "series", func(e *history.Engine) (analytics.Series, error) { return e.Series(ctx, ranges, filter) })
}

// Breakdown implements [query.Engine].
func (h *historyEngine) Breakdown(ctx context.Context, q analytics.BreakdownQuery) (analytics.Breakdown, error) {
	return ask(ctx, h, "breakdown", func(e *history.Engine) (analytics.Breakdown, error) { return e.Breakdown(ctx, q) })
}

// EventStats implements [query.Engine].
func (h *historyEngine) EventStats(ctx context.Context, q analytics.StatsQuery) (analytics.Stats, error) {
	return ask(ctx, h, "event_stats", func(e *history.Engine) (analytics.Stats, error) { return e.EventStats(ctx, q) })
}

// Deliveries implements [query.Engine].
func (h *historyEngine) Deliveries(ctx context.Context, q analytics.DeliveriesQuery) (analytics.Deliveries, error) {
	return ask(ctx, h, "deliveries", func(e *history.Engine) (analytics.Deliveries, error) { return e.Deliveries(ctx, q) })
}

// Funnel implements [query.Engine].
func (h *historyEngine) Funnel(ctx context.Context, q analytics.FunnelQuery) (analytics.Funnel, error) {
	return ask(ctx, h, "funnel", func(e *history.Engine) (analytics.Funnel, error) { return e.Funnel(ctx, q) })
}

// Attribution implements [query.Engine].
func (h *historyEngine) Attribution(ctx context.Context, q analytics.AttributionQuery) (analytics.Attribution, error) {
	return ask(ctx, h, "attribution", func(e *history.Engine) (analytics.Attribution, error) { return e.Attribution(ctx, q) })
}

// Listing implements [query.Engine].
func (h *historyEngine) Listing(ctx context.Context, q analytics.ListingQuery) (analytics.Page, error) {
	return ask(ctx, h, "listing", func(e *history.Engine) (analytics.Page, error) { return e.Listing(ctx, q) })
}

// EventsAt implements [query.EventReader].
func (h *historyEngine) EventsAt(ctx context.Context, positions []stream.Position) ([]*event.Event, error) {
	return ask(ctx, h, "events", func(e *history.Engine) ([]*event.Event, error) { return query.EventsAt(ctx, e, positions) })
}

// AtOnce implements [query.EventReader].
func (h *historyEngine) AtOnce() int { return eventsAtOnce }

// RecordsOf implements [query.RecordReader].
func (h *historyEngine) RecordsOf(ctx context.Context, of *analytics.Record) ([]stream.Record, error) {
	return ask(ctx, h, "records", func(e *history.Engine) ([]stream.Record, error) { return e.Attempts(ctx, of) })
}

// ask asks the history a question of a kind.
func ask[A any](ctx context.Context, h *historyEngine, kind string, question func(*history.Engine) (A, error)) (A, error) {
	began := time.Now()
	if h.isAway() {
		return *new(A), analytics.ErrUnavailable
	}
	answer, err := question(h.asked.Load().engine)
	h.metrics.observe(kind, time.Since(began), err)
	h.noticed(ctx, err)
	return answer, err
}
