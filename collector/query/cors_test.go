package query

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
)

// serveToPages is serve with pages that may read the answers of the property berlin.
func serveToPages(t *testing.T) http.Handler {
	t.Helper()
	handler, api := serve(t)
	served := slices.Clone(*handler.tenants.Load())
	served[indexOf(t, handler, "berlin")].Property.Query = config.Query{AllowedOrigins: []string{"https://bi.example.com", "https://*.shop.example"}}
	handler.Serve(served)
	return api
}

func TestPagesMayReadAnswersWhereThePropertyNamesTheirOrigin(t *testing.T) {
	api := serveToPages(t)
	const events, properties = "/api/v1/properties/berlin/events", "/api/v1/properties"
	for name, test := range map[string]struct {
		target, authorization, origin string
		status                        int
		want                          string
	}{
		"an origin that is named":                            {events, berlinBearer, "https://bi.example.com", 200, "https://bi.example.com"},
		"a host below a wildcard":                            {events, berlinBearer, "https://a.b.shop.example", 200, "https://a.b.shop.example"},
		"errors too, so that the page can say what is wrong": {events, "", "https://bi.example.com", 401, "https://bi.example.com"},
		"what is not found too":                              {events + "/a/b", berlinBearer, "https://bi.example.com", 404, "https://bi.example.com"},
		"the list of properties":                             {properties, berlinBearer, "https://bi.example.com", 200, "https://bi.example.com"},
		"not the wildcard's own domain":                      {events, berlinBearer, "https://shop.example", 200, ""},
		"not another origin, whatever its token":             {events, berlinBearer, "https://evil.example", 200, ""},
		"not another scheme":                                 {events, berlinBearer, "http://bi.example.com", 200, ""},
		"not a page of no origin":                            {events, berlinBearer, "null", 200, ""},
		"not a page of a property that names none":           {"/api/v1/properties/kolkata/events", "Bearer wt_kolkata", "https://bi.example.com", 200, ""},
		"not for who is no page":                             {events, berlinBearer, "", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			header := map[string]string{"Authorization": test.authorization}
			if test.origin != "" {
				header["Origin"] = test.origin
			}
			answer := askWith(api, http.MethodGet, test.target, header)
			if got := answer.Header().Get("Access-Control-Allow-Origin"); answer.Code != test.status || got != test.want {
				t.Errorf("got %d and %q, want %d and %q", answer.Code, got, test.status, test.want)
			}
			if answer.Header().Get("Access-Control-Allow-Credentials") != "" {
				t.Error("cookies count")
			}
			if !slices.Contains(answer.Header().Values("Vary"), "Origin") {
				t.Errorf("Vary is %q", answer.Header().Values("Vary"))
			}
			exposed := answer.Header().Get("Access-Control-Expose-Headers")
			for _, header := range []string{"Weir-As-Of", "Weir-Complete-From", "Link", "ETag", "Retry-After", "Content-Disposition"} {
				if strings.Contains(exposed, header) != (test.want != "") {
					t.Errorf("exposed are %q", exposed)
				}
			}
		})
	}
}

func TestPreflightsNeedNoTokenAndTellNothing(t *testing.T) {
	api := serveToPages(t)
	refused := message(foreignOrigin)
	for name, test := range map[string]struct {
		path, origin, method string
		status               int
		body                 string
	}{
		"an origin that is named":                         {"/berlin/events", "https://bi.example.com", "GET", 204, ""},
		"of a path that there is not":                     {"/berlin/nothing", "https://bi.example.com", "GET", 204, ""},
		"of a call that changes something":                {"/berlin/deliveries/replay", "https://bi.example.com", "POST", 204, ""},
		"of the list of properties":                       {"", "https://bi.example.com", "GET", 204, ""},
		"another origin":                                  {"/berlin/events", "https://evil.example", "GET", 403, refused},
		"another origin, of the list":                     {"", "https://evil.example", "GET", 403, refused},
		"another property":                                {"/kolkata/events", "https://bi.example.com", "GET", 403, refused},
		"a property that there is not, told no otherwise": {"/nowhere/events", "https://bi.example.com", "GET", 403, refused},
		"no preflight: no origin":                         {"/berlin/events", "", "GET", 405, message("Method not allowed.")},
		"no preflight: no method":                         {"/berlin/events", "https://bi.example.com", "", 405, message("Method not allowed.")},
	} {
		t.Run(name, func(t *testing.T) {
			header := map[string]string{}
			if test.origin != "" {
				header["Origin"] = test.origin
			}
			if test.method != "" {
				header["Access-Control-Request-Method"] = test.method
			}
			answer := askWith(api, http.MethodOptions, "/api/v1/properties"+test.path, header)
			if answer.Code != test.status || answer.Body.String() != test.body {
				t.Errorf("got %d %q, want %d %q", answer.Code, answer.Body, test.status, test.body)
			}
			want := map[string]string{}
			if test.status == http.StatusNoContent {
				want = map[string]string{
					"Access-Control-Allow-Origin": test.origin, "Access-Control-Allow-Methods": "GET, HEAD, POST",
					"Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match", "Access-Control-Max-Age": "7200",
				}
			}
			got := map[string]string{}
			for name := range want {
				got[name] = answer.Header().Get(name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if test.status == http.StatusForbidden && answer.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Error("the page may read the refusal")
			}
		})
	}
}
