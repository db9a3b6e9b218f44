package query

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/config"
)

func TestPeriodsOfAListing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for name, test := range map[string]struct {
			property string
			query    string
			want     string
		}{
			"a date is a day in Berlin, of 25 hours":      {"berlin", "from=2026-10-25&to=2026-10-25", "e12 e11 e10 e09 e08 e07"},
			"a date is a day in Kolkata":                  {"kolkata", "from=2026-10-25&to=2026-10-25", "e11 e10 e09 e08 e07 e06 e05"},
			"a date is a day in São Paulo":                {"saopaulo", "from=2026-10-25&to=2026-10-25", "e13 e12 e11"},
			"timestamps are taken as given":               {"berlin", "from=2026-10-25T00:30:00Z&to=2026-10-25T03:00:00.001Z", "e11 e10 e09 e08"},
			"a timestamp's end is exclusive":              {"berlin", "from=2026-10-25T00:30:00Z&to=2026-10-25T03:00:00Z", "e10 e09 e08"},
			"an offset's plus may be encoded":             {"berlin", "from=2026-10-25T02:30:00%2B02:00&to=2026-10-25T02:30:00.001%2B01:00", "e09 e08"},
			"an offset's plus may be forgotten to encode": {"berlin", "from=2026-10-25T02:30:00+02:00&to=2026-10-25T02:30:00.001+01:00", "e09 e08"},
			"a date and a timestamp may be mixed":         {"berlin", "from=2026-10-25&to=2026-10-25T00:00:00Z", "e07"},
			"only from reaches until now":                 {"berlin", "from=2026-10-26", "e16 e15 e14 e13"},
			"only to begins 30 days before":               {"berlin", "to=2026-10-20", "e03 e02 e01"},
			"from and to win over period":                 {"berlin", "period=24h&from=2026-10-20&to=2026-10-20", "e03 e02 e01"},
			"24 hours roll":                               {"berlin", "period=24h", "e16 e15 e14 e13 e12"},
			"the last 24 hours are the default":           {"berlin", "", "e16 e15 e14 e13 e12"},
			"empty parameters are absent":                 {"berlin", "period=&from=&to=&limit=&status=&platform=&event=&cursor=", "e16 e15 e14 e13 e12"},
			"other names filter":                          {"berlin", "period=30d&event=refund&event[]=lead", "e16 e13"},
			"an alias filters by what it stands for":      {"berlin", "from=2026-10-25&to=2026-10-25&event=page_view", "e11 e10 e07"},
			"a platform filters":                          {"berlin", "from=2026-10-20&to=2026-10-20&platform=nobody", ""},
			"a state filters over all platforms":          {"berlin", "period=30d&status=delivered", "e03 e01"},
			"states may be several":                       {"berlin", "period=30d&status[]=skipped&status[]=retrying", "e09 e02"},
			"brackets change nothing":                     {"berlin", "period=30d&status[]=delivered&platform[0]=crm", "e01"},
			"one of several platforms is enough":          {"berlin", "period=30d&status=delivered&platform[]=nobody&platform[]=crm", "e01"},
			"a platform and its state filter together":    {"berlin", "period=30d&status=delivered&platform=crm", "e01"},
		} {
			t.Run(name, func(t *testing.T) {
				answer := get(api, tokens[test.property], test.property+"/events?"+test.query)
				var got page
				if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
					t.Fatalf("got %d %s, %v", answer.Code, answer.Body, err)
				}
				ids := make([]string, len(got.Data))
				for i, record := range got.Data {
					ids[i] = record.EventID
				}
				if diff := cmp.Diff(test.want, strings.Join(ids, " ")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	})
}

func TestErrorsOfAPeriod(t *testing.T) {
	_, api := serve(t)
	for name, test := range map[string]struct{ query, field, want string }{
		"an unknown period":       {"period=1y", "period", "The selected period is invalid."},
		"a period twice":          {"period=7d&period=30d", "period", "The period field must be given only once."},
		"a date that is none":     {"from=2026-02-30", "from", "The from field format is invalid."},
		"a broken escape":         {"to=%zz", "to", "The to field is not percent-encoded properly: a percent sign is written %25."},
		"a beginning behind now":  {"from=2026-10-28", "from", "The from field must be a date before or equal to 2026-10-26."},
		"an end before its start": {"from=2026-10-20&to=2026-10-19", "to", "The to field must be a date after or equal to from."},
		"more than 366 days":      {"from=2025-01-01&to=2026-10-01", "from", "The period must not be longer than 366 days: the from field must be a date after or equal to 2025-10-01."},
	} {
		t.Run(name, func(t *testing.T) {
			for _, call := range []string{"events", "events/stats", "analytics/summary", "analytics/daily", "analytics/series", "analytics/attribution"} {
				answer := get(api, tokens["berlin"], "berlin/"+call+"?"+test.query)
				want := fmt.Sprintf(`{"message":%q,"errors":{%q:[%q]}}`, test.want, test.field, test.want)
				if answer.Code != http.StatusUnprocessableEntity || answer.Body.String() != want {
					t.Errorf("%s: got %d %s, want 422 %s", call, answer.Code, answer.Body, want)
				}
			}
		})
	}
}

func TestLocalDays(t *testing.T) {
	for name, test := range map[string]struct {
		zone     string
		received []string
		query    string
		want     string
	}{
		"a day of 23 hours when Berlin's clocks go forward": {
			zone:     "Europe/Berlin",
			received: []string{"2026-03-28T22:59:59.999Z", "2026-03-28T23:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T21:59:59.999Z", "2026-03-29T22:00:00Z"},
			query:    "from=2026-03-28&to=2026-03-30",
			want:     "2026-03-28:1 2026-03-29:3 2026-03-30:1",
		},
		"a day that begins at one o'clock when São Paulo's clocks went forward": {
			zone:     "America/Sao_Paulo",
			received: []string{"2018-11-04T02:59:59.999Z", "2018-11-04T03:00:00Z", "2018-11-05T01:59:59.999Z", "2018-11-05T02:00:00Z"},
			query:    "from=2018-11-03&to=2018-11-05",
			want:     "2018-11-03:1 2018-11-04:2 2018-11-05:1",
		},
		"days of half an hour's offset in Kolkata": {
			zone:     "Asia/Kolkata",
			received: []string{"2026-03-28T18:29:59.999Z", "2026-03-28T18:30:00Z", "2026-03-29T18:29:59.999Z", "2026-03-29T18:30:00Z"},
			query:    "from=2026-03-28&to=2026-03-30",
			want:     "2026-03-28:1 2026-03-29:2 2026-03-30:1",
		},
		"first and last day only as far as the period reaches": {
			zone:     "Europe/Berlin",
			received: []string{"2026-03-28T10:00:00Z", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z"},
			query:    "from=2026-03-28T11:00:00Z&to=2026-03-29T12:00:00Z",
			want:     "2026-03-28:1 2026-03-29:0",
		},
		"a day more in a leap year's 366": {
			zone:     "UTC",
			received: []string{"2024-02-29T00:00:00Z"},
			query:    "from=2024-02-29&to=2024-02-29",
			want:     "2024-02-29:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := serveReceived(t, test.zone, test.received)
			answer := get(api, "wt_days", "days/analytics/daily?"+test.query)
			var got struct {
				Data []struct {
					Date   string `json:"date"`
					Events int    `json:"events"`
				} `json:"data"`
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
				t.Fatalf("got %d %s, %v", answer.Code, answer.Body, err)
			}
			var days []string
			for _, day := range got.Data {
				days = append(days, fmt.Sprintf("%s:%d", day.Date, day.Events))
			}
			if diff := cmp.Diff(test.want, strings.Join(days, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// serveReceived serves the property "days" with an event at each of the times.
func serveReceived(t *testing.T, zone string, received []string) http.Handler {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	var sent fixture
	for _, text := range received {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		sent.Events = append(sent.Events, fixtureEvent{At: at, Envelope: []byte(`{"event":"lead"}`)})
	}
	entries, _ := sent.entries(t, nil)
	view := analytics.NewView(analytics.Options{Property: "default/days", Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	fill(t, view, &memory{entries: entries})
	handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
	handler.Serve([]Tenant{{
		Property: config.Property{Name: "days", Currency: "EUR", TimeZone: zone}, Location: location, Tokens: tokensOf("days"), Engine: view, Events: StreamEvents{&memory{entries: entries}},
	}})
	return routes(handler)
}

func TestARequestThatEndsEarlyIsToldToComeBack(t *testing.T) {
	_, api := serve(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range []string{"events", "events/stats", "analytics/summary", "analytics/daily", "analytics/series", "analytics/breakdown?by=page", "analytics/realtime", "analytics/funnel?steps=pageview&steps=purchase", "analytics/attribution"} {
		request := httptest.NewRequestWithContext(ended, http.MethodGet, "/api/v1/properties/berlin/"+call, nil)
		request.Header.Set("Authorization", "Bearer "+tokens["berlin"])
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s, want 503 with Retry-After", call, answer.Code, answer.Body)
		}
	}
}
