package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weir-dev/weir/hack/browser"
)

// row is an object of an answer.
type row map[string]any

// ask asks the read API with the token, and decodes the member data of the answer.
func ask[T any](d *dashboard, path string) T {
	d.t.Helper()
	got := d.read(path)
	var answer struct{ Data T }
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != http.StatusOK {
		d.t.Fatalf("%s: %d %s: %v", path, got.status, got.body, err)
	}
	return answer.Data
}

// notNumber is what stands around the digits of a figure.
var notNumber = regexp.MustCompile(`[^0-9.-]`)

// tells says whether a text tells a figure, whatever its sign of currency and its separators: a rate as a percentage.
func tells(text string, figure any) bool {
	number, ok := figure.(float64)
	if !ok {
		return text == "–" && figure == nil
	}
	shown, err := strconv.ParseFloat(notNumber.ReplaceAllString(text, ""), 64)
	if strings.HasSuffix(text, "%") {
		shown /= 100
	}
	return err == nil && math.Abs(shown-number) < 1e-9
}

// named is how a text is shown: a dash where there is none.
func named(text any) string {
	if text == nil {
		return "–"
	}
	return fmt.Sprint(text)
}

// cells are the texts of a table's rows, by cells; what stands for rows that are not in the document has one alone.
func cells(tab *browser.Tab, table string) [][]string {
	return browser.Look[[][]string](tab, `[...document.querySelectorAll(`+browser.Quote(table+" tbody tr")+`)].filter((row) => row.cells.length > 1).map((row) => [...row.cells].map((cell) => cell.innerText.trim()))`)
}

// figuresOf are the values that stand beside their names.
func figuresOf(tab *browser.Tab, within, names, values string) map[string]string {
	labels, figures := tab.Texts(within+" "+names), tab.Texts(within+" "+values)
	shown := map[string]string{}
	for i := range min(len(labels), len(figures)) {
		shown[labels[i]] = figures[i]
	}
	return shown
}

func theOverviewShowsWhatTheReadAPISays(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	for _, filter := range []string{"", "&channel=Paid+Search", "&event=purchase&event=refund"} {
		query := weekBefore() + filter
		d.show(tab, "?view=overview&by=source&of=product&"+query)
		kpis := ask[struct{ KPIs row }](d, "/analytics/summary?"+query).KPIs
		shown := figuresOf(tab, ".figures", ".stat-label", ".stat-value")
		for label, member := range map[string]string{
			"Visitors": "unique_visitors", "Page views": "pageviews", "Events": "events", "Added to cart": "add_to_carts", "Purchases": "purchases",
			"Revenue": "revenue", "Average order": "average_order_value", "Conversion rate": "conversion_rate", "Refunds": "refunds",
		} {
			if !tells(shown[label], kpis[member]) {
				t.Errorf("%s: %s is shown as %q, want %v", query, label, shown[label], kpis[member])
			}
		}
		for panel, by := range []string{"source", "product"} {
			results := ask[struct{ Results []row }](d, "/analytics/breakdown?limit=10&by="+by+"&"+query).Results
			rows := cells(tab, fmt.Sprintf("main .columns .panel:nth-child(%d) .table", panel+1))
			if len(rows) != len(results) {
				t.Fatalf("%s: %d rows by %s, want %d", query, len(rows), by, len(results))
			}
			for i, want := range results {
				got := rows[i]
				if got[0] != want[by] || !tells(got[1], want["events"]) || !tells(got[2], want["unique_visitors"]) ||
					!tells(got[3], want["purchases"]) || !tells(got[len(got)-1], want["revenue"]) {
					t.Errorf("%s: row %d by %s is %q, want %v", query, i, by, got, want)
				}
			}
		}
	}
}

func thePlotsTableHasEveryBucket(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	d.show(tab, "?view=overview&measure=revenue&"+weekBefore())
	tab.Do(chromedp.Click(chromedp.CSS(".figures details.numbers summary")))
	tab.Await("the table is there", `document.querySelector('.figures details.numbers tbody')`)
	series := ask[[]row](d, "/analytics/series?interval=day&"+weekBefore())
	rows := cells(tab, ".figures details.numbers")
	if len(rows) != 7 || len(series) != 7 {
		t.Fatalf("%d rows for %d buckets, want 7", len(rows), len(series))
	}
	for i, bucket := range series {
		if !tells(rows[i][1], bucket["revenue"]) {
			t.Errorf("%v has %q, want %v", bucket["date"], rows[i], bucket["revenue"])
		}
	}
}

func theFunnelShowsWhatTheReadAPISays(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	query := "steps=pageview&steps=view_content%7Cadd_to_cart&steps=purchase&window=1d&" + weekBefore()
	d.show(tab, "?view=funnel&"+query)
	steps := ask[struct{ Steps []row }](d, "/analytics/funnel?"+query).Steps
	visitors, rates, lost := tab.Texts(".bars .bar-text b"), tab.Texts(".bars .bar-text .muted"), tab.Texts(".bars .lost span:first-child")
	if len(visitors) != 3 || len(lost) != 2 {
		t.Fatalf("the funnel has the bars %q, want 3", visitors)
	}
	for i, step := range steps {
		if !tells(visitors[i], step["visitors"]) || !tells(rates[i], step["conversion_rate"]) || i > 0 && !tells(lost[i-1], step["drop_off"]) {
			t.Errorf("step %d shows %q and %q, and that %q are lost; want %v", i+1, visitors[i], rates[i], lost, step)
		}
	}
}

func attributionShowsWhatTheReadAPISays(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	query := "group_by=campaign&lookback=7d&" + weekBefore()
	d.show(tab, "?view=attribution&"+query)
	rows := cells(tab, "main .table")
	if len(rows) < 3 {
		t.Fatalf("the rows are %q", rows)
	}
	for column, model := range []string{"first_touch", "last_touch", "linear"} {
		want := map[any]any{}
		for _, result := range ask[struct{ Results []row }](d, "/analytics/attribution?model="+model+"&"+query).Results {
			want[result["campaign"]] = result["conversions"]
		}
		for _, got := range rows {
			if !tells(got[column+1], want[got[0]]) {
				t.Errorf("%s: %s gets %q, want %v", model, got[0], got[column+1], want[got[0]])
			}
		}
	}
}

func eventsAndRejectionsAreListed(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	query := "event=purchase&" + weekBefore()
	d.show(tab, "?view=events&"+query)
	rows := cells(tab, ".grid")
	for i, want := range ask[[]row](d, "/events?limit=20&"+query) {
		got := rows[i]
		if got[1] != want["event"] || !tells(got[2], want["value"]) || got[3] != named(want["order_id"]) || got[4] != named(want["visitor"]) {
			t.Errorf("row %d is %q, want %v", i, got, want)
		}
	}
	known := slices.IndexFunc(rows, func(row []string) bool { return row[4] != named(nil) }) // there are purchases of nobody
	visitor := rows[known][4]
	tab.Press(fmt.Sprintf(".grid .row:nth-child(%d)", known+1), rows[known][0])
	tab.Appears("dialog h3", "As it is stored")
	tab.Press("dialog", "All events of this visitor")
	tab.Appears(".lookup .chip", visitor)
	settle(tab)
	all := ask[[]row](d, "/events?visitor="+visitor)
	for i, got := range cells(tab, ".grid") {
		if got[4] != visitor || got[1] != all[i]["event"] {
			t.Errorf("row %d of the visitor's events is %q, want %v", i, got, all[i])
		}
	}

	for _, refused := range []string{`{"event": "purchase", "event_id": "order-77", "data": {"currency": "EUR"}}`, `{"event": 7}`} {
		d.collect(refused)
	}
	await(t, "both refusals are listed", func() bool { return len(ask[[]row](d, "/rejections")) == 2 })
	d.show(tab, "?view=rejections")
	shown := cells(tab, "main .table")
	for i, want := range ask[[]row](d, "/rejections") {
		for field, messages := range want["errors"].(map[string]any) {
			for _, message := range messages.([]any) {
				if line := fmt.Sprintf("%s %s", field, message); !strings.Contains(shown[i][1], line) {
					t.Errorf("a refusal shows %q, want %q in it", shown[i], line)
				}
			}
		}
	}
}

func deliveriesShowWhatTheReadAPISays(t *testing.T, d *dashboard) {
	tab := d.visit(browser.Options{})
	d.show(tab, "?view=deliveries&"+weekBefore())
	totals := ask[struct{ Totals []row }](d, "/deliveries?"+weekBefore()).Totals
	if len(totals) != 3 {
		t.Fatalf("there are totals of %d platforms, want 3", len(totals))
	}
	for _, want := range totals {
		card := fmt.Sprintf(".card[aria-label='Platform %s']", want["platform"])
		shown := figuresOf(tab, card, ".totals dt", ".totals dd")
		for _, status := range []string{"delivered", "failed", "skipped", "expired", "retrying", "pending"} {
			text := ""
			for label, figure := range shown {
				if strings.HasSuffix(label, status) {
					text = figure
				}
			}
			if !tells(text, want[status]) && (text != "" || want[status] != 0.0) {
				t.Errorf("%s shows %q %s, want %v", want["platform"], text, status, want[status])
			}
		}
		for i, reason := range want["reasons"].([]any) {
			want := reason.(map[string]any)
			got := tab.Texts(card + " .reasons li")[i]
			advice, _ := want["advice"].(string)
			if !strings.Contains(got, want["reason"].(string)) || !strings.Contains(got, advice) {
				t.Errorf("a reason is %q, want %v", got, want)
			}
		}
	}
}

func TestMoneyKeepsItsDigits(t *testing.T) {
	d := serveDashboard(t)
	const many = 150 // of the largest amount that there is
	for i := range many {
		body := fmt.Sprintf(`{"event": "purchase", "event_id": "p%d", "client_id": "c1", "data": {"value": 99999999999.9999, "currency": "EUR"}}`, i)
		if got := d.collect(body); got.status != http.StatusAccepted {
			t.Fatalf("collect: %d %s", got.status, got.body)
		}
	}
	await(t, "all are counted", func() bool { return len(ask[[]row](d, "/events?limit=1000")) == many })
	tab := d.visit(browser.Options{})
	d.show(tab, "?view=overview&measure=revenue")
	const want = "€14,999,999,999,999.985" // the nearest double ends in .984
	tab.Appears(".figures .stat-value", want)
	tab.Do(chromedp.Click(chromedp.CSS(".figures details.numbers summary")))
	tab.Appears(".figures details.numbers td", want)
}

func TestWhatComesInRightNowIsShownWithoutMovingWhatIsRead(t *testing.T) {
	d := serveDashboard(t)
	tab := d.visit(browser.Options{})
	send := func(id string) {
		if got := d.collect(`{"event": "pageview", "event_id": ` + browser.Quote(id) + `, "client_id": "c1"}`); got.status != http.StatusAccepted {
			t.Fatalf("collect: %d %s", got.status, got.body)
		}
	}
	send("first")
	await(t, "the first is counted", func() bool { return len(d.listing()) == 1 })
	d.show(tab, "?view=overview")
	send("second")
	tab.Await("both are among those of right now", `[...document.querySelectorAll('.realtime .stat')].some((stat) => /^Events\s*2$/.test(stat.innerText.trim()))`)

	d.show(tab, "?view=events")
	before := cells(tab, ".grid")
	send("third")
	tab.Appears(".fresh", "1 new event")
	if after := cells(tab, ".grid"); len(before) != 2 || len(after) != 2 {
		t.Errorf("the list has %d rows before and %d after an event came, want 2 until they are asked for", len(before), len(after))
	}
	tab.Press(".fresh", "1 new event")
	tab.Await("it is listed", `document.querySelectorAll('.grid .row').length === 3`)
}
