package property

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/cli/readapi"
	"github.com/weir-dev/weir/cli/terminal"
	"github.com/weir-dev/weir/collector/auth"
)

const (
	// fewEvents are listed where nobody says how many; mostPerPage is how many the read API answers at once.
	fewEvents   = 20
	mostPerPage = 1000
)

// filters are the read API's parameters that choose events, each under its own name as a flag.
type filters struct{ values url.Values }

// addFilters adds the flags of the parameters. The read API checks their values, and says what would be right.
func (c *call) addFilters(period bool) *filters {
	f := &filters{url.Values{}}
	add := func(parameter, usage string) {
		c.set.Func(strings.ReplaceAll(parameter, "_", "-"), usage, func(value string) error {
			f.values.Add(parameter, value)
			return nil
		})
	}
	add("event", "`NAME` of the events; may be repeated")
	add("status", "`STATUS` of a delivery: pending, retrying, delivered, failed, skipped or expired; may be repeated")
	add("platform", "`NAME` of a platform that they have a delivery to; may be repeated")
	add("class", "`CLASS`, whose events: human, bot, internal or test; default: human")
	add("event_id", "`ID` of the event; may be repeated")
	add("order_id", "`ID` of the order; may be repeated")
	add("visitor", "`ID` of the visitor, as events have it; may be repeated")
	if period {
		add("period", "`PERIOD` back from now: 24h, 7d or 30d; default: 24h")
		add("from", "`TIME` or day from which on, as in 2026-11-01")
		add("to", "`TIME` before which, or day up to which")
	}
	return f
}

// eventsPage is the read API's answer. Raw members go to programs as they are.
type eventsPage struct {
	Data       []json.RawMessage `json:"data"`
	NextCursor *string           `json:"next_cursor"`
	// CompleteFrom is there where the answer lacks what retention has taken away.
	CompleteFrom *string `json:"complete_from,omitempty"`
}

// event is what people are shown of one.
type event struct {
	EventID    string       `json:"event_id"`
	Event      string       `json:"event"`
	ReceivedAt string       `json:"received_at"`
	Value      *json.Number `json:"value"`
	Currency   *string      `json:"currency"`
	OrderID    *string      `json:"order_id"`
	Channel    *string      `json:"channel"`
	Delivery   []delivery   `json:"delivery"`
	Class      string       `json:"class"`
}

type delivery struct {
	Platform string  `json:"platform"`
	Status   string  `json:"status"`
	Reason   *string `json:"reason"`
}

func events(ctx context.Context, c *call) (err error) {
	c.api.Add(c.set)
	c.addOutput()
	f := c.addFilters(true)
	limit := c.set.Int("limit", fewEvents, "how `MANY` events at most")
	if err := c.parse("Lists the newest events of a Property, the newest first, with what became of their deliveries. -o json has the read API's own members.", true); err != nil {
		return err
	}
	if *limit < 1 {
		return flags.Errors{"--limit: must be at least 1"}
	}
	client, err := c.open(ctx, auth.ScopeRead, shortly)
	if err != nil {
		return err
	}
	defer closing(client, &err)
	all := eventsPage{Data: []json.RawMessage{}}
	for {
		f.values.Set("limit", strconv.Itoa(min(*limit-len(all.Data), mostPerPage)))
		var page eventsPage
		if _, err := client.Get(ctx, "/events", f.values, &page); err != nil {
			return err
		}
		all.Data, all.NextCursor, all.CompleteFrom = append(all.Data, page.Data...), page.NextCursor, page.CompleteFrom
		if page.NextCursor == nil || len(all.Data) >= *limit || len(page.Data) == 0 {
			break
		}
		f.values.Set("cursor", *page.NextCursor)
	}
	if c.output == outputJSON {
		return c.printJSON(all)
	}
	return c.listEvents(all, len(f.values) > 1)
}

// listEvents writes events for people.
func (c *call) listEvents(page eventsPage, filtered bool) error {
	if len(page.Data) == 0 {
		what := "No events in the last 24 hours; --period 30d looks further back."
		if filtered {
			what = "No events that fit."
		}
		c.say("%s", what)
		return nil
	}
	table := c.table("", "RECEIVED", "EVENT", "VALUE", "CHANNEL", "DELIVERIES", "ID")
	for _, raw := range page.Data {
		e, err := eventOf(raw)
		if err != nil {
			return err
		}
		table.Row(e.row()...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if page.CompleteFrom != nil {
		c.say("\nWhat was received before %s is not kept any more.", *page.CompleteFrom)
	}
	if page.NextCursor != nil {
		c.say("\nThere are more: --limit says how many are listed.")
	}
	return nil
}

func eventOf(raw json.RawMessage) (e event, err error) {
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("the read API's answer cannot be read: %w", err)
	}
	return e, nil
}

func (e *event) row() []string {
	return []string{clock(e.ReceivedAt), e.Event, e.money(), dash(e.Channel), e.deliveries(), e.EventID}
}

func (e *event) money() string {
	if e.Value == nil {
		return "-"
	}
	text := e.Value.String()
	if e.Currency != nil {
		text += " " + *e.Currency
	}
	return text
}

// deliveries says of each platform how it stands, with the reason where it is not delivered.
func (e *event) deliveries() string {
	if len(e.Delivery) == 0 {
		if e.Class != "human" {
			return e.Class
		}
		return "-"
	}
	words := make([]string, len(e.Delivery))
	for i, d := range e.Delivery {
		words[i] = d.Platform + ":" + d.Status
		if d.Reason != nil {
			words[i] += "(" + *d.Reason + ")"
		}
	}
	return strings.Join(words, " ")
}

// clock is a time of the read API's as people read it here: in UTC, to the second.
func clock(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return at.UTC().Format("2006-01-02 15:04:05Z")
}

func dash(text *string) string { return cmp.Or(ptr.Deref(text, ""), "-") }

// tailPause is between two looks for new events.
const tailPause = 2 * time.Second

func tail(ctx context.Context, c *call) (err error) {
	c.api.Add(c.set)
	c.addOutput()
	f := c.addFilters(false)
	lines := c.set.Int("lines", 10, "how `MANY` events of before are shown first")
	if err := c.parse("Shows events as they come in, the newest last, until it is interrupted. -o json writes one object a line.", true); err != nil {
		return err
	}
	if *lines < 0 || *lines > mostPerPage {
		return flags.Errors{fmt.Sprintf("--lines: must be 0 to %d", mostPerPage)}
	}
	client, err := c.open(ctx, auth.ScopeRead, 12*time.Hour)
	if err != nil {
		return err
	}
	defer closing(client, &err)
	follower := &follower{call: c, client: client, filters: f}
	if err := follower.begin(ctx, *lines); err != nil {
		return err
	}
	ticker := time.NewTicker(tailPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if err := follower.look(ctx); err != nil {
			return err
		}
	}
}

// follower knows up to where events were shown.
type follower struct {
	*call
	client  *readapi.Client
	filters *filters
	// from is when the last event that was shown was received, shown how many of that moment were: the list's order is stable.
	from  string
	shown int
}

// begin shows what was there.
func (f *follower) begin(ctx context.Context, lines int) error {
	query := maps.Clone(f.filters.values)
	query.Set("limit", strconv.Itoa(max(lines, 1)))
	var page eventsPage
	header, err := f.client.Get(ctx, "/events", query, &page)
	if err != nil {
		return err
	}
	f.from = f.Now().UTC().Format(time.RFC3339)
	if at, err := time.Parse(time.RFC1123, header.Get("Date")); err == nil { // the pods' clock counts
		f.from = at.UTC().Format(time.RFC3339)
	}
	for i, raw := range slices.Backward(page.Data) {
		e, err := eventOf(raw)
		if err != nil {
			return err
		}
		if err := f.show(&e, raw, i < lines); err != nil {
			return err
		}
	}
	return nil
}

// look shows what has come since.
func (f *follower) look(ctx context.Context) error {
	query := maps.Clone(f.filters.values)
	query.Set("from", f.from)
	query.Set("order", "asc")
	query.Set("limit", strconv.Itoa(mostPerPage))
	skip, from := f.shown, f.from
	for {
		var page eventsPage
		if _, err := f.client.Get(ctx, "/events", query, &page); err != nil {
			return err
		}
		for _, raw := range page.Data {
			e, err := eventOf(raw)
			if err != nil {
				return err
			}
			if skip > 0 && e.ReceivedAt == from {
				skip--
				continue
			}
			if err := f.show(&e, raw, true); err != nil {
				return err
			}
		}
		if page.NextCursor == nil {
			return nil
		}
		query.Set("cursor", *page.NextCursor)
	}
}

// show writes an event, and remembers it as the last one.
func (f *follower) show(e *event, raw json.RawMessage, visible bool) error {
	if e.ReceivedAt == f.from {
		f.shown++
	} else {
		f.from, f.shown = e.ReceivedAt, 1
	}
	switch {
	case !visible:
		return nil
	case f.output == outputJSON:
		return terminal.Line(f.Stdout, raw)
	}
	row := e.row()
	f.say("%s  %s  %s  %s  %s", row[0], terminal.Clean(row[1]), row[2], terminal.Clean(row[4]), terminal.Clean(row[5]))
	return nil
}
