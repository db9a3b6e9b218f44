package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-dev/weir/hack/browser"
)

// activeRow is what the keyboard is on in the list of events: the event's address, and where its row is on the screen; an empty
// address where no row is active.
const activeRow = `(() => {
	const row = document.getElementById(document.querySelector('.grid').getAttribute('aria-activedescendant'));
	return row === null ? {Event: '', Selected: '', Top: 0} : {Event: row.querySelector('a').search, Selected: row.getAttribute('aria-selected'), Top: row.getBoundingClientRect().top};
})()`

// active is an answer to activeRow.
type active struct {
	Event, Selected string
	Top             float64
}

// dispatch is one of the events that a key stroke consists of.
func dispatch(event *input.DispatchKeyEventParams) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *event)
		return err
	})
}

func TestTheKeyboardStaysOnItsEvent(t *testing.T) {
	d := serveDashboard(t, "--demo-events", "5000")
	tab := d.visit(browser.Options{})
	d.show(tab, "?view=events&period=30d")
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector('.grid').focus()`))
	for range 60 {
		tab.Do(chromedp.KeyEvent(kb.ArrowDown))
	}
	look := func() active { return browser.Look[active](tab, activeRow) }
	tab.Await("the keyboard is on an event", activeRow+`.Event !== ''`)
	want := look()
	opens := func(when string) {
		t.Helper()
		tab.Do(chromedp.KeyEvent(kb.Enter))
		tab.Appears("dialog h3", "As it is stored")
		if got := browser.Look[string](tab, `location.search`); got != want.Event {
			t.Errorf("%s Enter opens %s, want %s", when, got, want.Event)
		}
		tab.Do(chromedp.KeyEvent(kb.Escape))
		tab.Await("the list has the focus again", `!document.querySelector('dialog') && document.activeElement.matches('.grid')`)
		if got := look(); got != want {
			t.Errorf("%s Escape leads back to %v, want %v", when, got, want)
		}
	}
	opens("at first")

	down, repeated := kb.Encode('\r')[0], kb.Encode('\r')[1]
	tab.Do(dispatch(down))
	tab.Appears("dialog h3", "As it is stored")
	tab.Do(dispatch(down), dispatch(repeated), chromedp.KeyEvent(kb.Enter))
	settle(tab)
	if got := browser.Look[string](tab, `location.search`); got != want.Event {
		t.Errorf("while Enter is held down the page goes on to %s, want that %s stays open", got, want.Event)
	}
	tab.Do(chromedp.KeyEvent(kb.Escape))
	tab.Await("the list has the focus again", `!document.querySelector('dialog') && document.activeElement.matches('.grid')`)

	asked := len(tab.Requests())
	for i := range 2 { // what is new is looked for twice
		d.collect(fmt.Sprintf(`{"event": "new", "event_id": "new %d"}`, i))
		tab.Appears(".fresh", fmt.Sprintf("%d new event", i+1))
	}
	if len(tab.Requests()) < asked+2 {
		t.Fatal("the list has not looked for new events")
	}
	if got := look(); got != want {
		t.Errorf("when others have come in the keyboard is on %v, want %v", got, want)
	}
	opens("when others have come in")

	tab.Press(".fresh", "2 new events")
	tab.Await("the new events are listed", `document.querySelector('.fresh').innerText.includes('Nothing new')`)
	tab.Do(chromedp.Focus(chromedp.CSS(".grid")))
	tab.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowUp))
	if got := look(); got.Event != want.Event {
		t.Errorf("when others are listed before it the keyboard is on %v, want %v", got, want)
	}
	want = look()
	opens("when others are listed before it")
	next := browser.Look[string](tab, `document.querySelector('.row[aria-selected=true]').nextElementSibling.querySelector('a').search`)
	tab.Do(chromedp.KeyEvent(kb.ArrowDown))
	if got := look(); got.Event != next {
		t.Errorf("ArrowDown leads to %v, want %s", got, next)
	}
	tab.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector('.grid').scrollTop = 1e6`))
	tab.Await("a row that is not in the document is not said to be active", `!document.querySelector('.grid').hasAttribute('aria-activedescendant')
		|| document.getElementById(document.querySelector('.grid').getAttribute('aria-activedescendant')) !== null`)
}

func theAddressIsReadWhole(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	const notice = "main > .notice"
	for query, want := range map[string]string{
		"?view=overview&chanel=Email":              "The address has a parameter that this view does not know: chanel. Known are view, period, from, to, event, channel,",
		"?view=funnel&steps=a&steps=b&by=x":        "does not know: by.",
		"?view=rejections&order=asc&constructor=1": "does not know: order, constructor.",
		"?view=attribution&view=events":            "The address names 2 views: attribution, events.",
	} {
		t.Run(query, func(t *testing.T) {
			d.show(tab, query)
			tab.Appears(notice, want)
			tab.Press(notice, "Leave")
			settle(tab)
			if left := tab.Texts(notice); len(left) > 0 {
				t.Errorf("when that is left out the page says %q", left)
			}
		})
	}
	t.Run("what other views filter by is no mistake", func(t *testing.T) {
		for _, view := range views(t, tab) {
			d.show(tab, view+"&period=7d&channel=Email&product=a")
			if said := tab.Texts(notice); len(said) > 0 {
				t.Errorf("%s says %q", view, said)
			}
		}
	})
	for _, view := range []string{"__proto__", "constructor", "toString"} {
		t.Run("there is no view "+view, func(t *testing.T) {
			d.show(tab, "?view="+view)
			tab.Appears("h1", "No such view")
		})
	}
	t.Run("how many rows are shown is in the address", func(t *testing.T) {
		d.show(tab, "?view=overview&of=page&by_limit=100")
		tab.Appears("main .columns .panel:nth-child(1)", "The first 10")
		tab.Press("main .columns .panel:nth-child(2)", "The first 100")
		settle(tab)
		if got := browser.Look[string](tab, `new URLSearchParams(location.search).get('of_limit')`); got != "100" {
			t.Errorf("of_limit is %q, want 100", got)
		}
	})
	t.Run("what is credited is in the address", func(t *testing.T) {
		d.show(tab, "?view=attribution")
		tab.Press("main .panel", "Value")
		if got := browser.Look[string](tab, `new URLSearchParams(location.search).get('measure')`); got != "revenue" {
			t.Errorf("the address has the measure %q, want revenue", got)
		}
	})
	t.Run("an overview says how fresh it is", func(t *testing.T) {
		for _, view := range []string{"?view=overview", "?view=events&period=30d"} {
			d.show(tab, view)
			tab.Appears(".zone", "as of ")
		}
	})
}

func eventsAreLeftWithoutAnError(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{}).Beside()
	for range 3 {
		d.show(tab, "?view=events&period=30d")
		tab.Press("nav", "Overview")
		settle(tab)
		d.showAnything(tab, "?view=events&status=foo")
		tab.Appears(".failure code", "status")
		tab.Press("nav", "Overview")
		settle(tab)
	}
	for _, complaint := range tab.Complaints() {
		if complaint != "Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)" {
			t.Errorf("the console says %q", complaint)
		}
	}
}

func targetsAreLargeEnough(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	for _, view := range append(views(t, tab), "?view=events&period=30d") {
		d.show(tab, view)
		small := browser.Look[[]string](tab, `[...document.querySelectorAll('button, .grid .row a')].filter((node) => node.checkVisibility())
			.map((node) => [node.getBoundingClientRect(), node.outerHTML.slice(0, 100)]).filter(([{width, height}]) => width < 24 || height < 24)
			.map(([{width, height}, text]) => width + ' × ' + height + ': ' + text)`)
		if len(small) > 0 {
			t.Errorf("%s: smaller than 24 × 24: %q", view, small)
		}
	}
}

func csvThatFailedIsForgotten(t *testing.T, d *dashboard) {
	between := d.comeBetween()
	tab := browser.Open(t, browser.Options{})
	d.logIn(tab, d.AccessTokens[0].Token)
	if got := browser.Look[string](tab, `document.activeElement.tagName`); got != "H1" {
		t.Errorf("after the log-in the focus is on %s, want H1", got)
	}
	d.show(tab, "?view=overview")
	refuse := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Accept") != "text/csv" {
			return false
		}
		http.Error(w, "{}", http.StatusBadGateway)
		return true
	}
	between.answer.Store(&refuse)
	const figures = "main .figures"
	tab.Press(figures, "CSV")
	tab.Appears(figures+" button", "CSV failed: again")
	between.answer.Store(nil)
	tab.Press(figures, "CSV failed")
	forgotten := `[...document.querySelectorAll('.figures button')].some((node) => node.innerText === 'CSV')`
	tab.Await("the failure is forgotten when the file is saved", forgotten)
	between.answer.Store(&refuse)
	tab.Press(figures, "CSV")
	tab.Appears(figures+" button", "CSV failed: again")
	tab.Press("main .columns", "Organic Search")
	tab.Await("the failure is forgotten when something else is shown", forgotten)
}

func theWayInSaysWhyItIsClosed(t *testing.T, d *dashboard) {
	between := d.comeBetween()
	tab := browser.Open(t, browser.Options{})
	another := func(w http.ResponseWriter, r *http.Request) bool {
		posted := r.Method == http.MethodPost
		if posted {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message": "Property not found."}`)
		}
		return posted
	}
	between.answer.Store(&another)
	tab.Do(chromedp.Navigate(d.Page))
	typeToken(tab, "wt_of_another_property")
	tab.Appears(".login [role=alert]", "This token is not valid here")
}
