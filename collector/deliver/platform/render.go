package platform

import (
	"net/http"

	"github.com/weir-dev/weir/collector/event"
)

// timestampFormat is RFC 3339 with milliseconds.
const timestampFormat = "2006-01-02T15:04:05.000Z07:00"

// jsonHeader is what every request with a JSON body starts from.
func jsonHeader() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Weir"}}
}

// nullable is nil for "", so that it becomes null.
func nullable(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// wholeQuantity is how many pieces an item counts for where a platform takes integers only: 1 where it does
// not say, and never less.
func wholeQuantity(quantity *event.Amount) int64 {
	if quantity == nil {
		return 1
	}
	return max(1, int64(*quantity)/amountUnit)
}

// amountUnit is how many ten-thousandths an amount of one has.
const amountUnit = 10_000
