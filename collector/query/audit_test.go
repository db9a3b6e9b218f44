package query

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// audited gives a handler an audit log.
func audited(h *Handler) *bytes.Buffer {
	lines := new(bytes.Buffer)
	h.audit = audit.New(lines, slog.New(slog.DiscardHandler), func() time.Time { return fixtureNow })
	return lines
}

func TestExportsAreWrittenDown(t *testing.T) {
	const begin = `{"time":"2026-10-26T10:00:01.000Z","log":"audit","act":"`
	const reader = `"actor":{"kind":"access_token","name":"default","scope":"read"},`
	for sentence, row := range map[string]struct {
		accept, path, method string
		broken               bool
		want                 string
	}{
		"events as CSV": {accept: typeCSV, path: "berlin/events?from=2026-10-20&to=2026-10-25&limit=1", want: begin + `events.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"events"},"outcome":"success","details":{"format":"text/csv","from":"2026-10-19T22:00:00.000Z","to":"2026-10-25T23:00:00.000Z","rows":1}}`},
		"as many rows of them as are asked for": {accept: typeNDJSON, path: "kolkata/events?from=2026-10-20&to=2026-10-25&limit=2", want: begin + `events.exported","property":"default/kolkata",` + reader +
			`"object":{"kind":"events"},"outcome":"success","details":{"format":"application/x-ndjson","from":"2026-10-19T18:30:00.000Z","to":"2026-10-25T18:30:00.000Z","rows":2}}`},
		"none where there are none": {accept: typeNDJSON, path: "empty/events?from=2026-10-20&to=2026-10-25", want: begin + `events.exported","property":"default/empty",` + reader +
			`"object":{"kind":"events"},"outcome":"success","details":{"format":"application/x-ndjson","from":"2026-10-20T00:00:00.000Z","to":"2026-10-26T00:00:00.000Z","rows":0}}`},
		"days": {accept: typeCSV, path: "berlin/analytics/daily?from=2026-10-24&to=2026-10-25", want: begin + `days.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"days"},"outcome":"success","details":{"format":"text/csv","from":"2026-10-23T22:00:00.000Z","to":"2026-10-25T23:00:00.000Z","rows":2}}`},
		"a series": {accept: typeCSV, path: "berlin/analytics/series?from=2026-10-24&to=2026-10-25&interval=week", want: begin + `figures.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"figures","name":"series"},"outcome":"success","details":{"format":"text/csv","from":"2026-10-23T22:00:00.000Z","to":"2026-10-25T23:00:00.000Z","rows":1}}`},
		"a breakdown, of which no filter is told": {accept: typeCSV, path: "berlin/analytics/breakdown?from=2026-10-24&to=2026-10-25&by=event&page=jane@example.com", want: begin + `figures.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"figures","name":"breakdown"},"outcome":"success","details":{"format":"text/csv","from":"2026-10-23T22:00:00.000Z","to":"2026-10-25T23:00:00.000Z","rows":0}}`},
		"a funnel, of which no step is told": {accept: typeNDJSON, path: "berlin/analytics/funnel?from=2026-10-24&to=2026-10-25&steps=jane@example.com&steps=purchase", want: begin + `figures.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"figures","name":"funnel"},"outcome":"success","details":{"format":"application/x-ndjson","from":"2026-10-23T22:00:00.000Z","to":"2026-10-25T23:00:00.000Z","rows":2}}`},
		"an attribution": {accept: typeCSV, path: "empty/analytics/attribution?from=2026-10-24&to=2026-10-25", want: begin + `figures.exported","property":"default/empty",` + reader +
			`"object":{"kind":"figures","name":"attribution"},"outcome":"success","details":{"format":"text/csv","from":"2026-10-24T00:00:00.000Z","to":"2026-10-26T00:00:00.000Z","rows":0}}`},
		"event statistics": {accept: typeNDJSON, path: "berlin/events/stats?from=2026-10-25&to=2026-10-25&limit=1", want: begin + `figures.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"figures","name":"event_statistics"},"outcome":"success","details":{"format":"application/x-ndjson","from":"2026-10-24T22:00:00.000Z","to":"2026-10-25T23:00:00.000Z","rows":1}}`},
		"a series that the caller has left": {accept: typeCSV, path: "berlin/analytics/series?from=2026-10-24&to=2026-10-25", broken: true, want: begin + `figures.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"figures","name":"series"},"outcome":"failure","details":{"format":"text/csv","from":"2026-10-23T22:00:00.000Z","to":"2026-10-25T23:00:00.000Z","rows":2}}`},
		"no figures in JSON": {accept: typeJSON, path: "berlin/analytics/series"},
		"one that the caller has left": {accept: typeCSV, path: "kolkata/events?from=2026-10-20&to=2026-10-25&limit=2", broken: true, want: begin + `events.exported","property":"default/kolkata",` + reader +
			`"object":{"kind":"events"},"outcome":"failure","details":{"format":"text/csv","from":"2026-10-19T18:30:00.000Z","to":"2026-10-25T18:30:00.000Z","rows":2}}`},
		"days that the caller has left": {accept: typeNDJSON, path: "berlin/analytics/daily?from=2026-10-24&to=2026-10-25", broken: true, want: begin + `days.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"days"},"outcome":"failure","details":{"format":"application/x-ndjson","from":"2026-10-23T22:00:00.000Z","to":"2026-10-25T23:00:00.000Z","rows":2}}`},
		"rejections, which have no period": {accept: typeCSV, path: "berlin/rejections?limit=1", want: begin + `rejections.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"rejections"},"outcome":"success","details":{"format":"text/csv","rows":1}}`},
		"deliveries": {accept: typeNDJSON, path: "berlin/deliveries?from=2026-10-24&to=2026-10-25&interval=day", want: begin + `figures.exported","property":"default/berlin",` + reader +
			`"object":{"kind":"figures","name":"deliveries"},"outcome":"success","details":{"format":"application/x-ndjson","from":"2026-10-23T22:00:00.000Z","to":"2026-10-25T23:00:00.000Z","rows":2}}`},
		"no page in JSON":                     {accept: typeJSON, path: "berlin/events?period=30d"},
		"no header alone":                     {accept: typeCSV, path: "berlin/events?period=30d", method: http.MethodHead},
		"no days' header alone":               {accept: typeCSV, path: "berlin/analytics/daily", method: http.MethodHead},
		"nothing that is wrong":               {accept: typeCSV, path: "berlin/events?period=jane@example.com"},
		"nothing that is denied":              {accept: typeCSV, path: "nobody/events?period=30d"},
		"nothing that cannot be answered yet": {accept: typeCSV, path: "replaying/events?period=30d"},
	} {
		t.Run(sentence, func(t *testing.T) {
			handler, api := serve(t)
			lines := audited(handler)
			property, _, _ := strings.Cut(row.path, "/")
			method := http.MethodGet
			if row.method != "" {
				method = row.method
			}
			request := httptest.NewRequest(method, "/api/v1/properties/"+row.path, nil)
			request.Header.Set("Authorization", "Bearer "+tokens[property])
			request.Header.Set("Accept", row.accept)
			if row.broken {
				asBroken(t, api, request)
			} else {
				api.ServeHTTP(httptest.NewRecorder(), request)
			}
			if diff := cmp.Diff(row.want, strings.TrimSuffix(lines.String(), "\n")); diff != "" {
				t.Errorf("the audit log (-want +got):\n%s", diff)
			}
		})
	}
}

// asBroken serves a caller who is gone, whose connection is cut.
func asBroken(t *testing.T, api http.Handler, request *http.Request) {
	t.Helper()
	defer func() {
		if failure, _ := recover().(error); !errors.Is(failure, http.ErrAbortHandler) {
			t.Errorf("the handler ended with %v, want its connection cut", failure)
		}
	}()
	api.ServeHTTP(goneCaller{httptest.NewRecorder()}, request)
}

// goneCaller takes nothing.
type goneCaller struct{ *httptest.ResponseRecorder }

func (goneCaller) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestWhereNothingIsSentNothingIsWrittenDown asks for the heads of answers alone.
func TestWhereNothingIsSentNothingIsWrittenDown(t *testing.T) {
	for method, want := range map[string]bool{http.MethodHead: false, http.MethodGet: true} {
		for _, path := range []string{"platforms/crm/shadow", "events?period=30d", "rejections", "analytics/series"} {
			handler, api := serveBerlin(t, nil)
			lines := audited(handler)
			request := httptest.NewRequest(method, "/api/v1/properties/berlin/"+path, nil)
			request.Header.Set("Authorization", "Bearer "+tokens["admin"])
			if !strings.Contains(path, "shadow") {
				request.Header.Set("Accept", typeCSV)
			}
			answer := httptest.NewRecorder()
			api.ServeHTTP(answer, request)
			if got := lines.Len() > 0; answer.Code != 200 || got != want {
				t.Errorf("%s %s: got %d and the log %q, want a line: %v", method, path, answer.Code, lines, want)
			}
		}
	}
}

func TestReplaysAreWrittenDown(t *testing.T) {
	for sentence, row := range map[string]struct {
		token, body string
		err         error
		want        string
	}{
		"one that was made": {
			token: "wt_write", body: `{"platform": "crm", "from": "2026-10-20T01:00:00Z", "to": "2026-10-20T02:00:00Z"}`,
			want: `"object":{"kind":"platform","name":"crm"},"outcome":"success","details":{"from":"2026-10-20T01:00:00.000Z","to":"2026-10-20T02:00:00.000Z","statuses":["failed","expired"],"deliveries":7}}`,
		},
		"one that failed, with what was put back until then": {
			token: "wt_write", body: `{"platform": "crm", "from": "2026-10-20T01:00:00Z", "to": "2026-10-20T02:00:00Z", "status": ["failed"]}`, err: errors.New("gone"),
			want: `"object":{"kind":"platform","name":"crm"},"outcome":"failure","details":{"from":"2026-10-20T01:00:00.000Z","to":"2026-10-20T02:00:00.000Z","statuses":["failed"],"deliveries":7}}`,
		},
		"none that is invalid": {token: "wt_write", body: `{"platform": "jane@example.com", "from": "2026-10-20T01:00:00Z"}`},
		"none that is denied":  {token: "wt_read", body: `{"platform": "crm", "from": "2026-10-20T01:00:00Z"}`},
	} {
		t.Run(sentence, func(t *testing.T) {
			handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
			lines := audited(handler)
			handler.Serve([]Tenant{{
				Property: config.Property{Namespace: "default", Name: "shop", Platforms: []platforms.Platform{{Name: "crm"}}}, Location: time.UTC, Replayer: &replayer{err: row.err},
				Tokens: []auth.Credential{
					{Name: "operations", Hash: auth.HashOf("wt_write"), Scope: auth.ScopeWrite}, {Name: "b", Hash: auth.HashOf("wt_read"), Scope: auth.ScopeRead},
				},
			}})
			request := httptest.NewRequest(http.MethodPost, "/api/v1/properties/shop/deliveries/replay", strings.NewReader(row.body))
			request.Header.Set("Authorization", "Bearer "+row.token)
			request.Header.Set("Content-Type", "application/json")
			routes(handler).ServeHTTP(httptest.NewRecorder(), request)
			if row.want != "" {
				row.want = `{"time":"2026-10-26T10:00:01.000Z","log":"audit","act":"deliveries.replayed","property":"default/shop",` +
					`"actor":{"kind":"access_token","name":"operations","scope":"write"},` + row.want
			}
			if diff := cmp.Diff(row.want, strings.TrimSuffix(lines.String(), "\n")); diff != "" {
				t.Errorf("the audit log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErasuresAreWrittenDown(t *testing.T) {
	for sentence, row := range map[string]struct {
		token, body string
		err         error
		outcome     string
	}{
		"one that stands in the ledger":              {body: `{"email": "jane@example.com"}`, outcome: "success"},
		"one that does not, which may be done later": {body: `{"email": "jane@example.com"}`, err: stream.ErrNotLedgered, outcome: "failure"},
		"none that is invalid":                       {body: `{"email": "jane at example.com"}`},
		"none that a token asks for which may not":   {token: "wt_write", body: `{"email": "jane@example.com"}`},
	} {
		t.Run(sentence, func(t *testing.T) {
			var log strings.Builder
			asked := &eraser{err: row.err}
			handler, api := erasingHandler(asked, &log)
			lines := audited(handler)
			askErasures(api, http.MethodPost, row.token, "", "", row.body)
			want := ""
			if row.outcome != "" {
				want = `{"time":"2026-10-26T10:00:01.000Z","log":"audit","act":"erasure.requested","property":"default/shop",` +
					`"actor":{"kind":"access_token","name":"dpo","scope":"admin"},"object":{"kind":"erasure","name":"` + asked.asked[0].ID + `"},"outcome":"` + row.outcome + `"}`
			}
			if diff := cmp.Diff(want, strings.TrimSuffix(lines.String(), "\n")); diff != "" {
				t.Errorf("the audit log (-want +got):\n%s", diff)
			}
		})
	}
}
