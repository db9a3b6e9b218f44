package query

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
)

// dateRange is a period in answers: the local dates of its first and last moment.
type dateRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// instant renders a time as RFC 3339 in UTC with milliseconds.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

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

// revenueByCurrency renders as an object of revenues by currency code, in the order given.
type revenueByCurrency []analytics.CurrencyRevenue

// MarshalJSONTo writes {"CODE": revenue…}.
func (list revenueByCurrency) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, element := range list {
		if err := enc.WriteToken(jsontext.String(element.Currency)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, element.Revenue); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}
