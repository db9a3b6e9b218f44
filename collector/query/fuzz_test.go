package query

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzQueryString holds that no query string of any call is answered otherwise than by 200 or 422, in JSON.
func FuzzQueryString(f *testing.F) {
	for _, seed := range []string{
		"", "period=7d", "from=2026-10-24&to=2026-10-26T00:00:00+02:00", "steps[]=pageview&steps[1]=purchase&window=none",
		"model=linear&lookback=12h&group_by=source", "limit=1&event=%ff&cursor=ARoXEAL38AAAAAABoN0oTOg&status=failed&platform=crm%00",
		"by=product&order_by=revenue&page=/&page=(none)&channel[]=Direct&interval=week&compare=previous", "steps=a|b%5C|c&steps=%5C%5C&by=a,b&properties.plan=x",
		"steps=%C2%85a&steps=%E2%80%A8&conversion_event=%F0%9F%8C%8A", "to=1970-01-01", "from=0000-01-01&to=9999-12-31",
	} {
		f.Add(seed)
	}
	_, api := serve(f)
	f.Fuzz(func(t *testing.T, raw string) {
		for _, call := range []string{"events", "events/stats", "analytics/summary", "analytics/daily", "analytics/series", "analytics/breakdown", "analytics/realtime", "analytics/funnel", "analytics/attribution"} {
			request := httptest.NewRequest(http.MethodGet, "/api/v1/properties/saopaulo/"+call, nil)
			request.Header.Set("Authorization", "Bearer "+tokens["saopaulo"])
			request.URL.RawQuery = raw
			answer := httptest.NewRecorder()
			api.ServeHTTP(answer, request)
			if !slices.Contains([]int{http.StatusOK, http.StatusUnprocessableEntity}, answer.Code) {
				t.Errorf("%s?%q: got %d %s", call, raw, answer.Code, answer.Body)
			}
			if body := jsontext.Value(answer.Body.Bytes()); !body.IsValid() {
				t.Errorf("%s?%q: no JSON: %s", call, raw, body)
			}
		}
	})
}
