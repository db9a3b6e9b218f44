package snippet_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/hack/browser"
)

func TestAnothersPageSendsNothing(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	open(tab, foreign+"/")
	does(tab, `weir('consent', 'granted'); weir('event', 'lead')`)
	const url = collector + "/collect/" + webKey
	for name, attempt := range map[string]string{
		"as JSON, with a preflight":  `fetch('` + url + `', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{"event":"lead"}'})`,
		"as text, without one":       `fetch('` + url + `', {method: 'POST', body: '{"event":"lead"}'})`,
		"with the visitor's cookies": `fetch('` + url + `', {method: 'POST', body: '{"event":"lead"}', credentials: 'include'})`,
		"with a secret key":          `fetch('` + strings.Replace(url, webKey, secretKey, 1) + `', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{"event":"lead"}'})`,
		"from a page without origin": `new Promise((done, fail) => {
			const frame = document.createElement('iframe');
			frame.sandbox = 'allow-scripts';
			addEventListener('message', ({data}) => data ? done() : fail());
			frame.srcdoc = "<script>fetch('` + url + `', {method: 'POST', body: '{}'}).then(() => parent.postMessage(true, '*'), () => parent.postMessage(false, '*'))<\/script>";
			document.body.append(frame);
		})`,
	} {
		if browser.Look[bool](tab, attempt+`.then(() => true, () => false)`) {
			t.Errorf("%s: the page could read the answer", name)
		}
	}
	if !browser.Look[bool](tab, `navigator.sendBeacon('`+url+`', '{"event":"lead"}')`) {
		t.Error("the browser did not send the beacon: there is nothing to see")
	}
	s.until("the beacon has come", func() bool { return s.posts() >= 4 })
	if events := s.stored(); len(events) > 0 {
		t.Errorf("%d events are stored, such as %+v", len(events), events[0])
	}
}

func TestLinksThatPeopleMakeUpHarmNobody(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	const long = 6000
	for i, c := range []struct {
		link   string
		source string
	}{
		{"/?utm_source=a;domain=evil.test;max-age=999999999", ""},
		{"/?utm_source=%3Bmax-age%3D1&fbclid=x%3B%20domain%3Devil.test", ";max-age=1"},
		{"/?__proto__[ad_storage]=granted&constructor=1&utm_source=b&__proto__=x", "b"},
		{"/?utm_source=" + strings.Repeat("x", long), strings.Repeat("x", 255)},
		{"/?utm_source=%F0%9F%92&utm_medium=%zz&utm_campaign=%00", "\ufffd"},
		{"/?utm_source=<script>alert(1)</script>", "<script>alert(1)</script>"},
		{"/?utm_source=c&email=jane@example.com&utm_term=jane@example.com#jane@example.com", "c"},
	} {
		open(tab, shopHost+c.link)
		does(tab, `weir('consent', 'granted')`)
		e := s.await(i + 1)[i]
		if len(c.link) < long && c.source != "" && e.Context.UTMSource != c.source {
			t.Errorf("%.80s: the source is %q, want %q", c.link, e.Context.UTMSource, c.source)
		}
		if strings.Contains(fmt.Sprintf("%+v", e), "jane") {
			t.Errorf("%.80s: %+v", c.link, e)
		}
		if fbc := e.Context.ClickIDs["fbc"]; strings.ContainsAny(fbc, "; ") {
			t.Errorf("%.80s: the cookie says %q", c.link, fbc)
		}
		if browser.Look[string](tab, `typeof ({}).ad_storage`) != "undefined" {
			t.Errorf("%.80s: every object has what the link says", c.link)
		}
	}
	for name, cookie := range cookies(tab) {
		if cookie.Domain != ".shop.test" || cookie.Expires > 1e10 {
			t.Errorf("%s is %+v", name, cookie)
		}
	}
	if clients := distinct(s.stored(), func(e event.Event) string { return e.ClientID }); len(clients) != 1 {
		t.Errorf("the visitor is %v, want one", clients)
	}
}

func TestWhatOthersLeftInTheBrowserDoesNoHarm(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	open(tab, shopHost+"/")
	does(tab, `
Object.prototype.polluted = 'yes';
localStorage.setItem('weir.', '');
localStorage.setItem('weir.other', 'no event');
localStorage.setItem('weir.`+collector+`/collect/`+webKey+`/batchx', '1700000000000"event":"lead"}'); // years ago
localStorage.setItem('weir.`+collector+`/collect/`+webKey+`/batchy', Date.now() + '{{');
localStorage.setItem('cart', 'sku-1');
document.cookie = '_weir=jane@example.com;domain=shop.test;path=/;secure';
document.cookie = '_weir_s=%%%&&&=;domain=shop.test;path=/;secure';
weir('consent', 'granted');
weir('event', 'lead', {event_id: 'lead-1'});`)
	s.until("all is sent", func() bool {
		return browser.Look[int](tab, `Object.keys(localStorage).filter(key => key.includes('/batch')).length`) == 0
	})
	for _, e := range s.stored() {
		if strings.Contains(fmt.Sprintf("%+v", e), "jane@") || strings.Contains(fmt.Sprintf("%+v", e), "polluted") {
			t.Errorf("stored is %+v", e)
		}
	}
	if got := browser.Look[string](tab, `localStorage.cart`); got != "sku-1" {
		t.Errorf("the shop's own item is %q", got)
	}
	does(tab, `weir('event', 'lead', {event_id: 'lead-2'})`)
	s.until("an event after it arrives", func() bool {
		for _, e := range s.stored() {
			if e.ID == "lead-2" {
				return true
			}
		}
		return false
	})
}

func TestNothingPersonalStaysInTheBrowser(t *testing.T) {
	s := openShop(t)
	tab := s.consented()
	s.cut.Store(true)
	does(tab, `weir('set', {user: {email: 'jane@example.com', phone: '+4915112345678'}}); weir('event', 'lead', {event_id: 'lead-1'})`)
	kept := browser.Look[string](tab, `JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage}) + document.cookie`)
	if !strings.Contains(kept, "lead-1") || strings.Contains(kept, "jane") || strings.Contains(kept, "4915112345678") {
		t.Errorf("the browser keeps %s", kept)
	}
	s.cut.Store(false)
	does(tab, `dispatchEvent(new Event('online'))`)
	want := sha256.Sum256([]byte("jane@example.com"))
	if e := s.await(2)[1]; e.User.Get(event.EmailLower) != want {
		t.Errorf("the event has the e-mail's hash %x, want %x: a page that is still open has not forgotten whose it is", e.User.Get(event.EmailLower), want)
	}
}

func TestAVisitorsClockMayBeWrong(t *testing.T) {
	for name, by := range map[string]string{"an hour ahead": "36e5", "a year behind": "-3e10"} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			tab := s.visitor()
			s.has("/", `<script>{ const now = Date.now; window.skew = `+by+`; Date.now = () => now() + skew; }</script>`+install)
			open(tab, shopHost+"/")
			does(tab, `weir('consent', 'granted')`)
			if e := s.await(1)[0]; !e.OccurredAt.IsZero() {
				t.Errorf("it happened at %s, want when it arrived", e.OccurredAt)
			}
			s.cut.Store(true)
			does(tab, `weir('event', 'lead', {event_id: 'lead-1'})`)
			s.failed(tab)
			does(tab, `skew += 10 * 6e4`) // ten minutes later
			s.cut.Store(false)
			does(tab, `dispatchEvent(new Event('online'))`)
			if e := s.await(2)[1]; e.ID != "lead-1" || !e.OccurredAt.IsZero() {
				t.Errorf("got %s at %s, want lead-1 when it arrived", e.ID, e.OccurredAt)
			}
			s.until("the storage is empty", func() bool { return browser.Look[int](tab, `localStorage.length`) == 0 })
		})
	}
}

func TestWhatComesLateSaysWhenItHappened(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	s.has("/", `<script>{ const now = Date.now; window.skew = -12e4; Date.now = () => now() + skew; }</script>`+install)
	open(tab, shopHost+"/")
	s.cut.Store(true)
	does(tab, `weir('consent', 'granted')`)
	s.failed(tab)
	does(tab, `skew = 0`) // two minutes later
	s.cut.Store(false)
	does(tab, `dispatchEvent(new Event('online'))`)
	e := s.await(1)[0]
	if ago := browser.Look[float64](tab, fmt.Sprintf(`Date.now() - %d`, e.OccurredAt.UnixMilli())); ago < 12e4 || ago > 18e4 {
		t.Errorf("it happened %v ms ago, want two minutes", ago)
	}
}

func TestAnEventThatThePageMakesBadlyHoldsUpNoOther(t *testing.T) {
	s := openShop(t)
	tab := s.consented()
	s.cut.Store(true)
	does(tab, `
const circle = {}; circle.self = circle;
for (const [name, members] of [
  ['purchase', {data: {value: 1, currency: 'EUR', order_id: '1'}}],
  ['lead', circle], ['lead', {properties: {half: '\ud83d'}}], ['lead', {value: 'much'}], ['lead', {event_id: 'big', properties: {text: 'x'.repeat(70000)}}],
  ['lead', {timestamp: '1999-01-01T00:00:00Z', event_id: 'old'}], [null], ['lead', {event_id: {}}], ['lead', {event_id: 'good'}],
]) try { weir('event', name, members) } catch {}
dispatchEvent(new Event('online'))`)
	s.cut.Store(false)
	does(tab, `dispatchEvent(new Event('online'))`)
	s.until("all is sent", func() bool { return browser.Look[int](tab, `localStorage.length`) == 0 })
	ids := map[string]bool{}
	for _, e := range s.stored() {
		if e.Name == "purchase" {
			t.Errorf("a page's purchase is stored: %+v", e)
		}
		ids[e.ID] = true
	}
	if !ids["good"] || !ids["old"] {
		t.Errorf("stored are %v, want the good one among them, and the one with a time of its own", ids)
	}
}

// TestAFloodIsBounded holds that a page that runs wild takes a bounded part of the browser's storage and of the visitor's
// memory, and that the newest events are the ones that are left.
func TestAFloodIsBounded(t *testing.T) {
	s := openShop(t)
	tab := s.consented()
	s.cut.Store(true)
	does(tab, `for (let i = 0; i < 2000; i++) weir('event', 'lead', {event_id: 'lead-' + i})`)
	if n := browser.Look[int](tab, `localStorage.length`); n > 500 {
		t.Errorf("%d events are kept, want 500 at most", n)
	}
	s.cut.Store(false)
	does(tab, `dispatchEvent(new Event('online'))`)
	events := s.await(501)
	if newest := events[len(events)-1]; newest.ID != "lead-1999" {
		t.Errorf("the newest that is stored is %s", newest.ID)
	}
}
