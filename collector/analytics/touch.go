package analytics

import (
	"net/url"
	"strings"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// TouchOf returns where an event says that its visitor came from, and whether it says so at all. It does where
// it has a utm_source, the id of a click, or a referrer of another host than the page's; without a page every
// referrer is of another host. Source and medium come from the first of these that names one (the medium of a
// referrer only where the referrer is the source), the campaign from utm_campaign alone.
func TouchOf(c *event.Context) (columns.Touch, bool) {
	t := columns.Touch{
		Source:   strings.TrimSpace(c.UTMSource),
		Medium:   strings.TrimSpace(c.UTMMedium),
		Campaign: strings.TrimSpace(c.UTMCampaign),
	}
	if click, ok := clickOf(c); ok {
		t.Source = firstOf(t.Source, click.source)
		t.Medium = firstOf(t.Medium, click.medium)
	}
	if t.Source == "" {
		t.Source = foreignHost(c.Referrer, c.PageURL)
		if t.Source == "" {
			return columns.Touch{}, false
		}
		t.Medium = firstOf(t.Medium, referrerMedium(t.Source))
	}
	t.Channel = channelOf(t.Source, t.Medium)
	return t, true
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// clickOf returns the first of [clicks] that the event carries, or carried before its ids were let go.
func clickOf(c *event.Context) (click, bool) {
	if len(c.ClickIDs) == 0 && c.Clicked == 0 {
		return click{}, false
	}
	for _, click := range clicks {
		if c.HasClick(click.id) {
			return click, true
		}
	}
	return click{}, false
}

// foreignHost returns the referrer's host, "" where it has none or is the page's own.
func foreignHost(referrer, page string) string {
	if referrer == "" {
		return ""
	}
	host := hostOf(referrer)
	if host == hostOf(page) {
		return ""
	}
	return host
}

// hostOf returns a URL's host in lower case without port, final dot and a leading "www.", "" where the text is
// no absolute URL.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), "www.")
}
