package query

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// variedEvents is how many events a varied property has: each has a name of its own, and is a purchase's touch.
const variedEvents = 2500

// varied serves a property "berlin" whose events have all a name and a campaign of their own, and one purchase behind
// them, with a budget for queries.
func varied(t *testing.T, budget *analytics.Budget) http.Handler {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	view := analytics.NewView(analytics.Options{Property: "default/berlin", Currency: "EUR", Logger: logger, Budget: budget})
	var m memory
	for n := range variedEvents + 1 {
		e := event.Event{
			ID: fmt.Sprint(n), DeliveryID: uuid.New(), Name: fmt.Sprintf("name %04d", n), ClientID: "c",
			Context: event.Context{UTMSource: "s", UTMCampaign: fmt.Sprint("campaign ", n)},
		}
		if n == variedEvents {
			value := event.Amount(1_000_000)
			e.Name, e.Context, e.Value, e.Currency = "purchase", event.Context{}, &value, "EUR"
		}
		at := fixtureNow.Add(time.Duration(n-variedEvents) * time.Second)
		m.entries = append(m.entries, stream.Entry{Position: stream.At(at), Data: wire.Encode(&e)})
	}
	fill(t, view, &m)
	handler := New(Options{Logger: logger, Now: func() time.Time { return fixtureNow.Add(time.Minute) }, Budget: budget})
	handler.Serve([]Tenant{{
		Property: config.Property{Namespace: "default", Name: "berlin", Currency: "EUR"}, Location: time.UTC, Tokens: tokensOf("berlin"), Engine: view, Events: StreamEvents{&m},
	}})
	return routes(handler)
}

func TestAnAnswerHasABoundedNumberOfRowsAndAWordAboutTheOthers(t *testing.T) {
	api := varied(t, nil)
	for name, test := range map[string]struct {
		path string
		rows int
		want string
	}{
		"event statistics":                    {"events/stats", 1000, `"others":{"names":1501,"count":1501}`},
		"event statistics with a limit":       {"events/stats?limit=1", 1, `"others":{"names":2500,"count":2500}`},
		"results of an attribution":           {"analytics/attribution?group_by=campaign&model=linear", 1000, `"others":{"groups":1500,`},
		"results of an attribution, fewer":    {"analytics/attribution?group_by=campaign&model=linear&limit=2", 2, `"others":{"groups":2498,`},
		"results of which there are no more":  {"analytics/attribution?group_by=source&model=linear", 1, `"results":[{"source":"s","conversions":1,"revenue":100,"share":1}]}`},
		"days, of which there are few enough": {"analytics/daily?from=2026-10-26&to=2026-10-26", 1, `"events":2501`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := get(api, tokens["berlin"], "berlin/"+test.path)
			body := answer.Body.String()
			if answer.Code != http.StatusOK || !strings.Contains(body, test.want) {
				t.Errorf("got %d %.200s … %s, want it to hold %s", answer.Code, body, body[max(0, len(body)-200):], test.want)
			}
			if got := strings.Count(body, `"share":`) - strings.Count(body, `"groups":`) + strings.Count(body, `"date":`); got != test.rows {
				t.Errorf("got %d rows, want %d", got, test.rows)
			}
			if len(body) > 400_000 {
				t.Errorf("the answer has %d bytes", len(body))
			}
		})
	}
}

func TestABreakdownHasABoundedNumberOfResultsAndAWordAboutTheOthers(t *testing.T) {
	api := varied(t, nil)
	for name, test := range map[string]struct {
		call    string
		results int
		want    string
	}{
		"of names":             {"by=event", 1000, `"others":{"groups":1501,"events":1501,"purchases":1,"revenue":100}`},
		"of campaigns, fewer":  {"by=campaign&limit=2&order_by=revenue", 2, `"others":{"groups":2498,"events":2498,"purchases":0,"revenue":0}`},
		"of pages, only one":   {"by=page", 1, `"share":1}]}`},
		"of names that filter": {"by=event&event=name 0001&event=name 0002", 2, `"share":0.5}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := get(api, tokens["berlin"], "berlin/analytics/breakdown?"+strings.ReplaceAll(test.call, " ", "%20"))
			body := answer.Body.String()
			if !strings.Contains(body, test.want) {
				t.Errorf("got … %s, want it to hold %s", body[max(0, len(body)-200):], test.want)
			}
			if got := len(rowsAt(t, answer, "/data/results")); got != test.results {
				t.Errorf("got %d results, want %d", got, test.results)
			}
		})
	}
}

func TestWhatTakesTooMuchMemoryHoweverItIsAskedForIsUnavailable(t *testing.T) {
	answer := httptest.NewRecorder()
	handler, _ := serve(t)
	handler.fail(answer, httptest.NewRequest(http.MethodGet, "/", http.NoBody), analytics.ErrTooCostly)
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" || answer.Body.String() != message("The query takes more memory than one may.") {
		t.Errorf("got %d %s, want 503 with Retry-After", answer.Code, answer.Body)
	}
}

func TestPagesOfEventStatistics(t *testing.T) {
	api := varied(t, nil)
	type page struct {
		Data []struct {
			Event string `json:"event"`
			Count int    `json:"count"`
		} `json:"data"`
		NextCursor string `json:"next_cursor"`
	}
	seen := map[string]bool{}
	path := "/api/v1/properties/berlin/events/stats?limit=700"
	for pages := 1; ; pages++ {
		answer := ask(api, http.MethodGet, "Bearer "+tokens["berlin"], path)
		var p page
		if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("got %d %s", answer.Code, answer.Body)
		}
		for _, row := range p.Data {
			if seen[row.Event] {
				t.Fatalf("%s stands on two pages", row.Event)
			}
			seen[row.Event] = true
		}
		link := answer.Header().Get("Link")
		if p.NextCursor == "" {
			if pages != 4 || len(seen) != variedEvents+1 || link != "" {
				t.Errorf("%d names on %d pages, and the link %q, want %d on 4 and none", len(seen), pages, link, variedEvents+1)
			}
			return
		}
		path = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		if !strings.Contains(path, "cursor="+p.NextCursor) {
			t.Fatalf("the link %q has not the cursor %s", link, p.NextCursor)
		}
	}
}

func TestACursorOfEventStatisticsIsOfItsPeriod(t *testing.T) {
	api := varied(t, nil)
	period := analytics.Range{From: fixtureNow.Add(-time.Hour), To: fixtureNow.Add(time.Minute)}
	good := statsCursor{period, analytics.StatsPlace{Count: 1, Event: "name 2490"}}.String()
	for name, test := range map[string]struct {
		query string
		want  int
	}{
		"alone":                        {"cursor=" + good, 200},
		"with the same start":          {"cursor=" + good + "&from=" + instant(period.From), 200},
		"with another start":           {"cursor=" + good + "&from=2026-10-25", 422},
		"with another end":             {"cursor=" + good + "&to=2026-10-25", 422},
		"cut off":                      {"cursor=" + good[:20], 422},
		"a listing's":                  {"cursor=" + cursor{last: stream.At(fixtureNow), from: period.From}.String(), 422},
		"of a period that is too long": {"cursor=" + statsCursor{analytics.Range{From: time.UnixMilli(0), To: fixtureNow}, analytics.StatsPlace{Count: 1, Event: "e"}}.String(), 422},
	} {
		t.Run(name, func(t *testing.T) {
			if got := get(api, tokens["berlin"], "berlin/events/stats?"+test.query); got.Code != test.want {
				t.Errorf("got %d %.300s, want %d", got.Code, got.Body, test.want)
			}
		})
	}
}

func TestWhatTakesTooMuchMemorySaysWhatWouldTakeLess(t *testing.T) {
	budget := analytics.NewBudget(2<<20 + 1<<10)
	api := varied(t, budget)
	const attribution = "berlin/analytics/attribution?group_by=campaign&model=linear"
	answer := get(api, tokens["berlin"], attribution)
	for _, want := range []string{`"from":["The from field must ask for less`, `"lookback":["The lookback field must ask for less`} {
		if answer.Code != http.StatusUnprocessableEntity || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("got %d %.300s, want 422 with %s", answer.Code, answer.Body, want)
		}
	}
	if answer := get(api, tokens["berlin"], "berlin/events?limit=1000"); answer.Code != http.StatusUnprocessableEntity ||
		!strings.Contains(answer.Body.String(), `"limit":["The limit field must ask for less`) {
		t.Errorf("got %d %.300s, want 422 for the limit", answer.Code, answer.Body)
	}
	if answer := get(api, tokens["berlin"], "berlin/events?limit=10"); answer.Code != http.StatusOK {
		t.Errorf("got %d %.300s for a page that takes little, want 200", answer.Code, answer.Body)
	}

	// An event cannot be asked for smaller.
	if answer := get(api, tokens["berlin"], "berlin/events/1"); answer.Code != http.StatusServiceUnavailable ||
		answer.Body.String() != message("The query takes more memory than one may.") {
		t.Errorf("got %d %.300s for an event, want 503", answer.Code, answer.Body)
	}
	release, err := budget.Hold(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	second, err := budget.Hold(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	busy := get(api, tokens["berlin"], "berlin/analytics/summary")
	if busy.Code != http.StatusServiceUnavailable || busy.Header().Get("Retry-After") != "1" {
		t.Errorf("while others have the memory: got %d, Retry-After %q, want 503 and 1", busy.Code, busy.Header().Get("Retry-After"))
	}
	release()
	second()
	if answer := get(api, tokens["berlin"], "berlin/analytics/summary"); answer.Code != http.StatusOK {
		t.Errorf("afterwards: got %d %.300s, want 200", answer.Code, answer.Body)
	}
}

// slow is a caller who takes nothing of an answer until told to.
type slow struct {
	http.ResponseWriter
	writing, take chan struct{}
}

func (s slow) Write(text []byte) (int, error) {
	s.writing <- struct{}{}
	<-s.take
	return s.ResponseWriter.Write(text)
}

func TestASlowReaderKeepsNobodyWaiting(t *testing.T) {
	api := varied(t, nil)
	readers := make(chan struct{})
	caller := slow{writing: make(chan struct{}), take: make(chan struct{})}
	const count = 2 * maxWaiting / 16
	for range count {
		go func() {
			request := httptest.NewRequest(http.MethodGet, "/api/v1/properties/berlin/analytics/summary", nil)
			request.Header.Set("Authorization", "Bearer "+tokens["berlin"])
			api.ServeHTTP(slow{httptest.NewRecorder(), caller.writing, caller.take}, request)
			readers <- struct{}{}
		}()
		<-caller.writing
	}
	if answer := get(api, tokens["berlin"], "berlin/analytics/summary"); answer.Code != http.StatusOK {
		t.Errorf("beside %d slow readers: got %d %s, want 200", count, answer.Code, answer.Body)
	}
	close(caller.take)
	for range count {
		<-readers
	}
}
