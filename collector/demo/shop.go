package demo

import (
	"math/rand/v2"
	"strconv"

	"github.com/weir-dev/weir/collector/event"
)

// shop is what can be bought.
type shop struct {
	products []product
	orders   int
}

type product struct {
	id, name, category string
	// price is in minor units of what it is paid in, so that every currency has prices that can be paid.
	price event.Amount
}

// line is a product in a basket.
type line struct {
	product  *product
	quantity int
}

var (
	materials = [...]string{"Linen", "Wool", "Oak", "Copper", "Stoneware", "Recycled", "Leather", "Bamboo"}
	goods     = [...]struct {
		name, category string
		price          event.Amount
	}{
		{"tea towel", "Kitchen", 1290}, {"throw", "Living", 6990}, {"serving board", "Kitchen", 3450}, {"kettle", "Kitchen", 8900},
		{"mug", "Kitchen", 1650}, {"backpack", "Travel", 11900}, {"wallet", "Travel", 4995}, {"desk tray", "Office", 2790},
		{"lamp", "Living", 12950}, {"notebook", "Office", 1490}, {"planter", "Garden", 3190}, {"bench", "Garden", 24900},
	}
)

func newShop() shop {
	s := shop{orders: 10_000}
	for m, material := range materials {
		for _, good := range goods {
			s.products = append(s.products, product{
				id: "SKU-" + strconv.Itoa(1000+len(s.products)), name: material + " " + good.name, category: good.category,
				price: good.price + event.Amount(m)*250,
			})
		}
	}
	return s
}

// look returns what somebody looks at; a few products are looked at by most.
func (s *shop) look(random *rand.Rand) []line {
	n := len(s.products)
	return []line{{&s.products[random.IntN(n)*random.IntN(n)/n], 1}}
}

// fill returns a basket of one to four products.
func (s *shop) fill(random *rand.Rand) []line {
	basket := s.look(random)
	for len(basket) < 4 && random.IntN(100) < 35 {
		basket = append(basket, s.look(random)...)
	}
	for i := range basket {
		if random.IntN(100) < 18 {
			basket[i].quantity += 1 + random.IntN(2)
		}
	}
	return basket
}

func (s *shop) nextOrder() int {
	s.orders++
	return s.orders
}

// totalOf returns what the lines cost, in minor units.
func totalOf(lines []line) event.Amount {
	var total event.Amount
	for _, l := range lines {
		total += l.product.price * event.Amount(l.quantity)
	}
	return total
}

// itemsOf returns the lines as they are sent where prices are multiples of unit.
func itemsOf(lines []line, unit event.Amount) []event.Item {
	items := make([]event.Item, len(lines))
	for i, l := range lines {
		items[i] = event.Item{
			ID: l.product.id, Name: l.product.name, Category: l.product.category,
			Quantity: new(event.Amount(l.quantity) * 1_0000), Price: new(l.product.price * unit),
		}
	}
	return items
}
