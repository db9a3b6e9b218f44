package stream

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// OrderKey tells an order. It repeats in different classes of events, as their ids do.
type OrderKey struct {
	// ID is the order's, IDSpace as in the [Addition] of its purchase.
	ID      string
	IDSpace uint8
}

// digest is that of the order's deduplication key, so that what erases the one finds the other.
func (k OrderKey) digest() []byte { return idDigest('o', k.IDSpace, k.ID) }

// OrderState is what has become of an order's purchase on a platform.
type OrderState string

// The states; "" is that of an order of which nothing is known.
const (
	// OrderSent: the platform has queued the purchase.
	OrderSent OrderState = "sent"
	// OrderDelivered: the platform has it.
	OrderDelivered OrderState = "delivered"
	// OrderFailed: the platform has refused it, or it has become too old.
	OrderFailed OrderState = "failed"
)

// Purchase is an order's purchase, as a platform was told it.
type Purchase struct {
	State OrderState
	// Value is in ten-thousandths; nil where it had none. Currency is "" where it had none.
	Value    *int64
	Currency string
	// At is when it happened, to the millisecond.
	At time.Time
	// Target is where on the platform it was sent, without white space.
	Target string
}

// Order is what is known of an order on a platform.
type Order struct {
	Purchase
	// Refunded is the sum of its refunds, in ten-thousandths.
	Refunded int64
}

// OrderChange is what an event that is settled says of its order: Purchase where it is the purchase, else how long a refund is
// under way, the zero time where it no longer is.
type OrderChange struct {
	Key       OrderKey
	Purchase  *Purchase
	BusyUntil time.Time
}

// text is the form that weir_conclude reads.
func (c *OrderChange) text() []byte {
	if c == nil {
		return nil
	}
	digest := c.Key.digest()
	if c.Purchase == nil {
		until := int64(0)
		if !c.BusyUntil.IsZero() {
			until = c.BusyUntil.UnixMilli()
		}
		return fmt.Appendf(digest, "refund %d", until)
	}
	p := c.Purchase
	value, currency := "-", "-"
	if p.Value != nil {
		value = strconv.FormatInt(*p.Value, 10)
	}
	if p.Currency != "" {
		currency = p.Currency
	}
	return fmt.Appendf(digest, "purchase %s %s %s %d %s", p.State, value, currency, max(0, p.At.UnixMilli()), p.Target)
}

// Orders returns what is known of orders on a platform.
func (s *Stream) Orders(ctx context.Context, platform string, orders []OrderKey) ([]Order, error) {
	replies := make([]*redis.MapStringStringCmd, len(orders))
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range orders {
			replies[i] = pipe.HGetAll(ctx, s.keys.order(platform, hex.EncodeToString(key.digest())))
		}
		return nil
	})
	if err != nil {
		return nil, describe("read orders of platform "+platform, err)
	}
	list := make([]Order, len(orders))
	for i, reply := range replies {
		fields := reply.Val()
		list[i] = Order{Purchase: purchaseOf(fields["state"], fields["value"], fields["currency"], fields["at"], fields["target"])}
		for name, amount := range fields {
			if strings.HasPrefix(name, "refund:") {
				list[i].Refunded += amountOf(amount)
			}
		}
	}
	return list, nil
}

// Refund notes a refund of an amount in ten-thousandths with its order, once however often that is said and whatever has become of the
// purchase, and that it is under way until then where it may go. It returns what is known of the order, and whether the refund may go: where its purchase was delivered, in the same
// currency, and no other of its refunds is under way.
func (s *Stream) Refund(
	ctx context.Context, platform string, key OrderKey, event Position, amount int64, currency string, now, until time.Time,
) (order Order, free bool, err error) {
	reply, err := s.redis.FCall(ctx, functionRefund, []string{s.keys.events(), s.keys.due(platform)},
		platform, key.digest(), event.String(), amount, currency, now.UnixMilli(), until.UnixMilli()).Slice()
	if err != nil {
		return Order{}, false, describe("note a refund for platform "+platform, err)
	}
	if len(reply) == 0 {
		return Order{}, false, nil
	}
	if len(reply) != 7 {
		return Order{}, false, malformedReply(functionRefund)
	}
	var texts [6]string
	for i := range texts {
		texts[i], _ = reply[i].(string)
	}
	goes, _ := reply[6].(int64)
	order = Order{Purchase: purchaseOf(texts[0], texts[1], texts[2], texts[3], texts[4]), Refunded: amountOf(texts[5])}
	return order, goes == 1, nil
}

// ForgetOrders removes what is known of orders on platforms: of persons who are to be erased and of whom only a refund is there.
func (s *Stream) ForgetOrders(ctx context.Context, names []string, orders []OrderKey) error {
	if len(names)*len(orders) == 0 {
		return nil
	}
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, name := range names {
			for _, key := range orders {
				pipe.Unlink(ctx, s.keys.order(name, hex.EncodeToString(key.digest())))
			}
		}
		return nil
	})
	return describe("erase orders", err)
}

// purchaseOf reads what Redis has of a purchase. What makes no sense is nothing.
func purchaseOf(state, value, currency, at, target string) Purchase {
	p := Purchase{State: OrderState(state), Target: target}
	if amount, err := strconv.ParseInt(value, 10, 64); err == nil {
		p.Value = &amount
	}
	if currency != "-" {
		p.Currency = currency
	}
	if ms, err := strconv.ParseInt(at, 10, 64); err == nil {
		p.At = time.UnixMilli(ms).UTC()
	}
	return p
}

// amountOf reads an amount; what is none is nothing.
func amountOf(text string) int64 {
	amount, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return amount
}

// text is how a ticket is kept: when it was given, in milliseconds, and what it is.
func (t Ticket) text() string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.At.UnixMilli(), 10) + " " + t.ID
}

// parseTicket reads a ticket that was kept, "" for none.
func parseTicket(text string) (Ticket, error) {
	if text == "" {
		return Ticket{}, nil
	}
	at, id, found := strings.Cut(text, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !found {
		return Ticket{}, malformedReply(functionTake)
	}
	return Ticket{ID: id, At: time.UnixMilli(ms).UTC()}, nil
}
