package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// The tests of this file work the numbers of the read API out from the NDJSON export alone: whoever has the
// export can check them.

// exported is what the tests read of a line of NDJSON.
type exported struct {
	Event      string         `json:"event"`
	ReceivedAt time.Time      `json:"received_at"`
	Value      jsontext.Value `json:"value"`
	Currency   string         `json:"currency"`
	Visitor    string         `json:"visitor"`
	Source     string         `json:"source"`
	Medium     string         `json:"medium"`
	Campaign   string         `json:"campaign"`
	Channel    string         `json:"channel"`
	ContentID  string         `json:"content_id"`
	Contents   []struct {
		ID       string         `json:"id"`
		Price    jsontext.Value `json:"price"`
		Quantity jsontext.Value `json:"quantity"`
	} `json:"contents"`
	Context struct {
		PageURL string `json:"page_url"`
	} `json:"context"`
	Delivery []struct {
		Platform string `json:"platform"`
		Status   string `json:"status"`
	} `json:"delivery"`
}

// exportedEvents returns a property's events, oldest first.
func exportedEvents(t *testing.T, api http.Handler) []exported {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/api/v1/properties/shop/events?period=30d", nil)
	request.Header.Set("Authorization", "Bearer wt_shop")
	request.Header.Set("Accept", typeNDJSON)
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, request)
	var list []exported
	for line := range strings.Lines(answer.Body.String()) {
		var e exported
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	slices.Reverse(list)
	return list
}

// cents reads money that has at most two decimals.
func cents(t *testing.T, value jsontext.Value) int64 {
	t.Helper()
	whole, fraction, _ := strings.Cut(string(value), ".")
	var n int64
	if _, err := fmt.Sscanf(whole+(fraction + "00")[:2], "%d", &n); err != nil || len(fraction) > 2 {
		t.Fatalf("%s is no money in cents: %v", value, err)
	}
	return n
}

// asked returns the data of an answer about the property "shop".
func asked[T any](t *testing.T, api http.Handler, call string) T {
	t.Helper()
	answer := get(api, "wt_shop", "shop/"+call)
	var body struct {
		Data T `json:"data"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); answer.Code != 200 || err != nil {
		t.Fatalf("%s: %d %s %v", call, answer.Code, answer.Body, err)
	}
	return body.Data
}

func TestTheSummaryFollowsFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, _, _, _ := demoStream(t, engine, 8000)
		got := map[string]int64{}
		var byCurrency map[string]jsontext.Value
		for name, value := range asked[struct {
			KPIs map[string]jsontext.Value `json:"kpis"`
		}](t, api, "analytics/summary?period=30d").KPIs {
			switch name {
			case "conversion_rate", "average_order_value": // quotients of the others
			case "revenue_by_currency":
				if err := json.Unmarshal(value, &byCurrency); err != nil {
					t.Fatal(err)
				}
			default:
				got[name] = cents(t, value)
			}
		}
		for currency, revenue := range byCurrency {
			got["revenue in "+currency] = cents(t, revenue)
		}

		want, visitors := map[string]int64{}, map[string]bool{}
		names := map[string]string{"purchase": "purchases", "refund": "refunds", "add_to_cart": "add_to_carts", "pageview": "pageviews"}
		events := exportedEvents(t, api)
		for _, e := range events {
			if e.Visitor != "" {
				visitors[e.Visitor] = true
			}
			if name := names[e.Event]; name != "" {
				want[name] += 100
			}
			sign, total := int64(1), "gross_revenue"
			switch e.Event {
			case "refund":
				sign, total = -1, "refunded"
			case "purchase":
			default:
				continue
			}
			want["revenue in "+e.Currency] += sign * cents(t, e.Value)
			if e.Currency == "EUR" {
				want[total] += cents(t, e.Value)
				want["revenue"] += sign * cents(t, e.Value)
			}
		}
		want["unique_visitors"], want["events"] = 100*int64(len(visitors)), 100*int64(len(events))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-export +summary):\n%s", diff)
		}
	})
}

func TestTheStatisticsFollowFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, _, _, _ := demoStream(t, engine, 8000)
		got := map[string]int{}
		for _, s := range asked[[]struct {
			Event          string           `json:"event"`
			Count          int              `json:"count"`
			UniqueVisitors int              `json:"unique_visitors"`
			Delivery       []map[string]any `json:"delivery"`
		}](t, api, "events/stats?period=30d") {
			got[s.Event], got[s.Event+" visitors"] = s.Count, s.UniqueVisitors
			for _, delivery := range s.Delivery {
				for _, status := range []string{"pending", "retrying", "delivered", "failed", "skipped", "expired"} {
					if n := int(delivery[status].(float64)); n > 0 {
						got[fmt.Sprint(s.Event, " ", delivery["platform"], " ", status)] = n
					}
				}
			}
		}
		want, seen := map[string]int{}, map[string]bool{}
		for _, e := range exportedEvents(t, api) {
			want[e.Event]++
			if key := e.Event + " " + e.Visitor; e.Visitor != "" && !seen[key] {
				seen[key] = true
				want[e.Event+" visitors"]++
			}
			for _, d := range e.Delivery {
				want[e.Event+" "+d.Platform+" "+d.Status]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-export +statistics):\n%s", diff)
		}
	})
}

func TestTheFunnelFollowsFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, _, _, _ := demoStream(t, engine, 8000)
		var got [3]int
		for i, step := range asked[struct {
			Steps []struct {
				Visitors int `json:"visitors"`
			} `json:"steps"`
		}](t, api, "analytics/funnel?steps=pageview&steps=add_to_cart&steps=purchase&window=none&period=30d").Steps {
			got[i] = step.Visitors
		}
		var want [3]int
		reached := map[string]int{}
		for _, e := range exportedEvents(t, api) {
			if at := reached[e.Visitor]; e.Visitor != "" && at < 3 && e.Event == [...]string{"pageview", "add_to_cart", "purchase"}[at] {
				reached[e.Visitor]++
				want[at]++
			}
		}
		if got != want || want[2] == 0 {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestTheAttributionFollowsFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, _, _, _ := demoStream(t, engine, 8000)
		got := map[string]string{}
		for _, result := range asked[struct {
			Results []struct {
				Channel     string         `json:"channel"`
				Conversions jsontext.Value `json:"conversions"`
				Revenue     jsontext.Value `json:"revenue"`
			} `json:"results"`
		}](t, api, "analytics/attribution?model=last_touch&lookback=none&period=30d").Results {
			got[result.Channel] = fmt.Sprint(result.Conversions, " ", cents(t, result.Revenue))
		}
		last, conversions, revenue := map[string]string{}, map[string]int{}, map[string]int64{}
		for _, e := range exportedEvents(t, api) {
			if e.Channel != "" && e.Visitor != "" {
				last[e.Visitor] = e.Channel
			}
			if e.Event != "purchase" {
				continue
			}
			channel := "Direct"
			if touch := last[e.Visitor]; touch != "" {
				channel = touch
			}
			conversions[channel]++
			if e.Currency == "EUR" {
				revenue[channel] += cents(t, e.Value)
			}
		}
		want := map[string]string{}
		for channel, n := range conversions {
			want[channel] = fmt.Sprint(n, " ", revenue[channel])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-export +attribution):\n%s", diff)
		}
	})
}
