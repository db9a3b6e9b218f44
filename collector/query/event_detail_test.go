package query

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/stream"
)

// told is a property's streams with one event and what became of it.
func told(t *testing.T, records ...stream.Record) *memory {
	t.Helper()
	sent := fixture{Platforms: []string{"crm", "gone"}, Events: []fixtureEvent{{
		At:       fixtureNow.Add(-time.Hour),
		Envelope: []byte(`{"event":"purchase","event_id":"order 1/a","client_id":"c","user_id":"u","data":{"value":10,"currency":"EUR","order_id":"o"},"properties":{"plan":"pro"}}`),
	}}}
	entries, _ := sent.entries(t, nil)
	for i := range records {
		records[i].Event = entries[0].Position
		records[i].At = records[i].Event.Time().Add(time.Duration(i+1) * time.Second)
	}
	return &memory{entries: entries, records: records}
}

const orderPath = "berlin/events/order%201%2Fa"

// detail is what the tests read of an event.
type detail struct {
	Data struct {
		EventID    string                      `json:"event_id"`
		Delivery   []map[string]jsontext.Value `json:"delivery"`
		Attempts   []map[string]jsontext.Value `json:"attempts"`
		IsComplete bool                        `json:"attempts_complete"`
	} `json:"data"`
}

func detailOf(t *testing.T, api http.Handler, path string) detail {
	t.Helper()
	answer := get(api, tokens["berlin"], path)
	var got detail
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	return got
}

func TestAnEventIsShownAsAnExportHasItWithWhatBecameOfIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, _ := serveStream(t, engine, told(
			t, stream.Record{Platform: "crm", Status: stream.Retrying, Attempts: 1, Reason: "http_503"},
			stream.Record{Platform: "gone", Status: stream.Skipped, Reason: "platform_removed"},
			stream.Record{Platform: "crm", Status: stream.Delivered, Attempts: 2, Latency: 30 * time.Millisecond},
		))
		got := get(api, tokens["berlin"], orderPath).Body.String()
		var answer struct {
			Data map[string]jsontext.Value `json:"data"`
		}
		if err := json.Unmarshal([]byte(got), &answer); err != nil {
			t.Fatalf("%v in %s", err, got)
		}
		want := map[string]string{
			"delivery": `[{"platform":"crm","type":"Webhook","status":"delivered","latency_ms":30,"attempts":2,"updated_at":"2026-10-26T09:00:04.000Z","reason":null,"advice":null},` +
				`{"platform":"gone","type":null,"status":"skipped","latency_ms":null,"attempts":0,"updated_at":"2026-10-26T09:00:03.000Z","reason":"platform_removed",` +
				`"advice":"Nothing to do: the platform was removed from the Property."}]`,
			"attempts": `[{"platform":"crm","attempt":1,"at":"2026-10-26T09:00:02.000Z","status":"retrying","reason":"http_503","latency_ms":0,` +
				`"advice":"` + adviceDown + `"},` +
				`{"platform":"gone","attempt":0,"at":"2026-10-26T09:00:03.000Z","status":"skipped","reason":"platform_removed","latency_ms":null,` +
				`"advice":"Nothing to do: the platform was removed from the Property."},` +
				`{"platform":"crm","attempt":2,"at":"2026-10-26T09:00:04.000Z","status":"delivered","reason":null,"latency_ms":30,"advice":null}]`,
			"attempts_complete": `true`, "properties": `{"plan":"pro"}`, "user_id": `"u"`,
		}
		for name, text := range want {
			if diff := cmp.Diff(text, string(answer.Data[name])); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		exported := strings.TrimSuffix(getAs(api, typeNDJSON, "berlin/events").Body.String(), "\n")
		for _, name := range []string{"delivery", "attempts", "attempts_complete"} {
			delete(answer.Data, name)
		}
		var line map[string]jsontext.Value
		if err := json.Unmarshal([]byte(exported), &line); err != nil {
			t.Fatal(err)
		}
		delete(line, "delivery")
		if diff := cmp.Diff(line, answer.Data); diff != "" {
			t.Errorf("the event (-exported +shown):\n%s", diff)
		}
	})
}

func TestEventsThatAreNotThereAreNotFound(t *testing.T) {
	for name, path := range map[string]string{
		"an id that no event has":   "berlin/events/order%202",
		"an id in another case":     "berlin/events/ORDER%201%2Fa",
		"an id without its slash":   "berlin/events/order%201",
		"the newest of none at all": "empty/events/order%201%2Fa",
	} {
		t.Run(name, func(t *testing.T) {
			_, api := serve(t)
			if !strings.HasPrefix(path, "empty") {
				api, _ = serveStream(t, newView, told(t))
			}
			property, _, _ := strings.Cut(path, "/")
			if answer := get(api, tokens[property], path); answer.Code != http.StatusNotFound || answer.Body.String() != message("Event not found.") {
				t.Errorf("got %d %s", answer.Code, answer.Body)
			}
		})
	}
}

func TestAnEventThatGoesIsNotFound(t *testing.T) {
	for name, goes := range map[string]func(*memory, learner) error{
		"erased, and the view knows it": func(m *memory, view learner) error {
			return view.Erase([]stream.Position{m.entries[0].Position})
		},
		"erased, before the view knows it": func(m *memory, _ learner) error {
			m.entries = append([]stream.Entry{{Position: m.entries[0].Position - 1}}, m.entries[1:]...)
			return nil
		},
		"trimmed, before the view knows it": func(m *memory, _ learner) error { m.entries = nil; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			source := told(t)
			api, view := serveStream(t, newView, source)
			if answer := get(api, tokens["berlin"], orderPath); answer.Code != http.StatusOK {
				t.Fatalf("before: got %d %s", answer.Code, answer.Body)
			}
			if err := goes(source, view); err != nil {
				t.Fatal(err)
			}
			if answer := get(api, tokens["berlin"], orderPath); answer.Code != http.StatusNotFound || answer.Body.String() != message("Event not found.") {
				t.Errorf("got %d %s", answer.Code, answer.Body)
			}
		})
	}
}

func TestOfSeveralEventsOfAnIDTheNewestIsShown(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, _, _ := fewEvents(t, engine, `{"event":"lead","event_id":"twice"}`, `{"event":"purchase","event_id":"twice","data":{"value":1,"currency":"EUR"}}`, `{"event":"lead","event_id":"other"}`)
		newest := listedRecords(t, api, "berlin/events?event_id=twice")
		if len(newest) != 2 {
			t.Fatalf("got %s", newest)
		}
		answer := get(api, tokens["berlin"], "berlin/events/twice").Body.String()
		var first struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal(newest[0], &first); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(answer, `"event":"`+first.Event+`"`) {
			t.Errorf("got %s, want the %s", answer, first.Event)
		}
	})
}

func TestAnOldEventIsNobodysWhereItIsShown(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		source := told(t)
		api, view := serveStream(t, engine, source)
		view.Anonymize(source.entries[0].Position + 1)
		answer := get(api, tokens["berlin"], orderPath).Body.String()
		for _, want := range []string{`"client_id":null`, `"visitor":null`, `"user_id":null`} {
			if !strings.Contains(answer, want) {
				t.Errorf("got %s, want %s", answer, want)
			}
		}
	})
}

func TestAnEventNeedsRedisAndSaysSo(t *testing.T) {
	source := told(t)
	api, _ := serveStream(t, newView, source)
	source.away = true
	answer := get(api, tokens["berlin"], orderPath)
	if answer.Code != 503 || answer.Header().Get("Retry-After") == "" ||
		answer.Body.String() != message("The event cannot be read from Redis at the moment. The list of events needs no Redis.") {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}

func TestWhoLookedAtAnEventIsWrittenDown(t *testing.T) {
	for name, row := range map[string]struct {
		method, path string
		away         bool
		want         string
	}{
		"an event": {http.MethodGet, orderPath, false, `{"time":"2026-10-26T10:00:01.000Z","log":"audit","act":"event.read","property":"default/berlin",` +
			`"actor":{"kind":"access_token","name":"default","scope":"read"},"object":{"kind":"event","name":"1793005201000-0"},"outcome":"success","details":{"attempts":1}}`},
		"one that cannot be read": {http.MethodGet, orderPath, true, `{"time":"2026-10-26T10:00:01.000Z","log":"audit","act":"event.read","property":"default/berlin",` +
			`"actor":{"kind":"access_token","name":"default","scope":"read"},"object":{"kind":"event","name":"1793005201000-0"},"outcome":"failure","details":{"attempts":0}}`},
		"not one that is not there": {http.MethodGet, "berlin/events/jane@example.com", false, ""},
		"not a header alone":        {http.MethodHead, orderPath, false, ""},
		"not what is wrong":         {http.MethodGet, orderPath + "?limit=1", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := told(t, stream.Record{Platform: "crm", Status: stream.Delivered, Attempts: 1})
			view := analytics.NewView(analytics.Options{Property: "default/berlin", Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
			fill(t, view, source)
			source.away = row.away
			handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
			lines := audited(handler)
			handler.Serve([]Tenant{{Property: config.Property{Namespace: "default", Name: "berlin", Currency: "EUR"}, Location: time.UTC, Tokens: tokensOf("berlin"), Engine: view, Events: StreamEvents{source}, Records: StreamRecords{source}}})
			ask(routes(handler), row.method, berlinBearer, "/api/v1/properties/"+row.path)
			if diff := cmp.Diff(row.want, strings.TrimSuffix(lines.String(), "\n")); diff != "" {
				t.Errorf("the audit log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAttemptsAreAllThereOrTheAnswerSaysOtherwise(t *testing.T) {
	retry := func(platform string, attempt int) stream.Record {
		return stream.Record{Platform: platform, Status: stream.Retrying, Attempts: attempt, Reason: "timeout"}
	}
	delivered := stream.Record{Platform: "crm", Status: stream.Delivered, Attempts: 3}
	for name, test := range map[string]struct {
		records  []stream.Record
		missing  func(stream.Record) bool
		want     string
		complete bool
	}{
		"nothing has been tried":                                         {nil, nil, "", true},
		"each attempt has its record":                                    {[]stream.Record{retry("crm", 1), retry("crm", 2), delivered}, nil, "crm 1 retrying, crm 2 retrying, crm 3 delivered", true},
		"what is no attempt stands between":                              {[]stream.Record{retry("crm", 1), {Platform: "crm", Status: stream.Retrying, Attempts: 1, Reason: "throttled"}}, nil, "crm 1 retrying, crm 1 retrying", true},
		"each platform has its own":                                      {[]stream.Record{retry("gone", 1), retry("crm", 1), {Platform: "gone", Status: stream.Failed, Attempts: 2}}, nil, "gone 1 retrying, crm 1 retrying, gone 2 failed", true},
		"a batch and its event alone were tried before the first record": {[]stream.Record{delivered}, nil, "crm 3 delivered", false},
		"an attempt's record has gone": {
			[]stream.Record{retry("crm", 1), retry("crm", 2), delivered}, func(r stream.Record) bool { return r.Attempts == 2 }, "crm 1 retrying, crm 3 delivered", false,
		},
		"the last one's record is elsewhere, but the view has it": {
			[]stream.Record{retry("crm", 1), retry("crm", 2), delivered}, func(r stream.Record) bool { return r.Attempts == 3 }, "crm 1 retrying, crm 2 retrying, crm 3 delivered", true,
		},
		"written anew, an attempt is one all the same": {[]stream.Record{retry("crm", 1), retry("crm", 2)}, nil, "crm 1 retrying, crm 2 retrying", true},
	} {
		t.Run(name, func(t *testing.T) {
			source := told(t, test.records...)
			api, _ := serveStream(t, newView, source)
			if test.missing != nil {
				source.records = slices.DeleteFunc(source.records, test.missing)
			}
			if strings.HasPrefix(name, "written anew") {
				source.records = append(source.records, source.records[0])
			}
			got := detailOf(t, api, orderPath)
			var attempts []string
			for _, a := range got.Data.Attempts {
				attempts = append(attempts, strings.Trim(string(a["platform"]), `"`)+" "+string(a["attempt"])+" "+strings.Trim(string(a["status"]), `"`))
			}
			if list := strings.Join(attempts, ", "); list != test.want || got.Data.IsComplete != test.complete {
				t.Errorf("got %s, complete %v, want %s, %v", list, got.Data.IsComplete, test.want, test.complete)
			}
		})
	}
}

// others puts records of another event between those of the one that is shown, a millisecond apart.
func others(source *memory, count int) {
	first := source.records[0]
	list := []stream.Record{first}
	for i := range count {
		list = append(list, stream.Record{
			Event: first.Event + 1, Platform: "crm", Status: stream.Delivered, Attempts: 1, At: first.At.Add(time.Duration(i+1) * time.Microsecond),
		})
	}
	source.records = append(list, source.records[1:]...)
}

func TestAttemptsAreLookedForNoFurtherThanNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		records []stream.Record
		between int
		most    int
	}{
		"no record, no reading":                       {nil, 0, 0},
		"to the last one that the view knows":         {[]stream.Record{{Platform: "crm", Status: stream.Delivered, Attempts: 1}, {Platform: "gone", Status: stream.Delivered, Attempts: 1}}, 500, 600},
		"not behind it, though an attempt is missing": {[]stream.Record{{Platform: "crm", Status: stream.Delivered, Attempts: 2}}, 500, 550},
	} {
		t.Run(name, func(t *testing.T) {
			source := told(t, test.records...)
			if len(test.records) > 0 {
				others(source, test.between)
			}
			api, _ := serveStream(t, newView, source)
			source.records = append(source.records, manyRecords(source, 2_000)...)
			source.recordsRead = 0
			got := detailOf(t, api, orderPath)
			if source.recordsRead > test.most || len(got.Data.Attempts) != len(test.records) {
				t.Errorf("%d records were read for %d attempts, want %d at most for %d", source.recordsRead, len(got.Data.Attempts), test.most, len(test.records))
			}
		})
	}
}

// manyRecords are of another event, of hours later.
func manyRecords(source *memory, count int) []stream.Record {
	event := source.entries[0].Position
	list := make([]stream.Record, count)
	for i := range list {
		list[i] = stream.Record{Event: event + 1, Platform: "crm", Status: stream.Delivered, At: event.Time().Add(2 * time.Hour)}
	}
	return list
}

func TestTheIDOfAnEventIsReadFromThePathUnescaped(t *testing.T) {
	for _, id := range []string{"a b", "a/b", "ä", "100%", "a?b", "a;b", "../x", "%2F"} {
		api, _, _ := fewEvents(t, newView, fmt.Sprintf(`{"event":"lead","event_id":%q}`, id))
		request := httptest.NewRequest(http.MethodGet, "/api/v1/properties/berlin/events/"+escaped(id), http.NoBody)
		request.Header.Set("Authorization", berlinBearer)
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), fmt.Sprintf(`"event_id":%q`, id)) {
			t.Errorf("%s: got %d %s", id, answer.Code, answer.Body)
		}
	}
}

// escaped escapes each byte of a path's segment.
func escaped(id string) string {
	var text strings.Builder
	for _, b := range []byte(id) {
		fmt.Fprintf(&text, "%%%02X", b)
	}
	return text.String()
}
