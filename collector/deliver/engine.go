// Package deliver hands a property's events to its platforms: at least once, with the same identifiers on
// every attempt, and writes what became of each.
//
// Each platform has a worker for new events, a retrier for due ones and a reclaimer for those of deliverers that died. They
// take events from the platform's [queue] and hand them to its [sender], which asks the circuit [breaker] and the concurrency
// [limiter], makes the requests and has the [settler] write what the [scheduler] makes of the answers. Platforms share
// nothing but the connection to Redis, so that one never slows another.
//
// An [Engine] starts by making sure of the platforms' consumer groups, then the settlers, then those that take events; it
// stops in the reverse order: nothing is taken any more, requests under way end, outcomes are written.
package deliver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// Options are what an [Engine] needs. All but Past, Ledger, Now and DrainTimeout are required.
type Options struct {
	// Stream is the property's.
	Stream *stream.Stream
	// Property is the configuration; for another one, stop the engine and run a new one.
	Property config.Property
	// Credentials returns the keys of a platform's Secret. It is asked at the start and, for a platform that
	// cannot be opened with what it returned, again from time to time.
	Credentials func(platform string) (map[string]string, error)
	// Consumer tells this deliverer from the property's other ones, and should be the same after a restart.
	Consumer string
	// Resume says that no other engine of this Consumer runs or ends: what it holds in Redis was left by a process
	// that was killed, and is sent again at once.
	Resume bool
	// Changed says that an engine of another configuration, or with other credentials, ran before this one: events that
	// wait for another attempt are tried soon.
	Changed bool
	// Past is the property's history; nil where it has none, or where that is not reached from here.
	Past Past
	// Ledger says who has been erased. Nobody is, where it is nil.
	Ledger Ledger
	// Audit is told which erasures are done; nil for none.
	Audit *audit.Log
	// Metrics are shared with the engines before and after.
	Metrics *Metrics
	// Logger gets the lines of the Log platform too.
	Logger *slog.Logger
	// Tracing takes a span for each request to a platform; nil for none.
	Tracing trace.TracerProvider
	// Now is this process's clock; time.Now where nil. Events are dated by another one, [stream.Clock].
	Now func() time.Time
	// DrainTimeout is how long requests under way may take to end when the engine stops; 25 s where 0.
	DrainTimeout time.Duration
}

// reasonUnusable is why a platform is paused whose configuration or Secret does not suffice to open it.
const reasonUnusable = "misconfigured"

// timing holds the engine's intervals.
type timing struct {
	// backoff is between an event's attempts, breaker for how long a circuit is open.
	backoff, breaker backoff
	// request bounds an HTTP exchange, the body included.
	request time.Duration
	// slow is how long a request may take before others need not wait for it.
	slow time.Duration
	// block is how long to wait for new events before looking around.
	block time.Duration
	// poll is how often to look for due events while some are known to wait, idlePoll while none are.
	poll, idlePoll time.Duration
	// lease is for how long a due event belongs to the deliverer that took it.
	lease time.Duration
	// pendingIdle is the age at which a pending entry counts as abandoned, reclaim how often to look for such.
	pendingIdle, reclaim time.Duration
	// replay is how often to look for requests for replays and for test events.
	replay time.Duration
	// erase is how often to look for persons who are to be erased, eraseGrace for how long collectors must have had the time to
	// learn of them, and erasePatience for how long to wait for another that erases, or for whoever keeps the ledger.
	erase, eraseGrace, erasePatience time.Duration
	// forward bounds a request that has persons erased at a platform, and forwardPass all of these to one platform on one way
	// through the events.
	forward, forwardPass time.Duration
	// past is after how long what a replay has put back from the history is due again where that did not answer.
	past time.Duration
	// trim is how often the streams are trimmed.
	trim time.Duration
	// lag is how often it is measured what platforms still have to be handed.
	lag time.Duration
	// redis is between attempts while Redis fails.
	redis backoff
	// reopen is the wait before a platform's credentials are read again.
	reopen time.Duration
	// removal is for how long events are still taken from a removed platform's group, because collectors learn
	// of the removal later than the deliverer; removalPoll is how often.
	removal, removalPoll time.Duration
	// flush is after how long an event is in a file, for tests; 0 leaves that to the platform's settings.
	flush time.Duration
	// settle is how long the last outcomes may take to be written once the requests have ended.
	settle time.Duration
}

func defaultTiming() timing {
	return timing{
		backoff:     backoff{unit: time.Second, cap: 10 * time.Minute, floor: 200 * time.Millisecond},
		breaker:     backoff{unit: time.Second, cap: 10 * time.Minute, floor: 200 * time.Millisecond},
		request:     30 * time.Second,
		slow:        2 * time.Second,
		block:       time.Second,
		poll:        100 * time.Millisecond,
		idlePoll:    3 * time.Second,
		lease:       45 * time.Second,
		pendingIdle: 45 * time.Second,
		reclaim:     15 * time.Second,
		replay:      time.Second,
		erase:       time.Second, eraseGrace: 3 * time.Second, erasePatience: 30 * time.Second,
		forward: 5 * time.Second, forwardPass: 15 * time.Second,
		past:        15 * time.Second,
		trim:        time.Minute,
		lag:         5 * time.Second,
		redis:       backoff{unit: 500 * time.Millisecond, cap: 15 * time.Second, floor: 100 * time.Millisecond},
		reopen:      15 * time.Second,
		removal:     2 * time.Minute,
		removalPoll: 10 * time.Second,
		settle:      5 * time.Second,
	}
}

// Engine delivers one property's events. It runs once.
type Engine struct {
	options Options
	timing  timing
	client  *client
	// clock is the one by which events are dated; see [stream.Clock]. monotonic is for it.
	clock     *stream.Clock
	monotonic func() time.Duration
	// clockRefused says that Redis's clock was not believed when it was looked at last.
	clockRefused bool
	// looking is held during a look at the clock, so that a test may turn all clocks between two of them.
	looking sync.Mutex
	// batch replaces how many events the platforms take a request, for measurements; 0 leaves them their own.
	batch int
}

// New makes an engine; [Engine.Run] starts it.
func New(options Options) *Engine {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.DrainTimeout == 0 {
		options.DrainTimeout = 25 * time.Second
	}
	started := time.Now()
	return &Engine{options: options, timing: defaultTiming(), monotonic: func() time.Duration { return time.Since(started) }}
}

// Run delivers until the context ends, then lets requests under way end (at most for DrainTimeout; those that
// take longer are cut off and count as attempts) and writes their outcomes. A failing Redis or platform does
// not end it: it goes on trying. It fails only where a required option is missing.
func (e *Engine) Run(taking context.Context) error {
	o := &e.options
	if o.Stream == nil || o.Credentials == nil || o.Consumer == "" || o.Metrics == nil || o.Logger == nil {
		return errors.New("deliver: Stream, Credentials, Consumer, Metrics and Logger must be set")
	}
	o.Stream = o.Stream.Opening(wire.Device, wire.Identity)
	e.client = newClient(e.options.Property.Egress, e.timing.request, e.options.Now)
	defer e.client.close()
	e.clock = stream.NewClock(e.options.Stream, e.options.Now, e.monotonic)
	if !e.awaitClock(taking) {
		return nil
	}
	var platforms sync.WaitGroup
	for _, cfg := range e.options.Property.Platforms {
		o.Metrics.speaks(cfg.Name, cfg.Type.Version(cfg.APIVersion))
		if cfg.Suspend {
			platforms.Go(func() { e.suspended(taking, cfg) })
			continue
		}
		platforms.Go(func() { e.serve(taking, cfg) })
	}
	platforms.Go(func() { e.remove(taking) })
	platforms.Go(func() { e.trim(taking) })
	platforms.Go(func() { e.measureLag(taking) })
	platforms.Go(func() { e.answerReplays(taking) })
	platforms.Go(func() { e.answerTests(taking) })
	if e.options.Ledger != nil {
		platforms.Go(func() { e.eraser().run(taking) })
	}
	platforms.Wait()
	return nil
}

// suspended makes sure of the platform's group, so that its events wait for it, and does nothing else. Whatever it was paused for
// before is nobody's concern meanwhile.
func (e *Engine) suspended(taking context.Context, cfg platforms.Platform) {
	logger := e.options.Logger.With("platform", cfg.Name)
	logger.Info("platform suspended; its events wait")
	e.options.Metrics.pauses(cfg.Name, e.options.Now)
	e.group(cfg, logger).await(taking)
}

// serve delivers to one platform until taking ends.
func (e *Engine) serve(taking context.Context, cfg platforms.Platform) {
	logger := e.options.Logger.With("platform", cfg.Name)
	group := e.group(cfg, logger)
	if !group.await(taking) {
		return
	}
	own, ok := e.pendingOwn(taking, group)
	if !ok {
		return
	}
	pauses := e.options.Metrics.pauses(cfg.Name, e.options.Now)
	defer context.AfterFunc(taking, pauses.retire)()
	opened := e.open(taking, cfg, pauses)
	if opened == nil {
		return
	}
	if _, ok := opened.Bucket(); ok {
		e.writeLake(taking, cfg, opened, group, pauses)
		return
	}
	if e.batch > 0 {
		opened.Limits.Events = e.batch
	}
	s := e.sender(cfg, opened, e.queue(cfg, logger), group, pauses, logger)
	workers := []interface {
		run(taking, sending context.Context)
	}{
		&worker{s.queue, group, s, e.timing.block},
		&retrier{s.queue, group, s, e.options.Changed},
		&reclaimer{s.queue, group, s, own, 2 * e.timing.block, e.timing.reclaim, logger},
	}

	alive := context.WithoutCancel(taking)
	sending, cutOff := context.WithCancel(alive)
	defer cutOff()
	writing, giveUp := context.WithCancel(alive)
	defer giveUp()
	var settler, takers sync.WaitGroup
	settler.Go(func() { s.settler.run(writing) })
	for _, w := range workers {
		takers.Go(func() { w.run(taking, sending) })
	}

	<-taking.Done()
	drain := time.AfterFunc(e.options.DrainTimeout, cutOff)
	defer drain.Stop()
	last := time.AfterFunc(e.options.DrainTimeout+e.timing.settle, giveUp)
	defer last.Stop()
	takers.Wait()
	s.requests.Wait()
	close(s.settler.incoming)
	settler.Wait()
}

// pendingOwn returns how far the events reach that a killed process of our name may have been busy with. Nothing must have
// been taken yet. It returns false when taking has ended.
func (e *Engine) pendingOwn(taking context.Context, g *group) (stream.Position, bool) {
	for e.options.Resume {
		groups, err := e.options.Stream.Groups(taking)
		if err == nil {
			i := slices.IndexFunc(groups, func(other stream.Group) bool { return other.Platform == g.platform && other.Pending > 0 })
			if i < 0 {
				return 0, true
			}
			return groups[i].LastDelivered, true
		}
		if !g.recover(taking, err) {
			return 0, false
		}
	}
	return 0, true
}

// open makes the platform of its configuration and credentials. Where they do not suffice it says so once,
// and tries again until they do; nil means that taking has ended.
func (e *Engine) open(taking context.Context, cfg platforms.Platform, pauses *pauseMetrics) *adapter.Platform {
	logger := e.options.Logger.With("platform", cfg.Name)
	for said := ""; ; {
		opened, err := e.opened(cfg)
		if err == nil {
			pauses.resumed()
			return opened
		}
		if said != err.Error() {
			said = err.Error()
			logger.Error("platform cannot be delivered to; its events wait", "error", err)
		}
		what := SecretInvalid
		if errors.Is(err, adapter.ErrConfiguration) {
			what = ConfigurationRejected
		}
		pauses.pausedFor(reasonUnusable, what)
		if !pause(taking, e.timing.reopen) {
			return nil
		}
	}
}

// opened makes the platform once. One in the mode Shadow needs no credentials.
func (e *Engine) opened(cfg platforms.Platform) (*adapter.Platform, error) {
	if cfg.Mode == platforms.Shadow {
		return adapter.OpenShadow(cfg, e.options.Property.Consent.Rule(&cfg))
	}
	return openWith(e.options.Credentials, &e.options.Property, cfg)
}

// openWith makes a platform of a property with the credentials that there are now.
func openWith(credentials func(platform string) (map[string]string, error), property *config.Property, cfg platforms.Platform) (*adapter.Platform, error) {
	given, err := credentials(cfg.Name)
	if err != nil {
		return nil, err
	}
	return adapter.Open(cfg, given, property.Consent.Rule(&cfg))
}

// erased says whether an event is an erased person's.
func (e *Engine) erased(ev *event.Event, position stream.Position) bool {
	return e.options.Ledger != nil && e.options.Ledger.Erased(ev, position.Time())
}

func (e *Engine) group(cfg platforms.Platform, logger *slog.Logger) *group {
	return &group{
		stream: e.options.Stream, platform: cfg.Name, backoff: e.timing.redis, pendingIdle: e.timing.pendingIdle,
		now: e.clock.Now, logger: logger,
	}
}

func (e *Engine) pastOf(platform string, logger *slog.Logger) *pastReader {
	return &pastReader{
		stream: e.options.Stream, platform: platform, past: e.options.Past, kept: e.options.Property.History != nil, pause: e.timing.past, now: e.clock.Now, logger: logger,
	}
}

func (e *Engine) queue(cfg platforms.Platform, logger *slog.Logger) *queue {
	return &queue{
		stream: e.options.Stream, platform: cfg.Name, consumer: e.options.Consumer, timing: e.timing, now: e.clock.Now, logger: logger,
		past:   e.pastOf(cfg.Name, logger),
		active: map[stream.Position]struct{}{},
	}
}

// sender makes what sends a platform's events, with the settler of their outcomes.
func (e *Engine) sender(
	cfg platforms.Platform, opened *adapter.Platform, q *queue, g *group, pauses *pauseMetrics, logger *slog.Logger,
) *sender {
	o, limiter := e.options, newLimiter(opened.Limits.Events)
	var restated *orders
	if restater, ok := opened.Adapter.(adapter.Restater); ok {
		restated = &orders{stream: o.Stream, platform: cfg.Name, restater: restater, logger: logger}
	}
	return &sender{
		shadow:   e.shadower(cfg, opened, logger),
		platform: opened,
		requester: &requester{
			platform: opened, client: e.client, tokens: newTokens(opened.Adapter, e.client.http), tracing: newTracing(o.Tracing, o.Property, cfg),
			count: o.Metrics.attempts.WithLabelValues(cfg.Name), wall: o.Now, logger: logger,
		},
		breaker:   newBreaker(e.timing.breaker, e.timing.slow, o.Now, logger, pauses, limiter),
		limiter:   limiter,
		scheduler: scheduler{e.timing.backoff, e.clock.Now, e.clock.Latest},
		queue:     q,
		settler:   newSettler(q, g, o.Metrics, logger),
		orders:    restated,
		erased:    e.erased,
		slow:      e.timing.slow,
		logger:    logger,
	}
}

// shadower makes what keeps a platform's events in place of sending them, nil where they are sent.
func (e *Engine) shadower(cfg platforms.Platform, opened *adapter.Platform, logger *slog.Logger) *shadower {
	if cfg.Mode != platforms.Shadow {
		return nil
	}
	logger.Info("the platform's mode is Shadow: nothing is sent")
	return &shadower{
		platform: opened, stream: e.options.Stream, name: cfg.Name, age: shadowAge(e.options.Property.Retention),
		now: e.clock.Now, wall: e.options.Now, backoff: e.timing.redis, logger: logger,
	}
}
