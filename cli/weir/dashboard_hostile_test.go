package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/hack/browser"
)

// hostile are texts that somebody may send as a name, a campaign or a title.
var hostile = []string{
	`<img src=x onerror="window.owned=1">`,
	`"><script>window.owned=1</script>`,
	`javascript:window.owned=1`,
	`</textarea></style><svg onload=window.owned=1>`,
	`{{constructor.constructor("window.owned=1")()}}${window.owned=1}`,
	"\u202eesrever \u2066inside",
	`الحدث مرحبا`,
	strings.Repeat("Ω", 100),
	strings.Repeat("wide", 25),
	`👩‍👩‍👧‍👦🏳️‍🌈 purchase`,
	`__proto__`,
	`constructor`,
	`a|b\c & d=e#f?g%20h`,
	`=HYPERLINK("https://elsewhere.test","x")`,
}

func TestWhatEventsSayIsTextEverywhere(t *testing.T) {
	d := serveDashboard(t)
	for i, text := range hostile {
		for step, name := range []string{"pageview", text, "purchase"} {
			body := fmt.Sprintf(`{"event": %s, "event_id": %s, "client_id": %s, "data": {"value": 10, "currency": "EUR", "order_id": %s, "coupon": %[2]s,
				"contents": [{"id": %[2]s, "quantity": 1, "price": 10}]}, "properties": {"note": %[2]s},
				"context": {"page_url": "https://shop.example.com/%[5]d", "page_title": %[6]s, "utm_source": %[6]s, "utm_medium": %[6]s, "utm_campaign": %[6]s}}`,
				browser.Quote(name), browser.Quote(fmt.Sprintf("%s %d %d", text, i, step)), browser.Quote(fmt.Sprintf("c%d", i)), browser.Quote(fmt.Sprintf("%s %d", text, i)), i, browser.Quote(text))
			if got := d.collect(body); got.status != http.StatusAccepted {
				t.Fatalf("%s: %d %s", text, got.status, got.body)
			}
		}
	}
	d.collect(`{"event": "<img src=x onerror=window.owned=1>", "data": {"value": "much"}}`) // which is refused
	await(t, "all are counted", func() bool { return len(d.listing()) == 3*len(hostile) })

	tab := d.visit(browser.Options{})
	shown := views(t, tab)
	for _, by := range []string{"by=source", "by=medium", "by=campaign", "of=product", "of=event"} {
		shown = append(shown, "?view=overview&"+by)
	}
	for _, view := range shown {
		d.show(tab, view)
		isPlain(t, tab, view)
	}
	tab.Do(chromedp.EmulateViewport(1280, 1400)) // the document holds rows for all of them
	d.show(tab, "?view=events")
	for _, text := range hostile {
		names := tab.Texts(".grid .row td:nth-child(2)")
		if !slices.Contains(names, strings.TrimSpace(text)) {
			t.Errorf("no event is listed as %q, but %q", text, names)
		}
	}
	for i, text := range hostile {
		view := "?view=events&id=" + escaped(fmt.Sprintf("%s %d 1", text, i))
		d.show(tab, view)
		tab.Appears("dialog h3", "As it is stored")
		if got := tab.Texts("dialog .story-head strong"); len(got) != 1 || got[0] != strings.TrimSpace(text) {
			t.Errorf("the event %q is shown as %q", text, got)
		}
		isPlain(t, tab, view)
		d.show(tab, "?view=funnel&steps=pageview&steps="+escaped(strings.NewReplacer(`\`, `\\`, `|`, `\|`).Replace(text)))
		tab.Appears(".bars", strings.TrimSpace(text))
		isPlain(t, tab, view)
		d.show(tab, "?view=overview&campaign="+escaped(text))
		tab.Appears(".filters", strings.TrimSpace(text))
		isPlain(t, tab, view)
	}
	manyCampaigns(t, d, tab)
}

// manyCampaigns holds that of the hostile campaigns, more than ten, not all are drawn at once.
func manyCampaigns(t *testing.T, d *dashboard, tab *browser.Tab) {
	t.Helper()
	d.show(tab, "?view=attribution&group_by=campaign")
	if rows := cells(tab, "main .table"); len(rows) != 10 {
		t.Errorf("%d campaigns are listed at first, want 10", len(rows))
	}
	tab.Appears("main .note", fmt.Sprintf("%d more.", len(hostile)-10))
	tab.Press("main", "The first 100")
	tab.Await("all campaigns are listed", fmt.Sprintf(`document.querySelectorAll('main .table tbody tr').length === %d && location.search.includes('limit=100')`, len(hostile)))
}

// isPlain fails the test where a text has become more than text.
func isPlain(t *testing.T, tab *browser.Tab, view string) {
	t.Helper()
	for _, what := range tab.Injected() {
		t.Errorf("%s: %s", view, what)
	}
}
