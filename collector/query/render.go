package query

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
)

// answerText answers 200 with a text that is there already.
func answerText(w http.ResponseWriter, contentType string, text []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // the caller has gone: there is nobody left to tell
}

// instant renders a time as RFC 3339 in UTC with milliseconds.
func instant(t time.Time) string { return string(appendInstant(nil, t)) }

// appendInstant appends a time as instant renders it.
func appendInstant(b []byte, t time.Time) []byte {
	t = t.UTC()
	b = t.AppendFormat(b, time.RFC3339) // the one layout that is quick
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-len("Z")], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// optional renders "" as null.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// milliseconds renders a duration in whole milliseconds, or null.
func milliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// seconds renders a duration in seconds with up to four decimals, which hold the mean of two milliseconds
// exactly, or null.
func seconds(d *time.Duration) *event.Amount {
	if d == nil {
		return nil
	}
	tenThousandths := event.Amount(*d / (100 * time.Microsecond))
	return &tenThousandths
}

// moneyByCurrency renders as an object of sums by currency code, in the order given.
type moneyByCurrency []analytics.CurrencySum

// revenueByCurrency takes the revenues, refunds deducted.
func revenueByCurrency(list []analytics.CurrencyRevenue) moneyByCurrency {
	money := make(moneyByCurrency, len(list))
	for i, c := range list {
		money[i] = analytics.CurrencySum{Currency: c.Currency, Sum: c.Revenue}
	}
	return money
}

// MarshalJSONTo writes {"CODE": sum…}.
func (list moneyByCurrency) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, element := range list {
		if err := enc.WriteToken(jsontext.String(element.Currency)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, element.Sum); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}
