package query

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheFormatIsTheOneThatTheCallerPrefers(t *testing.T) {
	for name, test := range map[string]struct {
		accept []string
		want   format // "" is 406
	}{
		"without a preference it is JSON":            {nil, typeJSON},
		"anything is JSON":                           {[]string{"*/*"}, typeJSON},
		"a browser gets JSON":                        {[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, typeJSON},
		"JSON":                                       {[]string{"application/json"}, typeJSON},
		"CSV":                                        {[]string{"text/csv"}, typeCSV},
		"NDJSON":                                     {[]string{"application/x-ndjson"}, typeNDJSON},
		"any text is CSV":                            {[]string{"text/*"}, typeCSV},
		"any application is JSON":                    {[]string{"application/*"}, typeJSON},
		"case does not matter":                       {[]string{"Text/CSV"}, typeCSV},
		"parameters do not matter":                   {[]string{`text/csv; charset="utf-8"`}, typeCSV},
		"the highest weight wins":                    {[]string{"application/json;q=0.3, text/csv;q=0.9"}, typeCSV},
		"a weight is 1 where it is not given":        {[]string{"application/json;q=0.999, text/csv"}, typeCSV},
		"of equal weights ours wins":                 {[]string{"text/csv, application/json"}, typeJSON},
		"the more specific range has the say":        {[]string{"application/*;q=0.1, application/x-ndjson;q=0.5, text/csv;q=0.4"}, typeNDJSON},
		"a weight of 0 excludes":                     {[]string{"*/*, application/json;q=0, text/csv;q=0"}, typeNDJSON},
		"several headers are one list":               {[]string{"image/png", "text/csv"}, typeCSV},
		"what is malformed is passed over":           {[]string{"text/csv;q=2, text/csv;q=, ;;, csv, */json, application/x-ndjson;q=0.001"}, typeNDJSON},
		"a header of nothing but errors is none":     {[]string{"csv"}, typeJSON},
		"an empty header is none":                    {[]string{""}, typeJSON},
		"nothing that we have is not acceptable":     {[]string{"application/xml"}, ""},
		"everything excluded is not acceptable":      {[]string{"*/*;q=0"}, ""},
		"another JSON is not acceptable":             {[]string{"application/vnd.api+json"}, ""},
		"what is excluded in all is not acceptable":  {[]string{"application/json;q=0, application/x-ndjson;q=0.0, text/*;q=0.000"}, ""},
		"a weight of too many decimals is malformed": {[]string{"text/csv;q=0.0001, application/json;q=0.5"}, typeJSON},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.Header["Accept"] = test.accept
			answer := httptest.NewRecorder()
			if got := negotiate(answer, request, table); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if vary := answer.Header().Get("Vary"); vary != "Accept" {
				t.Errorf("Vary is %q", vary)
			}
			want := message("This call answers in application/json, text/csv, application/x-ndjson.")
			if test.want == "" && (answer.Code != http.StatusNotAcceptable || answer.Body.String() != want) {
				t.Errorf("got %d %s", answer.Code, answer.Body)
			}
		})
	}
}

func TestACallWithoutRowsAnswersInJSONAlone(t *testing.T) {
	_, api := serve(t)
	for _, call := range calls {
		answer := getAs(api, "text/csv", "berlin/"+call)
		rows := !strings.HasPrefix(call, "analytics/summary") && !strings.HasPrefix(call, "analytics/realtime")
		if want := map[bool]int{true: 200, false: 406}[rows]; answer.Code != want {
			t.Errorf("%s as CSV: got %d %s, want %d", call, answer.Code, answer.Body, want)
		}
	}
}

// getAs asks for a path below /api/v1/properties in a format.
func getAs(api http.Handler, accept, path string) *httptest.ResponseRecorder {
	property, _, _ := strings.Cut(path, "/")
	request := httptest.NewRequest(http.MethodGet, "/api/v1/properties/"+path, nil)
	request.Header.Set("Authorization", "Bearer "+tokens[property])
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, request)
	return answer
}

func FuzzNegotiate(f *testing.F) {
	f.Add("text/csv;q=0.5, */*;q=0.1")
	f.Add("text/csv; q=\"1\"; a=b,,;")
	f.Fuzz(func(t *testing.T, accept string) {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("Accept", accept)
		answer := httptest.NewRecorder()
		got := negotiate(answer, request, table)
		if (got == "") != (answer.Code == http.StatusNotAcceptable) {
			t.Errorf("%q: got %q with status %d", accept, got, answer.Code)
		}
		for _, r := range acceptedRanges([]string{accept}) {
			if r.quality < 0 || r.quality > 1000 || r.kind == "" || r.sub == "" {
				t.Errorf("%q: got the range %+v", accept, r)
			}
		}
	})
}
