package deliver

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/platform"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// maxTaken bounds how many events are taken from Redis at once.
	maxTaken = 1000
	// shrinking is what the batches of events that were attempted before are divided by with every attempt, so that the
	// one for whose sake the platform fails is soon alone.
	shrinking = 4
)

// lane delivers a property's events to one platform. Lanes share nothing but the Redis connection, so that
// one platform never slows another. Three goroutines take events: the worker new ones, the retrier due ones,
// the reclaimer those of deliverers that died. Each hands what it took to dispatch.
type lane struct {
	cfg      config.Platform
	platform *platform.Platform
	stream   *stream.Stream
	consumer string
	client   *client
	gate     *gate
	settler  *settler
	metrics  *Metrics
	tracing  tracing
	logger   *slog.Logger
	// now is the clock by which events are dated, wall that of this process, which platforms are told.
	now, wall func() time.Time
	timing    timing

	// slots bounds the requests that are under way.
	slots *slots
	// sends counts the requests that are under way.
	sends sync.WaitGroup
	// resume is the newest of the events that a process of our name may have left claimed when it was killed; 0
	// where none can have.
	resume stream.Position
	// troubles counts the failures in a row to take events from Redis.
	troubles atomic.Int32
	// latestRetry is when the last of the retries that this lane has scheduled is due, in Unix milliseconds.
	latestRetry atomic.Int64
	// unsent says that events which were put back without having been sent may wait.
	unsent atomic.Bool

	mu sync.Mutex
	// held are the events that this lane is busy with, so that the reclaimer leaves them alone.
	held map[stream.Position]struct{}

	// restoring lets one at a time make the group; restored is when that was done last, restores how often in a row.
	restoring sync.Mutex
	restored  time.Time
	restores  int
}

// parcel is an event on its way to the platform.
type parcel struct {
	position stream.Position
	// kind says whether a request was made with it; attempts counts those that count.
	kind     share
	attempts int
	payload  platform.Payload
}

// grant is the permission to make n requests with events of a kind.
type grant struct {
	kind share
	n    int
}

// acquire waits for slots, as many as it makes sense to take events for, or for one. It returns none when the context
// has ended.
func (l *lane) acquire(ctx context.Context, p pass, kind share, single bool) grant {
	most := max(1, maxTaken/l.platform.Limits.Events)
	if p.probe || single {
		most = 1
	}
	return grant{kind, l.slots.acquire(ctx, kind, most)}
}

func (l *lane) release(g grant) { l.slots.release(g.kind, g.n) }

// count is how many events to take with a grant; one makes a probe.
func (l *lane) count(p pass, g grant) int {
	if p.probe {
		return 1
	}
	return min(g.n*l.platform.Limits.Events, maxTaken)
}

// dispatch maps what was taken of a kind, settles what needs no request and sends the rest in batches. It owns the grant
// and the pass, and returns when the last batch is under way.
func (l *lane) dispatch(sending context.Context, p pass, g grant, kind share, deliveries []stream.Delivery) {
	parcels, decided := l.accept(kind, deliveries)
	if decided.len() > 0 {
		l.sends.Add(1)
		l.settle(decided, l.sends.Done)
	}
	batches := split(parcels, l.platform.Limits)
	if len(batches) == 0 {
		l.gate.giveBack(p)
	}
	for _, batch := range batches {
		if g.n == 0 {
			g.n = l.slots.acquire(context.WithoutCancel(sending), g.kind, 1) // one comes free: every request ends in bounded time
		}
		g.n--
		l.sends.Go(func() {
			slot, written := l.slots.occupy(g.kind, l.timing.slow, l.gate.takenSince), make(chan struct{})
			all := l.deliver(sending, p, batch)
			slot.end()
			l.settle(all, func() { close(written) })
			<-written
			slot.release()
		})
	}
	l.release(g)
}

// accept parts deliveries into those to send and those whose outcome is clear.
func (l *lane) accept(kind share, deliveries []stream.Delivery) ([]parcel, outcomes) {
	parcels := make([]parcel, 0, len(deliveries))
	var decided outcomes
	for _, delivery := range deliveries {
		if !l.hold(delivery.Position) {
			continue // a request with it is under way
		}
		p, verdict, named := l.prepare(kind, delivery)
		switch {
		case !named:
			decided.passed = append(decided.passed, delivery.Position)
		case verdict.Class == platform.Undecided:
			parcels = append(parcels, p)
		default:
			decided.settled = append(decided.settled, l.settlement(p, verdict, 0))
		}
	}
	return parcels, decided
}

// prepare decodes and maps an event. It says whether the event names this platform; the others are passed over.
func (l *lane) prepare(kind share, delivery stream.Delivery) (parcel, platform.Verdict, bool) {
	p := parcel{position: delivery.Position, kind: kind, attempts: delivery.Attempts}
	e, err := event.DecodeEntry(delivery.Data)
	if err != nil {
		l.logger.Error("an entry of the stream cannot be read", "position", delivery.Position.String(), "error", err)
		return p, platform.Verdict{Class: platform.Permanent, Reason: "undecodable"}, true
	}
	if !slices.Contains(e.Platforms, l.cfg.Name) {
		return p, platform.Verdict{}, false
	}
	var verdict platform.Verdict
	p.payload, verdict = l.platform.Map(&platform.Event{
		Event: e, ReceivedAt: delivery.Position.Time(), ReplayedAt: delivery.Replayed,
	})
	if verdict.Class == platform.Undecided && !l.now().Before(p.payload.Expires) {
		verdict = platform.Verdict{Class: platform.Expired, Reason: "too_old"}
	}
	return p, verdict, true
}

// split parts parcels into batches within the limits, those that were attempted more often into smaller ones.
func split(parcels []parcel, limits platform.Limits) [][]parcel {
	slices.SortStableFunc(parcels, func(a, b parcel) int { return cmp.Compare(a.attempts, b.attempts) })
	var batches [][]parcel
	start, size := 0, 0
	for i, p := range parcels {
		full := i-start >= room(limits.Events, p.attempts) || (limits.Bytes > 0 && size+len(p.payload.Body) > limits.Bytes)
		if i > start && full {
			batches = append(batches, parcels[start:i])
			start, size = i, 0
		}
		size += len(p.payload.Body)
	}
	if start < len(parcels) {
		batches = append(batches, parcels[start:])
	}
	return batches
}

// room is how many events a request may carry after so many attempts with one of them.
func room(most, attempts int) int {
	for ; attempts > 0 && most > 1; attempts-- {
		most /= shrinking
	}
	return max(1, most)
}

// hold marks an event as being worked on; false means that it is already.
func (l *lane) hold(position stream.Position) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, busy := l.held[position]; busy {
		return false
	}
	l.held[position] = struct{}{}
	return true
}

// settle hands outcomes to the settler and lets go of their events when they are written.
func (l *lane) settle(all outcomes, written func()) {
	l.settler.queue <- settling{all, func() {
		l.mu.Lock()
		all.each(func(position stream.Position) { delete(l.held, position) })
		l.mu.Unlock()
		if len(all.unsent) > 0 {
			l.unsent.Store(true)
		}
		written()
	}}
}
