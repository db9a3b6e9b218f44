package query

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/stream"
)

func TestReasonsAreListedByFrequencyThenStatusAndName(t *testing.T) {
	stats := analytics.DeliveryStats{Platform: "crm"}
	stats.Reasons[stream.Retrying] = map[string]int{"timeout": 2}
	stats.Reasons[stream.Failed] = map[string]int{"http_400": 2, "code_1": 2}
	stats.Reasons[stream.Skipped] = map[string]int{"no_mapping": 7}
	var got []string
	for _, r := range renderReasons(&stats) {
		got = append(got, fmt.Sprint(r.Status, " ", r.Reason, " ", r.Count))
		if r.Advice == "" {
			t.Errorf("%s has no advice", r.Reason)
		}
	}
	if diff := cmp.Diff([]string{"skipped no_mapping 7", "failed code_1 2", "failed http_400 2", "retrying timeout 2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// answeredDeliveries is what the tests read of the answer.
type answeredDeliveries struct {
	Data struct {
		Interval *string          `json:"interval"`
		Totals   []deliveryCounts `json:"totals"`
		Series   []struct {
			Date      string           `json:"date"`
			Platforms []deliveryCounts `json:"platforms"`
		} `json:"series"`
		CompleteFrom *string `json:"complete_from"`
	} `json:"data"`
}

func deliveriesOf(t *testing.T, api http.Handler, property, query string) answeredDeliveries {
	t.Helper()
	answer := get(api, tokens[property], property+"/deliveries?"+query)
	var got answeredDeliveries
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("%s: got %d %s", query, answer.Code, answer.Body)
	}
	return got
}

// summed is a platform's counts in short.
func summed(list []deliveryCounts) string {
	var texts []string
	for _, d := range list {
		texts = append(texts, fmt.Sprintf("%s %d %d %d %d %d %d", d.Platform, d.Pending, d.Retrying, d.Delivered, d.Failed, d.Skipped, d.Expired))
	}
	return strings.Join(texts, ", ")
}

func TestDeliveriesAreCountedInTotalAndOverTime(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for name, test := range map[string]struct{ property, query, totals, series string }{
			"the last day, totals alone":        {"berlin", "", "console 5 0 0 0 0 0, crm 5 0 0 0 0 0", ""},
			"a month":                           {"berlin", "period=30d", "console 14 0 2 0 0 0, crm 12 1 1 1 1 0", ""},
			"one platform":                      {"berlin", "period=30d&platform=crm", "crm 12 1 1 1 1 0", ""},
			"events of a name, or of its alias": {"berlin", "period=30d&event=page_view", "console 6 0 1 0 0 0, crm 6 0 1 0 0 0", ""},
			"days, of which one has nothing": {
				"berlin", "from=2026-10-20&to=2026-10-21&interval=day", "console 1 0 2 0 0 0, crm 0 0 1 1 1 0",
				"2026-10-20: console 1 0 2 0 0 0, crm 0 0 1 1 1 0; 2026-10-21: ",
			},
			"a platform that there is not": {"berlin", "period=30d&platform=other", "", ""},
			"nothing at all":               {"empty", "period=30d", "", ""},
		} {
			t.Run(name, func(t *testing.T) {
				got := deliveriesOf(t, api, test.property, test.query)
				var series []string
				for _, bucket := range got.Data.Series {
					series = append(series, bucket.Date+": "+summed(bucket.Platforms))
				}
				if totals := summed(got.Data.Totals); totals != test.totals {
					t.Errorf("totals: got %s, want %s", totals, test.totals)
				}
				if text := strings.Join(series, "; "); text != test.series || (got.Data.Interval != nil) != (test.series != "") {
					t.Errorf("series: got %s, want %s", text, test.series)
				}
			})
		}
	})
}

func TestDeliveriesSayWhyAndWhatToDo(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		got := deliveriesOf(t, api, "berlin", "period=30d&platform=crm")
		want := []reasonCount{
			{"failed", "http_400", 1, adviceRefused}, {"retrying", "http_503", 1, adviceDown},
			{"skipped", "event_excluded", 1, adviceFor(stream.Skipped, "event_excluded")},
		}
		if diff := cmp.Diff(want, got.Data.Totals[0].Reasons); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestDeliveriesThatRetentionHasCutSayFromWhenOnTheyAreComplete(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		if got := deliveriesOf(t, api, "trimmed", "period=30d"); got.Data.CompleteFrom == nil || *got.Data.CompleteFrom != "2026-10-24T22:00:00.000Z" {
			t.Errorf("got %v", got.Data.CompleteFrom)
		}
		if got := deliveriesOf(t, api, "trimmed", "period=24h"); got.Data.CompleteFrom != nil {
			t.Errorf("a period behind it: got %v", *got.Data.CompleteFrom)
		}
	})
}

func TestRowsOfDeliveriesAreThePartsOfThePeriodOrThePlatforms(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for name, test := range map[string]struct {
			query, accept string
			rows          int
			first         string
		}{
			"totals as CSV":    {"period=30d", typeCSV, 3, "platform,pending,retrying,delivered,failed,skipped,expired,reasons,latency_ms"},
			"days as CSV":      {"from=2026-10-20&to=2026-10-22&interval=day", typeCSV, 4, "from,to,date,platforms"},
			"totals as NDJSON": {"period=30d", typeNDJSON, 2, `{"platform":"console","pending":14,`},
			"days as NDJSON":   {"from=2026-10-20&to=2026-10-22&interval=day", typeNDJSON, 3, `{"from":"2026-10-19T22:00:00.000Z","to":"2026-10-20T22:00:00.000Z","date":"2026-10-20","platforms":[{"platform":"console",`},
		} {
			t.Run(name, func(t *testing.T) {
				text := askWith(api, http.MethodGet, "/api/v1/properties/berlin/deliveries?"+test.query, map[string]string{"Authorization": berlinBearer, "Accept": test.accept}).Body.String()
				if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != test.rows || !strings.HasPrefix(lines[0], test.first) {
					t.Errorf("got %s", text)
				}
			})
		}
	})
}

func TestDeliveriesThatAreAskedForWronglyAreRefused(t *testing.T) {
	_, api := serve(t)
	for name, test := range map[string]struct{ query, want string }{
		"another interval":      {"interval=minute", `"interval":["The selected interval is invalid`},
		"too many parts":        {"from=2025-11-01&to=2026-10-20&interval=hour", `"interval":["The interval field must be longer`},
		"too many platforms":    {strings.Repeat("&platform=a", 101), `"platform":["The platform field must not have more than 100 items."]`},
		"an event that is none": {"event=a%00", `"event.0":["The event.0 field format is invalid."]`},
		"a filter of figures":   {"channel=Direct", `"channel":["The channel parameter is unknown; known are period, from, to, interval, platform, event."]`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := get(api, tokens["berlin"], "berlin/deliveries?"+test.query)
			if answer.Code != 422 || !strings.Contains(answer.Body.String(), test.want) {
				t.Errorf("got %d %s, want %s", answer.Code, answer.Body, test.want)
			}
		})
	}
}
