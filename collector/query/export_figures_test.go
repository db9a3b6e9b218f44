package query

import (
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// The tests of this file work filtered figures, series, breakdowns and real time out from the NDJSON export alone.

// tallyOf adds up the events that pass filters and lie in a period.
func tallyOf(t *testing.T, events []dimensioned, filters url.Values, from, to time.Time) *tally {
	t.Helper()
	y := newTally()
	for _, e := range events {
		if e.kept(filters) && !e.ReceivedAt.Before(from) && e.ReceivedAt.Before(to) {
			y.add(e.exported, rat(t, e.Value, 0), new(big.Rat))
		}
	}
	return y
}

func TestFilteredFiguresFollowFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, events, filters := demoEvents(t, engine)
		middle := fixtureNow.Add(-15 * 24 * time.Hour)
		for name, filter := range filters {
			t.Run(name, func(t *testing.T) {
				data := asked[struct {
					KPIs     jsontext.Value `json:"kpis"`
					Previous struct {
						KPIs jsontext.Value `json:"kpis"`
					} `json:"previous"`
				}](t, api, "analytics/summary?compare=previous&from="+instant(middle)+"&"+filter.Encode())
				if diff := cmp.Diff(tallyOf(t, events, filter, middle, fixtureNow).figures(), answered(t, data.KPIs)); diff != "" {
					t.Errorf("(-export +summary):\n%s", diff)
				}
				if diff := cmp.Diff(tallyOf(t, events, filter, middle.Add(middle.Sub(fixtureNow)), middle).figures(), answered(t, data.Previous.KPIs)); diff != "" {
					t.Errorf("the period before (-export +summary):\n%s", diff)
				}
			})
		}
	})
}

func TestSeriesFollowFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, events, filters := demoEvents(t, engine)
		berlin := zone(t, "Europe/Berlin")
		week := func(at time.Time) string {
			year, week := at.ISOWeek()
			return fmt.Sprint(year, " ", week)
		}
		format := func(layout string) func(time.Time) string {
			return func(at time.Time) string { return at.Format(layout) }
		}
		for interval, nameOf := range map[string]func(time.Time) string{
			"hour": format("2006-01-02 15 -0700"), "day": format(time.DateOnly), "week": week, "month": format("2006-01"),
		} {
			for name, filter := range filters {
				t.Run(interval+"s of "+name, func(t *testing.T) {
					tallies := map[string]*tally{}
					for _, e := range events {
						if !e.kept(filter) {
							continue
						}
						at := nameOf(e.ReceivedAt.In(berlin))
						if tallies[at] == nil {
							tallies[at] = newTally()
						}
						tallies[at].add(e.exported, rat(t, e.Value, 0), new(big.Rat))
					}
					var end string
					for _, row := range asked[[]jsontext.Value](t, api, "analytics/series?period=30d&interval="+interval+"&"+filter.Encode()) {
						got := answered(t, row)
						from, err := time.Parse(time.RFC3339, got["from"])
						if err != nil || end != "" && got["from"] != end || got["date"] != from.In(berlin).Format(time.DateOnly) {
							t.Fatalf("the bucket before ends at %s, then comes %s of %s, %v", end, got["from"], got["date"], err)
						}
						end = got["to"]
						delete(got, "from")
						delete(got, "to")
						delete(got, "date")
						want := newTally().figures()
						if y := tallies[nameOf(from.In(berlin))]; y != nil {
							want = y.figures()
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("from %s on (-export +series):\n%s", from, diff)
						}
						delete(tallies, nameOf(from.In(berlin)))
					}
					if len(tallies) > 0 || end != instant(fixtureNow) {
						t.Errorf("the series ends at %s and has no %v", end, slices.Collect(maps.Keys(tallies)))
					}
				})
			}
		}
	})
}

func TestBreakdownsFollowFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, events, filters := demoEvents(t, engine)
		for _, by := range []string{"event", "channel", "source", "medium", "campaign", "page", "product"} {
			for name, filter := range filters {
				t.Run(name+" by "+by, func(t *testing.T) {
					var kept []dimensioned
					for _, e := range events {
						if e.kept(filter) {
							kept = append(kept, e)
						}
					}
					data := asked[struct {
						Totals  jsontext.Value   `json:"totals"`
						Results []jsontext.Value `json:"results"`
						Others  jsontext.Value   `json:"others"`
					}](t, api, "analytics/breakdown?period=30d&by="+by+"&"+filter.Encode())
					got := map[string]figuresOf{}
					for _, result := range data.Results {
						group := answered(t, result)
						got[group[by]] = group
					}
					if diff := cmp.Diff(breakDown(t, kept, by), got); diff != "" || len(data.Others) > 0 {
						t.Errorf("others %s (-export +breakdown):\n%s", data.Others, diff)
					}
					if diff := cmp.Diff(tallyOf(t, kept, nil, time.Time{}, fixtureNow).figures(), answered(t, data.Totals)); diff != "" {
						t.Errorf("totals (-export +breakdown):\n%s", diff)
					}
				})
			}
		}
	})
}

func TestTheOrderOfABreakdownFollowsFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, events, _ := demoEvents(t, engine)
		for _, by := range []string{"event", "campaign", "product"} {
			groups := slices.Collect(maps.Values(breakDown(t, events, by)))
			for _, order := range []string{"events", "unique_visitors", "purchases", "revenue"} {
				slices.SortFunc(groups, func(a, b figuresOf) int {
					first, second := rat(t, jsontext.Value(a[order]), 0), rat(t, jsontext.Value(b[order]), 0)
					if c := second.Cmp(first); c != 0 {
						return c
					}
					return strings.Compare(a[by], b[by])
				})
				data := asked[struct {
					Results []jsontext.Value `json:"results"`
					Others  jsontext.Value   `json:"others"`
				}](t, api, "analytics/breakdown?period=30d&limit=3&by="+by+"&order_by="+order)
				var got, want []string
				for i, result := range data.Results {
					got, want = append(got, answered(t, result)[by]), append(want, groups[i][by])
				}
				if diff := cmp.Diff(want, got); diff != "" || len(got) != 3 {
					t.Errorf("by %s in the order of %s (-export +breakdown):\n%s", by, order, diff)
				}
				others := figuresOf{"groups": fmt.Sprint(len(groups) - 3)}
				for _, member := range []string{"events", "purchases", "revenue"} {
					total := new(big.Rat)
					for _, group := range groups[3:] {
						total.Add(total, rat(t, jsontext.Value(group[member]), 0))
					}
					others[member] = total.RatString()
				}
				if diff := cmp.Diff(others, answered(t, data.Others)); diff != "" {
					t.Errorf("the others by %s in the order of %s (-export +breakdown):\n%s", by, order, diff)
				}
			}
		}
	})
}

func TestRealTimeFollowsFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, events, _ := demoEvents(t, engine)
		from := fixtureNow.Truncate(time.Minute).Add(-29 * time.Minute)
		var recent []dimensioned
		for _, e := range events {
			if !e.ReceivedAt.Before(from) {
				recent = append(recent, e)
			}
		}
		data := asked[map[string]jsontext.Value](t, api, "analytics/realtime")
		rows := func(name string) []jsontext.Value {
			var list []jsontext.Value
			if err := json.Unmarshal(data[name], &list); err != nil {
				t.Fatal(err)
			}
			return list
		}
		some := func(f figuresOf, names ...string) figuresOf {
			picked := figuresOf{}
			for _, name := range names {
				picked[name] = f[name]
			}
			return picked
		}
		all := some(tallyOf(t, recent, nil, from, fixtureNow).figures(), "events", "unique_visitors", "purchases", "pageviews", "add_to_carts", "revenue")
		if all["events"] == "0" {
			t.Fatal("nothing came within the last half hour")
		}
		all["from"], all["to"], all["currency"] = instant(from), instant(fixtureNow), "EUR"
		for name, want := range all {
			object := jsontext.Value(`{"` + name + `":` + string(data[name]) + `}`)
			if got := answered(t, object)[name]; got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		for i, row := range rows("minutes") {
			begin := from.Add(time.Duration(i) * time.Minute)
			want := some(tallyOf(t, recent, nil, begin, begin.Add(time.Minute)).figures(), "events", "unique_visitors", "purchases", "revenue")
			want["from"] = instant(begin)
			if diff := cmp.Diff(want, answered(t, row)); diff != "" || len(rows("minutes")) != 30 {
				t.Errorf("minute %d of %d (-export +realtime):\n%s", i, len(rows("minutes")), diff)
			}
		}
		for _, by := range []string{"event", "page", "channel", "source"} {
			want, got := map[string]figuresOf{}, map[string]figuresOf{}
			for name, group := range breakDown(t, recent, by) {
				want[name] = some(group, by, "events", "unique_visitors")
			}
			for _, row := range rows("by_" + by) {
				group := answered(t, row)
				got[group[by]] = group
			}
			if diff := cmp.Diff(want, got); diff != "" && len(want) <= 10 || len(got) > 10 {
				t.Errorf("by %s (-export +realtime):\n%s", by, diff)
			}
		}
	})
}

func TestAFilteredFunnelOfAlternativesFollowsFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, events, filters := demoEvents(t, engine)
		steps := [][]string{{"pageview", "search"}, {"view_item", "add_to_cart"}, {"purchase"}}
		anybody := false
		for name, filter := range filters {
			t.Run(name, func(t *testing.T) {
				query := url.Values{"window": {"none"}, "period": {"30d"}}
				maps.Copy(query, filter)
				for _, names := range steps {
					query.Add("steps", strings.Join(names, "|"))
				}
				var got [3]int
				for i, step := range asked[struct {
					Steps []struct {
						Event    string   `json:"event"`
						Events   []string `json:"events"`
						Visitors int      `json:"visitors"`
					} `json:"steps"`
				}](t, api, "analytics/funnel?"+query.Encode()).Steps {
					got[i] = step.Visitors
					if step.Event != strings.Join(steps[i], "|") || !slices.Equal(step.Events, steps[i]) {
						t.Errorf("step %d is %q of %q, want %q", i+1, step.Event, step.Events, steps[i])
					}
				}
				var want [3]int
				reached := map[string]int{}
				for _, e := range events {
					if at := reached[e.Visitor]; e.Visitor != "" && at < 3 && e.kept(filter) && slices.Contains(steps[at], e.Event) {
						reached[e.Visitor]++
						want[at]++
					}
				}
				anybody = anybody || want[2] > 0
				if got != want {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		}
		if !anybody {
			t.Error("nobody came through")
		}
	})
}

func TestAFilteredAttributionFollowsFromTheExport(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, events, filters := demoEvents(t, engine)
		for name, filter := range filters {
			t.Run(name, func(t *testing.T) {
				got := map[string]string{}
				for _, row := range asked[struct {
					Results []jsontext.Value `json:"results"`
				}](t, api, "analytics/attribution?group_by=source&period=30d&"+filter.Encode()).Results {
					credit := answered(t, row)
					got[credit["source"]] = credit["conversions"] + " for " + credit["revenue"]
				}
				tallies, want := map[string]*tally{}, map[string]string{}
				for _, e := range events {
					if e.Event != "purchase" || !e.kept(filter) {
						continue
					}
					source := e.dimensions["source"][0]
					if tallies[source] == nil {
						tallies[source] = newTally()
					}
					tallies[source].add(e.exported, rat(t, e.Value, 0), new(big.Rat))
				}
				for source, y := range tallies {
					want[source] = fmt.Sprint(y.counts["purchases"], " for ", y.figures()["gross_revenue"])
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-export +attribution):\n%s", diff)
				}
			})
		}
	})
}
