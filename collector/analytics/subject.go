package analytics

import (
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// pageOf returns the path of a page's URL as it is written, without query and fragment; "" without a URL. What is no absolute
// URL is taken for a path. A page that has the name of none is none.
func pageOf(url string) string {
	if url == "" {
		return ""
	}
	path := url
	if end := strings.IndexAny(path, "?#"); end >= 0 {
		path = path[:end]
	}
	scheme, rest, isAbsolute := strings.Cut(path, "//")
	if isAbsolute && (scheme == "" || strings.HasSuffix(scheme, ":") && !strings.Contains(scheme, "/")) {
		path = ""
		if begin := strings.IndexByte(rest, '/'); begin >= 0 {
			path = rest[begin:]
		}
	}
	switch path {
	case "":
		return "/"
	case none:
		return ""
	default:
		return path
	}
}

// onePiece is the quantity of an item that says none.
const onePiece event.Amount = 1_0000

// productsOf returns the products of an event, each once: those of its items, else the one of its content id, which has the
// event's value. An item is worth its price by its quantity. A product that has the name of none is none.
func productsOf(e *event.Event) []columns.Product {
	var products []columns.Product
	for i := range e.Contents {
		item := &e.Contents[i]
		if item.ID == "" || item.ID == none {
			continue
		}
		quantity, amount := onePiece, event.Amount(0)
		if item.Quantity != nil {
			quantity = *item.Quantity
		}
		if item.Price != nil {
			amount = item.Price.Times(quantity)
		}
		at := slices.IndexFunc(products, func(p columns.Product) bool { return p.ID == item.ID })
		if at < 0 {
			products = append(products, columns.Product{ID: item.ID, Amount: amount, Quantity: quantity})
			continue
		}
		products[at].Amount += amount
		products[at].Quantity += quantity
	}
	if len(products) > 0 || e.ContentID == "" || e.ContentID == none {
		return products
	}
	amount := columns.NoValue
	if e.Value != nil {
		amount = *e.Value
	}
	return []columns.Product{{ID: e.ContentID, Amount: amount, Quantity: onePiece}}
}
