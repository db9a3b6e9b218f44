package main

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/hack/browser"
)

var update = flag.Bool("update", false, "take the pictures of the guide to the dashboard anew")

const (
	picturesFolder = "../../docs/guides/dashboard"
	// How wide the pictures are, and at most how high.
	pictureWidth, pictureHeight = 1280, 860
)

// pictures are the guide's, by their names: which view, how high the screen is, and what is done before.
var pictures = map[string]struct {
	query  string
	height int64
	scheme string
	do     func(*browser.Tab)
}{
	"overview":      {"?view=overview&measure=revenue", pictureHeight, "light", nil},
	"overview-dark": {"?view=overview&measure=revenue", pictureHeight, "dark", nil},
	"events":        {"?view=events&period=7d", 700, "light", nil},
	"event": {"?view=events&period=7d&event=purchase", 780, "light", func(tab *browser.Tab) {
		tab.Do(chromedp.Click(chromedp.CSS(".grid .row:nth-child(2) td:nth-child(2)")))
		tab.Appears("dialog h3", "As it is stored")
	}},
	"funnel":      {"?view=funnel&steps=pageview&steps=view_content&steps=add_to_cart&steps=purchase", 780, "light", nil},
	"attribution": {"?view=attribution", 700, "light", nil},
	"deliveries":  {"?view=deliveries&period=7d", 780, "light", nil},
	"rejections":  {"?view=rejections", 420, "light", nil},
	"settings": {"?view=settings", 720, "light", func(tab *browser.Tab) { // no key is in a picture
		tab.Do(chromedp.Evaluate[chromedp.Void](`(() => { const field = document.querySelector('input[type=password]'); field.focus(); field.select(); })()`),
			chromedp.KeyEvent("wk_YOUR_KEY"))
	}},
}

// TestTheGuidesPictures holds that each picture can be taken and is small. With -update it takes them: `make screenshots`.
func TestTheGuidesPictures(t *testing.T) {
	events := "20000"
	if *update {
		events = "200000" // which takes a minute with the race detector, and shows the same kinds of things
	}
	d := serveDashboard(t, "--demo-events", events, "--demo-days", "60")
	for _, refused := range []string{
		`{"event": "purchase", "event_id": "order-77", "data": {"currency": "EUR"}}`, `{"event": "purchase", "data": {"value": 10, "currency": "euro"}}`, `{"event": ""}`,
	} {
		d.collect(refused)
	}
	for _, scheme := range []string{"light", "dark"} {
		tab := d.visit(browser.Options{Prepare: []chromedp.Action[chromedp.Void]{browser.Prefer("prefers-color-scheme", scheme)}})
		for name, picture := range pictures {
			if picture.scheme != scheme {
				continue
			}
			t.Run(name, func(t *testing.T) {
				tab.Do(chromedp.EmulateViewport(pictureWidth, picture.height))
				d.show(tab, picture.query)
				if picture.do != nil {
					picture.do(tab)
					settle(tab)
				}
				tab.Keep(filepath.Join(picturesFolder, name+".png"), pictureWidth, picture.height, *update)
			})
		}
	}
}
