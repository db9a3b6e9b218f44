package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-dev/weir/hack/browser"
)

// storyOf opens the newest event's story in the list of events.
func (d *dashboard) storyOf(tab *browser.Tab) {
	d.show(tab, "?view=events&"+weekBefore())
	tab.Do(chromedp.Click(chromedp.CSS(".grid .row:nth-child(1) td:nth-child(2)")))
	tab.Appears("dialog h3", "As it is stored")
	settle(tab)
}

func nothingIsABarrier(t *testing.T, d *dashboard) {
	for _, scheme := range []string{"light", "dark"} {
		prefer := browser.Prefer("prefers-color-scheme", scheme)
		tab := d.visit(browser.Options{Prepare: []chromedp.Action[chromedp.Void]{prefer}})
		shown := map[string]func(){
			"an event's story": func() { d.storyOf(tab) },
			"a wrong address":  func() { d.show(tab, "?view=overview&period=forever") },
			"an empty period":  func() { d.show(tab, "?view=overview&from=2020-01-01&to=2020-01-02") },
			"a platform's verdict": func() {
				d.show(tab, "?view=deliveries")
				tab.Press(".card", "Send a test event")
				tab.Appears("dialog h2", "A test event for")
			},
			"what a platform would be sent": func() { d.show(tab, "?view=deliveries&shadow=tiktok") },
		}
		for _, view := range views(t, tab) {
			shown["the view "+view] = func() { d.show(tab, view) }
		}
		for name, show := range shown {
			t.Run(name+", "+scheme, func(t *testing.T) {
				show()
				if barriers := tab.Barriers(); len(barriers) > 0 {
					t.Errorf("%s", strings.Join(barriers, "\n"))
				}
			})
		}
		t.Run("the way in, "+scheme, func(t *testing.T) {
			stranger := browser.Open(t, browser.Options{Prepare: []chromedp.Action[chromedp.Void]{prefer}})
			stranger.Do(chromedp.Navigate(d.Page), chromedp.WaitVisible(chromedp.CSS(".login input")))
			if barriers := stranger.Barriers(); len(barriers) > 0 {
				t.Errorf("%s", strings.Join(barriers, "\n"))
			}
		})
	}
}

func theTabKeyReachesEverything(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	for _, view := range views(t, tab) {
		t.Run(view, func(t *testing.T) {
			d.show(tab, view)
			if left := tab.Unreached(); len(left) > 0 {
				t.Errorf("not reached:\n%s", strings.Join(left, "\n"))
			}
		})
	}
}

func theKeyboardIsEnough(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	// tabTo presses Tab until what is wanted has the focus.
	tabTo := func(what, condition string) {
		for range 100 {
			if browser.Look[bool](tab, condition) {
				return
			}
			tab.Do(chromedp.KeyEvent(kb.Tab))
		}
		t.Fatalf("Tab does not reach %s", what)
	}
	tabTo("the view", `document.activeElement.search?.startsWith('?view=funnel') ?? false`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	settle(tab)
	if got := browser.Look[string](tab, `document.activeElement.innerText`); got != "Funnel" {
		t.Errorf("after the view is opened the focus is on %q, want its heading", got)
	}
	tabTo("the field of another step", `document.activeElement.getAttribute('aria-label') === 'Another step'`)
	tab.Do(chromedp.KeyEvent("view_content"), chromedp.KeyEvent(kb.Enter))
	tab.Appears(".bars", "view_content")
	for range 2 {
		tabTo("the button that puts it earlier", `/^Step [34] earlier$/.test(document.activeElement.getAttribute('aria-label'))
      && document.activeElement.closest('li').innerText.includes('view_content')`)
		tab.Do(chromedp.KeyEvent(kb.Enter))
		settle(tab)
	}
	want := []string{"pageview", "view_content", "add_to_cart", "purchase"}
	if got := browser.Look[[]string](tab, `new URLSearchParams(location.search).getAll('steps')`); !slices.Equal(got, want) {
		t.Errorf("the funnel is of %q, want %q", got, want)
	}

	d.show(tab, "?view=events&"+weekBefore())
	tabTo("the list", `document.activeElement.getAttribute('role') === 'grid'`)
	tab.Do(chromedp.KeyEvent(kb.ArrowDown + kb.ArrowDown + kb.Enter))
	tab.Appears("dialog h3", "As it is stored")
	third := browser.Look[string](tab, `document.querySelector('.row[aria-rowindex="4"] a').search`)
	if got := browser.Look[string](tab, `location.search`); got != third {
		t.Errorf("the address is %s, want the third event's, %s", got, third)
	}
	tab.Do(chromedp.KeyEvent(kb.Escape))
	await(t, "Escape closes the event and gives the focus back to the list", func() bool {
		return browser.Look[bool](tab, `document.querySelector('dialog') === null && document.activeElement.getAttribute('role') === 'grid'`)
	})
}

func itIsAsNarrowAsATelephone(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	tab.Do(chromedp.EmulateViewport(360, 740))
	for _, view := range views(t, tab) {
		t.Run(view, func(t *testing.T) {
			d.show(tab, view)
			if wide := tab.Overflow(); len(wide) > 0 {
				t.Errorf("wider than the screen: %s", strings.Join(wide, "\n"))
			}
		})
	}
	t.Run("an event's story", func(t *testing.T) {
		d.storyOf(tab)
		if wide := browser.Look[int](tab, `document.querySelector('dialog').scrollWidth`); wide > 360 {
			t.Errorf("the story is %d wide", wide)
		}
	})
}
