package adapter

import (
	"math/big"

	"github.com/weir-dev/weir/collector/event"
)

// goods are an event's value and items in the form of platforms that count whole pieces.
type goods struct {
	// Value is nil and Currency "" where the other is missing: platforms take a value without a currency for one of their own.
	// A currency also stands there for the prices of the items.
	Value    *event.Amount
	Currency string
	// Tax and Shipping are parts of Value, nil where there is no currency.
	Tax, Shipping *event.Amount
	Items         []piece
}

// piece is an item of which there are Quantity pieces, each at Price, of which Discount has been taken off; nil for none, or
// none in a known currency.
type piece struct {
	*event.Item
	Quantity        int64
	Price, Discount *event.Amount
}

// takes is what of an event's goods a platform gets. What it does not get has no part in whether there is a currency.
type takes struct {
	// unnamed are items with neither an id nor a name, named those with a name alone; costs are taxes, shipping and discounts.
	unnamed, named, costs bool
}

func (t takes) item(item *event.Item) bool {
	return item.ID != "" || t.named && item.Name != "" || t.unnamed
}

func goodsOf(e *Event, t takes) goods {
	var g goods
	priced := false
	for i := range e.Contents {
		item := &e.Contents[i]
		quantity, price := wholePieces(item.Quantity, item.Price)
		if quantity == 0 || !t.item(item) {
			continue // nothing was bought of it, or it cannot be told
		}
		_, discount := wholePieces(item.Quantity, item.Discount)
		if e.Currency == "" {
			price, discount = nil, nil
		}
		priced = priced || price != nil || t.costs && discount != nil
		g.Items = append(g.Items, piece{Item: item, Quantity: quantity, Price: price, Discount: discount})
	}
	if e.Currency != "" && (e.Value != nil || priced || t.costs && (e.Tax != nil || e.Shipping != nil)) {
		g.Value, g.Tax, g.Shipping, g.Currency = e.Value, e.Tax, e.Shipping, e.Currency
	}
	return g
}

// amountUnit is how many ten-thousandths an amount of one has.
const amountUnit = 10_000

// wholePieces returns an item's quantity and price where a platform takes integers only: one piece where the item does not say.
// What is sold by weight or length is one piece at the price of all of it, rounded half to even to a ten-thousandth, so that
// the two multiply to the item's revenue.
func wholePieces(quantity, price *event.Amount) (int64, *event.Amount) {
	switch {
	case quantity == nil:
		return 1, price
	case *quantity <= 0:
		return 0, nil
	case *quantity%amountUnit == 0:
		return int64(*quantity / amountUnit), price
	case price == nil:
		return 1, nil
	}
	return 1, product(*quantity, *price)
}

// product multiplies two amounts; it is nil where the result is none that an event may carry.
func product(a, b event.Amount) *event.Amount {
	n := new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(int64(b)))
	negative := n.Sign() < 0
	whole, rest := new(big.Int).QuoRem(n.Abs(n), big.NewInt(amountUnit), new(big.Int))
	if half := rest.Int64() - amountUnit/2; half > 0 || half == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	if whole.Cmp(big.NewInt(int64(event.MaxAmount))) > 0 {
		return nil
	}
	result := event.Amount(whole.Int64())
	if negative {
		result = -result
	}
	return &result
}
