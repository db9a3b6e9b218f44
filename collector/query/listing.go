package query

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// Bounds of a listing.
const (
	defaultLimit    = 100
	maxLimit        = 1000
	maxListedEvents = 100
)

var statusChoices = []choice[*stream.Status]{
	{"pending", new(stream.Pending)}, {"retrying", new(stream.Retrying)}, {"delivered", new(stream.Delivered)},
	{"failed", new(stream.Failed)}, {"skipped", new(stream.Skipped)}, {"expired", new(stream.Expired)},
}

type listingAnswer struct {
	Data         []eventRecord `json:"data"`
	NextCursor   *string       `json:"next_cursor"`
	CompleteFrom *string       `json:"complete_from,omitempty"`
}

type eventRecord struct {
	EventID    string           `json:"event_id"`
	Event      string           `json:"event"`
	ReceivedAt string           `json:"received_at"`
	Value      *event.Amount    `json:"value"`
	Currency   *string          `json:"currency"`
	OrderID    *string          `json:"order_id"`
	ClientID   *string          `json:"client_id"`
	Visitor    *string          `json:"visitor"`
	Source     *string          `json:"source"`
	Medium     *string          `json:"medium"`
	Campaign   *string          `json:"campaign"`
	Channel    *string          `json:"channel"`
	Delivery   []deliveryRecord `json:"delivery"`
}

type deliveryRecord struct {
	Platform  string  `json:"platform"`
	Status    string  `json:"status"`
	LatencyMS *int64  `json:"latency_ms"`
	Attempts  int     `json:"attempts"`
	UpdatedAt string  `json:"updated_at"`
	Reason    *string `json:"reason"`
}

// events answers GET /properties/{property}/events.
func (h *Handler) events(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	q := h.read(r, t)
	question := q.listing(answerIn)
	if !q.proceed(w) {
		return
	}
	if answerIn != typeJSON {
		h.exportEvents(w, r, q, answerIn, question)
		return
	}
	page, err := h.page(r, t, question)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	answer := listingAnswer{Data: make([]eventRecord, len(page.Records)), CompleteFrom: q.completeFrom(question.Range.From)}
	for i := range page.Records {
		answer.Data[i] = renderRecord(&page.Records[i])
	}
	if page.Next != 0 {
		next := cursor{before: page.Next, from: question.Range.From}.String()
		answer.NextCursor = &next
		w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.EscapedPath(), q.withCursor(next)))
	}
	server.JSON(w, http.StatusOK, answer)
}

// listing reads what page of which events is asked for. An export has one page.
func (q *request) listing(answerIn format) analytics.ListingQuery {
	usual, most := defaultLimit, maxLimit
	if answerIn != typeJSON {
		usual, most = maxExport, maxExport
	}
	question := analytics.ListingQuery{
		Range:    rangeOf(q.period(event.LastDay)),
		Limit:    q.integer("limit", usual, 1, most),
		Events:   q.names("event", 0, maxListedEvents),
		Platform: q.one("platform"),
	}
	if text := q.one("cursor"); text != "" {
		c, err := parseCursor(text)
		if err != nil {
			q.faults.Add("cursor", "The cursor field format is invalid.")
		}
		question.Before, question.Range.From = c.before, c.from
	}
	question.Status = choose(&q.parameters, "status", nil, statusChoices)
	return question
}

// withCursor returns the query string of the next page: the same parameters with another cursor.
func (p *parameters) withCursor(next string) string {
	var query strings.Builder
	for _, pair := range p.pairs {
		if pair.name != "cursor" {
			query.WriteString(url.QueryEscape(pair.name) + "=" + url.QueryEscape(pair.value) + "&")
		}
	}
	return query.String() + "cursor=" + next
}

func renderRecord(r *analytics.Record) eventRecord {
	record := eventRecord{
		EventID:    r.EventID,
		Event:      r.Event,
		ReceivedAt: instant(r.ReceivedAt),
		Value:      r.Value,
		Currency:   optional(r.Currency),
		OrderID:    optional(r.OrderID),
		ClientID:   optional(r.ClientID),
		Visitor:    optional(r.Visitor),
		Delivery:   make([]deliveryRecord, len(r.Deliveries)),
	}
	if touch := r.Touch; touch != nil {
		record.Source, record.Medium = optional(touch.Source), optional(touch.Medium)
		record.Campaign, record.Channel = optional(touch.Campaign), optional(touch.Channel)
	}
	for i, d := range r.Deliveries {
		record.Delivery[i] = deliveryRecord{
			Platform:  d.Platform,
			Status:    d.Status.String(),
			LatencyMS: milliseconds(d.Latency),
			Attempts:  d.Attempts,
			UpdatedAt: instant(d.UpdatedAt),
			Reason:    optional(d.Reason),
		}
	}
	return record
}
