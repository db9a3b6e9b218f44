package snippet_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/hack/browser"
)

// analyticsJS is Segment's client for browsers, as it is published.
var analyticsJS = browser.Package{
	Name: "@segment/analytics-next", Version: "1.84.3",
	Integrity: "sha512-5l7cPBzScxhfJ0zdcKQI4daDvMIWWUk7hClT1xGRelnHUltIEoQ9w8+ZpFPoWJMpX8D7IA1nVAfJbpiKi3XaKw==",
}

// guideAnalytics is what the guide has a shop write to load analytics.js, once the visitor has consented.
func guideAnalytics(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/browser.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```js\nimport { AnalyticsBrowser } from '@segment/analytics-next';\n(.*?)```").FindSubmatch(text)
	if code == nil {
		t.Fatal("the guide does not say how to load analytics.js")
	}
	return `const { AnalyticsBrowser } = AnalyticsNext;` + strings.NewReplacer("https://collect.shop.example.com", collector, "wp_…", webKey).Replace(string(code[1]))
}

func openShopWithAnalyticsJS(t *testing.T) (s *shop, load string) {
	s = openShop(t)
	s.scripts["/analytics.js"] = analyticsJS.File(t, "dist/umd/index.js")
	return s, `<script src="/analytics.js"></script><script>function consented() { ` + guideAnalytics(t) + `
window.analytics = analytics; return analytics; }</script>`
}

func TestAnalyticsJSAsksNobodyElseAndNothingBeforeConsent(t *testing.T) {
	s, load := openShopWithAnalyticsJS(t)
	s.has("/", load)
	tab := s.visitor()
	tab.Do(chromedp.Navigate(shopHost + "/?utm_source=news&gclid=G1"))
	if got := leftBy(s, tab); got.Cookies != "" || got.Local != 0 || got.Posts != 0 || len(tab.Requests()) != 2 {
		t.Errorf("before the consent there are %+v, and requests to %q", got, tab.Requests())
	}
	does(tab, `document.cookie = '_fbp=fb.1.1700000000000.42'; document.cookie = '_fbc=fb.1.1700000000000.F1';
consented().track('Product Added', {product_id: 'sku-1', price: 20, currency: 'EUR'}); analytics.identify('u-1', {email: 'jane@example.com'}); 0`)
	events := s.await(2)
	for _, e := range events {
		if ids := e.Context.ClickIDs; e.ClientID == "" || e.Context.UTMSource != "news" || ids["gclid"] != "G1" ||
			ids["fbp"] != "fb.1.1700000000000.42" || ids["fbc"] != "fb.1.1700000000000.F1" || e.Context.IP != "8.8.4.4" {
			t.Errorf("got %+v", e)
		}
	}
	if names := distinct(events, func(e event.Event) string { return e.Name }); len(names) != 2 || names[0] != "add_to_cart" || names[1] != "pageview" {
		t.Errorf("got %q, want what was added, and the pageview", names)
	}
	for _, address := range tab.Requests() {
		if !strings.HasPrefix(address, shopHost) && !strings.HasPrefix(address, collector) {
			t.Errorf("%s was asked for", address)
		}
	}
	if complaints := tab.Complaints(); len(complaints) > 0 {
		t.Errorf("the console says %q", complaints)
	}
}

// analyticsWalk is as walk, with analytics.js.
func analyticsWalk(load string, last int) string {
	return load + fmt.Sprintf(`<script>
consented();
addEventListener('load', async () => {
  let n = +new URL(location).searchParams.get('n') + 1;
  for (; n %% 10; n++) {
    history.pushState(null, '', '/walk?n=' + n);
    await analytics.page(); // until it was tried: before it is loaded, analytics.js remembers nothing for the next page
  }
  if (n <= %d) location.href = '/walk?n=' + n;
})</script>`, last)
}

func TestAThousandPageviewsOfAnalyticsJSArriveOnceEach(t *testing.T) {
	const pages = 1000
	s, load := openShopWithAnalyticsJS(t)
	s.has("/walk", analyticsWalk(load, pages-1))
	tab := s.visitor()
	tab.Do(chromedp.Navigate(shopHost + "/walk?n=0"))
	arrived(t, s.await(pages))
}

func TestPageviewsOfAnalyticsJSArriveOnceEachThoughTheCollectorIsAwayForAWhile(t *testing.T) {
	const views = 20
	for name, away := range map[string]func(s *shop, is bool){
		"the network is cut":                  func(s *shop, is bool) { s.cut.Store(is) },
		"an ingress answers 503 in its place": func(s *shop, is bool) { s.refuse.Store(is) },
	} {
		t.Run(name, func(t *testing.T) {
			s, load := openShopWithAnalyticsJS(t)
			s.has("/", load)
			tab := s.visitor()
			tab.Do(chromedp.Navigate(shopHost + "/"))
			does(tab, `consented(); 0`)
			s.await(1)
			away(s, true)
			browser.Look[bool](tab, fmt.Sprintf(`(async () => {
  for (let n = 1; n < %d; n++) {
    history.pushState(null, '', '/?n=' + n);
    await analytics.page();
  }
  return true;
})()`, views))
			if n := len(s.stored()); n != 1 {
				t.Fatalf("%d events are stored meanwhile", n)
			}
			away(s, false)
			arrived(t, s.await(views))
		})
	}
}

// arrived holds that all events are of different pages, and of one visitor.
func arrived(t *testing.T, events []event.Event) {
	t.Helper()
	if seen := distinct(events, func(e event.Event) string { return e.Context.PageURL }); len(seen) != len(events) {
		t.Errorf("%d pages are there, want %d", len(seen), len(events))
	}
	if clients := distinct(events, func(e event.Event) string { return e.ClientID }); len(clients) != 1 || clients[0] == "" {
		t.Errorf("the visitor is %v, want one", clients)
	}
}

func TestAnotherPagesAnalyticsJSIsRefused(t *testing.T) {
	s, load := openShopWithAnalyticsJS(t)
	s.has("/", load)
	tab := s.visitor()
	tab.Do(chromedp.Navigate(foreign + "/"))
	if browser.Look[bool](tab, `consented().then(() => true, () => false)`) {
		t.Error("it has loaded its settings")
	}
	if events := s.stored(); len(events) > 0 || s.posts() > 0 {
		t.Errorf("%d events are stored after %d requests", len(events), s.posts())
	}
}
