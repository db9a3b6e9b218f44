package deliver

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// refundLease is for how long a refund counts as under way that nobody says more of: longer than any attempt.
	refundLease = 10 * time.Minute
	// refundPause is how often a refund looks whether it may go.
	refundPause = time.Minute
	// unknownPatience is for how long a refund waits for a purchase of which nothing is known, sentPatience for one that the platform
	// has queued: longer than that may take.
	unknownPatience, sentPatience = 24 * time.Hour, 72 * time.Hour
)

// orders has refunds restate purchases, on platforms that take them so: what of an order has come there is kept in Redis.
type orders struct {
	stream   *stream.Stream
	platform string
	restater adapter.Restater
	logger   *slog.Logger
}

// settle parts tasks into those to send, restated where their order has refunds, and those whose outcome is clear.
func (o *orders) settle(ctx context.Context, scheduler scheduler, tasks []task) ([]task, outcomes) {
	if o == nil {
		return tasks, outcomes{}
	}
	var decided outcomes
	known, err := o.purchases(ctx, tasks)
	if err != nil {
		return nil, o.later(scheduler, tasks, err)
	}
	ready := make([]task, 0, len(tasks))
	for i, t := range tasks {
		verdict := adapter.Verdict{}
		switch order := t.payload.Order; {
		case order == nil:
		case !order.Refund:
			if before := known[i]; before.Refunded > 0 && order.Value != nil && before.Currency == order.Currency {
				// There were refunds since it was sent, or since another purchase of the order was.
				before.Value = (*int64)(order.Value)
				t.payload, verdict = o.restater.Restate(t.payload, left(&before), order.At, scheduler.now())
			}
		default:
			if t.payload, verdict, err = o.refund(ctx, scheduler, t); err != nil {
				decided.add(o.later(scheduler, []task{t}, err))
				continue
			}
		}
		if verdict.Class != adapter.Undecided {
			decided.settled = append(decided.settled, scheduler.settlement(t, verdict, 0))
			continue
		}
		ready = append(ready, t)
	}
	return ready, decided
}

// purchases returns what is known of the orders of those tasks that are purchases, by the tasks' numbers.
func (o *orders) purchases(ctx context.Context, tasks []task) (map[int]stream.Order, error) {
	var keys []stream.OrderKey
	var numbers []int
	for i := range tasks {
		if order := tasks[i].payload.Order; order != nil && !order.Refund {
			keys, numbers = append(keys, orderKey(&tasks[i])), append(numbers, i)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	list, err := o.stream.Orders(ctx, o.platform, keys)
	if err != nil {
		return nil, err
	}
	known := make(map[int]stream.Order, len(list))
	for i := range list {
		known[numbers[i]] = list[i]
	}
	return known, nil
}

// refund makes of a refund the purchase's new value, or says why it is not sent, or not yet.
func (o *orders) refund(ctx context.Context, scheduler scheduler, t task) (adapter.Payload, adapter.Verdict, error) {
	order, now := t.payload.Order, scheduler.now()
	if order.Value == nil || order.Currency == "" {
		return t.payload, adapter.Skip("no_value"), nil
	}
	known, free, err := o.stream.Refund(
		ctx, o.platform, orderKey(&t), t.position, max(0, int64(*order.Value)), order.Currency, now, now.Add(refundLease),
	)
	if err != nil {
		return t.payload, adapter.Verdict{}, err
	}
	waited := now.Sub(t.position.Time())
	if t.replayed.After(t.position.Time()) {
		waited = now.Sub(t.replayed)
	}
	wait := adapter.Verdict{Class: adapter.Waiting, Reason: "awaiting_purchase", After: refundPause}
	switch known.State {
	case stream.OrderDelivered:
	case stream.OrderSent:
		if waited < sentPatience {
			return t.payload, wait, nil
		}
		return t.payload, adapter.Skip("transaction_unknown"), nil
	case stream.OrderFailed:
		return t.payload, adapter.Skip("transaction_unknown"), nil
	default:
		if waited < unknownPatience {
			return t.payload, wait, nil
		}
		return t.payload, adapter.Skip("transaction_unknown"), nil
	}
	switch {
	case known.Target != order.Target:
		return t.payload, adapter.Skip("transaction_unknown"), nil // it would be a new conversion where it goes today
	case known.Value == nil:
		return t.payload, adapter.Skip("no_value"), nil
	case known.Currency != order.Currency:
		return t.payload, adapter.Skip("other_currency"), nil
	case !free && waited < sentPatience:
		// The new value would overtake the one that is under way, or be overtaken by it.
		return t.payload, adapter.Verdict{Class: adapter.Waiting, Reason: "awaiting_refund", After: refundPause}, nil
	case !free:
		return t.payload, adapter.Verdict{Class: adapter.Expired, Reason: "awaiting_refund"}, nil
	}
	payload, verdict := o.restater.Restate(t.payload, left(&known), known.At, now)
	return payload, verdict, nil
}

// left is a purchase's value less its refunds, and never below nothing.
func left(order *stream.Order) event.Amount { return event.Amount(max(0, *order.Value-order.Refunded)) }

func orderKey(t *task) stream.OrderKey {
	return stream.OrderKey{ID: t.payload.Order.ID, IDSpace: uint8(t.event.Class)}
}

// later puts back tasks of whose orders Redis does not tell.
func (o *orders) later(scheduler scheduler, tasks []task, err error) outcomes {
	o.logger.Error("what is known of orders cannot be read; their events wait", "events", len(tasks), "error", err)
	return scheduler.postpone(tasks, scheduler.backoff.cap)
}

// orderChange is what a settlement says of the task's order, nil where it says nothing.
func orderChange(t *task, settlement *stream.Settlement) *stream.OrderChange {
	order := t.payload.Order
	if order == nil {
		return nil
	}
	change := &stream.OrderChange{Key: orderKey(t)}
	if order.Refund {
		if !settlement.Ticket.IsZero() {
			change.BusyUntil = settlement.RetryAt.Add(refundLease)
		}
		return change
	}
	purchase := &stream.Purchase{Value: (*int64)(order.Value), Currency: order.Currency, At: order.At, Target: order.Target}
	switch {
	case settlement.Status == stream.Delivered:
		purchase.State = stream.OrderDelivered
	case !settlement.Ticket.IsZero():
		purchase.State = stream.OrderSent
	case settlement.Status.Final() && t.attempts > 0:
		purchase.State = stream.OrderFailed
	default:
		return nil // it was not sent, or will be again
	}
	change.Purchase = purchase
	return change
}
