package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/hack/browser"
)

// numbersThatHaveGoneWrongAreANotice has the page told of findings as they are in docs/reference/read-api.md: a past that was made up
// this minute has none.
func numbersThatHaveGoneWrongAreANotice(t *testing.T, d *dashboard) {
	finding := func(event, signal, currency string, actual, expected float64) string {
		return fmt.Sprintf(`{"event": %s, "signal": %q, "currency": %s, "from": "2026-11-05T11:30:00.000Z", "to": "2026-11-05T12:00:00.000Z", "actual": %v, "expected": %v, "events": 3}`,
			event, signal, currency, actual, expected)
	}
	orders := func(missing, different string) string {
		return fmt.Sprintf(`{"source": "till", "day": "2026-11-04", "compared_at": "2026-11-05T02:00:40.000Z", "orders": 812, "missing": %s, "different": %s, "extra": {"count": 0, "orders": []}}`,
			missing, different)
	}
	const none = `{"count": 0, "orders": []}`
	const one = `{"count": 1, "orders": [{"order_id": "4711", "shop": "10 EUR", "stored": null}]}`
	between := d.comeBetween()
	tab := browser.Open(t, browser.Options{})
	d.logIn(tab, d.AccessTokens[0].Token)
	for name, test := range map[string]struct {
		findings, orders string
		// want are parts of the notice's lines; href is where the first one's link leads.
		want []string
		href string
	}{
		"where all is well there is none":      {},
		"nor where it is of a later version's": {findings: finding(`"purchase"`, "of a later version", "null", 1, 2)},
		"nor where all orders are stored":      {orders: orders(none, none)},
		"an event that comes less often": {
			findings: finding(`"purchase"`, "volume", "null", 3, 41.5) + "," + finding(`"purchase"`, "of a later version", "null", 1, 2), href: "?view=events&event=purchase",
			want: []string{"purchase: since 5 Nov 2026, 12:30 3 were stored, where 41.5 are usual at this hour of the week. Look at what was changed then"},
		},
		"what is refused leads to the rejections": {
			findings: finding("null", "refused", "null", .25, .01), href: "?view=rejections",
			want: []string{"Events without a name of their own: since 5 Nov 2026, 12:30 25% were refused, where 1% are usual"},
		},
		"a currency, and none": {
			findings: finding(`"purchase"`, "currency", `"USD"`, .5, .01) + "," + finding(`"refund"`, "currency", "null", .5, .01), href: "?view=events&event=purchase",
			want: []string{"50% are in USD, where 1% are usual", "50% are in no currency, where 1% are usual"},
		},
		"an identifier that is missing, and an order": {
			findings: finding(`"<b>lead</b>"`, "email", "null", .1, .9), orders: orders(one, none), href: "?view=events&event=%3Cb%3Elead%3C%2Fb%3E",
			want: []string{"<b>lead</b>: since 5 Nov 2026, 12:30 10% have an e-mail address", "till: of 812 orders of 2026-11-04 1 (4711) are not stored. What was refused"},
		},
		"orders of both kinds": {
			orders: orders(one, `{"count": 9, "orders": [{"order_id": "1"}, {"order_id": "2"}, {"order_id": "3"}, {"order_id": "4"}, {"order_id": "5"}, {"order_id": "6"}]}`), href: "?view=rejections",
			want: []string{"1 (4711) are not stored, 9 (1, 2, 3, 4, 5, …) are stored with another amount."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 10)
			answer := func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/api/quality") {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"data": {"state": "watching", "judged_at": "2026-11-05T12:00:00.000Z", "weeks": 4, "findings": [%s], "events": [], "orders": [%s]}}`, test.findings, test.orders)
				asked <- struct{}{}
				return true
			}
			between.answer.Store(&answer)
			d.show(tab, "?view=overview")
			<-asked
			settle(tab)
			if len(test.want) > 0 {
				tab.Do(chromedp.WaitVisible(chromedp.CSS(".quality li")))
			}
			got := tab.Texts(".quality li")
			if len(got) != len(test.want) {
				t.Fatalf("the notice says %q, want %d lines", got, len(test.want))
			}
			for i, want := range test.want {
				if text := strings.Join(strings.Fields(got[i]), " "); !strings.Contains(text, want) {
					t.Errorf("line %d is %q, want %q in it", i+1, text, want)
				}
			}
			if len(test.want) == 0 {
				return
			}
			if got := browser.Look[string](tab, `document.querySelector('.quality a').getAttribute('href')`); got != test.href {
				t.Errorf("its link leads to %q, want %q", got, test.href)
			}
			if barriers := tab.Barriers(); len(barriers) > 0 {
				t.Errorf("%s", strings.Join(barriers, "\n"))
			}
		})
	}
}
