package query

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
)

// fieldErrors asks for a call of the property "berlin" that must be refused, and returns what is said of the fields.
func fieldErrors(t *testing.T, api http.Handler, accept, call string) map[string][]string {
	t.Helper()
	answer := getAs(api, accept, "berlin/"+call)
	var body struct {
		Errors map[string][]string `json:"errors"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || answer.Code != http.StatusUnprocessableEntity {
		t.Fatalf("%s: got %d %.300s, %v, want 422", call, answer.Code, answer.Body, err)
	}
	return body.Errors
}

func TestFiltersAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		query string
		want  analytics.Filter
	}{
		"none keeps all":                       {"", analytics.Filter{}},
		"an empty one is absent":               {"channel=&page[]=", analytics.Filter{}},
		"each dimension has its own":           {"event=a&channel=b&source=c&medium=d&campaign=e&page=/f&product=g", analytics.Filter{"event": {"a"}, "channel": {"b"}, "source": {"c"}, "medium": {"d"}, "campaign": {"e"}, "page": {"/f"}, "product": {"g"}}},
		"several values are any of":            {"page[]=/a&page[]=/b%2Fc&page=(none)", analytics.Filter{"page": {"/a", "/b/c", "(none)"}}},
		"an event's alias is resolved":         {"event=page_view", analytics.Filter{"event": {"pageview"}}},
		"a value is no event's alias":          {"source=page_view", analytics.Filter{"source": {"page_view"}}},
		"a value keeps commas and bars":        {"campaign=a,b|c", analytics.Filter{"campaign": {"a,b|c"}}},
		"a hundred values are not too many":    {strings.Repeat("medium=m&", 100), analytics.Filter{"medium": strings.Split(strings.Repeat("m", 100), "")}},
		"a value keeps its white space":        {"source=+a%09&page=/a%C2%A0&product=%E2%80%83&event=+a+", analytics.Filter{"source": {" a\t"}, "page": {"/a\u00a0"}, "product": {"\u2003"}, "event": {"a"}}},
		"the escape of a path is kept":         {"page=/a%2520b", analytics.Filter{"page": {"/a%20b"}}},
		"a parameter that begins like another": {"page=/a&period=7d&product=p", analytics.Filter{"page": {"/a"}, "product": {"p"}}},
	} {
		t.Run(name, func(t *testing.T) {
			q := &request{parameters: parameters{pairs: parseQuery(test.query), aliases: map[string]string{"page_view": "pageview"}}}
			got := q.filter()
			if diff := cmp.Diff(test.want, got); diff != "" || len(q.errs) > 0 {
				t.Errorf("errors %v (-want +got):\n%s", q.errs, diff)
			}
		})
	}
}

func TestAResultOfABreakdownAskedForAsAFilterHasItsFigures(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		texts := []string{"a", " a", "a ", "\u00a0a", "a\u2003", "\u2003a\u00a0", " a b "}
		var sent []string
		for i, text := range texts {
			for n := range i + 1 {
				path := url.PathEscape(text)
				sent = append(sent, fmt.Sprintf(
					`{"event":"purchase","event_id":"%d-%d","client_id":"c%d","data":{"value":1,"currency":"EUR","content_ids":[%[4]q],"contents":[{"id":%[4]q,"price":1}]},`+
						`"context":{"page_url":"https://shop.example/%[5]s","utm_source":%[4]q,"utm_medium":%[4]q,"utm_campaign":%[4]q}}`, i, n, i, text, path))
			}
		}
		api, _, _ := fewEvents(t, engine, sent...)
		read := func(call string, into any) {
			answer := getAs(api, typeJSON, "berlin/analytics/"+call)
			if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil || answer.Code != http.StatusOK {
				t.Fatalf("%s: got %d %.300s, %v", call, answer.Code, answer.Body, err)
			}
		}
		for _, by := range []string{"channel", "source", "medium", "campaign", "page", "product"} {
			var broken struct {
				Data struct {
					Results []map[string]any `json:"results"`
				} `json:"data"`
			}
			read("breakdown?by="+by, &broken)
			for _, result := range broken.Data.Results {
				var kept struct {
					Data struct {
						KPIs struct {
							Events float64 `json:"events"`
						} `json:"kpis"`
					} `json:"data"`
				}
				value := fmt.Sprint(result[by])
				read("summary?"+url.Values{by: {value}}.Encode(), &kept)
				if kept.Data.KPIs.Events != result["events"] {
					t.Errorf("by %s %q has %v events, and as a filter it keeps %v", by, value, result["events"], kept.Data.KPIs.Events)
				}
			}
			if by == "product" && len(broken.Data.Results) < len(texts)-1 {
				t.Errorf("the products %v are told apart as %v", texts, broken.Data.Results)
			}
		}
	})
}

func TestAValueThatIsNotEncodedProperlyIsNamed(t *testing.T) {
	_, api := serve(t)
	for _, call := range []string{"analytics/summary?event=%zz", "analytics/summary?event=a&event[]=100%", "events/stats?event=%", "events?event=a%2"} {
		want := map[string][]string{"event": {"The event field is not percent-encoded properly: a percent sign is written %25."}}
		if strings.Contains(call, "stats") {
			want = map[string][]string{"event": {"The event parameter is unknown; known are period, from, to, limit, cursor, class."}}
		}
		if diff := cmp.Diff(want, fieldErrors(t, api, typeJSON, call)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", call, diff)
		}
	}
}

func TestWrongFiltersAreNamed(t *testing.T) {
	_, api := serve(t)
	for name, test := range map[string]struct{ query, field, want string }{
		"more than a hundred values":      {strings.Repeat("page=/&", 101), "page", "The page field must not have more than 100 items."},
		"more than a hundred names":       {strings.Repeat("event=a&", 101), "event", "The event field must not have more than 100 items."},
		"an empty value among others":     {"channel=Direct&channel=", "channel.1", "The channel.1 field is required."},
		"a value that is no text":         {"source=%ff", "source.0", "The source.0 field format is invalid."},
		"a name that no event has":        {"event=" + strings.Repeat("a", 101), "event.0", "The event.0 field must not be greater than 100 characters."},
		"keys in place of a list":         {"product[a]=1", "product", "The product field must be a list."},
		"a custom property":               {"properties.plan=gold", "properties.plan", "The properties.plan field names a custom property, which is neither a dimension nor a filter."},
		"a custom property with brackets": {"properties.plan[]=gold", "properties.plan[]", "The properties.plan[] field names a custom property, which is neither a dimension nor a filter."},
		"a dimension that there is not":   {"country=CH", "country", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, call := range []string{
				"analytics/summary?", "analytics/series?", "analytics/breakdown?by=page&", "analytics/funnel?steps=a&steps=b&", "analytics/attribution?",
			} {
				got := fieldErrors(t, api, typeJSON, call+test.query)
				if test.want == "" {
					if text := fmt.Sprint(got[test.field]); len(got) != 1 || !strings.Contains(text, "unknown; known are") || !strings.Contains(text, "campaign, page, product") {
						t.Errorf("%s: got %v, want the parameters that are known", call, got)
					}
					continue
				}
				if diff := cmp.Diff(map[string][]string{test.field: {test.want}}, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", call, diff)
				}
			}
		})
	}
}

func TestWhatFiguresCannotBeAskedForIsNamed(t *testing.T) {
	_, api := serve(t)
	const dimensions = "event, channel, source, medium, campaign, page, product."
	for name, test := range map[string]struct{ call, accept, field, want string }{
		"a breakdown by nothing":              {"breakdown", typeJSON, "by", "The by field is required."},
		"a breakdown by what there is not":    {"breakdown?by=country", typeJSON, "by", "The selected by is invalid: it can be " + dimensions},
		"a breakdown by a name in capitals":   {"breakdown?by=Page", typeJSON, "by", "The selected by is invalid: it can be " + dimensions},
		"a breakdown by two at once":          {"breakdown?by=page,channel", typeJSON, "by", "The by field must name one dimension, not several."},
		"a breakdown by two, each for itself": {"breakdown?by=page&by=channel", typeCSV, "by", "The by field must name one dimension, not several."},
		"a breakdown by a custom property":    {"breakdown?by=properties.plan", typeJSON, "by", "The by field names a custom property, which is neither a dimension nor a filter."},
		"a breakdown by a list of names":      {"breakdown?by[x]=page", typeJSON, "by", "The by field must be a list."},
		"an order that there is not":          {"breakdown?by=page&order_by=pageviews", typeJSON, "order_by", "The selected order_by is invalid: it can be events, unique_visitors, purchases, revenue."},
		"more results than there can be":      {"breakdown?by=page&limit=1001", typeJSON, "limit", "The limit field must be between 1 and 1000."},
		"an interval that there is not":       {"series?interval=minute", typeJSON, "interval", "The selected interval is invalid: it can be hour, day, week, month."},
		"an interval twice":                   {"series?interval=hour&interval=day", typeJSON, "interval", "The interval field must be given only once."},
		"more hours than there can be":        {"series?interval=hour&from=2026-09-01&to=2026-10-12", typeNDJSON, "interval", "The interval field must be longer, or the period shorter: it has 1008 buckets of one hour, and at most 1000 are allowed."},
		"a comparison with what there is not": {"series?compare=year", typeJSON, "compare", "The selected compare is invalid: it can be previous."},
		"a summary's comparison likewise":     {"summary?compare=next", typeJSON, "compare", "The selected compare is invalid: it can be previous."},
		"a comparison in rows":                {"series?compare=previous", typeCSV, "compare", "The compare field can be given only where the answer is JSON: rows are of one period."},
		"a filter of what is here and now":    {"realtime?channel=Direct", typeJSON, "channel", "The channel parameter is unknown; the call takes none."},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(map[string][]string{test.field: {test.want}}, fieldErrors(t, api, test.accept, "analytics/"+test.call)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
