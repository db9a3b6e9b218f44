package query

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/analytics"
)

// recordSize is about how many bytes an event's JSON has.
const recordSize = 768

// appendListing appends the answer with a page of events. Pages are asked for most of all and are long, so they are
// written as they stand here, not by way of reflection.
func appendListing(b []byte, page *analytics.Page, nextCursor, completeFrom *string) []byte {
	b = append(b, `{"data":[`...)
	for i := range page.Records {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRecord(b, &page.Records[i])
	}
	b = append(b, `],"next_cursor":`...)
	b = appendOptional(b, nextCursor)
	if page.Total != nil {
		b = strconv.AppendInt(append(b, `,"total":`...), int64(*page.Total), 10)
	}
	if completeFrom != nil {
		b = append(b, `,"complete_from":`...)
		b = appendText(b, *completeFrom)
	}
	return append(b, '}')
}

// appendRecord appends an event as JSON.
func appendRecord(b []byte, r *analytics.Record) []byte {
	b = appendDeliveries(append(appendReceived(b, r), `,"delivery":`...), r.Deliveries)
	b = appendText(append(b, `,"class":`...), r.Class.String())
	return append(b, '}')
}

// appendReceived appends the beginning of an event's JSON: all that stands before its deliveries.
func appendReceived(b []byte, r *analytics.Record) []byte {
	touch := &r.Touch
	b = appendText(append(b, `{"event_id":`...), r.EventID)
	b = appendText(append(b, `,"event":`...), r.Event)
	b = appendTime(append(b, `,"received_at":`...), r.ReceivedAt)
	b = append(b, `,"value":`...)
	if r.Value != nil {
		b = append(b, r.Value.String()...)
	} else {
		b = append(b, "null"...)
	}
	for _, member := range [...]struct{ name, text string }{
		{`,"currency":`, r.Currency}, {`,"order_id":`, r.OrderID}, {`,"client_id":`, r.ClientID}, {`,"visitor":`, r.Visitor},
		{`,"source":`, touch.Source}, {`,"medium":`, touch.Medium}, {`,"campaign":`, touch.Campaign}, {`,"channel":`, touch.Channel},
	} {
		b = appendOptional(append(b, member.name...), optional(member.text))
	}
	return b
}

// appendDeliveries appends what became of an event as JSON.
func appendDeliveries(b []byte, deliveries []analytics.Delivery) []byte {
	b = append(b, '[')
	for i := range deliveries {
		d := &deliveries[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"platform":`...), d.Platform)
		b = appendText(append(b, `,"status":`...), d.Status.String())
		b = append(b, `,"latency_ms":`...)
		if d.Latency != nil {
			b = strconv.AppendInt(b, d.Latency.Milliseconds(), 10)
		} else {
			b = append(b, "null"...)
		}
		b = strconv.AppendInt(append(b, `,"attempts":`...), int64(d.Attempts), 10)
		b = appendTime(append(b, `,"updated_at":`...), d.UpdatedAt)
		b = appendOptional(append(b, `,"reason":`...), optional(d.Reason))
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendText appends a JSON string. Text that is no UTF-8, which the collector does not accept, has its wrong bytes
// replaced.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}

// appendOptional appends a JSON string, or null.
func appendOptional(b []byte, text *string) []byte {
	if text == nil {
		return append(b, "null"...)
	}
	return appendText(b, *text)
}

// appendTime appends a time as a JSON string.
func appendTime(b []byte, t time.Time) []byte { return append(appendInstant(append(b, '"'), t), '"') }
