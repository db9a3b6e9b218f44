package query

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

const (
	// realtimeMinutes is how many minutes are looked at, the running one among them.
	realtimeMinutes = 30
	// realtimeGroups is how many values of a dimension are named.
	realtimeGroups = 10
)

type realtimeAnswer struct {
	Data realtimeData `json:"data"`
}

type realtimeData struct {
	From           string               `json:"from"`
	To             string               `json:"to"`
	Events         int                  `json:"events"`
	UniqueVisitors int                  `json:"unique_visitors"`
	Purchases      int                  `json:"purchases"`
	Pageviews      int                  `json:"pageviews"`
	AddToCarts     int                  `json:"add_to_carts"`
	Revenue        event.Sum            `json:"revenue"`
	Currency       string               `json:"currency"`
	Minutes        []minuteRecord       `json:"minutes"`
	ByEvent        []named[groupCounts] `json:"by_event"`
	ByPage         []named[groupCounts] `json:"by_page"`
	ByChannel      []named[groupCounts] `json:"by_channel"`
	BySource       []named[groupCounts] `json:"by_source"`
	CompleteFrom   *string              `json:"complete_from,omitempty"`
}

type minuteRecord struct {
	From           string    `json:"from"`
	Events         int       `json:"events"`
	UniqueVisitors int       `json:"unique_visitors"`
	Purchases      int       `json:"purchases"`
	Revenue        event.Sum `json:"revenue"`
}

// groupCounts are the counts of one value of a dimension.
type groupCounts struct {
	Events         int `json:"events"`
	UniqueVisitors int `json:"unique_visitors"`
}

// lastMinutes returns the minutes that end with the running one, oldest first. The running one ends now.
func lastMinutes(now time.Time, count int) []analytics.Range {
	running := now.Truncate(time.Minute)
	minutes := make([]analytics.Range, count)
	for i := range minutes {
		from := running.Add(time.Duration(i+1-count) * time.Minute)
		minutes[i] = analytics.Range{From: from, To: from.Add(time.Minute)}
	}
	minutes[count-1].To = now
	return minutes
}

// realtime answers GET /properties/{property}/analytics/realtime.
func (h *Handler) realtime(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" {
		return
	}
	q := h.read(r, t, nil)
	if !q.proceed(w) {
		return
	}
	minutes := lastMinutes(q.now.UTC(), realtimeMinutes)
	all := analytics.Range{From: minutes[0].From, To: q.now}
	found, err := t.Engine.Series(r.Context(), append(slices.Clone(minutes), all), nil)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	data := renderRealtime(found.Totals, minutes, all)
	data.Currency, data.CompleteFrom = t.Property.Currency, completeFrom(found.CompleteFrom, all.From)
	for _, list := range []struct {
		by   analytics.Dimension
		into *[]named[groupCounts]
	}{
		{analytics.ByEvent, &data.ByEvent}, {analytics.ByPage, &data.ByPage},
		{analytics.ByChannel, &data.ByChannel}, {analytics.BySource, &data.BySource},
	} {
		if *list.into, err = t.mostFrequent(r.Context(), all, list.by); err != nil {
			h.fail(w, r, err)
			return
		}
	}
	server.JSON(w, http.StatusOK, realtimeAnswer{data})
}

// renderRealtime takes the figures of the minutes, and behind them those of all.
func renderRealtime(totals []analytics.Totals, minutes []analytics.Range, all analytics.Range) realtimeData {
	sum := &totals[len(minutes)]
	data := realtimeData{
		From: instant(all.From), To: instant(all.To), Events: sum.Events, UniqueVisitors: sum.UniqueVisitors, Purchases: sum.Purchases,
		Pageviews: sum.Pageviews, AddToCarts: sum.AddToCarts, Revenue: sum.Revenue, Minutes: make([]minuteRecord, len(minutes)),
	}
	for i := range minutes {
		minute := &totals[i]
		data.Minutes[i] = minuteRecord{instant(minutes[i].From), minute.Events, minute.UniqueVisitors, minute.Purchases, minute.Revenue}
	}
	return data
}

// mostFrequent returns the counts of the values of a dimension that have the most events.
func (t *Tenant) mostFrequent(ctx context.Context, in analytics.Range, by analytics.Dimension) ([]named[groupCounts], error) {
	found, err := t.Engine.Breakdown(ctx, analytics.BreakdownQuery{Range: in, By: by, Order: analytics.OrderEvents, Limit: realtimeGroups})
	if err != nil {
		return nil, err
	}
	groups := make([]named[groupCounts], len(found.Groups))
	for i := range found.Groups {
		group := &found.Groups[i]
		groups[i] = named[groupCounts]{string(by), group.Name, groupCounts{group.Events, group.UniqueVisitors}}
	}
	return groups, nil
}
