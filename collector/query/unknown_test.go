package query

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

func TestParametersThatACallDoesNotTake(t *testing.T) {
	_, api := serve(t)
	long := strings.Repeat("ä", maxNameLength+1)
	const daily = "known are period, from, to."
	const filters = "event, channel, source, medium, campaign, page, product."
	const period = "known are period, from, to, compare, " + filters
	const listing = "known are period, from, to, limit, cursor, event, status, platform, class, event_id, order_id, visitor, order, total."
	for name, test := range map[string]struct {
		call string
		want map[string][]string
	}{
		"an unknown one is named":               {"analytics/summary?perod=7d", map[string][]string{"perod": {"The perod parameter is unknown; " + period}}},
		"an empty unknown one is named as well": {"analytics/daily?foo=", map[string][]string{"foo": {"The foo parameter is unknown; " + daily}}},
		"case matters":                          {"events?Status=failed", map[string][]string{"Status": {"The Status parameter is unknown; " + listing}}},
		"another call's is unknown":             {"analytics/summary?limit=5", map[string][]string{"limit": {"The limit parameter is unknown; " + period}}},
		"an unknown list is named in full":      {"events?states[]=failed", map[string][]string{"states[]": {"The states[] parameter is unknown; " + listing}}},
		"each is named once":                    {"analytics/summary?a=1&a=2&b=3", map[string][]string{"a": {"The a parameter is unknown; " + period}, "b": {"The b parameter is unknown; " + period}}},
		"a long name is cut":                    {"analytics/summary?" + url.QueryEscape(long) + "=1", map[string][]string{long[:2*maxNameLength] + "…": {"The " + long[:2*maxNameLength] + "… parameter is unknown; " + period}}},
		"one where there is none is unknown":    {"analytics/realtime?period=24h", map[string][]string{"period": {"The period parameter is unknown; the call takes none."}}},
		"daily figures have no filters":         {"analytics/daily?channel=Direct", map[string][]string{"channel": {"The channel parameter is unknown; " + daily}}},
		"brackets make no list of a date":       {"analytics/summary?from[]=2026-10-01", map[string][]string{"from": {"The from field must not be a list."}}},
		"nor does a number in them":             {"events?limit[0]=5", map[string][]string{"limit": {"The limit field must not be a list."}}},
		"nor of a model":                        {"analytics/attribution?model%5B%5D=linear", map[string][]string{"model": {"The model field must not be a list."}}},
		"a date is given once":                  {"analytics/summary?to=2026-10-01&to=2026-10-02", map[string][]string{"to": {"The to field must be given only once."}}},
		"a list has no keys":                    {"events?status[a]=failed", map[string][]string{"status": {"The status field must be a list."}}},
		"an item of a list is not empty":        {"events?platform[]=crm&platform[]=", map[string][]string{"platform.1": {"The platform.1 field is required."}}},
		"a state that there is not is named":    {"events?status[]=failed&status[]=lost", map[string][]string{"status.1": {"The selected status.1 is invalid."}}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := get(api, tokens["berlin"], "berlin/"+test.call)
			var body struct {
				Errors map[string][]string `json:"errors"`
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || answer.Code != http.StatusUnprocessableEntity {
				t.Fatalf("got %d %s, %v", answer.Code, answer.Body, err)
			}
			if diff := cmp.Diff(test.want, body.Errors); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestACursorBelongsToItsQuery(t *testing.T) {
	_, api := serve(t)
	for name, test := range map[string]struct {
		asked, then string
		want        int
	}{
		"the same query goes on":               {"period=30d", "period=30d", 200},
		"another size of page goes on":         {"period=30d", "period=30d&limit=7", 200},
		"an alias is the name it stands for":   {"period=30d&event=page_view", "period=30d&event=pageview", 200},
		"the order of filters does not matter": {"period=30d&event=pageview&event=purchase", "period=30d&event[]=purchase&event[]=pageview", 200},
		"nor does how an instant is spelt":     {"from=2026-10-20T00:00:00Z", "from=2026-10-20T02:00:00%2B02:00", 200},
		"the default may be spelt out":         {"", "period=24h", 200},
		"another period contradicts":           {"period=30d", "period=7d", 422},
		"another start contradicts":            {"from=2026-10-20", "from=2026-10-19", 422},
		"another end contradicts":              {"to=2026-10-26", "to=2026-10-25", 422},
		"a start where there was none":         {"period=30d", "from=2026-10-20", 422},
		"no period where there was one":        {"period=30d", "", 422},
		"another name contradicts":             {"period=30d&event=pageview", "period=30d&event=purchase", 422},
		"a filter less contradicts":            {"period=30d&event=pageview", "period=30d", 422},
		"a state contradicts":                  {"period=30d", "period=30d&status=delivered", 422},
		"a platform contradicts":               {"period=30d", "period=30d&platform=crm", 422},
		"a platform is no event's name":        {"period=30d&event=pageview", "period=30d&platform=pageview", 422},
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := listed(t, api, test.asked+"&limit=1")
			if first.NextCursor == nil {
				t.Fatal("there is one page")
			}
			answer := get(api, tokens["berlin"], "berlin/events?"+test.then+"&cursor="+*first.NextCursor)
			if answer.Code != test.want || (test.want == 422) != strings.Contains(answer.Body.String(), "belongs to another listing") {
				t.Errorf("got %d %s, want %d", answer.Code, answer.Body, test.want)
			}
		})
	}
}

func TestPathsAreUnescapedOnce(t *testing.T) {
	_, api := serve(t)
	for name, test := range map[string]struct {
		path string
		want int
	}{
		"a letter may be escaped":            {"b%65rlin/events", 200},
		"all may be":                         {"%62%65%72%6C%69%6e/events", 200},
		"so may the call":                    {"berlin/%65vents/st%61ts", 200},
		"an escaped slash is no separator":   {"berlin%2Fevents", 404},
		"nor does it make another property":  {"berlin%2F/events", 404},
		"what is escaped twice is unescaped": {"b%2565rlin/events", 404},
		"a zero byte is no property's":       {"berlin%00/events", 404},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := get(api, tokens["berlin"], test.path); answer.Code != test.want {
				t.Errorf("got %d %s, want %d", answer.Code, answer.Body, test.want)
			}
		})
	}
}

func TestTheLengthOfAQuery(t *testing.T) {
	_, api := serve(t)
	for name, test := range map[string]struct {
		length, want int
	}{
		"64 KiB are answered":       {MaxQueryBytes, 200},
		"one byte more is too long": {MaxQueryBytes + 1, 414},
	} {
		t.Run(name, func(t *testing.T) {
			query := "period=24h&"
			answer := get(api, tokens["berlin"], "berlin/events?"+query+strings.Repeat("&", test.length-len(query)))
			if answer.Code != test.want {
				t.Errorf("got %d %s, want %d", answer.Code, answer.Body, test.want)
			}
			if tooLong := message("The query string must not be longer than 65536 bytes."); test.want == 414 && answer.Body.String() != tooLong {
				t.Errorf("got %s, want %s", answer.Body, tooLong)
			}
		})
	}
}
