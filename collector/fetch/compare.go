package fetch

import (
	"context"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/sources/shop"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// settled is how long after a day's end its orders are compared: what webhooks have missed has been fetched by then.
	settled = 3 * time.Hour
	// around is how far before the day an order may have been stored, or changed, by clocks that differ.
	around = time.Hour
	// compareAgain is when a comparison that failed is tried again.
	compareAgain = time.Hour
	// eventsAtOnce is how many events are read at a time.
	eventsAtOnce = 1000
)

// Orders has the purchases that are stored, and remembers how the shops' orders compared with them. [stream.Stream] is one.
type Orders interface {
	Events
	OrderComparison(ctx context.Context, source string) (c stream.OrderComparison, found bool, err error)
	KeepOrderComparison(ctx context.Context, c stream.OrderComparison) error
}

// Events are those that are stored, and how far back they reach.
type Events interface {
	ReadEvents(ctx context.Context, after stream.Position, count int, block time.Duration) ([]stream.Entry, error)
	Bounds(ctx context.Context) (stream.Bounds, error)
}

// order is what an order is worth.
type order struct {
	value    *event.Amount
	currency string
	at       time.Time
	// byShop says that its event is as a shop's report makes one.
	byShop bool
}

func (o *order) text() string {
	if o.value == nil {
		return o.currency
	}
	return o.value.String() + " " + o.currency
}

// same says whether two orders are worth the same.
func (o *order) same(other *order) bool {
	if (o.value == nil) != (other.value == nil) {
		return false
	}
	return o.currency == other.currency && (o.value == nil || *o.value == *other.value)
}

// compareYesterday compares the orders of a shop that were paid yesterday, by the property's time zone, with the purchases that are
// stored, where nobody has done so yet.
func (f *Fetcher) compareYesterday(ctx context.Context, source *sources.Source, api *shop.API) error {
	location, err := time.LoadLocation(f.options.Property.TimeZone)
	if err != nil {
		return err
	}
	now := f.options.Now()
	year, month, date := now.Add(-settled).In(location).Date()
	from, to := time.Date(year, month, date-1, 0, 0, 0, 0, location), time.Date(year, month, date, 0, 0, 0, 0, location)
	day := from.Format(time.DateOnly)
	latest, found, err := f.options.Orders.OrderComparison(ctx, source.Name)
	if err != nil || found && latest.Day >= day {
		return err
	}
	if !found { // nobody knows since when the shop reports: of what was before nothing is missing
		return f.options.Orders.KeepOrderComparison(ctx, stream.OrderComparison{
			Source: source.Name, Day: now.In(location).Format(time.DateOnly), At: now.UTC(), Skipped: true,
		})
	}
	c := stream.OrderComparison{Source: source.Name, Day: day, At: now.UTC()}
	sold, err := ordersOf(ctx, api, from.Add(-around))
	if err != nil {
		return err
	}
	kept, err := f.purchases(ctx, from.Add(-around))
	if err != nil {
		return err
	}
	whole, err := f.reachesBackTo(ctx, from.Add(-around)) // behind the reading: what goes meanwhile is not taken for missing
	if err != nil {
		return err
	}
	if whole {
		compare(&c, sold, kept, from, to, len(f.options.Property.Sources) == 1)
	} else {
		c.Skipped = true
		f.options.Logger.WarnContext(ctx, "yesterday's orders are not compared: retention has taken events of that day", "source", source.Name, "day", day)
	}
	return f.options.Orders.KeepOrderComparison(ctx, c)
}

// reachesBackTo says whether all events that were stored since a time are still there. Where the oldest is younger and others have
// gone, these may have been of the time between.
func (f *Fetcher) reachesBackTo(ctx context.Context, since time.Time) (bool, error) {
	bounds, err := f.options.Orders.Bounds(ctx)
	if err != nil {
		return false, err
	}
	return bounds.Added <= bounds.Length || bounds.First != 0 && bounds.First < stream.At(since), nil
}

// ordersOf returns the orders of a shop that have changed since a time, by their ids.
func ordersOf(ctx context.Context, api *shop.API, since time.Time) (*orders, error) {
	sold := newOrders()
	_, err := api.Changed(ctx, since, func(report shop.Report) error {
		for _, reported := range report.Events {
			if bought, isOne := reported.Order(); isOne {
				o := order{currency: bought.Currency, at: reported.At}
				if value, err := event.ParseAmount(bought.Value); err == nil {
					o.value = &value
				}
				sold.put(bought.ID, o)
			}
		}
		return nil
	})
	return sold, err
}

// purchases returns the purchases that were stored since a time, by their orders' ids.
func (f *Fetcher) purchases(ctx context.Context, since time.Time) (*orders, error) {
	kept := newOrders()
	for after := stream.At(since); ; {
		entries, err := f.options.Orders.ReadEvents(ctx, after, eventsAtOnce, -1)
		if err != nil || len(entries) == 0 {
			return kept, err
		}
		for _, entry := range entries {
			after = entry.Position
			e, err := wire.Decode(entry.Data)
			if err != nil || e.Name != event.Purchase || e.OrderID == "" {
				continue
			}
			kept.put(e.OrderID, order{e.Value, e.Currency, entry.Position.Time(), e.ID == "purchase-"+e.OrderID})
		}
	}
}

// orders are some by their ids, in the order in which they came.
type orders struct {
	ids  []string
	byID map[string]order
}

func newOrders() *orders { return &orders{byID: map[string]order{}} }

func (l *orders) put(id string, o order) {
	if _, known := l.byID[id]; !known {
		l.ids = append(l.ids, id)
	}
	l.byID[id] = o
}

// compare finds what differs of a day. What is stored and no order of the shop's is told only where no other shop may have it.
func compare(c *stream.OrderComparison, sold, kept *orders, from, to time.Time, alone bool) {
	within := func(at time.Time) bool { return !at.Before(from) && at.Before(to) }
	for _, id := range sold.ids {
		bought := sold.byID[id]
		if !within(bought.at) {
			continue
		}
		c.Orders++
		found, known := kept.byID[id]
		switch {
		case !known:
			c.Missing.Add(stream.ComparedOrder{OrderID: id, Shop: bought.text()})
		case !found.same(&bought):
			c.Different.Add(stream.ComparedOrder{OrderID: id, Shop: bought.text(), Stored: found.text()})
		}
	}
	for _, id := range kept.ids {
		stored := kept.byID[id]
		if _, known := sold.byID[id]; alone && !known && stored.byShop && within(stored.at) {
			c.Extra.Add(stream.ComparedOrder{OrderID: id, Stored: stored.text()})
		}
	}
}
