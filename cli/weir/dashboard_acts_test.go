package main

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/hack/browser"
)

func TestWhatFailedIsDeliveredAgainFromThePage(t *testing.T) {
	d := serveDashboard(t, "--demo-events", "30000")
	tab := d.visit(browser.Options{})
	query := "platform=crm&status=failed&" + weekBefore()
	before := len(ask[[]row](d, "/events?limit=1000&"+query))
	if before < 2 {
		t.Fatalf("%d events failed at crm, want some", before)
	}
	d.show(tab, "?view=events&"+query)
	tab.Do(chromedp.Click(chromedp.CSS(".grid .row:nth-child(1) td:nth-child(2)")))
	const crm = `dialog [aria-label="Delivery to crm"]`
	tab.Press(crm, "Deliver again…")
	tab.Appears(crm+" .confirm", "this event, and any other of the very same moment")
	tab.Press(crm+" .confirm", "Deliver again")
	tab.Appears(crm, "1 delivery was put back in line")
	await(t, "that event alone has been delivered", func() bool { return len(ask[[]row](d, "/events?limit=1000&"+query)) == before-1 })

	d.show(tab, "?view=deliveries&"+weekBefore())
	const card = ".card[aria-label='Platform crm']"
	tab.Press(card, "Deliver again…")
	tab.Press(card+" .confirm", "Deliver again")
	tab.Appears(card, "put back in line")
	await(t, "none has failed any more", func() bool { return len(ask[[]row](d, "/events?"+query)) == 0 })
}

func TestATestEventShowsWhatThePlatformSaysOfIt(t *testing.T) {
	d := serveDashboard(t)
	tab := d.visit(browser.Options{})
	d.show(tab, "?view=deliveries")
	tab.Press(".card[aria-label='Platform crm']", "Send a test event")
	tab.Appears("dialog h2", "A test event for crm")
	tab.Appears("dialog .tag", "The platform has taken it")
	tab.Appears("dialog", "What was sent")
}

func whoMayOnlyReadIsOfferedNothingElse(t *testing.T, d *dashboard) {
	tab := browser.Open(t, browser.Options{})
	d.logIn(tab, d.AccessTokens[1].Token)
	d.show(tab, "?view=deliveries&"+weekBefore())
	tab.Appears(".card", "delivered")
	for _, act := range []string{"Deliver again…", "Send a test event", "What would be sent"} {
		for _, card := range tab.Texts(".card button, .card a") {
			if card == act {
				t.Errorf("a token that may read is offered to %q", act)
			}
		}
	}
}
