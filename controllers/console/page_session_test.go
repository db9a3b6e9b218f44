package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/collector/auth"
	chromium "github.com/weir-dev/weir/hack/browser"
)

// endsSessions has the provider end its own session and send the browser back, as providers do that have such a place.
func (c *running) endsSessions() {
	c.provider.misbehave(faults{before: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/end" {
			return false
		}
		w.Header().Set("Location", r.URL.Query().Get("post_logout_redirect_uri"))
		w.WriteHeader(http.StatusFound)
		return true
	}})
}

// TestWhoHasSignedOutStaysOut holds even where the provider goes on knowing them, and in every tab.
func TestWhoHasSignedOutStaysOut(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.endsSessions()
	p := newProperty(t, newNamespace(t), "shop")
	user := "user of " + p.Namespace
	grant(t, "User", user, p.Namespace, editor...)
	s := c.seat(t, user, "/")
	beside := &seat{s.Beside(), c}
	beside.show(below(p) + "?view=access")
	s.Press(".who", "Log out")
	s.Appears(".login [role=status]", "You are signed out.")
	if got := s.path(); got != "/" {
		t.Errorf("signed out one is at %s, want the console", got)
	}
	if led := s.Requests(); !strings.HasPrefix(led[len(led)-1], c.url) || !strings.Contains(strings.Join(led, " "), c.provider.URL+"/end?") {
		t.Errorf("signing out has led to %q, want the provider and back", led)
	}
	beside.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector('nav a').click()`)) // which asks something
	beside.Appears(".login [role=status]", "You are signed out.")
	if barriers := s.Barriers(); len(barriers) > 0 {
		t.Errorf("signed out: %s", strings.Join(barriers, "\n"))
	}
	s.Press(".login", "Sign in")
	s.settle()
	s.Appears(".who", user)
	beside.Press(".login", "Sign in")
	beside.settle()
	if got, want := beside.path(), below(p)+"?view=overview"; got != want {
		t.Errorf("the other tab is at %s, want %s", got, want)
	}
}

// TestASessionThatEndsIsRenewedWhereItWas holds for both pages.
func TestASessionThatEndsIsRenewedWhereItWas(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := newProperty(t, newNamespace(t), "shop")
	user := "user of " + p.Namespace
	grant(t, "User", user, p.Namespace, editor...)
	s := c.seat(t, user, "/?sort=-property")
	c.endSessions()
	s.Press(".bar", "Refresh")
	s.Await("the list is there again", `performance.timeOrigin > `+chromium.Look[string](s.Tab, `String(performance.timeOrigin)`)+` && document.querySelector('.list tbody tr')`)
	if got := s.path(); got != "/?sort=-property" {
		t.Errorf("after signing in again the address is %s", got)
	}
	s.show(below(p) + "?view=access")
	before := chromium.Look[string](s.Tab, `String(performance.timeOrigin)`)
	c.endSessions()
	s.Press("nav", "Events")
	s.Await("the view is there again", `performance.timeOrigin > `+before+` && document.querySelector('h1')?.innerText === 'Events'`)
	if got, want := s.path(), below(p)+"?view=events"; got != want {
		t.Errorf("after signing in again the address is %s, want %s", got, want)
	}
}

// TestWhoIsNotSignedInAfterSigningInIsNotSentInCircles holds where sessions end as soon as they begin, as where a browser keeps no cookie.
func TestWhoIsNotSignedInAfterSigningInIsNotSentInCircles(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.SessionMaxAge = time.Nanosecond })
	for _, path := range []string{"/?period=30d", "/namespaces/a/properties/b/"} {
		c.provider.letIn(map[string]any{"sub": "ada"})
		tab := chromium.Open(t, chromium.Options{AnyCertificate: true})
		tab.Do(chromedp.Navigate(c.url + path))
		tab.Appears(".login [role=status]", "Signing in has not worked")
		if got := chromium.Look[string](tab, `location.pathname + location.search`); got != path {
			t.Errorf("the address is %s, want %s", got, path)
		}
		logins := 0
		for _, asked := range tab.Requests() {
			if to, err := url.Parse(asked); err == nil && to.Path == pathLogin {
				logins++
			}
		}
		if logins != 1 {
			t.Errorf("%s: the browser was sent to sign in %d times, want once", path, logins)
		}
	}
}

// TestASessionHasNoSecretOfTheConsoleInThePage holds that no script of the page can read what signs somebody in.
func TestASessionHasNoSecretOfTheConsoleInThePage(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := newProperty(t, newNamespace(t), "shop")
	user := "user of " + p.Namespace
	grant(t, "User", user, p.Namespace, editor...)
	c.startPods(t, p)
	s := c.seat(t, user, below(p))
	for _, secret := range []string{"weir-console", auth.AccessTokenPrefix, "eyJ"} {
		if s.holds(secret) {
			t.Errorf("the page holds %s", secret)
		}
	}
}
