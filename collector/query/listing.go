package query

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
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
	// maxLookedUp is how many ids or visitors of a kind one listing is asked for.
	maxLookedUp = 100
)

var listingParameters = withPeriod(
	parameter{name: "limit"}, parameter{name: "cursor"}, parameter{name: "event", isList: true},
	parameter{name: "status", isList: true}, parameter{name: "platform", isList: true},
	parameter{name: "class"},
	parameter{name: "event_id", isList: true}, parameter{name: "order_id", isList: true}, parameter{name: "visitor", isList: true},
	parameter{name: "order"}, parameter{name: "total"},
)

// listingOrders are the orders of a listing, by whether the oldest event comes first.
var listingOrders = []choice[bool]{{"desc", false}, {"asc", true}}

var yesOrNo = []choice[bool]{{"false", false}, {"true", true}}

var statusChoices = []choice[stream.Status]{
	{"pending", stream.Pending}, {"retrying", stream.Retrying}, {"delivered", stream.Delivered},
	{"failed", stream.Failed}, {"skipped", stream.Skipped}, {"expired", stream.Expired},
}

var classChoices = []choice[event.Class]{
	{event.Human.String(), event.Human}, {event.Bot.String(), event.Bot}, {event.Internal.String(), event.Internal},
	{event.Test.String(), event.Test},
}

// class returns whose events are asked for: humans' where nothing is said.
func (p *parameters) class() event.Class { return choose(p, "class", event.Human, classChoices) }

// events answers GET /properties/{property}/events.
func (h *Handler) events(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	q := h.read(r, t, listingParameters)
	query, fingerprint := q.listing(answerIn)
	if !q.proceed(w) {
		return
	}
	release, err := h.budget.Hold(int64(recordBytes * min(query.Limit, t.exportPage())))
	if err != nil {
		h.fail(w, r, err, "limit")
		return
	}
	defer release()
	if answerIn != typeJSON {
		h.exportEvents(w, r, q, answerIn, query)
		return
	}
	page, err := h.page(r, t, query)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	var next *string
	if page.Next != 0 {
		place := cursor{last: page.Next, from: query.Range.From, query: fingerprint}
		if query.Ascending {
			place.to = query.Range.To
		}
		next = optional(place.String())
		w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.EscapedPath(), q.withCursor(*next)))
	}
	text := make([]byte, 0, recordSize*(1+len(page.Records)))
	text = appendListing(text, &page, next, completeFrom(page.CompleteFrom, query.Range.From))
	answerText(w, typeJSON, text)
}

// listing reads what page of which events is asked for, and returns what its cursors know the query by. An export has
// one page.
func (q *request) listing(answerIn format) (query analytics.ListingQuery, fingerprint uint64) {
	usual, most := defaultLimit, maxLimit
	if answerIn != typeJSON {
		usual, most = maxExport, maxExport
	}
	query = analytics.ListingQuery{
		EventIDs: q.verbatimTexts("event_id", maxLookedUp),
		OrderIDs: q.verbatimTexts("order_id", maxLookedUp),
		Visitors: q.texts("visitor", maxLookedUp),
	}
	fallback := lastDay
	if looksUp(query) {
		fallback = longestPeriod
	}
	query.Range = q.period(fallback).Range
	query.Limit = q.limit(usual, most)
	query.Class = q.class()
	query.AnyClass = len(query.EventIDs)+len(query.OrderIDs) > 0 && q.said("class") == ""
	query.Events = q.names("event", maxListedEvents)
	query.Platforms = q.texts("platform", maxListedEvents)
	query.Statuses = chooseAll(&q.parameters, "status", statusChoices)
	query.Ascending = choose(&q.parameters, "order", false, listingOrders)
	query.Count = choose(&q.parameters, "total", false, yesOrNo)
	if query.Count && answerIn != typeJSON {
		q.errs.Add("total", "The total field is for JSON alone: an export has every event.")
	}
	fingerprint = q.fingerprint(query)
	if text := q.one("cursor"); text != "" {
		q.goOn(&query, text, fingerprint)
	}
	return query, fingerprint
}

// looksUp says whether events are asked for by an id or a visitor.
func looksUp(query analytics.ListingQuery) bool {
	return len(query.EventIDs)+len(query.OrderIDs)+len(query.Visitors) > 0
}

// goOn has a listing begin behind a cursor.
func (q *request) goOn(query *analytics.ListingQuery, text string, fingerprint uint64) {
	c, err := parseCursor(text)
	if err != nil {
		q.errs.Add("cursor", "The cursor field format is invalid.")
		return
	}
	if len(q.errs) == 0 && (c.query != fingerprint || c.to.IsZero() == query.Ascending) {
		q.errs.Add("cursor", "The cursor field belongs to another listing: period, from, to, event, status, platform, class, event_id, "+
			"order_id, visitor and order must be those of the page before.")
	}
	query.After, query.Range.From = c.last, c.from
	if query.Ascending {
		query.Range.To = c.to
	}
}

// fingerprint stands for what is asked, in whatever spelling and order: the period as it was asked for, which for one
// that rolls is its length, and the filters.
func (q *request) fingerprint(query analytics.ListingQuery) uint64 {
	period := q.said("period")
	if from, to := q.said("from"), q.said("to"); from != "" || to != "" {
		period = ""
		if from != "" {
			period = "from " + instant(query.Range.From)
		}
		if to != "" {
			period += " to " + instant(query.Range.To)
		}
	} else if period == "" && !looksUp(query) {
		period = "24h" // which is the same
	}
	statuses := make([]string, len(query.Statuses))
	for i, status := range query.Statuses {
		statuses[i] = status.String()
	}
	class := query.Class.String()
	if query.AnyClass {
		class = "any"
	}
	lists := [][]string{{period}, query.Events, statuses, query.Platforms, {class}}
	if looksUp(query) || query.Ascending { // a cursor of a listing without has always been without
		lists = append(lists, query.EventIDs, query.OrderIDs, query.Visitors, []string{strconv.FormatBool(query.Ascending)})
	}
	sum := fnv.New64a()
	for _, list := range lists {
		for _, text := range slices.Compact(slices.Sorted(slices.Values(list))) {
			fmt.Fprintf(sum, "%q ", text)
		}
		_, _ = sum.Write([]byte{0}) // a hash's Write never fails
	}
	return sum.Sum64()
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
