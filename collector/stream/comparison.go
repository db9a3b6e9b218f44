package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// comparisonKept is for how long it is remembered what a day's comparison has found.
	comparisonKept = 8 * 24 * time.Hour
	// maxComparison is how long a comparison may be as it is stored, in bytes.
	maxComparison = 256 << 10
	// MaxListedOrders is how many orders of each kind a comparison lists. All are counted.
	MaxListedOrders = 100
)

// OrderComparison is what the orders of a shop were, of one day, beside the purchases that are stored.
type OrderComparison struct {
	Source string `json:"source"`
	// Day is a date in the property's time zone. At is when it was compared.
	Day string    `json:"day"`
	At  time.Time `json:"at"`
	// Skipped says that the day was not compared: the source is new, and the first whole day is the next one; or retention has taken
	// events of the day, and what is not stored may have been.
	Skipped bool `json:"skipped,omitempty"`
	// Orders is how many the shop has that were paid that day.
	Orders int `json:"orders"`
	// Missing are orders that are not stored, Different those that are with another amount or currency, Extra the purchases stored that
	// day of which the shop has no order.
	Missing   OrderList `json:"missing"`
	Different OrderList `json:"different"`
	Extra     OrderList `json:"extra"`
}

// OrderList is how many orders there are, and the first of them.
type OrderList struct {
	Count  int             `json:"count"`
	Orders []ComparedOrder `json:"orders"`
}

// Add adds an order.
func (l *OrderList) Add(o ComparedOrder) {
	if l.Count++; l.Count <= MaxListedOrders {
		l.Orders = append(l.Orders, o)
	}
}

// ComparedOrder is an order. Its values are decimal, with their currency; "" where there is none.
type ComparedOrder struct {
	OrderID string `json:"order_id"`
	Shop    string `json:"shop,omitempty"`
	Stored  string `json:"stored,omitempty"`
}

// KeepOrderComparison remembers a comparison in place of the one before.
func (s *Stream) KeepOrderComparison(ctx context.Context, c OrderComparison) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write a comparison of orders: %w", err)
	}
	return describe("keep a comparison of orders", s.redis.Set(ctx, s.keys.compared(c.Source), text, comparisonKept).Err())
}

// OrderComparison returns the latest comparison of a source's orders; found is false where there is none that can be read.
func (s *Stream) OrderComparison(ctx context.Context, source string) (c OrderComparison, found bool, err error) {
	text, err := s.redis.Get(ctx, s.keys.compared(source)).Bytes()
	if errors.Is(err, redis.Nil) {
		return c, false, nil
	}
	if err != nil {
		return c, false, describe("read a comparison of orders", err)
	}
	if len(text) > maxComparison || json.Unmarshal(text, &c) != nil || c.Source != source {
		return OrderComparison{}, false, nil
	}
	return c, true, nil
}
