package query

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
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
	var next *string
	if page.Next != 0 {
		next = optional(cursor{before: page.Next, from: question.Range.From}.String())
		w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.EscapedPath(), q.withCursor(*next)))
	}
	text := make([]byte, 0, recordSize*(1+len(page.Records)))
	text = appendListing(text, page.Records, next, completeFrom(page.CompleteFrom, question.Range.From))
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) //nolint:gosec // JSON with its content type; an error says that the caller has gone
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
