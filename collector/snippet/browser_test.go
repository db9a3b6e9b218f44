package snippet_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/hack/browser"
)

// loaded waits until the page has the snippet.
const loaded = `new Promise(done => { const look = () => window.weir && !weir.q ? done(true) : setTimeout(look, 5); look(); })`

// open opens an address of the shop's, and waits for the snippet.
func open(tab *browser.Tab, address string) {
	tab.Do(chromedp.Navigate(address))
	browser.Look[bool](tab, loaded)
}

// does runs a script in the page.
func does(tab *browser.Tab, script string) {
	tab.Do(chromedp.Evaluate[chromedp.Void](script))
}

// left is what the page has left in the browser.
type left struct {
	Cookies          string
	Local, Session   int
	Posts            int
	RequestsToOthers []string
}

func leftBy(s *shop, tab *browser.Tab) left {
	l := left{
		Cookies: browser.Look[string](tab, `document.cookie`),
		Local:   browser.Look[int](tab, `localStorage.length`), Session: browser.Look[int](tab, `sessionStorage.length`),
		Posts: s.posts(),
	}
	for _, address := range tab.Requests() {
		if !strings.HasPrefix(address, shopHost) && !strings.HasSuffix(address, "/weir.js") {
			l.RequestsToOthers = append(l.RequestsToOthers, address)
		}
	}
	return l
}

func TestBeforeTheVisitorHasConsentedNothingIsLeftAndNothingAsked(t *testing.T) {
	s := openShop(t)
	for name, said := range map[string]string{
		"nobody has asked yet":                        ``,
		"the visitor has refused":                     `weir('consent', 'denied')`,
		"only ads are allowed":                        `weir('consent', {ad_storage: 'granted', analytics_storage: 'denied'})`,
		"ads are allowed, and nothing else was said":  `weir('consent', {ad_storage: 'granted'})`,
		"consent mode says what holds before":         `gtag('consent', 'default', {ad_storage: 'granted', analytics_storage: 'granted'})`,
		"consent mode says that the visitor refuses":  `gtag('consent', 'update', {analytics_storage: 'denied'})`,
		"consent mode says something that is no text": `gtag('consent', 'update', {analytics_storage: {granted: true}})`,
		"consent mode says nothing":                   `gtag('consent', 'update')`,
	} {
		t.Run(name, func(t *testing.T) {
			tab := s.visitor()
			s.has("/quiet", `<script>window.dataLayer = []; function gtag() { dataLayer.push(arguments); }</script>`+install)
			open(tab, shopHost+"/quiet?utm_source=news&gclid=G1&fbclid=F1")
			does(tab, said)
			does(tab, `weir('set', {user: {email: 'jane@example.com'}}); weir('event', 'lead'); history.pushState(null, '', '/next')`)
			does(tab, `new Promise(done => setTimeout(done, 50))`)
			tab.Do(chromedp.Navigate("about:blank")) // what is sent when a page is left
			tab.Do(chromedp.Navigate(shopHost + "/other"))
			browser.Look[bool](tab, loaded)
			if diff := cmp.Diff(left{}, leftBy(s, tab)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if complaints := tab.Complaints(); len(complaints) > 0 {
				t.Errorf("the console says %q", complaints)
			}
		})
	}
}

func TestWhatWaitedIsSentOnceTheVisitorConsents(t *testing.T) {
	for name, c := range map[string]struct {
		page, said string
	}{
		"in one word":                      {install, `weir('consent', 'granted')`},
		"by Google's consent mode":         {install, `gtag('consent', 'update', {ad_storage: 'granted', ad_user_data: 'granted', ad_personalization: 'granted', analytics_storage: 'granted'})`},
		"before the snippet is loaded":     {install + `<script>weir('consent', 'granted')</script>`, ``},
		"by consent mode, before as well":  {`<script>dataLayer = []; function gtag() { dataLayer.push(arguments); }; gtag('consent', 'update', {ad_storage: 'granted', ad_user_data: 'granted', ad_personalization: 'granted', analytics_storage: 'granted'})</script>` + install, ``},
		"bit by bit":                       {install, `weir('consent', {analytics_storage: 'denied'}); weir('consent', {ad_storage: 'granted', ad_user_data: 'granted', ad_personalization: 'granted'})`},
		"after a default, with a tag more": {install + `<script>dataLayer = window.dataLayer || []; function gtag() { dataLayer.push(arguments); }; gtag('consent', 'default', {analytics_storage: 'denied', ad_storage: 'denied'}); dataLayer.push({event: 'gtm.js'}, null, 7)</script>`, `gtag('consent', 'update', {ad_storage: 'granted', ad_user_data: 'granted', ad_personalization: 'granted', analytics_storage: 'granted'})`},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			s.has("/land", c.page)
			tab := s.visitor()
			open(tab, shopHost+"/land?utm_source=news&utm_campaign=spring%20sale&gclid=G1&fbclid=F_1")
			if name == "bit by bit" { // what was refused is forgotten; what comes later is not
				does(tab, c.said+`; weir('consent', {analytics_storage: 'granted'}); weir('event', 'pageview')`)
			} else {
				does(tab, `window.gtag = function () { (window.dataLayer = window.dataLayer || []).push(arguments); }; `+c.said)
			}
			e := s.await(1)[0]
			got := map[string]string{
				"name": e.Name, "source": e.Context.UTMSource, "campaign": e.Context.UTMCampaign, "gclid": e.Context.ClickIDs["gclid"],
				"title": e.Context.PageTitle, "language": e.Context.Language, "address": e.Context.IP,
			}
			want := map[string]string{
				"name": "pageview", "source": "news", "campaign": "spring sale", "gclid": "G1",
				"title": "Shop /land", "language": "en-US", "address": "8.8.4.4",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for name, form := range map[string]string{"client_id": `^[0-9]+\.[0-9]{10}$`, "session_id": `^[0-9]{10}$`, "fbp": `^fb\.1\.[0-9]{13}\.[0-9]+$`, "fbc": `^fb\.1\.[0-9]{13}\.F_1$`} {
				value := map[string]string{"client_id": e.ClientID, "session_id": e.SessionID, "fbp": e.Context.ClickIDs["fbp"], "fbc": e.Context.ClickIDs["fbc"]}[name]
				if !regexp.MustCompile(form).MatchString(value) {
					t.Errorf("%s is %q, want it to match %s", name, value, form)
				}
			}
			granted := event.Consent{AdUserData: event.Granted, AdPersonalization: event.Granted, AdStorage: event.Granted, AnalyticsStorage: event.Granted}
			if diff := cmp.Diff(granted, e.Consent); diff != "" {
				t.Errorf("consent (-want +got):\n%s", diff)
			}
			if complaints := tab.Complaints(); len(complaints) > 0 {
				t.Errorf("the console says %q", complaints)
			}
		})
	}
}

func TestWithoutConsentToAdsNoPlatformsIdsAreMade(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	open(tab, shopHost+"/?utm_source=news&gclid=G1&fbclid=F1")
	does(tab, `weir('consent', {analytics_storage: 'granted', ad_storage: 'denied'})`)
	e := s.await(1)[0]
	// What stands in the page's own address the collector reads there; the consent stands beside it.
	if e.Context.UTMSource != "news" || e.Context.ClickIDs["fbp"]+e.Context.ClickIDs["fbc"] != "" || e.Consent.AdStorage != event.Denied {
		t.Errorf("got %+v, %+v", e.Context, e.Consent)
	}
	cookies := browser.Look[string](tab, `document.cookie`)
	if strings.Contains(cookies, "fb") || strings.Contains(cookies, "G1") || !strings.Contains(cookies, "utm_source=news") {
		t.Errorf("cookies are %q, want the campaign and no click id", cookies)
	}
	open(tab, shopHost+"/next")
	does(tab, `weir('consent', {analytics_storage: 'granted'})`)
	if ids := s.await(2)[1].Context.ClickIDs; len(ids) > 0 {
		t.Errorf("the next page has the click ids %v", ids)
	}
}

func TestAVisitorWhoTakesTheConsentBackIsForgotten(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	open(tab, shopHost+"/?fbclid=F1")
	does(tab, `weir('consent', 'granted')`)
	s.await(1)
	s.cut.Store(true)
	does(tab, `weir('event', 'lead'); weir('event', 'sign_up')`)
	if n := browser.Look[int](tab, `localStorage.length`); n != 2 {
		t.Fatalf("%d events are kept, want 2", n)
	}
	open(tab, shopHost+"/later") // where the visitor has another look at the banner
	does(tab, `localStorage.setItem('cart', '1'); document.cookie = 'own=1'; weir('consent', 'denied')`)
	s.cut.Store(false)
	posts := s.posts()
	does(tab, `weir('event', 'lead'); dispatchEvent(new Event('online'))`)
	does(tab, `new Promise(done => setTimeout(done, 50))`)
	if got, want := leftBy(s, tab), "own=1"; got.Cookies != want || got.Local != 1 || s.posts() != posts {
		t.Errorf("cookies %q, %d items, %d requests; want what is the shop's alone", got.Cookies, got.Local, s.posts()-posts)
	}
	first := s.stored()[0].ClientID
	does(tab, `localStorage.clear()`)
	open(tab, shopHost+"/again")
	does(tab, `weir('consent', 'granted')`)
	if e := s.await(2)[1]; e.ClientID == first || e.ClientID == "" {
		t.Errorf("the visitor who consents again has the client id %q, want a new one", e.ClientID)
	}
}

// walk is a page with ten views, of which the first has a campaign, that leads to the next ten at once.
func walk(last int) string {
	return install + fmt.Sprintf(`<script>
weir('consent', 'granted');
addEventListener('load', async () => {
  let n = +new URL(location).searchParams.get('n') + 1;
  for (; n %% 10; n++) {
    history.pushState(null, '', '/walk?n=' + n);
    await new Promise(done => setTimeout(done));
  }
  if (n <= %d) location.href = '/walk?n=' + n + '&utm_source=s' + n + '&fbclid=F' + n;
})</script>`, last)
}

// walked holds that there is one pageview of each of the pages, with all that the visitor has.
func walked(t *testing.T, events []event.Event) {
	t.Helper()
	seen := map[string]event.Event{}
	for _, e := range events {
		_, n, _ := strings.Cut(e.Context.PageURL, "n=")
		n, _, _ = strings.Cut(n, "&")
		if _, twice := seen[n]; twice {
			t.Fatalf("page %s is there twice", n)
		}
		seen[n] = e
	}
	client, fbp := events[0].ClientID, events[0].Context.ClickIDs["fbp"]
	for n := range len(events) {
		e, there := seen[fmt.Sprint(n)]
		if !there {
			t.Fatalf("page %d is not there", n)
		}
		source, click := fmt.Sprintf("s%d", n/10*10), fmt.Sprintf(".F%d", n/10*10)
		ids := e.Context.ClickIDs
		if e.Name != "pageview" || e.ClientID != client || e.ClientID == "" || ids["fbp"] != fbp || fbp == "" ||
			e.Context.UTMSource != source || !strings.HasSuffix(ids["fbc"], click) {
			t.Fatalf("page %d: %+v, want the client %s, the source %q, fbp %s and an fbc that ends with %q", n, e, client, source, fbp, click)
		}
	}
}

func TestAThousandPageviewsArriveOnceEach(t *testing.T) {
	const pages = 1000
	s := openShop(t)
	s.has("/walk", walk(pages-1))
	tab := s.visitor()
	tab.Do(chromedp.Navigate(shopHost + "/walk?n=0&utm_source=s0&fbclid=F0"))
	walked(t, s.await(pages))
	if complaints := tab.Complaints(); len(complaints) > 0 {
		t.Errorf("the console says %q", complaints)
	}
}

func TestPageviewsArriveOnceEachThoughTheCollectorIsAwayForAWhile(t *testing.T) {
	const pages, from, to = 300, 100, 200
	for name, away := range map[string]func(s *shop, is bool){
		"the network is cut":                  func(s *shop, is bool) { s.cut.Store(is) },
		"an ingress answers 503 in its place": func(s *shop, is bool) { s.refuse.Store(is) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			s.has("/walk", walk(pages-1))
			s.onPage = func(address string) {
				switch {
				case strings.Contains(address, fmt.Sprintf("n=%d", from)):
					away(s, true)
				case strings.Contains(address, fmt.Sprintf("n=%d", to)):
					away(s, false)
				}
			}
			tab := s.visitor()
			tab.Do(chromedp.Navigate(shopHost + "/walk?n=0&utm_source=s0&fbclid=F0"))
			walked(t, s.await(pages))
			s.until("the storage is empty", func() bool { return browser.Look[int](tab, `localStorage.length`) == 0 })
		})
	}
}

func TestWhileRedisIsAwayThePageTriesAgain(t *testing.T) {
	s := openShop(t)
	tab := s.consented()
	if err := s.redis.Kill(); err != nil {
		t.Fatal(err)
	}
	does(tab, `for (let i = 0; i < 5; i++) weir('event', 'lead', {event_id: 'lead-' + i, user: {email: 'jane@example.com'}})`)
	s.until("the collector has answered 503", func() bool {
		return slices.ContainsFunc(tab.Complaints(), func(text string) bool { return strings.Contains(text, "503") })
	})
	if err := s.redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	events := s.await(6)
	for i, e := range events[1:] {
		if e.ID != fmt.Sprintf("lead-%d", i) {
			t.Errorf("event %d is %s", i, e.ID)
		}
	}
}

func TestAPageThatIsClosedAtOnceHasSentItsEvents(t *testing.T) {
	for name, leave := range map[string]func(tab *browser.Tab){
		"by closing the tab":     func(tab *browser.Tab) { tab.Close() },
		"by going elsewhere":     func(tab *browser.Tab) { tab.Do(chromedp.Navigate("about:blank")) },
		"by following a link":    func(tab *browser.Tab) { does(tab, `location.href = 'about:blank'`) },
		"by hiding it, for good": func(tab *browser.Tab) { hide(tab) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			first := s.visitor()
			tab := first.Beside()
			open(tab, shopHost+"/")
			does(tab, `weir('consent', 'granted')`)
			s.await(1)
			does(tab, `for (const name of ['view_content', 'add_to_cart', 'lead']) weir('event', name)`)
			leave(tab)
			names := map[string]int{}
			for _, e := range s.await(4) {
				names[e.Name]++
			}
			if diff := cmp.Diff(map[string]int{"pageview": 1, "view_content": 1, "add_to_cart": 1, "lead": 1}, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// hide lets the page think that it is hidden and then stops it, as phones do.
func hide(tab *browser.Tab) {
	does(tab, `Object.defineProperty(document, 'hidden', {value: true}); window.fetch = () => new Promise(() => {}); document.dispatchEvent(new Event('visibilitychange', {bubbles: true}))`)
}

func TestTwoTabsLoseNothingAndSendNothingTwice(t *testing.T) {
	const each = 30
	s := openShop(t)
	one := s.visitor()
	two := one.Beside()
	s.cut.Store(false)
	for _, tab := range []*browser.Tab{one, two} {
		open(tab, shopHost+"/")
		does(tab, `weir('consent', 'granted')`)
	}
	s.await(2)
	s.cut.Store(true)
	for i := range each {
		for name, tab := range map[string]*browser.Tab{"a": one, "b": two} {
			does(tab, fmt.Sprintf(`weir('event', 'lead', {event_id: '%s-%d'})`, name, i))
		}
	}
	open(two, shopHost+"/next") // takes over what both could not send
	does(two, `weir('consent', 'granted')`)
	s.cut.Store(false)
	for _, tab := range []*browser.Tab{one, two} {
		does(tab, `dispatchEvent(new Event('online'))`)
	}
	seen := map[string]bool{}
	for _, e := range s.await(2*each + 3) {
		if seen[e.ID] {
			t.Errorf("%s is there twice", e.ID)
		}
		seen[e.ID] = true
	}
	s.until("the storage is empty", func() bool { return browser.Look[int](one, `localStorage.length`) == 0 })
	if clients := distinct(s.stored(), func(e event.Event) string { return e.ClientID }); len(clients) != 1 {
		t.Errorf("the visitor is %v, want one", clients)
	}
}

func distinct(events []event.Event, of func(event.Event) string) []string {
	seen := map[string]bool{}
	for _, e := range events {
		seen[of(e)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// cookies are those of the shop, by name.
func cookies(tab *browser.Tab) map[string]*network.Cookie {
	all := map[string]*network.Cookie{}
	tab.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		got, err := cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{URLs: []string{shopHost}})
		for _, cookie := range got.Cookies {
			all[cookie.Name] = cookie
		}
		return err
	}))
	return all
}

func TestCookiesAreTheShopsOwnForThirteenMonthsAtMost(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	open(tab, shopHost+"/?fbclid=F1&utm_source=x")
	does(tab, `weir('consent', 'granted')`)
	s.await(1)
	want := map[string]time.Duration{"_weir": 395 * 24 * time.Hour, "_weir_s": 30 * time.Minute, "_fbp": 90 * 24 * time.Hour, "_fbc": 90 * 24 * time.Hour}
	first := cookies(tab)
	for name, cookie := range first {
		lives := time.Until(time.UnixMilli(int64(cookie.Expires * 1000)))
		if cookie.Domain != ".shop.test" || cookie.Path != "/" || !cookie.Secure || string(cookie.SameSite) != "Lax" ||
			lives > want[name] || lives < want[name]-time.Minute {
			t.Errorf("%+v lives for %s, want %s, secure, for .shop.test and SameSite=Lax", cookie, lives, want[name])
		}
	}
	if len(first) != len(want) {
		t.Errorf("there are %d cookies, want %d", len(first), len(want))
	}
	open(tab, "https://de.shop.test/")
	does(tab, `weir('consent', 'granted')`)
	events := s.await(2)
	if events[0].ClientID != events[1].ClientID || events[1].Context.UTMSource != "x" || events[0].SessionID != events[1].SessionID {
		t.Errorf("another host of the shop's has the visitor %+v", events[1])
	}
	for _, name := range []string{"_weir", "_fbp", "_fbc"} {
		if later := cookies(tab)[name]; later.Expires != first[name].Expires || later.Value != first[name].Value {
			t.Errorf("%s was %v and is %v: another visit makes it live no longer", name, first[name], later)
		}
	}
}

func TestThePixelsCookiesAreKept(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	s.has("/pixel", install+`<script>
document.cookie = '_fbp=fb.1.1700000000000.42;domain=shop.test;path=/';
document.cookie = '_fbc=fb.1.1700000000000.F1.Bg;domain=shop.test;path=/';
weir('consent', 'granted');</script>`)
	open(tab, shopHost+"/pixel?fbclid=F1")
	open(tab, shopHost+"/?fbclid=F2")
	does(tab, `weir('consent', 'granted')`)
	events := s.await(2)
	if ids := events[0].Context.ClickIDs; ids["fbp"] != "fb.1.1700000000000.42" || ids["fbc"] != "fb.1.1700000000000.F1.Bg" {
		t.Errorf("got %v, want what the pixel has", ids)
	}
	if ids := events[1].Context.ClickIDs; ids["fbp"] != "fb.1.1700000000000.42" || !strings.HasSuffix(ids["fbc"], ".F2") {
		t.Errorf("got %v, want the pixel's fbp, and the newer click", ids)
	}
}

func TestTheCampaignIsThatOfTheVisit(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	page := func(path, before string) event.Event {
		t.Helper()
		n := len(s.stored())
		open(tab, shopHost+path)
		does(tab, before+`; weir('consent', 'granted')`)
		return s.await(n + 1)[n]
	}
	const over = `document.cookie = '_weir_s=;max-age=0;domain=shop.test;path=/'`
	landed := page("/?utm_source=news&gclid=G1", "")
	for name, c := range map[string]struct{ got, want event.Event }{
		"the next page":                    {page("/next", ""), landed},
		"a page of another campaign":       {page("/?utm_source=ad", ""), event.Event{Context: event.Context{UTMSource: "ad"}}},
		"a page after the visit was over":  {page("/late", over), event.Event{}},
		"a click after the visit was over": {page("/?gclid=G2", over), event.Event{Context: event.Context{ClickIDs: map[string]string{"gclid": "G2"}}}},
	} {
		if c.got.Context.UTMSource != c.want.Context.UTMSource || c.got.Context.ClickIDs["gclid"] != c.want.Context.ClickIDs["gclid"] {
			t.Errorf("%s: got %+v, want %+v", name, c.got.Context, c.want.Context)
		}
	}
}

func TestViewsWithinAPageCount(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	open(tab, shopHost+"/a")
	does(tab, `weir('consent', 'granted')`)
	s.await(1)
	for i, c := range []struct {
		name, script, page, referrer string
	}{
		{"pushState", `history.pushState({}, '', '/b?x=1'); document.title = 'B'`, "/b?x=1", "/a"},
		{"replaceState", `history.replaceState({}, '', '/c')`, "/c", "/b?x=1"},
		{"back", `history.back()`, "/a", "/c"},
		{"a page out of the browser's cache", `dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))`, "/a", "/c"},
	} {
		does(tab, `history.replaceState(history.state, '', location.href); location.hash = 'part'; dispatchEvent(new PageTransitionEvent('pageshow'))`) // no views
		does(tab, `history.back()`)
		does(tab, `new Promise(done => setTimeout(done, 50))`)
		does(tab, c.script)
		e := s.await(i + 2)[i+1]
		if e.Name != "pageview" || !strings.HasPrefix(e.Context.PageURL, shopHost+c.page) || !strings.HasPrefix(e.Context.Referrer, shopHost+c.referrer) {
			t.Errorf("%s: got %s of %s from %s, want %s from %s", c.name, e.Name, e.Context.PageURL, e.Context.Referrer, c.page, c.referrer)
		}
		if c.name == "pushState" && e.Context.PageTitle != "B" {
			t.Errorf("the title is %q", e.Context.PageTitle)
		}
	}
}

func TestAnEventHasWhatThePageSays(t *testing.T) {
	s := openShop(t)
	tab := s.visitor()
	open(tab, shopHost+"/")
	does(tab, `weir('set', {user_id: 'u-1', user: {email: ' Jane@Example.com '}, properties: {plan: 'pro'}}); weir('consent', 'granted')`)
	does(tab, `{
  const cart = {value: 49.9, currency: 'EUR', contents: [{id: 'sku-1', quantity: 1}], event_id: 'cart-1', context: {page_title: 'Cart'}};
  weir('event', 'add_to_cart', cart);
  cart.value = 7; // what is changed afterwards is no part of the event
  weir('event', 'lead', {client_id: 'own', user: null});
}`)
	events := s.await(3)
	cart := events[1]
	if cart.Name != "add_to_cart" || cart.ID != "cart-1" || cart.Value.String() != "49.9" || cart.Currency != "EUR" || len(cart.Contents) != 1 ||
		cart.UserID != "u-1" || cart.Context.PageTitle != "Cart" || cart.Context.PageURL != shopHost+"/" || string(cart.Properties) != `{"plan":"pro"}` {
		t.Errorf("got %+v", cart)
	}
	if events[2].ClientID != "own" {
		t.Errorf("the client id is %q, want the page's", events[2].ClientID)
	}
}
