package deliver

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/deliver/platform"
	"github.com/weir-dev/weir/collector/stream"
)

// isolated is how many of an isolated batch's events are sent at a time.
const isolated = 8

// deliver sends a batch and returns what became of each of its events, having sent it again in parts where
// the platform's answer asks for that.
func (l *lane) deliver(sending context.Context, p pass, batch []parcel) outcomes {
	if left, ok := l.gate.admits(p); !ok {
		return l.park(batch, left)
	}
	verdicts, latency := l.attempt(sending, batch)
	worst := worstOf(verdicts)
	ruling := l.gate.report(p, batch[0].position, worst, latency)

	// A batch may be refused for one event's sake by a status that stops the platform otherwise.
	suspect := ruling.stopped == 0 && stops(worst.Class)
	switch {
	case (worst.Class == platform.Split || suspect) && len(batch) > 1:
		half := len(batch) / 2
		all := l.deliver(sending, p, batch[:half])
		all.add(l.deliver(sending, p, batch[half:]))
		return all
	case worst.Class == platform.Isolate && len(batch) > 1:
		return l.isolate(sending, p, batch)
	}
	var all outcomes
	for i, verdict := range verdicts {
		verdict = l.judge(verdict, ruling)
		if verdict.Class == platform.Permanent {
			l.gate.forget(batch[i].position)
		}
		all.settled = append(all.settled, l.settlement(batch[i], verdict, latency))
	}
	return all
}

// judge turns a verdict that can stop the platform into what it means for an event for whose own sake it was given: where
// the platform is not stopped the event is tried again with growing pauses, and one that is refused for good has failed.
func (l *lane) judge(verdict platform.Verdict, r ruling) platform.Verdict {
	switch {
	case !stops(verdict.Class):
	case r.stopped > 0:
		verdict.After = r.stopped
	case verdict.Class == platform.Throttle:
		verdict.After = max(verdict.After, l.timing.backoff.jittered(r.refusals-1))
	case r.own:
		verdict.Class = platform.Permanent
	default:
		verdict.Class = platform.Retry
	}
	return verdict
}

// worstOf returns the verdict that says how the platform is: one that stops it, else any but a failure, else the first.
func worstOf(verdicts []platform.Verdict) platform.Verdict {
	if i := slices.IndexFunc(verdicts, func(v platform.Verdict) bool { return stops(v.Class) }); i >= 0 {
		return verdicts[i]
	}
	if i := slices.IndexFunc(verdicts, func(v platform.Verdict) bool { return v.Class != platform.Retry }); i >= 0 {
		return verdicts[i]
	}
	return verdicts[0]
}

// isolate sends each event of a batch alone.
func (l *lane) isolate(sending context.Context, p pass, batch []parcel) outcomes {
	each := make([]outcomes, len(batch))
	next := make(chan int)
	var senders sync.WaitGroup
	for range min(isolated, len(batch)) {
		senders.Go(func() {
			for i := range next {
				each[i] = l.deliver(sending, p, batch[i:i+1])
			}
		})
	}
	for i := range batch {
		next <- i
	}
	close(next)
	senders.Wait()
	var all outcomes
	for _, one := range each {
		all.add(one)
	}
	return all
}

// attempt makes one request and returns a verdict per event and how long the request took. It counts the
// attempt on the parcels, unless the platform only wants a pause.
func (l *lane) attempt(sending context.Context, batch []parcel) ([]platform.Verdict, time.Duration) {
	payloads := make([]platform.Payload, len(batch))
	for i, p := range batch {
		payloads[i] = p.payload
	}
	request := l.platform.Build(payloads, l.wall())
	start, end := time.Now(), l.tracing.start(sending, len(batch)) // the monotonic clock: a latency is no point in time
	response, failure := l.exchange(sending, request)
	latency := time.Since(start)
	end(response, failure)
	l.metrics.attempts.WithLabelValues(l.cfg.Name).Inc()

	var verdicts []platform.Verdict
	if failure != nil {
		verdicts = slices.Repeat([]platform.Verdict{*failure}, len(batch))
	} else {
		verdicts = l.platform.Classify(response, len(batch))
	}
	for i := range batch {
		batch[i].kind = again
		if verdicts[i].Class != platform.Throttle {
			batch[i].attempts++
		}
	}
	return verdicts, latency
}

// exchange makes the request or, for the Log platform, writes its lines.
func (l *lane) exchange(sending context.Context, request platform.Request) (platform.Response, *platform.Verdict) {
	if request.Lines == nil {
		return l.client.exchange(sending, request)
	}
	for _, line := range request.Lines {
		l.logger.LogAttrs(sending, slog.LevelInfo, "event", line...)
	}
	return platform.Response{At: l.wall()}, nil
}

// park puts back events that were taken before the gate closed: no attempt was made, nothing is recorded. Those that
// were never sent are as new as those that nobody has taken yet.
func (l *lane) park(batch []parcel, left time.Duration) outcomes {
	all := outcomes{until: l.now().Add(max(left, l.timing.backoff.floor))}
	for _, p := range batch {
		delivery := stream.Delivery{Entry: stream.Entry{Position: p.position}, Attempts: p.attempts}
		if p.kind == fresh {
			all.unsent = append(all.unsent, delivery)
		} else {
			all.parked = append(all.parked, delivery)
		}
	}
	if len(all.parked) > 0 {
		l.retryScheduled(all.until)
	}
	return all
}

// settlement turns a verdict into what is written.
func (l *lane) settlement(p parcel, verdict platform.Verdict, latency time.Duration) stream.Settlement {
	now := l.now()
	settlement := stream.Settlement{Record: stream.Record{
		Event:    p.position,
		Platform: l.cfg.Name,
		Attempts: p.attempts,
		Latency:  latency,
		Reason:   verdict.Reason,
		At:       now,
	}}
	switch verdict.Class {
	case platform.Delivered:
		settlement.Status = stream.Delivered
	case platform.Skipped:
		settlement.Status = stream.Skipped
	case platform.Expired:
		settlement.Status = stream.Expired
	case platform.Retry:
		settlement.Status = stream.Retrying
		settlement.RetryAt = now.Add(l.timing.backoff.jittered(p.attempts - 1))
	case platform.Throttle:
		settlement.Status = stream.Retrying
		settlement.RetryAt = now.Add(max(verdict.After, l.timing.backoff.floor))
	case platform.Auth, platform.Config:
		// The gate holds them back. Due at once, they go out as soon as there is another credential or
		// configuration, for which a new engine starts.
		settlement.Status = stream.Retrying
		settlement.RetryAt = now.Add(l.timing.backoff.floor)
	default:
		// Permanent; a single event has no batch to be isolated from or split.
		settlement.Status = stream.Failed
	}
	if settlement.Status == stream.Retrying {
		if settlement.RetryAt.After(p.payload.Expires) {
			settlement.RetryAt = p.payload.Expires
		}
		l.retryScheduled(settlement.RetryAt)
	}
	return settlement
}

// retryScheduled tells the retrier until when there is something to wait for.
func (l *lane) retryScheduled(at time.Time) {
	for due := at.UnixMilli(); ; {
		latest := l.latestRetry.Load()
		if due <= latest || l.latestRetry.CompareAndSwap(latest, due) {
			return
		}
	}
}
