package deliver

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// lookParts is into how many parts a queued request is sent again of which the platform has not said for which event's sake it was
// refused: a few times that, rather than each event alone, where platforms count requests.
const lookParts = 16

// byTicket parts tasks that a platform has queued into those of one ticket each.
func byTicket(tasks []task) [][]task {
	return partBy(tasks, func(t *task) string { return t.ticket.ID })
}

// together has events of one ticket due at one time, so that they are taken and asked for together.
func together(settled []stream.Settlement) {
	first := map[string]*stream.Settlement{}
	for i := range settled {
		s := &settled[i]
		if s.Ticket.IsZero() {
			continue
		}
		if same := first[s.Ticket.ID]; same != nil {
			s.Ticket, s.RetryAt = same.Ticket, same.RetryAt
			continue
		}
		first[s.Ticket.ID] = s
	}
}

// look asks what has become of events that the platform has queued, all of one ticket, and returns that. It is no attempt, and
// tells the circuit breaker nothing: that a platform says how far it is does not say that it takes more.
func (s *sender) look(sending context.Context, p permit, batch []task) outcomes {
	s.breaker.release(p)
	batch, gone := s.dropErased(batch)
	all := outcomes{ignored: gone}
	if len(batch) == 0 {
		return all
	}
	verdicts, latency := s.requester.look(sending, batch, s.scheduler.now())
	if verdicts[0].Class == adapter.Isolate {
		all.add(s.again(sending, p, batch))
		return all
	}
	for i, verdict := range verdicts {
		if verdict.Class != adapter.Queued {
			batch[i].ticket = stream.Ticket{}
		}
		all.settled = append(all.settled, s.scheduler.settlement(batch[i], verdict, latency))
	}
	together(all.settled)
	return all
}

// again sends events again that were queued together and of which some were refused.
func (s *sender) again(sending context.Context, p permit, batch []task) outcomes {
	var all outcomes
	sent, _, _ := readTicket(batch[0].ticket.ID)
	tasks := make([]task, 0, len(batch))
	for _, t := range batch {
		t.ticket = stream.Ticket{}
		verdict := s.render(&t)
		if verdict.Class == adapter.Undecided {
			tasks = append(tasks, t)
			continue
		}
		all.settled = append(all.settled, s.scheduler.settlement(t, verdict, 0))
	}
	tasks, decided := s.orders.settle(sending, s.scheduler, tasks)
	all.add(decided)
	p.probe = false
	if sent == 0 {
		sent = len(tasks)
	}
	// Parts of what was sent, though the platform may have given several requests one ticket: else they would never end.
	most := max(1, min(len(tasks), sent)/lookParts)
	var parts [][]task
	for _, group := range byGroup(tasks) {
		parts = slices.AppendSeq(parts, slices.Chunk(group, most))
	}
	all.add(s.deliverParts(sending, p, parts))
	return all
}

// look makes one request for the status of a ticket, and returns a verdict per event and how long the request took.
func (r *requester) look(sending context.Context, batch []task, now time.Time) ([]adapter.Verdict, time.Duration) {
	tracker, ok := r.platform.Adapter.(adapter.Tracker)
	if !ok { // the ticket is of another configuration: what became of it cannot be known
		return slices.Repeat([]adapter.Verdict{{Class: adapter.Waiting, Reason: "request_unknown"}}, len(batch)), 0
	}
	sent, group, ticket := readTicket(batch[0].ticket.ID)
	look := adapter.Look{Refunds: make([]bool, len(batch)), Sent: sent, Group: group, Age: now.Sub(batch[0].ticket.At)}
	for i, t := range batch {
		look.Refunds[i] = t.event.Name == event.Refund
	}
	request := tracker.Track(ticket)
	start := time.Now()
	response, failure := r.authorized(sending, request)
	latency := time.Since(start)
	r.count.Inc()
	if failure != nil {
		response = adapter.Response{At: r.wall()} // no answer is one that says nothing
	}
	return tracker.Tracked(response, look), latency
}

// ticketOf is what is kept of a request that the platform has queued: how many events it has, their group, and the platform's ticket.
func ticketOf(batch []task, given string) string {
	return strconv.Itoa(len(batch)) + ":" + batch[0].payload.Group + ":" + given
}

// readTicket reads what was kept. sent is 0 where there is but the platform's ticket.
func readTicket(kept string) (sent int, group, given string) {
	if parts := strings.SplitN(kept, ":", 3); len(parts) == 3 {
		if sent, err := strconv.Atoi(parts[0]); err == nil && sent > 0 {
			return sent, parts[1], parts[2]
		}
	}
	return 0, "", kept
}
