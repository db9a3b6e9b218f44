package query

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// ids are the ids of a listing's events, in their order.
func ids(t *testing.T, answer string) string {
	t.Helper()
	var got page
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	var list []string
	for _, record := range got.Data {
		list = append(list, record.EventID)
	}
	return strings.Join(list, " ")
}

func TestEventsAreLookedUp(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		handler, api := serveFrom(t, engine)
		view := (*handler.tenants.Load())[indexOf(t, handler, "berlin")].Engine.(learner)
		bot := event.Event{ID: "b01", DeliveryID: uuid.New(), Name: "purchase", OrderID: "o-1", Class: event.Bot}
		old := event.Event{ID: "e16", DeliveryID: uuid.New(), Name: "lead"}
		for _, entry := range []stream.Entry{
			{Position: stream.At(fixtureNow), Data: wire.Encode(&bot)}, {Position: stream.At(fixtureNow) + 1, Data: wire.Encode(&old)},
		} {
			if err := view.AddEvents([]stream.Entry{entry}); err != nil {
				t.Fatal(err)
			}
		}
		_, behind, _ := strings.Cut(get(api, tokens["berlin"], "berlin/events?event_id=e01").Body.String(), `"visitor":"`)
		visitor, _, _ := strings.Cut(behind, `"`)
		for name, test := range map[string]struct{ query, want string }{
			"an id, within the longest period":            {"event_id=e01", "e01"},
			"ids of several events":                       {"event_id=e01&event_id=e15&event_id=none", "e15 e01"},
			"an id that two events have, of two classes":  {"event_id=e16", "e16 e16"},
			"an order, with what a bot says of it":        {"order_id=o-1", "b01 e13 e03"},
			"an order, and humans alone":                  {"order_id=o-1&class=human", "e13 e03"},
			"an order, and bots alone":                    {"order_id=o-1&class=bot", "b01"},
			"an order and a name":                         {"order_id=o-1&event=refund", "e13"},
			"an order and a state":                        {"order_id=o-1&status=failed", "e03"},
			"an order within a period":                    {"order_id=o-1&period=24h", "b01 e13"},
			"a visitor":                                   {"visitor=" + visitor, "e13 e03 e02 e01"},
			"a visitor, the oldest first":                 {"visitor=" + visitor + "&order=asc", "e01 e02 e03 e13"},
			"a visitor and an order":                      {"visitor=" + visitor + "&order_id=o-1", "e13 e03"},
			"a visitor who is none":                       {"visitor=nobody", ""},
			"an id with other ids' letters":               {"event_id=E01", ""},
			"no look-up: the last day of humans":          {"order=asc&event=purchase", "e12 e14"},
			"a class in which there is nothing to be had": {"class=test", ""},
		} {
			t.Run(name, func(t *testing.T) {
				answer := get(api, tokens["berlin"], "berlin/events?"+test.query)
				if got := ids(t, answer.Body.String()); answer.Code != http.StatusOK || got != test.want {
					t.Errorf("got %d %q, want %q", answer.Code, got, test.want)
				}
			})
		}
	})
}

func TestATotalIsOfAllPages(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for name, test := range map[string]struct{ query, want string }{
			"a page of the newest":             {"period=30d&limit=2&total=true", `"total":16}`},
			"a page of the oldest":             {"period=30d&limit=2&order=asc&total=true", `"total":16}`},
			"of what a filter keeps":           {"period=30d&limit=1&event=purchase&total=true", `"total":4}`},
			"of what is looked up":             {"order_id=o-1&total=true", `"total":2}`},
			"of nothing":                       {"event_id=none&total=true", `"total":0}`},
			"of what retention has left of it": {"period=30d&limit=0001&total=true", `"total":16}`},
			"none where nobody asks":           {"period=30d&limit=2", `=="}`},
			"none where somebody says so":      {"period=30d&limit=100&total=false", `"next_cursor":null}`},
		} {
			t.Run(name, func(t *testing.T) {
				answer := get(api, tokens["berlin"], "berlin/events?"+test.query)
				body := answer.Body.String()
				if test.want == `=="}` {
					if strings.Contains(body, `"total"`) {
						t.Errorf("got %s", body)
					}
					return
				}
				if !strings.HasSuffix(body, test.want) {
					t.Errorf("got %d … %s, want %s", answer.Code, body[max(0, len(body)-60):], test.want)
				}
			})
		}
	})
}

func TestPagesOfAnySizeMakeTheSameListingFromTheOldestOn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		want := walk(t, api, "period=30d&limit=1000&order=asc")
		if len(want) != 16 || want[0] != "e01" || want[15] != "e16" {
			t.Fatalf("got %v, want e01 to e16", want)
		}
		for _, limit := range []string{"1", "2", "3", "15", "16", "17"} {
			if diff := cmp.Diff(want, walk(t, api, "period=30d&order=asc&limit="+limit)); diff != "" {
				t.Errorf("limit %s (-want +got):\n%s", limit, diff)
			}
		}
	})
}

func TestAWalkFromTheOldestEventOnHasAnEnd(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		handler, api := serveFrom(t, engine)
		now := fixtureNow
		handler.now = func() time.Time { return now }
		first, _ := listed(t, api, "period=24h&order=asc&limit=2")
		now = now.Add(20 * time.Hour) // and a rolling period has left its first events behind
		view := (*handler.tenants.Load())[indexOf(t, handler, "berlin")].Engine.(learner)
		if err := view.AddEvents(arrivals(t, 3, fixtureNow.Add(time.Hour))); err != nil {
			t.Fatal(err)
		}
		answer := get(api, tokens["berlin"], "berlin/events?period=24h&order=asc&limit=1000&cursor="+*first.NextCursor).Body.String()
		if got, want := ids(t, answer), "e14 e15 e16"; got != want || !strings.Contains(answer, `"next_cursor":null`) {
			t.Errorf("the walk goes on with %s, want %s and its end", answer, want)
		}
	})
}

func TestACursorBelongsToItsOrderAndLookUp(t *testing.T) {
	_, api := serve(t)
	cursorOf := func(query string) string {
		got, _ := listed(t, api, query)
		return "&cursor=" + *got.NextCursor
	}
	newest, oldest := cursorOf("period=30d&limit=2"), cursorOf("period=30d&limit=2&order=asc")
	looked := cursorOf("order_id=o-1&limit=1")
	for name, test := range map[string]struct {
		query string
		want  int
	}{
		"another limit and a total":         {"period=30d&limit=3&total=true" + newest, 200},
		"the order said":                    {"period=30d&order=desc" + newest, 200},
		"the other order":                   {"period=30d&order=asc" + newest, 422},
		"the other order, the other way":    {"period=30d" + oldest, 422},
		"the same look-up":                  {"order_id=o-1" + looked, 200},
		"the same look-up, its period said": {"order_id=o-1&period=30d" + looked, 422},
		"another order's id":                {"order_id=o-2" + looked, 422},
		"the id as that of an event":        {"event_id=o-1" + looked, 422},
		"a class that was not said":         {"order_id=o-1&class=human" + looked, 422},
		"no look-up":                        {"period=24h" + looked, 422},
	} {
		t.Run(name, func(t *testing.T) {
			if answer := get(api, tokens["berlin"], "berlin/events?"+test.query); answer.Code != test.want {
				t.Errorf("got %d %s, want %d", answer.Code, answer.Body, test.want)
			}
		})
	}
}

func TestLookUpsThatAreWrongAreNamed(t *testing.T) {
	_, api := serve(t)
	for name, test := range map[string]struct{ query, accept, want string }{
		"too many ids":               {strings.Repeat("&event_id=a", 101), typeJSON, "The event_id field must not have more than 100 items."},
		"too many orders":            {strings.Repeat("&order_id=a", 101), typeJSON, "The order_id field must not have more than 100 items."},
		"too many visitors":          {strings.Repeat("&visitor=a", 101), typeJSON, "The visitor field must not have more than 100 items."},
		"an empty one among several": {"event_id=a&event_id=", typeJSON, "The event_id.1 field is required."},
		"another order":              {"order=newest", typeJSON, "The selected order is invalid."},
		"another word":               {"total=yes", typeJSON, "The selected total is invalid."},
		"a total of an export":       {"total=true", typeCSV, "The total field is for JSON alone: an export has every event."},
	} {
		t.Run(name, func(t *testing.T) {
			answer := askWith(api, http.MethodGet, "/api/v1/properties/berlin/events?"+test.query, map[string]string{"Authorization": berlinBearer, "Accept": test.accept})
			if want := `{"message":"` + test.want + `"`; answer.Code != 422 || !strings.HasPrefix(answer.Body.String(), want) {
				t.Errorf("got %d %s, want %s", answer.Code, answer.Body, want)
			}
		})
	}
}

func TestAnExportFromTheOldestEventOn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		answer := askWith(api, http.MethodGet, "/api/v1/properties/berlin/events?order_id=o-1&order=asc", map[string]string{"Authorization": berlinBearer, "Accept": typeCSV})
		lines := strings.Split(strings.TrimSpace(answer.Body.String()), "\r\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[1], "e03,") || !strings.HasPrefix(lines[2], "e13,") {
			t.Errorf("got %q", lines)
		}
	})
}
