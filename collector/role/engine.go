package role

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/query"
	"github.com/weir-dev/weir/collector/stream"
)

// engine is what answers a property's questions: its view in memory, or its history on disk.
type engine struct {
	query.Engine
	events  query.EventReader
	records query.RecordReader
	// view is nil where the history answers, history where the view does.
	view    *analytics.View
	history *historyEngine
}

// openEngines makes the engine that answers the property's questions, and its metrics.
func (p *property) openEngines(registerer prometheus.Registerer) (err error) {
	if p.historyMetrics, err = newHistoryMetrics(registerer); err != nil {
		return err
	}
	first, err := p.newEngine(&p.settings)
	if err != nil {
		return err
	}
	p.engines = newEngines(first)
	return errors.Join(watchView(p.engines, registerer), watchHistory(p.engines, registerer))
}

// newEngine makes the engine that settings ask for.
func (p *property) newEngine(s *settings) (*engine, error) {
	if s.history == nil {
		view := analytics.NewView(analytics.Options{
			Property: p.String(), Currency: p.config.Currency, Logger: p.options.Logger, Budget: p.options.views.budget, MaxBytes: p.options.views.maxBytes,
			Erased: p.ledger.Erased,
		})
		return &engine{Engine: view, view: view, events: query.StreamEvents{Stream: p.reading}, records: query.StreamRecords{Stream: p.stream}}, nil
	}
	history, err := newHistoryEngine(p, s)
	if err != nil {
		return nil, err
	}
	return &engine{Engine: history, history: history, events: history, records: history}, nil
}

// changeEngine has the engine answer that settings ask for, where that is another one.
func (p *property) changeEngine(s *settings) error {
	current, latest := p.engines.now(), p.engines.latest()
	if (s.history == nil) != (latest.history == nil) {
		if (s.history == nil) == (current.history == nil) {
			p.engines.replace(nil) // it has been taken back
			latest = current
		} else {
			next, err := p.newEngine(s)
			if err == nil {
				p.engines.replace(next)
			}
			return err
		}
	}
	if s.history == nil {
		return nil
	}
	return latest.history.change(s)
}

// follow keeps the engine up to date until ctx ends. Nothing gets into a view before it is known who has been erased.
func (e *engine) follow(ctx context.Context, p *property) error {
	if p.ledger.await(ctx) != nil {
		return nil
	}
	if e.history != nil {
		e.history.follow(ctx)
		return nil
	}
	err := e.view.Follow(ctx, p.reading)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// String says where its answers come from.
func (e *engine) String() string {
	if e.history != nil {
		return "history"
	}
	return "view"
}

// ready says why the engine does not answer yet; nil where it does.
func (e *engine) ready() error {
	if e.history != nil {
		return e.history.ready()
	}
	if !e.view.Status(context.Background()).Ready {
		return errReplaying
	}
	return nil
}

// reach implements [query.Reach]: with a history it is that which has the oldest events, without one the stream.
type reach struct {
	*engine
	stream *stream.Stream
}

// Earliest implements [query.Reach].
func (r reach) Earliest(ctx context.Context) (time.Time, error) {
	if r.history != nil {
		now := time.Now()
		found, err := r.history.Summary(ctx, analytics.Range{From: now, To: now}, nil)
		return found.CompleteFrom, err
	}
	if r.view.Status(ctx).CompleteFrom.IsZero() {
		return time.Time{}, nil // nothing has left the stream
	}
	// The view may have fewer events than the stream, where its memory does not suffice.
	bounds, err := r.stream.Bounds(ctx)
	if bounds.First == 0 {
		return bounds.Newest.Time(), err
	}
	return bounds.First.Time(), err
}

// engines are the engine that answers a property's questions and, where another one is to, that one until it is ready: the one before
// goes on answering meanwhile. So neither a history that is being filled nor a view that is being replayed keeps anybody from
// numbers.
type engines struct {
	mu      sync.Mutex
	current *engine
	next    *engine
	// changed has something in it after next has.
	changed chan struct{}
}

// engineInterval is how often the next engine is asked whether it is ready.
const engineInterval = 50 * time.Millisecond

func newEngines(first *engine) *engines {
	return &engines{current: first, changed: make(chan struct{}, 1)}
}

// now returns the engine that answers.
func (e *engines) now() *engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current
}

// latest returns the engine that is to answer in the end.
func (e *engines) latest() *engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next != nil {
		return e.next
	}
	return e.current
}

// replace has another engine answer as soon as it is ready.
func (e *engines) replace(next *engine) {
	e.mu.Lock()
	e.next = next
	e.mu.Unlock()
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// keep keeps the engines up to date until ctx ends. It calls answers after another one answers.
func (e *engines) keep(ctx context.Context, p *property, answers func()) error {
	following, ctx := errgroup.WithContext(ctx)
	start := func(engine *engine) context.CancelFunc {
		running, stop := context.WithCancel(ctx)
		following.Go(func() error { return engine.follow(running, p) })
		return stop
	}
	stopCurrent, stopNext := start(e.now()), context.CancelFunc(func() {})
	var started *engine // of next
	ticker := time.NewTicker(engineInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			stopCurrent()
			stopNext()
			return following.Wait()
		case <-e.changed:
		case <-ticker.C:
			if started == nil {
				continue
			}
		}
		switch next := e.pending(); {
		case next != started:
			stopNext()
			if started = next; next != nil {
				stopNext = start(next)
			}
		case next != nil && e.takeOver(next):
			stopCurrent()
			stopCurrent, stopNext, started = stopNext, func() {}, nil
			answers()
		}
	}
}

// pending returns the engine that is to answer as soon as it is ready; nil for none.
func (e *engines) pending() *engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.next
}

// takeOver has the next engine answer, where it is that one still and is ready. A history that was off for a while has to have caught
// up: what answers has more.
func (e *engines) takeOver(next *engine) bool {
	current := e.now()
	if next.ready() != nil || next.history != nil && current.ready() == nil && !next.history.fresh() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next != next {
		return false
	}
	e.current, e.next = next, nil
	return true
}
