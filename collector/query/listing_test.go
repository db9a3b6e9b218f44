package query

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/stream"
)

// page is what the tests read of a listing's answer.
type page struct {
	Data []struct {
		EventID string `json:"event_id"`
	} `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

func listed(t *testing.T, api http.Handler, query string) (page, string) {
	t.Helper()
	answer := get(api, tokens["berlin"], "berlin/events?"+query)
	if answer.Code != http.StatusOK {
		t.Fatalf("%s: got %d %s", query, answer.Code, answer.Body)
	}
	var got page
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got, answer.Header().Get("Link")
}

// walk turns pages until the last one and returns all ids in the order in which they came.
func walk(t *testing.T, api http.Handler, query string) []string {
	t.Helper()
	var ids []string
	for turned, cursor := 0, ""; turned < 50; turned++ {
		got, link := listed(t, api, query+cursor)
		for _, record := range got.Data {
			ids = append(ids, record.EventID)
		}
		if (got.NextCursor == nil) != (link == "") {
			t.Fatalf("next_cursor and Link disagree: %v, %q", got.NextCursor, link)
		}
		if got.NextCursor == nil {
			return ids
		}
		cursor = "&cursor=" + *got.NextCursor
	}
	t.Fatal("the listing has no end")
	return nil
}

func TestPagesOfAnySizeMakeTheSameListing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		want := walk(t, api, "period=30d&limit=1000")
		if len(want) != 16 || want[0] != "e16" || want[15] != "e01" {
			t.Fatalf("got %v, want e16 to e01", want)
		}
		for _, limit := range []string{"1", "2", "3", "15", "16", "17"} {
			if diff := cmp.Diff(want, walk(t, api, "period=30d&limit="+limit)); diff != "" {
				t.Errorf("limit %s (-want +got):\n%s", limit, diff)
			}
		}
	})
}

func TestLinkRepeatsTheQueryWithTheNextCursor(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		query := "period=30d&event=purchase&event%5B%5D=page_view&limit=2&platform=&cursor="
		first, link := listed(t, api, query)
		target, found := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		next, err := url.Parse(target)
		if !found || err != nil || next.Path != "/api/v1/properties/berlin/events" {
			t.Fatalf("got the link %q, %v", link, err)
		}
		want := url.Values{
			"period": {"30d"}, "event": {"purchase"}, "event[]": {"page_view"}, "limit": {"2"}, "platform": {""},
			"cursor": {*first.NextCursor},
		}
		if diff := cmp.Diff(want, next.Query()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if second, _ := listed(t, api, next.RawQuery); second.Data[0].EventID == first.Data[0].EventID {
			t.Errorf("the link leads to the same page: %+v", second)
		}
	})
}

func TestArrivalsDoNotDisturbAWalk(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		handler, api := serveFrom(t, engine)
		first, _ := listed(t, api, "period=30d&limit=5")
		view := (*handler.tenants.Load())[indexOf(t, handler, "berlin")].Engine.(learner)
		entries := arrivals(t, 3, fixtureNow)
		if err := view.AddEvents(entries); err != nil {
			t.Fatal(err)
		}
		second, _ := listed(t, api, "period=30d&limit=5&cursor="+*first.NextCursor)
		if got, want := second.Data[0].EventID, "e11"; got != want {
			t.Errorf("the second page begins with %s, want %s", got, want)
		}
		if got, _ := listed(t, api, "period=30d&limit=1"); got.Data[0].EventID != "arrival-2" {
			t.Errorf("a new walk begins with %s, want arrival-2", got.Data[0].EventID)
		}
	})
}

func TestACursorKeepsTheStartOfARollingPeriod(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		handler, api := serveFrom(t, engine)
		now := fixtureNow
		handler.now = func() time.Time { return now }
		first, _ := listed(t, api, "period=24h&limit=4")
		now = now.Add(20 * time.Hour) // what is left of the walk has fallen out of the last 24 hours
		fresh, _ := listed(t, api, "period=24h&limit=4")
		if got := len(fresh.Data); got != 3 {
			t.Fatalf("a new walk has %d events, want 3", got)
		}
		second, _ := listed(t, api, "period=24h&limit=4&cursor="+*first.NextCursor)
		if len(second.Data) != 1 || second.Data[0].EventID != "e12" {
			t.Errorf("got %+v, want e12 alone", second.Data)
		}
	})
}

func TestEventsOfAClockThatRunsAheadAreInPeriodsUntilNow(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		handler, api := serveFrom(t, engine)
		view := (*handler.tenants.Load())[indexOf(t, handler, "berlin")].Engine.(learner)
		if err := view.AddEvents(arrivals(t, 1, fixtureNow.Add(3*time.Second))); err != nil {
			t.Fatal(err)
		}
		if got, _ := listed(t, api, "limit=1"); got.Data[0].EventID != "arrival-0" {
			t.Errorf("got %s, want arrival-0", got.Data[0].EventID)
		}
	})
}

func indexOf(t *testing.T, h *Handler, property string) int {
	t.Helper()
	for i, tenant := range *h.tenants.Load() {
		if tenant.Property.Name == property {
			return i
		}
	}
	t.Fatalf("no property %s", property)
	return 0
}

// arrivals makes events that arrive one after another from a moment on.
func arrivals(t *testing.T, count int, from time.Time) []stream.Entry {
	t.Helper()
	sent := fixture{Platforms: []string{"crm"}}
	for i := range count {
		body := `{"event":"lead","event_id":"arrival-` + string(rune('0'+i)) + `"}`
		sent.Events = append(sent.Events, fixtureEvent{At: from, Envelope: []byte(body)})
	}
	entries, _ := sent.entries(t, nil)
	return entries
}
