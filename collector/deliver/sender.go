package deliver

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// maxTaken bounds how many events are taken from Redis at once.
	maxTaken = 1000
	// isolated is how many parts of a batch that was refused are sent at a time.
	isolated = 8
)

// sender sends a platform's events, as far as the circuit breaker and the limiter allow, and hands what became of them to the
// settler. The worker, the retrier and the reclaimer share it.
type sender struct {
	platform  *adapter.Platform
	requester *requester
	breaker   *breaker
	limiter   *limiter
	scheduler scheduler
	queue     *queue
	settler   *settler
	// orders has refunds restate purchases; nil where the platform takes none so.
	orders *orders
	// shadow keeps what would be sent, where the platform's mode is Shadow; nil where it is sent.
	shadow *shadower
	// erased says whether an event is an erased person's. Nothing of it is sent, and nothing recorded.
	erased func(e *event.Event, position stream.Position) bool
	// slow is how long a request may take before others need not wait for it.
	slow   time.Duration
	logger *slog.Logger
	// requests are those that are under way.
	requests sync.WaitGroup
}

// capacity is the permission to make so many requests with events of a kind.
type capacity struct {
	permit
	requests int
}

// acquire waits until the breaker and the limiter let something of the kind be sent, as much as it makes sense to take events
// for, or one request where single says so. It returns false when the context has ended.
func (s *sender) acquire(ctx context.Context, k kind, single bool) (capacity, bool) {
	p, err := s.breaker.acquire(ctx, k)
	if err != nil {
		return capacity{}, false
	}
	most := max(1, maxTaken/s.platform.Limits.Events)
	if p.probe || single {
		most = 1
	}
	c := capacity{p, s.limiter.acquire(ctx, k, most)}
	if c.requests == 0 {
		s.breaker.release(p)
		return capacity{}, false
	}
	return c, true
}

// release returns capacity that was not used.
func (s *sender) release(c capacity) {
	s.limiter.release(c.kind, c.requests)
	s.breaker.release(c.permit)
}

// events is how many events to take with a capacity; one makes a probe.
func (s *sender) events(c capacity) int {
	if c.probe {
		return 1
	}
	return min(c.requests*s.platform.Limits.Events, maxTaken)
}

// send maps what was taken of a kind, settles what needs no request and sends the rest in batches. It owns the capacity, and
// returns when the last batch is under way.
func (s *sender) send(sending context.Context, c capacity, k kind, deliveries []stream.Delivery) {
	tasks, queued, judged, ignored := s.accept(k, deliveries)
	decided := outcomes{ignored: ignored}
	if s.shadow == nil {
		var others outcomes
		tasks, others = s.orders.settle(sending, s.scheduler, tasks)
		decided.add(others)
	} else {
		tasks, judged = nothingSent(tasks, queued, judged)
		queued = nil
		decided.add(s.pretend(sending, tasks, judged))
		tasks = nil
	}
	for _, t := range judged {
		decided.settled = append(decided.settled, s.scheduler.settlement(t, t.verdict, 0))
	}
	if decided.len() > 0 {
		s.requests.Add(1)
		s.settler.settle(decided, s.requests.Done)
	}
	batches, looks := split(tasks, s.platform.Limits), byTicket(queued)
	if len(batches)+len(looks) == 0 {
		s.breaker.release(c.permit)
	}
	for i, batch := range slices.Concat(batches, looks) {
		send := s.deliver
		if i >= len(batches) {
			send = s.look
		}
		if c.requests == 0 {
			// One comes free: every request ends in bounded time.
			c.requests = s.limiter.acquire(context.WithoutCancel(sending), c.kind, 1)
		}
		c.requests--
		s.requests.Go(func() {
			request, written := s.limiter.begin(c.kind, s.slow, s.breaker.succeededSince), make(chan struct{})
			all := send(sending, c.permit, batch)
			request.answer()
			s.settler.settle(all, func() { close(written) })
			<-written
			request.release()
		})
	}
	s.limiter.release(c.kind, c.requests)
}

// nothingSent has a platform in the mode Shadow not be asked about anything: what it has queued before that is not looked after,
// and there is no purchase that a refund could change.
func nothingSent(tasks, queued, judged []task) (send, decided []task) {
	for _, t := range queued {
		t.verdict = adapter.Verdict{Class: adapter.Permanent, Reason: "status_unknown"}
		judged = append(judged, t)
	}
	for _, t := range tasks {
		if order := t.payload.Order; order != nil && order.Refund {
			t.verdict = adapter.Skip("transaction_unknown")
			judged = append(judged, t)
			continue
		}
		send = append(send, t)
	}
	return send, judged
}

// pretend keeps what would be sent for a look, and returns what becomes of it: it is skipped, or put back where it cannot be kept.
func (s *sender) pretend(sending context.Context, tasks, judged []task) outcomes {
	if !s.shadow.keep(sending, tasks, judged, func(t task) bool { return s.erased(t.event, t.position) }) {
		return s.scheduler.postpone(tasks, 0)
	}
	var all outcomes
	for _, t := range tasks {
		all.settled = append(all.settled, s.scheduler.settlement(t, adapter.Skip(stream.ReasonShadow), 0))
	}
	return all
}

// accept parts deliveries into those to send, those that the platform has queued, those whose verdict is clear, and those that are none
// of the platform's.
func (s *sender) accept(k kind, deliveries []stream.Delivery) (tasks, queued, judged []task, ignored []stream.Position) {
	tasks = make([]task, 0, len(deliveries))
	for _, delivery := range deliveries {
		if !s.queue.begin(delivery.Position) {
			continue // a request with it is under way
		}
		t, named := s.prepare(k, delivery)
		switch {
		case !named:
			ignored = append(ignored, delivery.Position)
		case t.verdict.Class != adapter.Undecided:
			judged = append(judged, t)
		case !t.ticket.IsZero():
			queued = append(queued, t)
		default:
			tasks = append(tasks, t)
		}
	}
	return tasks, queued, judged, ignored
}

// prepare decodes and maps an event. It says whether the event names this platform and is nobody's who was erased; the others
// are ignored.
func (s *sender) prepare(k kind, delivery stream.Delivery) (task, bool) {
	t := task{
		position: delivery.Position, kind: k, attempts: delivery.Attempts, ticket: delivery.Ticket, replayed: delivery.Replayed,
		waited: k == retries && delivery.Attempts == 0,
	}
	e, err := wire.Decode(delivery.Data)
	if err != nil {
		s.logger.Error("an entry of the stream cannot be read", "position", delivery.Position.String(), "error", err)
		t.verdict = adapter.Verdict{Class: adapter.Permanent, Reason: "undecodable"}
		return t, true
	}
	if !slices.Contains(e.Platforms, s.queue.platform) || s.erased(&e, delivery.Position) {
		return t, false
	}
	t.event = &e
	if !t.ticket.IsZero() {
		// It was sent: what would be made of it now changes nothing, but for what is known of its order.
		if s.orders != nil && e.OrderID != "" {
			s.render(&t)
		}
		return t, true
	}
	t.verdict = s.render(&t)
	if t.verdict.Class == adapter.Undecided && !s.scheduler.now().Before(t.payload.Expires) {
		t.verdict = adapter.Verdict{Class: adapter.Expired, Reason: "too_old"}
	}
	return t, true
}

// render maps a task's event.
func (s *sender) render(t *task) (verdict adapter.Verdict) {
	t.payload, verdict = s.platform.Map(&adapter.Event{Event: *t.event, ReceivedAt: t.position.Time(), ReplayedAt: t.replayed})
	return verdict
}

// deliver sends a batch and returns what became of each of its events, having sent it again in parts where
// the platform's answer asks for that.
func (s *sender) deliver(sending context.Context, p permit, batch []task) outcomes {
	if left, ok := s.breaker.allows(p); !ok {
		return s.scheduler.postpone(batch, left)
	}
	batch, gone := s.dropErased(batch)
	if len(batch) == 0 {
		s.breaker.release(p)
		return outcomes{ignored: gone}
	}
	all := s.attempt(sending, p, batch)
	all.ignored = append(all.ignored, gone...)
	return all
}

// dropErased parts a batch into what may be sent and the events of persons who have been erased since it was put together: it
// may have waited for long.
func (s *sender) dropErased(batch []task) (rest []task, gone []stream.Position) {
	if !slices.ContainsFunc(batch, func(t task) bool { return s.erased(t.event, t.position) }) {
		return batch, nil
	}
	for _, t := range batch {
		if s.erased(t.event, t.position) {
			gone = append(gone, t.position)
		} else {
			rest = append(rest, t)
		}
	}
	return rest, gone
}

// attempt sends a batch of which everything may be sent.
func (s *sender) attempt(sending context.Context, p permit, batch []task) outcomes {
	verdicts, latency := s.requester.attempt(sending, batch)
	worst := worstOf(verdicts)
	assessed := s.breaker.record(p, batch[0].position, worst, latency)

	// A batch may be refused for one event's sake by a status that is about the platform otherwise. Where the platform says for
	// how long to pause that is believed at first, and doubted where it has taken others in the meantime.
	batch[0].doubted = batch[0].doubted || worst.After == 0 || assessed.blamed
	suspect := assessed.openFor == 0 && aboutPlatform(worst.Class) && batch[0].doubted
	switch {
	case (worst.Class == adapter.Split || suspect) && len(batch) > 1:
		half := len(batch) / 2
		batch[half].doubted = batch[0].doubted
		all := s.deliver(sending, p, batch[:half])
		all.add(s.deliver(sending, p, batch[half:]))
		return all
	case worst.Class == adapter.Isolate && len(batch) > 1:
		return s.isolate(sending, p, batch)
	}
	var all outcomes
	for i, verdict := range verdicts {
		verdict = s.scheduler.judge(verdict, assessed)
		if verdict.Class == adapter.Permanent {
			s.breaker.forget(batch[i].position)
		}
		all.settled = append(all.settled, s.scheduler.settlement(batch[i], verdict, latency))
	}
	together(all.settled)
	return all
}

// isolate sends each event of a batch alone.
func (s *sender) isolate(sending context.Context, p permit, batch []task) outcomes {
	return s.deliverParts(sending, p, slices.Collect(slices.Chunk(batch, 1)))
}

// deliverParts sends parts of a batch that was refused, some of them at a time, and returns what became of all.
func (s *sender) deliverParts(sending context.Context, p permit, parts [][]task) outcomes {
	each := make([]outcomes, len(parts))
	inParallel(len(parts), isolated, func(i int) { each[i] = s.deliver(sending, p, parts[i]) })
	var all outcomes
	for _, one := range each {
		all.add(one)
	}
	return all
}

// inParallel does something for each number below n, at most so many at a time, and returns when all is done.
func inParallel(n, most int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(most, n) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}
