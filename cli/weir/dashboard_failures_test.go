package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-dev/weir/hack/browser"
)

// escaped writes a text as a value of a query string.
func escaped(text string) string { return url.QueryEscape(text) }

func aWrongAddressLeadsOn(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	for query, want := range map[string]string{
		"?view=overview&period=forever":                          "period",
		"?view=overview&from=tomorrow":                           "from",
		"?view=funnel&steps=pageview&steps=purchase&window=soon": "window",
		"?view=attribution&lookback=ever":                        "lookback",
		"?view=attribution&group_by=weather":                     "group_by",
		"?view=events&status=lost":                               "status",
		"?view=events&class=robot":                               "class",
		"?view=deliveries&period=9y":                             "period",
	} {
		t.Run(query, func(t *testing.T) {
			d.show(tab, query)
			tab.Appears(".failure code", want)
			if said := tab.Texts(".failure"); len(said) != 1 {
				t.Errorf("the page says %q, want it said once", said)
			}
			tab.Press(".failure", "Leave that out")
			settle(tab)
			if left := tab.Texts(".failure"); len(left) > 0 {
				t.Errorf("without it the page says %q", left)
			}
		})
	}
	for _, complaint := range tab.Complaints() {
		if strings.HasPrefix(complaint, "Uncaught") {
			t.Errorf("the console says %q", complaint)
		}
	}
	t.Run("a view that there is not", func(t *testing.T) {
		d.show(tab, "?view=weather")
		tab.Press("main", "To the overview")
		tab.Appears("h1", "Overview")
	})
	t.Run("an event that there is not", func(t *testing.T) {
		d.show(tab, "?view=events&id=nobody")
		tab.Appears("dialog", "This event is not kept.")
	})
}

// between is a proxy before the page that answers some requests itself.
type between struct {
	*httptest.Server
	answer atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

// comeBetween serves the page at another address, and has what is asked for answered by a function first, where there is one.
func (d *dashboard) comeBetween() *between {
	d.t.Helper()
	target, err := url.Parse(d.Page)
	if err != nil {
		d.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host}) }}
	b := &between{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := b.answer.Load(); answer == nil || !(*answer)(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	d.t.Cleanup(b.Close)
	d.Page = b.URL + target.Path
	return b
}

// with has what is asked of the read API answered with a status and a message.
func (b *between) with(status int, header, message string) {
	answer := func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/api/analytics/") {
			return false
		}
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"message": %s}`, browser.Quote(message))
		return true
	}
	b.answer.Store(&answer)
}

func whatCannotBeAnsweredIsSaid(t *testing.T, d *dashboard) {
	between := d.comeBetween()
	tab := browser.Open(t, browser.Options{})
	d.logIn(tab, d.AccessTokens[0].Token)

	t.Run("numbers that are being read come by themselves", func(t *testing.T) {
		between.with(http.StatusServiceUnavailable, "Retry-After: 1", "The events are being read.")
		d.showAnything(tab, "?view=overview")
		tab.Appears(".failure", "The events are being read.")
		tab.Appears(".failure", "tried again by itself")
		between.answer.Store(nil)
		tab.Await("all numbers are there", `document.querySelector('.stat-label') && !document.querySelector('.failure')`)
	})
	t.Run("a Property that was removed", func(t *testing.T) {
		between.with(http.StatusNotFound, "", "Property not found.")
		d.showAnything(tab, "?view=overview")
		tab.Appears(".failure", "Property not found.")
		between.answer.Store(nil)
	})
	t.Run("too many requests", func(t *testing.T) {
		between.with(http.StatusTooManyRequests, "Retry-After: 1", "Too many requests.")
		d.showAnything(tab, "?view=overview")
		tab.Appears(".failure", "Too many requests.")
		between.answer.Store(nil)
		tab.Appears(".stat-label", "Visitors")
	})
	t.Run("a server that cannot be reached", func(t *testing.T) {
		hang := func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/api/analytics/") {
				panic(http.ErrAbortHandler)
			}
			return false
		}
		between.answer.Store(&hang)
		d.showAnything(tab, "?view=overview")
		tab.Appears(".failure", "cannot be reached")
		between.answer.Store(nil)
		tab.Appears(".stat-label", "Visitors")
	})
}

// showAnything opens a view whose answers may not come.
func (d *dashboard) showAnything(tab *browser.Tab, query string) {
	tab.Do(chromedp.Navigate(d.Page+query), chromedp.WaitVisible(chromedp.CSS("#main h1")))
}

// logIn comes in with a token, which is typed.
func (d *dashboard) logIn(tab *browser.Tab, token string) {
	d.t.Helper()
	tab.Do(chromedp.Navigate(d.Page))
	typeToken(tab, token)
	settle(tab)
}

// typeToken types a token once the way in is shown, which has the focus on its first button.
func typeToken(tab *browser.Tab, token string) {
	tab.Await("the way in is shown", `document.activeElement.matches('.login *')`)
	tab.Do(chromedp.Evaluate[chromedp.Void](`(() => { const field = document.querySelector('.login input'); field.focus(); field.select(); })()`),
		chromedp.KeyEvent(token+kb.Enter))
}

// openBriefly opens a view with a token that is valid for a while, and says until when. That is as short as this machine allows:
// where the token has expired before the view is open, it is done again with one that is valid for longer.
func openBriefly(t *testing.T, query string) (*dashboard, *browser.Tab, time.Time) {
	for valid := 10 * time.Second; valid < 3*time.Minute; valid *= 2 {
		expires := time.Now().Add(valid).Truncate(time.Second)
		manifest := strings.Replace(pagedShop, "{name: analyst, scope: read}",
			"{name: analyst, scope: read, expirationTime: "+browser.Quote(expires.UTC().Format(time.RFC3339))+"}", 1)
		d := serveDashboardOf(t, manifest)
		tab := browser.Open(t, browser.Options{})
		tab.Do(chromedp.Navigate(d.Page + query))
		typeToken(tab, d.AccessTokens[1].Token)
		tab.Await("the view is open, or the token has expired", `document.querySelector('.who, .login [role=alert]:not(:empty)')`)
		who := tab.Texts(".who")
		if len(who) == 1 && strings.Contains(who[0], "analyst") && time.Now().Before(expires) {
			return d, tab, expires
		}
	}
	t.Fatal("the page is not open within minutes")
	return nil, nil, time.Time{}
}

func TestASessionEndsWithItsToken(t *testing.T) {
	const wanted = "?view=events&event=purchase"
	d, tab, expires := openBriefly(t, wanted)
	tab.Do(chromedp.WaitVisible(chromedp.CSS(".login input"))) // the list looks for new events
	if time.Now().Before(expires) {
		t.Error("the session has ended before its token")
	}
	if got := browser.Look[string](tab, `location.search`); got != wanted {
		t.Errorf("the address is %q, want %q, which is shown after the next log-in", got, wanted)
	}
	tab.Appears(".login .notice", "The session has ended")
	typeToken(tab, d.AccessTokens[1].Token)
	tab.Appears(".login [role=alert]", "expired")
	typeToken(tab, d.AccessTokens[0].Token)
	settle(tab)
	tab.Appears("h1", "Events")
	if browser.Look[bool](tab, `JSON.stringify([localStorage, sessionStorage, location.href, document.cookie, history.state]).includes('wt_')`) {
		t.Error("the page keeps a token")
	}
	tab.Press(".who", "Log out")
	tab.Do(chromedp.WaitVisible(chromedp.CSS(".login input")))
	if said := tab.Texts(".login .notice"); len(said) > 0 {
		t.Errorf("to whoever has logged out the page says %q", said)
	}
	if got := browser.Look[int](tab, `fetch('api/events').then(({status}) => status)`); got != http.StatusUnauthorized {
		t.Errorf("after logging out the events are answered %d, want 401", got)
	}
}
