package property

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/cli/readapi"
	"github.com/weir-dev/weir/cli/terminal"
	"github.com/weir-dev/weir/collector/auth"
)

// numbers are what the read API says of a Property.
type numbers struct {
	// AsOf is the time of the newest event that the numbers know of, "" where there is none.
	AsOf      string     `json:"as_of"`
	Realtime  realtime   `json:"last_30_minutes"`
	Rejected  rejected   `json:"rejections"`
	Platforms []platform `json:"platforms"`
}

// realtime are the last 30 minutes.
type realtime struct {
	Events    int         `json:"events"`
	Visitors  int         `json:"unique_visitors"`
	Purchases int         `json:"purchases"`
	Revenue   json.Number `json:"revenue"`
	Currency  string      `json:"currency"`
}

// rejected counts what was refused lately.
type rejected struct {
	LastHour int `json:"last_hour"`
	// AtLeast says that there may be more: no more are remembered.
	AtLeast bool   `json:"at_least"`
	Newest  string `json:"newest"`
	Why     string `json:"newest_message"`
}

// platform is how deliveries to one stand.
type platform struct {
	Platform   string   `json:"platform"`
	Type       string   `json:"type"`
	Mode       string   `json:"mode"`
	Suspended  bool     `json:"suspended"`
	LagEvents  *int64   `json:"lag_events"`
	LagSeconds *float64 `json:"lag_seconds"`
	Waiting    *int64   `json:"waiting"`
	Paused     *paused  `json:"paused"`
	ReportedAt *string  `json:"reported_at"`
	// Day are the deliveries of the events of the last 24 hours.
	Day dayTotals `json:"last_24_hours"`
}

type paused struct {
	Reason     string  `json:"reason"`
	LastReason string  `json:"last_reason"`
	Since      *string `json:"since"`
	Advice     *string `json:"advice"`
}

type dayTotals struct {
	Pending   int         `json:"pending"`
	Retrying  int         `json:"retrying"`
	Delivered int         `json:"delivered"`
	Failed    int         `json:"failed"`
	Skipped   int         `json:"skipped"`
	Expired   int         `json:"expired"`
	Reasons   []whyCounts `json:"reasons"`
}

type whyCounts struct {
	Status string  `json:"status"`
	Reason string  `json:"reason"`
	Count  int     `json:"count"`
	Advice *string `json:"advice"`
}

// shadowed is how many were skipped because the platform was in Shadow, which a replay can put back.
func (t *platformTotals) shadowed() int {
	for _, why := range t.Reasons {
		if why.Status == "skipped" && why.Reason == "shadow" {
			return why.Count
		}
	}
	return 0
}

// deliveriesAnswer is the read API's.
type deliveriesAnswer struct {
	Data struct {
		Totals []platformTotals `json:"totals"`
	} `json:"data"`
}

type platformTotals struct {
	Platform string `json:"platform"`
	dayTotals
}

// count asks the read API, and notes where it cannot.
func (s *standing) count(ctx context.Context, c *call) {
	client, err := c.open(ctx, auth.ScopeRead, shortly)
	if err != nil {
		s.missed(fmt.Errorf("numbers: %w", err))
		return
	}
	found, err := ask(ctx, client, c.Now())
	if err != nil {
		s.missed(fmt.Errorf("numbers: %w", err))
	} else {
		s.Numbers = found
	}
	if err := client.Close(); err != nil {
		s.missed(err)
	}
}

func ask(ctx context.Context, client *readapi.Client, now time.Time) (*numbers, error) {
	found := &numbers{Platforms: []platform{}}
	var live struct {
		Data realtime `json:"data"`
	}
	header, err := client.Get(ctx, "/analytics/realtime", nil, &live)
	if err != nil {
		return nil, err
	}
	found.Realtime, found.AsOf = live.Data, header.Get("Weir-As-Of")
	var refused struct {
		Data []rejection `json:"data"`
	}
	if _, err := client.Get(ctx, "/rejections", url.Values{"limit": {strconv.Itoa(mostRejections)}}, &refused); err != nil {
		return nil, err
	}
	found.Rejected = rejectedOf(refused.Data, now)
	var listed struct {
		Data []platform `json:"data"`
	}
	if _, err := client.Get(ctx, "/platforms", nil, &listed); err != nil {
		return nil, err
	}
	var day deliveriesAnswer
	if _, err := client.Get(ctx, "/deliveries", nil, &day); err != nil {
		return nil, err
	}
	for _, p := range listed.Data {
		p.Day.Reasons = []whyCounts{}
		for _, totals := range day.Data.Totals {
			if totals.Platform == p.Platform {
				p.Day = totals.dayTotals
			}
		}
		found.Platforms = append(found.Platforms, p)
	}
	return found, nil
}

func rejectedOf(list []rejection, now time.Time) rejected {
	found := rejected{}
	for _, r := range list {
		if at, err := time.Parse(time.RFC3339, r.ReceivedAt); err == nil && now.Sub(at) < time.Hour {
			found.LastHour++
		}
	}
	if len(list) > 0 {
		found.Newest, found.Why = list[0].ReceivedAt, list[0].why()
	}
	found.AtLeast = found.LastHour == mostRejections
	return found
}

func (c *call) showNumbers(n *numbers) error {
	c.say("\nLast 30 minutes")
	c.say("  %d events (%.1f a minute) of %d visitors, %d purchases, revenue %s %s", n.Realtime.Events, float64(n.Realtime.Events)/30,
		n.Realtime.Visitors, n.Realtime.Purchases, n.Realtime.Revenue, terminal.Clean(n.Realtime.Currency))
	if n.AsOf == "" {
		c.say("  no event has come in yet")
	} else {
		c.say("  newest event: %s", clock(n.AsOf))
	}
	atLeast := ""
	if n.Rejected.AtLeast {
		atLeast = "at least "
	}
	c.say("  refused within the last hour: %s%d", atLeast, n.Rejected.LastHour)
	if n.Rejected.LastHour > 0 {
		c.say("  > newest: %s %s rejections %s lists them.", terminal.Clean(n.Rejected.Why), c.Program, terminal.Clean(c.name))
	}
	if len(n.Platforms) == 0 {
		c.say("\nNo platforms: events are delivered nowhere.")
		return nil
	}
	c.say("\nPlatforms, and deliveries of the last 24 hours")
	table := c.table("  ", "PLATFORM", "TYPE", "STATE", "BEHIND", "WAITING", "DELIVERED", "SKIPPED", "FAILED", "EXPIRED")
	for i := range n.Platforms {
		p := &n.Platforms[i]
		table.Row(p.Platform, p.Type, p.state(), p.behind(), number(p.Waiting), strconv.Itoa(p.Day.Delivered), strconv.Itoa(p.Day.Skipped),
			strconv.Itoa(p.Day.Failed), strconv.Itoa(p.Day.Expired))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range n.Platforms {
		for _, line := range n.Platforms[i].advice() {
			c.say("  > %s", terminal.Clean(line))
		}
	}
	return nil
}

// state is what is done with the platform's events now.
func (p *platform) state() string {
	switch {
	case p.Suspended:
		return "suspended"
	case p.Paused != nil:
		return "paused: " + p.Paused.Reason
	case p.ReportedAt == nil:
		return "no deliverer"
	}
	return strings.ToLower(p.Mode)
}

// behind is how many events were not taken up, and for how long.
func (p *platform) behind() string {
	if p.LagSeconds == nil {
		return "?"
	}
	if *p.LagSeconds == 0 {
		return "0"
	}
	return fmt.Sprintf("%s, %s", number(p.LagEvents), (time.Duration(*p.LagSeconds) * time.Second).String())
}

func number(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}

// advice is what to do: about a pause, and about what failed or expired most.
func (p *platform) advice() []string {
	var lines []string
	switch {
	case p.Paused != nil:
		lines = append(lines, fmt.Sprintf("%s is paused (%s): %s", p.Platform, p.Paused.LastReason, dash(p.Paused.Advice)))
	case p.ReportedAt == nil:
		lines = append(lines, p.Platform+": no deliverer has reported within a minute: none runs, or none reaches Redis")
	}
	for _, why := range p.Day.Reasons {
		if (why.Status == "failed" || why.Status == "expired" || why.Status == "retrying") && why.Advice != nil {
			lines = append(lines, fmt.Sprintf("%s: %d %s (%s): %s", p.Platform, why.Count, why.Status, why.Reason, *why.Advice))
		}
		if len(lines) == 3 {
			break
		}
	}
	return lines
}
