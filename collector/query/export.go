package query

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/analytics"
)

const (
	// exportPage is how many events an export holds at a time.
	exportPage = 1000
	// maxExport is the highest limit of an export; a property keeps fewer events than that.
	maxExport = 1_000_000_000
)

// eventColumns are a listing's columns in CSV.
const eventColumns = "event_id,event,received_at,value,currency,order_id,client_id,visitor,source,medium,campaign,channel,delivery,class"

// errCutShort says that events were trimmed before an export has come to them.
var errCutShort = errors.New("events of the export were trimmed before their turn")

// eventRow is an event in an export.
type eventRow struct{ *analytics.Record }

// columns returns the event in the order of [eventColumns]; the deliveries are the JSON that they are elsewhere.
func (r eventRow) columns() []column {
	value, touch := "", r.Touch
	if r.Value != nil {
		value = r.Value.String()
	}
	return []column{
		sent(r.EventID), sent(r.Event), computed(instant(r.ReceivedAt)), computed(value), sent(r.Currency), sent(r.OrderID), sent(r.ClientID),
		sent(r.Visitor), sent(touch.Source), sent(touch.Medium), sent(touch.Campaign), sent(touch.Channel),
		computed(string(appendDeliveries(nil, r.Deliveries))), computed(r.Class.String()),
	}
}

// appendJSON appends the event as it stands in a listing.
func (r eventRow) appendJSON(b []byte) ([]byte, error) { return appendRecord(b, r.Record), nil }

// dayColumns are the columns of days in CSV.
const dayColumns = "date,purchases,add_to_carts,pageviews,revenue,unique_visitors,events,refunds,revenue_by_currency"

// columns returns the day in the order of [dayColumns].
func (d dayRecord) columns() []column {
	byCurrency := []byte("{}")
	if text, err := json.Marshal(d.RevenueByCurrency); err == nil { // codes and numbers: it never fails
		byCurrency = text
	}
	return []column{
		computed(d.Date), count(d.Purchases), count(d.AddToCarts), count(d.Pageviews), computed(d.Revenue.String()),
		count(d.UniqueVisitors), count(d.Events), count(d.Refunds), computed(string(byCurrency)),
	}
}

// appendJSON appends the day as it stands in the answer.
func (d dayRecord) appendJSON(b []byte) ([]byte, error) {
	text, err := json.Marshal(d)
	return append(b, text...), err
}

// exportEvents answers with all pages of a listing, a page at a time, so that what it takes does not depend on how
// many there are. Where it cannot finish, or trimming has come before it, it cuts the connection, so that nobody
// takes a part for the whole.
func (h *Handler) exportEvents(w http.ResponseWriter, r *http.Request, q *request, f format, query analytics.ListingQuery) {
	limit := query.Limit
	query.Limit = min(limit, exportPage)
	page, err := h.page(r, q.tenant, query)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	complete := completeFrom(page.CompleteFrom, query.Range.From)
	noteCompleteFrom(w, complete)
	rows, err := newRowWriter(w, f, eventColumns)
	for err == nil && r.Method != http.MethodHead {
		for i := range page.Records {
			if err = rows.write(eventRow{&page.Records[i]}); err != nil {
				break
			}
		}
		limit -= len(page.Records)
		if err == nil {
			err = rows.send()
		}
		if err != nil || page.Next == 0 || limit == 0 {
			break
		}
		query.Before, query.Limit = page.Next, min(limit, exportPage)
		page, err = h.page(r, q.tenant, query)
		if err == nil && !reflect.DeepEqual(complete, completeFrom(page.CompleteFrom, query.Range.From)) {
			err = errCutShort
		}
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// exportDays answers with a line for each day.
func exportDays(w http.ResponseWriter, r *http.Request, f format, answer dailyAnswer) {
	noteCompleteFrom(w, answer.CompleteFrom)
	rows, err := newRowWriter(w, f, dayColumns)
	for i := 0; i < len(answer.Data) && err == nil && r.Method != http.MethodHead; i++ {
		err = rows.write(answer.Data[i])
	}
	if err == nil {
		err = rows.send()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// noteCompleteFrom says in a header what JSON has a member for.
func noteCompleteFrom(w http.ResponseWriter, from *string) {
	if from != nil {
		w.Header().Set("Weir-Complete-From", *from)
	}
}
