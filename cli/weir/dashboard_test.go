package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/hack/browser"
)

// The tests dashboard_*_test.go open the page in a real browser. It is served by the whole program, of a made-up past.

// pagedShop is a Property with platforms that take, wait and only look.
const pagedShop = `
apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: EUR
  timeZone: Europe/Berlin
  accessTokens:
  - {name: admin, scope: admin}
  - {name: analyst, scope: read}
  platforms:
  - {name: meta, type: Meta, meta: {pixelID: "1"}, credentialsSecretRef: {name: keys}}
  - {name: crm, type: Webhook, webhook: {url: "https://crm.example.com/hook"}, credentialsSecretRef: {name: keys}}
  - {name: tiktok, type: TikTok, mode: Shadow, tiktok: {eventSourceID: C1}, credentialsSecretRef: {name: keys}}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {accessToken: access-token-for-tests, signingSecret: ` + webhookSecret + `}
`

// dashboard is a running `weir dev`, whose page can be opened.
type dashboard struct {
	*weirDev
	// Page is the page's address.
	Page string
}

// TestThePageOfAPast holds what can be seen of one `weir dev`, whose past is over: nothing here changes what others see.
func TestThePageOfAPast(t *testing.T) {
	past := serveDashboard(t, "--demo-events", "30000")
	for name, holds := range map[string]func(*testing.T, *dashboard){
		"nothing in it is a barrier":                                   nothingIsABarrier,
		"the Tab key reaches everything":                               theTabKeyReachesEverything,
		"a funnel is made and an event opened with the keyboard alone": theKeyboardIsEnough,
		"it is as narrow as a telephone":                               itIsAsNarrowAsATelephone,
		"who may only read is offered nothing else":                    whoMayOnlyReadIsOfferedNothingElse,
		"it asks nobody else, and the console has no complaint":        itAsksNobodyElse,
		"its policy holds":                                             itsPolicyHolds,
		"the first load is small and soon":                             theFirstLoadIsSmallAndSoon,
		"ten thousand events are listed with few in the document":      tenThousandEventsAreListed,
		"a wrong address says what is wrong and leads on":              aWrongAddressLeadsOn,
		"what cannot be answered is said":                              whatCannotBeAnsweredIsSaid,
		"numbers that have gone wrong are a notice of the overview":    numbersThatHaveGoneWrongAreANotice,
		"the overview shows what the read API says":                    theOverviewShowsWhatTheReadAPISays,
		"the plot's table has every bucket of the series":              thePlotsTableHasEveryBucket,
		"the funnel shows what the read API says":                      theFunnelShowsWhatTheReadAPISays,
		"attribution shows what the read API says":                     attributionShowsWhatTheReadAPISays,
		"events and rejections are listed as the read API lists them":  eventsAndRejectionsAreListed,
		"deliveries show what the read API says":                       deliveriesShowWhatTheReadAPISays,
		"its address is read whole":                                    theAddressIsReadWhole,
		"events are left without an error":                             eventsAreLeftWithoutAnError,
		"what is pressed is large enough":                              targetsAreLargeEnough,
		"a file that could not be saved is forgotten":                  csvThatFailedIsForgotten,
		"the way in says why it is closed":                             theWayInSaysWhyItIsClosed,
	} {
		t.Run(name, func(t *testing.T) { holds(t, past.during(t)) })
	}
}

// serveDashboard serves pagedShop.
func serveDashboard(t *testing.T, args ...string) *dashboard {
	t.Helper()
	return serveDashboardOf(t, pagedShop, args...)
}

// serveDashboardOf serves a Property named shop, to fakes of its platforms.
func serveDashboardOf(t *testing.T, manifest string, args ...string) *dashboard {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "shop.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWeirDev(t, filepath.Join(folder, "state"), append([]string{"-f", file, "--fake-platforms"}, args...)...)
	await(t, "the numbers can be read", func() bool { return w.read("/events").status == 200 })
	return &dashboard{w, strings.TrimSuffix(w.BaseURL, "/api/v1") + "/properties/" + w.ID + "/"}
}

// during is the same page, of which a part of the test that has opened it is told what fails.
func (d *dashboard) during(t *testing.T) *dashboard {
	before := d.t
	d.t = t
	t.Cleanup(func() { d.t = before })
	return &dashboard{d.weirDev, d.Page}
}

// visit opens the page in a browser and comes in by the click that one's own machine grants.
func (d *dashboard) visit(options browser.Options) *browser.Tab {
	d.t.Helper()
	tab := browser.Open(d.t, options)
	tab.Do(chromedp.Navigate(d.Page), chromedp.WaitVisible(chromedp.CSS(".login button.main")), chromedp.Click(chromedp.CSS(".login button.main")))
	settle(tab)
	return tab
}

// show opens a view, by the page's query string, and waits until it shows what it is to show.
func (d *dashboard) show(tab *browser.Tab, query string) {
	d.t.Helper()
	tab.Do(chromedp.Navigate(d.Page + query))
	settle(tab)
}

// settle waits until a view has no answer to wait for.
func settle(tab *browser.Tab) {
	tab.Await("the view has its answers", `document.querySelector('#main h1') && !document.querySelector('.start, .loading, [aria-busy=true]')`)
}

// views are the query strings of all views, from the page's navigation.
func views(t *testing.T, tab *browser.Tab) []string {
	t.Helper()
	found := browser.Look[[]string](tab, `[...document.querySelectorAll('nav a')].map((link) => link.search)`)
	if len(found) < 7 {
		t.Fatalf("the navigation has %q, want every view", found)
	}
	return found
}

// weekBefore is a week that is over, whose figures stand still, as parameters.
func weekBefore() string {
	today := time.Now().UTC()
	return "from=" + today.AddDate(0, 0, -8).Format(time.DateOnly) + "&to=" + today.AddDate(0, 0, -2).Format(time.DateOnly)
}
