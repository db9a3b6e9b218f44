package deliver

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/stream"
)

// scheduler decides what becomes of an event after an attempt, and when the next one is due. It changes nothing by itself.
type scheduler struct {
	// backoff is between an event's attempts.
	backoff backoff
	// now is the clock by which events are dated, latest the latest that it may be: an event whose platform says how long to wait
	// is due when that has passed since then.
	now, latest func() time.Time
}

// judge turns a verdict about the platform into what it means for an event for whose own sake it was given: where the circuit
// is closed the event is tried again with growing pauses, and one that is refused for good has failed.
func (s scheduler) judge(verdict adapter.Verdict, a assessment) adapter.Verdict {
	switch {
	case !aboutPlatform(verdict.Class):
	case a.openFor > 0:
		verdict.After = a.openFor
	case verdict.Class == adapter.Throttle:
		verdict.After = max(verdict.After, s.backoff.jittered(a.failures-1))
	case a.poison:
		verdict.Class = adapter.Permanent
	default:
		verdict.Class = adapter.Retry
	}
	return verdict
}

// settlement turns a verdict into what is written.
func (s scheduler) settlement(t task, verdict adapter.Verdict, latency time.Duration) stream.Settlement {
	now := s.now()
	settlement := stream.Settlement{Record: stream.Record{
		Event:    t.position,
		Attempts: t.attempts,
		Latency:  latency,
		Reason:   verdict.Reason,
		At:       now,
	}}
	switch verdict.Class {
	case adapter.Delivered:
		settlement.Status = stream.Delivered
	case adapter.Skipped:
		settlement.Status = stream.Skipped
	case adapter.Expired:
		settlement.Status = stream.Expired
	case adapter.Retry:
		settlement.Status = stream.Retrying
		settlement.RetryAt = now.Add(s.backoff.jittered(t.attempts - 1))
	case adapter.Throttle:
		settlement.Status = stream.Retrying
		settlement.RetryAt = s.latest().Add(max(verdict.After, s.backoff.floor))
	case adapter.Queued:
		settlement.Status = stream.Retrying
		settlement.Ticket = t.ticket
		if t.ticket.IsZero() {
			settlement.Ticket = stream.Ticket{ID: verdict.Ticket, At: now}
		}
		settlement.RetryAt = now.Add(max(verdict.After, s.backoff.floor))
		settlement.Silent = !t.ticket.IsZero() // it is where it was
	case adapter.Waiting:
		settlement.Status = stream.Retrying
		settlement.RetryAt = now.Add(max(verdict.After, s.backoff.floor))
		settlement.Silent = t.waited
	case adapter.Auth, adapter.Config:
		// The open circuit holds them back. Due at once, they go out as soon as there is another credential or
		// configuration, for which a new engine starts.
		settlement.Status = stream.Retrying
		settlement.RetryAt = now.Add(s.backoff.floor)
	default:
		// Permanent; a single event has no batch to be isolated from or split.
		settlement.Status = stream.Failed
	}
	if settlement.Status == stream.Retrying && settlement.Ticket.IsZero() && !t.payload.Expires.IsZero() && settlement.RetryAt.After(t.payload.Expires) {
		settlement.RetryAt = t.payload.Expires
	}
	settlement.Order = orderChange(&t, &settlement)
	return settlement
}

// postpone puts back events that were taken before the circuit opened: no attempt was made, nothing is recorded. Those
// that were never sent are as new as those that nobody has taken yet.
func (s scheduler) postpone(batch []task, pause time.Duration) outcomes {
	all := outcomes{until: s.now().Add(max(pause, s.backoff.floor))}
	for _, t := range batch {
		delivery := stream.Delivery{Entry: stream.Entry{Position: t.position}, Attempts: t.attempts, Ticket: t.ticket}
		if t.kind == newEvents {
			all.unsent = append(all.unsent, delivery)
		} else {
			all.postponed = append(all.postponed, delivery)
		}
	}
	return all
}

// worstOf returns the verdict that says how the platform is: one that is about the platform, else any but a failure, else the
// first.
func worstOf(verdicts []adapter.Verdict) adapter.Verdict {
	if i := slices.IndexFunc(verdicts, func(v adapter.Verdict) bool { return aboutPlatform(v.Class) }); i >= 0 {
		return verdicts[i]
	}
	if i := slices.IndexFunc(verdicts, func(v adapter.Verdict) bool { return v.Class != adapter.Retry }); i >= 0 {
		return verdicts[i]
	}
	return verdicts[0]
}
