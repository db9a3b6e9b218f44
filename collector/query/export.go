package query

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/document"
)

const (
	// exportPage is how many events an export holds at a time, at least. Where more of them are read at once it holds more as well,
	// so that for each page there are exportReads reads.
	exportPage  = 1000
	exportReads = 4
	// maxExport is the highest limit of an export.
	maxExport = 1_000_000_000
)

// exportPage is how many events of the property an export holds at a time.
func (t *Tenant) exportPage() int { return max(exportPage, exportReads*t.Events.AtOnce()) }

// eventColumns are a listing's columns in CSV.
const eventColumns = "event_id,event,received_at,value,currency,order_id,client_id,visitor,source,medium,campaign,channel,delivery,class"

// eventRow is an event in an export.
type eventRow struct {
	*analytics.Record
	// event is all of it, for the formats that hold that.
	event *event.Event
}

// wholeEvent is what an export holds of an event beside its record: all but the person's hashes, their address and their user
// agent.
type wholeEvent struct {
	Timestamp *string `json:"timestamp"`

	document.Members `json:",inline"`

	Country *string          `json:"country"`
	Context document.Context `json:"context"`
}

// columns returns the event in the order of [eventColumns]; the deliveries are the JSON that they are elsewhere.
func (r eventRow) columns() []column {
	value, touch := "", r.Touch
	if r.Value != nil {
		value = r.Value.String()
	}
	return []column{
		sent(r.EventID), sent(r.Event), computed(instant(r.ReceivedAt)), computed(value), sent(r.Currency), sent(r.OrderID), sent(r.ClientID),
		sent(r.Visitor), sent(touch.Source), sent(touch.Medium), sent(touch.Campaign), sent(touch.Channel),
		structure(string(appendDeliveries(nil, r.Deliveries))), computed(r.Class.String()),
	}
}

// appendJSON appends the event as it stands in a listing, and behind that everything else that was sent.
func (r eventRow) appendJSON(b []byte) ([]byte, error) {
	b = appendRecord(b, r.Record)
	b[len(b)-1] = ','
	b, err := appendSent(b, r.event)
	return append(b, '}'), err
}

// appendSent appends the members that tell what else was sent.
func appendSent(b []byte, e *event.Event) ([]byte, error) {
	whole := wholeEvent{Members: document.MembersOf(e), Country: document.Nullable(e.Country), Context: document.ContextOf(&e.Context)}
	if !e.OccurredAt.IsZero() {
		whole.Timestamp = new(instant(e.OccurredAt))
	}
	text, err := json.Marshal(whole, document.Options)
	if err != nil {
		return b, err
	}
	return append(b, text[1:len(text)-1]...), nil
}

// exportEvents answers with all pages of a listing, a page at a time, so that what it takes does not depend on how
// many there are. Where it cannot finish, or trimming has come before it, it cuts the connection, so that nobody
// takes a part for the whole.
func (h *Handler) exportEvents(w http.ResponseWriter, r *http.Request, q *request, f format, query analytics.ListingQuery) {
	limit, asked := query.Limit, query.Range
	query.Limit = min(limit, q.tenant.exportPage())
	if end := q.status.AsOf.Add(time.Millisecond); q.status.Last != 0 && end.Before(query.Range.To) {
		query.Range.To = end // what was there, and not what comes meanwhile
	}
	page, err := h.page(r, q.tenant, query)
	var events []*event.Event
	if err == nil && f == typeNDJSON && r.Method != http.MethodHead {
		events, err = wholeEvents(r.Context(), q.tenant, page.Records[:min(len(page.Records), q.tenant.Events.AtOnce())])
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	complete := completeFrom(page.CompleteFrom, query.Range.From)
	noteCompleteFrom(w, complete)
	rows, err := newRowWriter(w, f, eventColumns)
	rows.lapsed = h.lapsing(q.tenant)
	for err == nil && r.Method != http.MethodHead {
		if f == typeNDJSON {
			err = writeWhole(r.Context(), q.tenant, rows, page.Records, events)
			events = nil
		} else {
			err = writeRecords(rows, page.Records)
		}
		limit -= len(page.Records)
		if err == nil {
			err = rows.send()
		}
		if err != nil || page.Next == 0 || limit == 0 {
			break
		}
		query.After, query.Limit = page.Next, min(limit, q.tenant.exportPage())
		page, err = patiently(r.Context(), func() (analytics.Page, error) { return h.page(r, q.tenant, query) })
		if err == nil && isCutShort(complete, page.CompleteFrom, query) {
			err = ErrCutShort
		}
	}
	if r.Method != http.MethodHead {
		h.noteExport(r, q.tenant, exportAct{audit.EventsExported, audit.Party{Kind: audit.Events}, f, asked, rows.written, err})
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

const (
	// patience is how often an export asks again, and patiencePause how long it waits before: a restart of ClickHouse and the minute of
	// a quota are shorter.
	patience      = 75
	patiencePause = time.Second
)

// patiently asks an engine for what an export goes on with. One that is away for a moment, or has been asked for so much by this
// export that others are to come first, is asked again: the caller has waited for all that has been written already.
func patiently[A any](ctx context.Context, ask func() (A, error)) (A, error) {
	for tries := 0; ; tries++ {
		answer, err := ask()
		if tries == patience || !errors.Is(err, analytics.ErrUnavailable) && !errors.Is(err, analytics.ErrBusy) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(patiencePause):
		}
	}
}

// isCutShort says whether events that an export had still to come to have been trimmed since it began. complete is what was
// missing then, from is where trimming has come to.
func isCutShort(complete *string, from time.Time, query analytics.ListingQuery) bool {
	if query.Ascending {
		return from.After(query.After.Time()) // all before have been written
	}
	return !reflect.DeepEqual(complete, completeFrom(from, query.Range.From))
}

func writeRecords(rows *rowWriter, records []analytics.Record) error {
	for i := range records {
		if err := rows.write(eventRow{Record: &records[i]}); err != nil {
			return err
		}
	}
	return nil
}

// writeWhole writes the events of a page; the first of them may be there already. Erased ones are passed over.
func writeWhole(ctx context.Context, t *Tenant, rows *rowWriter, records []analytics.Record, events []*event.Event) error {
	for len(records) > 0 {
		if len(events) == 0 {
			var err error
			next := records[:min(len(records), t.Events.AtOnce())]
			if events, err = patiently(ctx, func() ([]*event.Event, error) { return wholeEvents(ctx, t, next) }); err != nil {
				return err
			}
		}
		for i, e := range events {
			if e == nil {
				continue
			}
			if err := rows.write(eventRow{&records[i], e}); err != nil {
				return err
			}
		}
		records, events = records[len(events):], nil
	}
	return nil
}

// noteCompleteFrom says in a header what JSON has a member for.
func noteCompleteFrom(w http.ResponseWriter, from *string) {
	if from != nil {
		w.Header().Set("Weir-Complete-From", *from)
	}
}
