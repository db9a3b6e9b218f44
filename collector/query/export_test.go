package query

import (
	"context"
	"encoding/csv"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/demo"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/session"
	"github.com/weir-dev/weir/collector/stream"
)

// listedRecords are a listing's records in JSON, as they stand in its answer.
func listedRecords(t *testing.T, api http.Handler, path string) []jsontext.Value {
	t.Helper()
	answer := getAs(api, typeJSON, path)
	var body struct {
		Data []jsontext.Value `json:"data"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); answer.Code != 200 || err != nil {
		t.Fatalf("%s: %d %s %v", path, answer.Code, answer.Body, err)
	}
	return body.Data
}

func TestNDJSONHasTheRecordsOfJSON(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for _, path := range []string{
			"berlin/events?period=30d", "berlin/events?period=30d&event=purchase", "berlin/events?period=30d&status=delivered&platform=crm",
			"berlin/analytics/daily?period=7d", "empty/events", "empty/analytics/daily",
		} {
			whole := path
			if strings.HasSuffix(path, "/events") {
				whole += "?limit=1000"
			} else if strings.Contains(path, "/events?") {
				whole += "&limit=1000"
			}
			want := listedRecords(t, api, whole)
			answer := getAs(api, typeNDJSON, path)
			if got := answer.Header().Get("Content-Type"); answer.Code != 200 || got != "application/x-ndjson" {
				t.Fatalf("%s: got %d, %s", path, answer.Code, got)
			}
			var got []jsontext.Value
			for line := range strings.Lines(answer.Body.String()) {
				if !strings.HasSuffix(line, "\n") {
					t.Errorf("%s: the last line has no end", path)
				}
				record := strings.TrimSuffix(line, "\n")
				if before, _, isEvent := strings.Cut(record, `,"timestamp":`); isEvent { // behind it, what only exports have
					record = before + "}"
				}
				got = append(got, jsontext.Value(record))
			}
			if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
				t.Errorf("%s (-JSON +NDJSON):\n%s", path, diff)
			}
		}
	})
}

func TestCSVHasTheValuesOfJSON(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for path, header := range map[string]string{
			"berlin/events?period=30d":         eventColumns,
			"berlin/analytics/daily?period=7d": "date,purchases,add_to_carts,pageviews,revenue,unique_visitors,events,refunds,revenue_by_currency",
			"empty/events":                     eventColumns,
		} {
			answer := getAs(api, typeCSV, path)
			if got, want := answer.Header().Get("Content-Type"), "text/csv; charset=utf-8; header=present"; answer.Code != 200 || got != want {
				t.Fatalf("%s: got %d, %s, want %s", path, answer.Code, got, want)
			}
			if text := answer.Body.String(); strings.Count(text, "\n") != strings.Count(text, "\r\n") || !strings.HasPrefix(text, header+"\r\n") {
				t.Errorf("%s: lines must end in CR LF, the first must name the columns: %q", path, text)
			}
			lines, err := csv.NewReader(answer.Body).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			var want [][]string
			for _, record := range listedRecords(t, api, path) {
				var members map[string]jsontext.Value
				if err := json.Unmarshal(record, &members); err != nil {
					t.Fatal(err)
				}
				var line []string
				for column := range strings.SplitSeq(header, ",") {
					value := members[column]
					delete(members, column)
					switch text := string(value); value.Kind() {
					case 'n':
						line = append(line, "")
					case '"':
						plain, err := jsontext.AppendUnquote(nil, value)
						if err != nil {
							t.Fatal(err)
						}
						line = append(line, string(plain))
					default:
						line = append(line, text)
					}
				}
				if len(members) > 0 {
					t.Errorf("%s: no columns for %v", path, members)
				}
				want = append(want, line)
			}
			if diff := cmp.Diff(want, lines[1:]); diff != "" && len(want)+len(lines) > 1 {
				t.Errorf("%s (-JSON +CSV):\n%s", path, diff)
			}
		}
	})
}

// lineOf returns the line of CSV that columns make.
func lineOf(t *testing.T, columns ...column) string {
	t.Helper()
	answer := httptest.NewRecorder()
	rows, err := newRowWriter(answer, typeCSV, "header")
	if err == nil {
		err = rows.writeColumns(columns)
	}
	if err == nil {
		err = rows.send()
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(answer.Body.String(), "header\r\n")
}

func TestCSVIsSafeForSpreadsheets(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"plain":                     "plain",
		"a,b":                       `"a,b"`,
		`say "hi"`:                  `"say ""hi"""`,
		"two\nlines":                "\"two\nlines\"",
		"two\r\nlines":              "\"two\r\nlines\"",
		"ends\n":                    "\"ends\n\"",
		" a blank in front":         "\" a blank in front\"",
		"a\rb":                      "\"a\rb\"",
		"=1+1":                      "'=1+1",
		`=HYPERLINK("x","y")`:       `"'=HYPERLINK(""x"",""y"")"`,
		"+49":                       "'+49",
		"-1":                        "'-1",
		"@SUM(A1)":                  "'@SUM(A1)",
		"\t=1":                      "\"\t'=1\"",
		"\r=1":                      "\"\r'=1\"",
		"a;=1":                      "a;'=1",
		"a;b; -1;c":                 "a;b; '-1;c",
		"a\t@SUM(A1)":               "a\t'@SUM(A1)",
		"a,+1":                      `"a,'+1"`,
		"a\n＝1":                     "\"a\n'＝1\"",
		`a;"=1"`:                    `"a;""'=1"""`,
		" =1":                       "\" '=1\"",
		"=;=":                       "'=;'=",
		"a;b-1":                     "a;b-1",
		"＝1":                        "'＝1",
		"1-1=0":                     "1-1=0",
		"DDE (\"cmd\";\"/C calc\")": `"DDE (""cmd"";""/C calc"")"`,
	} {
		if got := lineOf(t, sent("first"), sent(text)); got != "first,"+want+"\r\n" {
			t.Errorf("%q: got %q, want %s", text, got, want)
		}
	}
	if got, want := lineOf(t, computed("-12.5")), "-12.5\r\n"; got != want {
		t.Errorf("a negative sum: got %q, want %q", got, want)
	}
}

// formulas are texts that a spreadsheet computes where they begin a cell.
var formulas = []string{"=1+1", "+49", "-1", "@SUM(A1)", "＝1", "＋1", "－1", "＠1"}

// beginsFormula says whether a spreadsheet that splits a line at the separators takes one of its cells for a formula, whether it minds
// quotes or not.
func beginsFormula(line, separators string) bool {
	cells := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(separators+"\r\n", r) })
	return slices.ContainsFunc(cells, func(cell string) bool {
		first, _ := utf8.DecodeRuneInString(strings.TrimLeft(cell, " \""))
		return strings.ContainsRune("=+-@＝＋－＠", first)
	})
}

func TestNoColumnOfTextBeginsAFormulaHoweverALineIsSplit(t *testing.T) {
	columns := strings.Split(eventColumns, ",")
	for i, name := range columns {
		for _, formula := range formulas {
			for _, before := range []string{"", "a", "a;", "a\t", "a,", "a\n", "a; ", `a;"`, `";`, "a;\t,"} {
				record := analytics.Record{ReceivedAt: fixtureNow}
				texts := map[string]*string{
					"event_id": &record.EventID, "event": &record.Event, "currency": &record.Currency, "order_id": &record.OrderID, "client_id": &record.ClientID,
					"visitor": &record.Visitor, "source": &record.Touch.Source, "medium": &record.Touch.Medium, "campaign": &record.Touch.Campaign,
					"channel": &record.Touch.Channel,
				}
				text := texts[name]
				if text == nil {
					if row := (eventRow{Record: &record}).columns(); !row[i].computed {
						t.Fatalf("the column %s holds a text and is not tried", name)
					}
					continue
				}
				*text = before + formula
				line := lineOf(t, eventRow{Record: &record}.columns()...)
				for _, separators := range []string{",", ";", "\t", ";\t", ",;\t"} {
					if beginsFormula(line, separators) {
						t.Errorf("split at %q, %q has a formula", separators, line)
					}
				}
			}
		}
	}
}

// TestNoColumnOfJSONBeginsAFormulaWhereALineIsSplitElsewhere has a sender name fields of a rejected event.
func TestNoColumnOfJSONBeginsAFormulaWhereALineIsSplitElsewhere(t *testing.T) {
	for _, formula := range formulas {
		sent := map[string][]string{"properties.a;" + formula: {"a\t" + formula + ";" + formula}}
		row, err := figureRowOf(struct {
			Errors map[string][]string `json:"errors"`
		}{sent})
		if err != nil {
			t.Fatal(err)
		}
		line := lineOf(t, row.columns()...)
		for _, separators := range []string{";", "\t", ";\t"} {
			if beginsFormula(line, separators) {
				t.Errorf("split at %q, %q has a formula", separators, line)
			}
		}
		fields, err := csv.NewReader(strings.NewReader(line)).Read()
		if err != nil {
			t.Fatal(err)
		}
		var got map[string][]string
		if err := json.Unmarshal([]byte(fields[0]), &got); err != nil || cmp.Diff(sent, got) != "" {
			t.Errorf("the column is no more what was sent: %v, %q", err, fields[0])
		}
	}
}

func TestAnExportHasALimitOnlyWhereItIsAskedFor(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for query, want := range map[string]int{"": 16, "&limit=5": 5, "&limit=16": 16, "&limit=1001": 16, "&limit=0": -1, "&limit=1000000001": -1} {
			answer := getAs(api, typeNDJSON, "berlin/events?period=30d"+query)
			switch {
			case want < 0 && answer.Code != 422:
				t.Errorf("%s: got %d, want 422", query, answer.Code)
			case want >= 0 && strings.Count(answer.Body.String(), "\n") != want:
				t.Errorf("%s: got %d rows, want %d", query, strings.Count(answer.Body.String(), "\n"), want)
			}
		}
	})
}

func TestAnExportSaysFromWhenOnItIsComplete(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for path, want := range map[string]string{
			"trimmed/events?period=7d": "2026-10-24T22:00:00.000Z", "trimmed/analytics/daily": "2026-10-24T22:00:00.000Z", "berlin/events?period=30d": "",
		} {
			for _, kind := range []string{typeCSV, typeNDJSON} {
				answer := getAs(api, kind, path)
				if got := answer.Header().Get("Weir-Complete-From"); answer.Code != 200 || got != want {
					t.Errorf("%s as %s: got %d, %q, want %q", path, kind, answer.Code, got, want)
				}
			}
		}
	})
}

func TestHEADOfAnExportHasNoRows(t *testing.T) {
	_, api := serve(t)
	for _, path := range []string{"events?period=30d", "analytics/daily"} {
		request := httptest.NewRequest(http.MethodHead, "/api/v1/properties/berlin/"+path, nil)
		request.Header.Set("Authorization", "Bearer "+tokens["berlin"])
		request.Header.Set("Accept", typeNDJSON)
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		if answer.Code != 200 || answer.Body.Len() > 0 || answer.Header().Get("Content-Type") != typeNDJSON {
			t.Errorf("%s: got %d, %d bytes, %s", path, answer.Code, answer.Body.Len(), answer.Header().Get("Content-Type"))
		}
	}
}

// demoAPI serves a past of the given size as the property "shop", whose token is "wt_shop".
func demoAPI(t testing.TB, events int) (http.Handler, *Handler, learner) {
	t.Helper()
	api, handler, view, _ := demoStream(t, newView, events)
	return api, handler, view
}

// demoStream is [demoAPI] from an engine of a kind, with what the events are read from.
func demoStream(t testing.TB, engine engineMaker, events int) (http.Handler, *Handler, learner, *memory) {
	t.Helper()
	property := config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR", TimeZone: "Europe/Berlin",
		Platforms: []platforms.Platform{{Name: "crm", Type: platforms.TypeWebhook}, {Name: "meta", Type: platforms.TypeMeta}},
	}
	past, err := demo.New(demo.Options{Property: &property, Events: events, Days: 30, Seed: 1, End: fixtureNow})
	if err != nil {
		t.Fatal(err)
	}
	source := &memory{}
	for batch := range past.Batches() {
		source.entries, source.records = append(source.entries, batch.Entries...), append(source.records, batch.Records...)
	}
	location, err := time.LoadLocation(property.TimeZone)
	if err != nil {
		t.Fatal(err)
	}
	handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
	tenant, made := tenantOf(t, engine, Tenant{Property: property, Location: location, Tokens: []auth.Credential{
		{Name: "default", Hash: auth.HashOf("wt_shop"), Scope: auth.ScopeRead},
	}}, source)
	handler.Serve([]Tenant{tenant})
	return routes(handler), handler, made, source
}

// reader is a caller who looks at an answer while it is being written.
type reader struct {
	header http.Header
	rows   int
	each   func(rows int)
	// deadlines are how often it was given more time.
	deadlines int
}

func (r *reader) SetWriteDeadline(time.Time) error { r.deadlines++; return nil }
func (r *reader) FlushError() error                { return nil }

func (r *reader) Header() http.Header { return r.header }
func (r *reader) WriteHeader(int)     {}
func (r *reader) Write(text []byte) (int, error) {
	r.rows += strings.Count(string(text), "\n")
	if r.each != nil {
		r.each(r.rows)
	}
	return len(text), nil
}

// export reads all of the property's events and returns how many there were.
func export(ctx context.Context, api http.Handler, accept string, each func(rows int)) int {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/properties/shop/events?period=30d", nil)
	request.Header.Set("Authorization", "Bearer wt_shop")
	request.Header.Set("Accept", accept)
	caller := &reader{header: http.Header{}, each: each}
	api.ServeHTTP(caller, request)
	return caller.rows
}

func TestAnExportTakesBoundedMemory(t *testing.T) {
	const events = 20_000
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, _, _, _ := demoStream(t, engine, events)
		live := func() uint64 {
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return stats.HeapAlloc
		}
		for _, accept := range []string{typeCSV, typeNDJSON} {
			before, most, looked := live(), uint64(0), 0
			rows := export(t.Context(), api, accept, func(rows int) {
				if rows >= looked+events/4 {
					looked = rows
					most = max(most, live())
				}
			})
			if want := events + map[string]int{typeCSV: 1}[accept]; rows != want {
				t.Errorf("%s: got %d lines, want %d", accept, rows, want)
			}
			// All rows at once would be more than 8 MB; a page is less than one.
			if looked == 0 || most > before+4<<20 {
				t.Errorf("%s: %d MB are held while exporting", accept, (int64(most)-int64(before))>>20)
			}
		}
	})
}

func TestAnExportTakesTheTimeThatItNeeds(t *testing.T) {
	api, _, _ := demoAPI(t, 5000)
	request := httptest.NewRequest(http.MethodGet, "/api/v1/properties/shop/events?period=30d", nil)
	request.Header.Set("Authorization", "Bearer wt_shop")
	request.Header.Set("Accept", typeCSV)
	caller := &reader{header: http.Header{}}
	api.ServeHTTP(caller, request)
	if caller.deadlines != 5000/exportPage {
		t.Errorf("the caller was given more time %d times, want once for each of %d pages", caller.deadlines, 5000/exportPage)
	}
}

// cut runs an export and says whether its connection was cut.
func cut(ctx context.Context, api http.Handler, each func(rows int)) (rows int, aborted bool) {
	defer func() {
		failure, _ := recover().(error)
		aborted = errors.Is(failure, http.ErrAbortHandler)
	}()
	return export(ctx, api, typeNDJSON, each), false
}

func TestAnExportThatCannotFinishIsCut(t *testing.T) {
	for name, happens := range map[string]func(view learner, source *memory, cancel context.CancelFunc){
		"the caller has gone": func(_ learner, _ *memory, cancel context.CancelFunc) { cancel() },
		"trimming takes away what is to come": func(view learner, _ *memory, _ context.CancelFunc) {
			view.Forget(stream.At(fixtureNow.Add(-240 * time.Hour)))
		},
		"Redis goes away":                          func(_ learner, source *memory, _ context.CancelFunc) { source.away = true },
		"trimming of which the view knows nothing": func(_ learner, source *memory, _ context.CancelFunc) { source.entries = source.entries[2000:] },
	} {
		t.Run(name, func(t *testing.T) {
			api, _, view, source := demoStream(t, newView, 5000)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := false
			if rows, aborted := cut(ctx, api, func(int) {
				if !done {
					done = true
					happens(view, source, cancel)
				}
			}); !aborted {
				t.Errorf("the answer of %d rows ends as if it were whole", rows)
			}
		})
	}
}

func TestAnExportIsCutWhenWhatItWasAskedWithIsWorthNothingAnyMore(t *testing.T) {
	type site struct {
		handler *Handler
		now     *time.Time
	}
	without := func(edit func(*Tenant)) func(site) {
		return func(s site) {
			served := slices.Clone(*s.handler.tenants.Load())
			edit(&served[0])
			s.handler.Serve(served)
			*s.now = s.now.Add(10 * time.Second)
		}
	}
	ends := new(fixtureNow.Add(time.Hour))
	for name, c := range map[string]struct {
		happens func(site)
		session bool
		want    bool
	}{
		"it goes on while the token is there": {happens: without(func(*Tenant) {}), want: false},
		"it goes on while the session is":     {happens: without(func(*Tenant) {}), session: true, want: false},
		"the token is removed":                {happens: without(func(tenant *Tenant) { tenant.Tokens = nil }), want: true},
		"the token is made anew": {happens: without(func(tenant *Tenant) {
			tenant.Tokens = []auth.Credential{{Name: "default", Hash: auth.HashOf("wt_new"), Scope: auth.ScopeRead}}
		}), want: true},
		"the token loses its scope": {happens: without(func(tenant *Tenant) {
			tenant.Tokens = []auth.Credential{{Name: "default", Hash: auth.HashOf("wt_shop")}}
		}), want: true},
		"the token expires":                  {happens: func(s site) { *s.now = *ends }, want: true},
		"the session's token is removed":     {happens: without(func(tenant *Tenant) { tenant.Tokens = nil }), session: true, want: true},
		"the session's key is removed":       {happens: without(func(tenant *Tenant) { tenant.SessionKeys = nil }), session: true, want: true},
		"the session ends":                   {happens: func(s site) { *s.now = *ends }, session: true, want: true},
		"the property is served no more":     {happens: func(s site) { s.handler.Serve(nil); *s.now = s.now.Add(10 * time.Second) }, want: true},
		"nobody looks again within a moment": {happens: func(s site) { s.handler.Serve(nil) }, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			_, handler, _, _ := demoStream(t, newView, 5000)
			now := fixtureNow
			handler.now = func() time.Time { return now }
			lines := audited(handler)
			served := slices.Clone(*handler.tenants.Load())
			served[0].SessionKeys = sessionKeys(t, session.NewKey())
			served[0].Tokens[0].ExpirationTime = ends
			handler.Serve(served)
			api := routes(handler)
			target := "/api/v1/properties/shop/events?period=30d"
			if c.session {
				target = "/properties/shop/api/events?period=30d"
			}
			request := httptest.NewRequest(http.MethodGet, target, nil)
			request.Header.Set("Accept", typeCSV)
			request.Header.Set("Authorization", "Bearer wt_shop")
			if c.session {
				request.AddCookie(signedIn(t, api, "shop", "wt_shop"))
			}
			happened := false
			caller := &reader{header: http.Header{}, each: func(int) {
				if !happened {
					happened = true
					c.happens(site{handler, &now})
				}
			}}
			aborted := func() (aborted bool) {
				defer func() {
					failure, _ := recover().(error)
					aborted = errors.Is(failure, http.ErrAbortHandler)
				}()
				api.ServeHTTP(caller, request)
				return false
			}()
			outcome := `"outcome":"success"`
			if c.want {
				outcome = `"outcome":"failure"`
			}
			if aborted != c.want || !strings.Contains(lines.String(), outcome) || aborted && caller.rows >= 5000 {
				t.Errorf("cut: %v after %d rows, want %v; the audit log has %s", aborted, caller.rows, c.want, lines)
			}
		})
	}
}

func FuzzCSV(f *testing.F) {
	for _, text := range []string{"", "a;=1", "plain", "a,b", `"`, "=1", "'=1", "\r\n", "\x00", "＝", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := lineOf(t, computed("x"), sent(text), computed("x"))
		fields, err := csv.NewReader(strings.NewReader(line)).Read()
		if err != nil || len(fields) != 3 {
			t.Fatalf("%q: %d fields, %v", line, len(fields), err)
		}
		// encoding/csv reads CR LF within a field as LF.
		withoutMarks := func(text string) string { return strings.ReplaceAll(text, "'", "") }
		got, want := fields[1], strings.ReplaceAll(text, "\r\n", "\n")
		if withoutMarks(got) != withoutMarks(want) {
			t.Errorf("%q became %q", text, got)
		}
		if beginsFormula(got, ",;\t") {
			t.Errorf("%q may be taken for a formula", got)
		}
	})
}

// All that was sent stands in NDJSON but what is of the person, and of that not even a hash.
func TestNDJSONHasTheWholeEvent(t *testing.T) {
	const body = `{"event":"lead","event_id":"e-1","client_id":"c-1","user_id":"4711","session_id":"s-1","engagement_time_msec":1500,
		"timestamp":"2026-10-26T08:00:00.5Z",
		"user":{"email":["ada@example.com","b@example.com"],"phone":"+4915112345678","first_name":"Ada","last_name":"Lovelace","street":"Lindengasse 5",
			"city":"Bern","state":"BE","zip":"3000","country":"CH","date_of_birth":"1990-02-13","gender":"f"},
		"data":{"value":9.5,"currency":"EUR","tax":1.5,"shipping":0,"discount":2,"coupon":"SPRING","order_id":"o-1","content_id":"c","content_name":"n",
			"search_term":"lamps","list_id":"l","list_name":"L",
			"contents":[{"id":"sku","name":"Lamp","brand":"Acme","variant":"red","category":"Home","category2":"Light","quantity":1.5,"price":2,"discount":1,"own":[1]}]},
		"properties":{"plan":"gold"},
		"context":{"page_url":"https://shop.example/","page_title":"T","referrer":"https://r.example/","ip":"203.0.113.7","user_agent":"Mozilla/5.0 Test",
			"language":"de-CH","action_source":"chat","utm_source":"s","utm_medium":"m","utm_campaign":"c","utm_term":"t","utm_content":"o","click_ids":{"gclid":"G"}},
		"consent":{"ad_user_data":"granted","ad_personalization":"denied","ad_storage":"denied","analytics_storage":"granted","tcf":"CP.a","gpp":"DB~x","gpp_sid":[2,6],
			"us_privacy":"1YNN","limited_data_use":true,"categories":{"a":true}}}`
	const want = `,"timestamp":"2026-10-26T08:00:00.500Z","user_id":"4711","session_id":"s-1","engagement_time_msec":1500,"tax":1.5,"shipping":0,"discount":2,` +
		`"coupon":"SPRING","content_id":"c","content_name":"n","search_term":"lamps","list_id":"l","list_name":"L",` +
		`"contents":[{"id":"sku","quantity":1.5,"price":2,"name":"Lamp","category":"Home","category2":"Light","brand":"Acme","variant":"red","discount":1,"own":[1]}],` +
		`"properties":{"plan":"gold"},"consent":{"ad_user_data":"granted","ad_personalization":"denied","ad_storage":"denied","analytics_storage":"granted",` +
		`"tcf":"CP.a","gpp":"DB~x","gpp_sid":[2,6],"us_privacy":"1YNN","limited_data_use":true,"categories":{"a":true}},"country":"CH",` +
		`"context":{"page_url":"https://shop.example/","page_title":"T","referrer":"https://r.example/","language":"de-CH","action_source":"chat",` +
		`"utm_source":"s","utm_medium":"m","utm_campaign":"c","utm_term":"t","utm_content":"o","click_ids":{"gclid":"G"}}}` + "\n"
	api, source := oneEvent(t, body)
	answer := getAs(api, typeNDJSON, "berlin/events")
	_, got, _ := strings.Cut(answer.Body.String(), `"class":"human"`)
	if diff := cmp.Diff(want, got); answer.Code != 200 || diff != "" {
		t.Errorf("got %d; behind the record (-want +got):\n%s", answer.Code, diff)
	}
	whole := strings.ToLower(answer.Body.String())
	stored, err := wire.Decode(source.entries[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	for v := range stored.User {
		hash := stored.User.Get(event.Variant(v)).String()
		if hash != "" && strings.Contains(whole, hash) {
			t.Errorf("the export has the person's hash %d", v)
		}
	}
	for _, raw := range []string{"ada", "lovelace", "15112345678", "lindengasse", "bern", "203.0.113.7", "mozilla"} {
		if strings.Contains(whole, raw) {
			t.Errorf("the export has %q", raw)
		}
	}
}

// What an anonymous event has of its visitor is for platforms, and nobody reads it here.
func TestAnAnonymousEventHasNoIdentifiersInAnyFormat(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, source := oneEvent(t, `{"event":"lead","event_id":"e-1","client_id":"client-9","user_id":"user-9","session_id":"session-9"}`)
		stored, err := wire.Decode(source.entries[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		stored.Anonymous = true
		source.entries[0].Data = wire.Encode(&stored)
		api, _ := serveStream(t, engine, source)
		for _, format := range []string{typeJSON, typeCSV, typeNDJSON} {
			body := getAs(api, format, "berlin/events").Body.String()
			if !strings.Contains(body, "e-1") {
				t.Errorf("%s does not list the event: %s", format, body)
			}
			for _, id := range []string{"client-9", "user-9", "session-9"} {
				if strings.Contains(body, id) {
					t.Errorf("%s shows %s", format, id)
				}
			}
		}
	})
}

// oneEvent serves a property with one event.
func oneEvent(t *testing.T, body string) (http.Handler, *memory) {
	t.Helper()
	api, source, _ := fewEvents(t, newView, body)
	return api, source
}

// fewEvents serves a property with some events, a minute apart, from an engine of a kind.
func fewEvents(t *testing.T, engine engineMaker, bodies ...string) (http.Handler, *memory, learner) {
	t.Helper()
	var sent fixture
	for i, body := range bodies {
		sent.Events = append(sent.Events, fixtureEvent{At: fixtureNow.Add(-time.Hour + time.Duration(i)*time.Minute), Envelope: []byte(body)})
	}
	entries, _ := sent.entries(t, nil)
	source := &memory{entries: entries}
	api, made := serveStream(t, engine, source)
	return api, source, made
}

// serveStream serves a property with what a stream holds, from an engine of a kind.
func serveStream(t *testing.T, engine engineMaker, source *memory) (http.Handler, learner) {
	t.Helper()
	handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
	tenant, made := tenantOf(t, engine, Tenant{
		Property: config.Property{
			Namespace: "default", Name: "berlin", Currency: "EUR", Platforms: []platforms.Platform{{Name: "crm", Type: platforms.TypeWebhook}},
		},
		Location: time.UTC, Tokens: tokensOf("berlin"),
	}, source)
	handler.Serve([]Tenant{tenant})
	return routes(handler), made
}

// exportedIDs lists the event ids of an export.
func exportedIDs(t *testing.T, api http.Handler) []string {
	t.Helper()
	answer := getAs(api, typeNDJSON, "berlin/events")
	if answer.Code != 200 {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	var ids []string
	for line := range strings.Lines(answer.Body.String()) {
		var row struct {
			ID string `json:"event_id"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, row.ID)
	}
	return ids
}

func TestAnExportPassesOverErasedEvents(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, source, view := fewEvents(t, engine, `{"event":"lead","event_id":"oldest"}`, `{"event":"lead","event_id":"erased"}`, `{"event":"lead","event_id":"newest"}`)
		erased := source.entries[1].Position
		source.entries = slices.Delete(slices.Clone(source.entries), 1, 2) // the view has not heard of it yet
		for range 2 {
			if diff := cmp.Diff([]string{"newest", "oldest"}, exportedIDs(t, api)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if err := view.Erase([]stream.Position{erased}); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(listedRecords(t, api, "berlin/events")); got != 2 {
			t.Errorf("the listing has %d events, want 2", got)
		}
	})
}

func TestAPageBeginsBehindAnEventThatIsErased(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, source, view := fewEvents(t, engine, `{"event":"lead","event_id":"oldest"}`, `{"event":"lead","event_id":"middle"}`, `{"event":"lead","event_id":"newest"}`)
		var first struct {
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(getAs(api, typeJSON, "berlin/events?limit=2").Body.Bytes(), &first); err != nil || first.Next == "" {
			t.Fatalf("the first page has no cursor: %v", err)
		}
		if err := view.Erase([]stream.Position{source.entries[1].Position}); err != nil {
			t.Fatal(err)
		}
		rest := listedRecords(t, api, "berlin/events?limit=2&cursor="+first.Next)
		if len(rest) != 1 || !strings.Contains(string(rest[0]), `"oldest"`) {
			t.Errorf("behind the erased event the listing has %s, want the oldest event", rest)
		}
	})
}

func TestAnExportTellsNobodyOfOldEvents(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, source, view := fewEvents(t, engine, `{"event":"lead","event_id":"old","client_id":"secret c","user_id":"secret u","session_id":"secret s"}`,
			`{"event":"lead","event_id":"new","client_id":"c","user_id":"u","session_id":"s"}`)
		view.Anonymize(source.entries[1].Position)
		for _, accept := range []string{typeJSON, typeCSV, typeNDJSON} {
			answer := getAs(api, accept, "berlin/events")
			if text := answer.Body.String(); strings.Contains(text, "secret") || !strings.Contains(text, "old") || !strings.Contains(text, "new") {
				t.Errorf("%s: got %s, want both events, the old one without who it was", accept, text)
			}
		}
	})
}

func TestNDJSONNeedsRedisAndSaysSo(t *testing.T) {
	api, source := oneEvent(t, `{"event":"lead","event_id":"e-1"}`)
	source.away = true
	for accept, want := range map[string]int{typeJSON: 200, typeCSV: 200, typeNDJSON: 503} {
		answer := getAs(api, accept, "berlin/events")
		if answer.Code != want || (want == 503) != (answer.Header().Get("Retry-After") != "") {
			t.Errorf("%s: got %d, Retry-After %q: %s", accept, answer.Code, answer.Header().Get("Retry-After"), answer.Body)
		}
	}
	source.away, source.entries = false, nil // trimmed, and the view does not know it yet
	if answer := getAs(api, typeNDJSON, "berlin/events"); answer.Code != 503 {
		t.Errorf("without the entry: got %d %s", answer.Code, answer.Body)
	}
}
