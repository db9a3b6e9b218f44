package columns

import (
	"slices"

	"github.com/weir-dev/weir/collector/event"
)

// Product is a product of an event.
type Product struct {
	ID string
	// Amount is the money of it, in the event's currency, NoValue where the event says nothing; Quantity how many pieces there
	// are.
	Amount, Quantity event.Amount
}

// ProductRows are the products of rows, a row as often as it has one, in stream order.
type ProductRows struct {
	Rows []uint16
	// Products are the products' numbers, side by side with their rows.
	Products []uint32
}

// Sale is a product of a row whose amounts are kept.
type Sale struct {
	Amount, Quantity event.Amount
	Product          uint32
	Row              uint16
}

// productLists are the products of a chunk's rows, in stream order. Few rows have one, and some have several: so they are no
// column.
type productLists struct {
	ProductRows
	sales []Sale
}

// What a product of a row takes, and a sale, in bytes.
const (
	productRowBytes = 6
	saleBytes       = 24
)

func (l *productLists) size() int {
	return productRowBytes*cap(l.Rows) + saleBytes*cap(l.sales)
}

// add adds the products of a row.
func (l *productLists) add(row uint16, r *Row, numbers *dictionary[string]) {
	for i := range r.Products {
		p := &r.Products[i]
		number := numbers.acquire(p.ID)
		l.Rows, l.Products = append(l.Rows, row), append(l.Products, number)
		if r.IsSale {
			l.sales = append(l.sales, Sale{Amount: p.Amount, Quantity: p.Quantity, Product: number, Row: row})
		}
	}
}

// remove takes the products of some rows out.
func (l *productLists) remove(isGone func(row uint16) bool, numbers *dictionary[string]) {
	kept := 0
	for i, row := range l.Rows {
		if isGone(row) {
			numbers.release(l.Products[i])
			continue
		}
		l.Rows[kept], l.Products[kept] = row, l.Products[i]
		kept++
	}
	l.Rows, l.Products = l.Rows[:kept], l.Products[:kept]
	l.sales = slices.DeleteFunc(l.sales, func(s Sale) bool { return isGone(s.Row) })
}

// release gives back what the products have of their dictionary.
func (l *productLists) release(numbers *dictionary[string]) {
	for _, number := range l.Products {
		numbers.release(number)
	}
}

// clone takes no more room than it needs.
func (l *productLists) clone() productLists {
	return productLists{
		ProductRows: ProductRows{slices.Clip(slices.Clone(l.Rows)), slices.Clip(slices.Clone(l.Products))},
		sales:       slices.Clip(slices.Clone(l.sales)),
	}
}

// Products returns the products of the range's rows.
func (c *ChunkRange) Products() ProductRows {
	c.Lock()
	all := c.products.ProductRows
	c.Unlock()
	// What is added meanwhile stands behind the range.
	from, _ := slices.BinarySearch(all.Rows, uint16(c.From))
	to, _ := slices.BinarySearch(all.Rows, uint16(c.To))
	return ProductRows{all.Rows[from:to], all.Products[from:to]}
}

// Sales returns the sales of the range's rows, in stream order.
func (c *ChunkRange) Sales() []Sale {
	c.Lock()
	all := c.products.sales
	c.Unlock()
	byRow := func(s Sale, row int) int { return int(s.Row) - row }
	from, _ := slices.BinarySearchFunc(all, c.From, byRow)
	to, _ := slices.BinarySearchFunc(all, c.To, byRow)
	return all[from:to]
}
