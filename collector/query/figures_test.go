package query

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// figureCalls are the calls that have figures in rows, with the columns of their tables and where the rows are in JSON.
var figureCalls = map[string]struct {
	call, columns string
	rows          jsontext.Pointer
}{
	"event statistics": {"events/stats?period=30d", "event,count,unique_visitors,value,value_by_currency,share,first_received_at,last_received_at,delivery", "/data"},
	"days":             {"analytics/daily?period=7d", "date,purchases,add_to_carts,pageviews,revenue,unique_visitors,events,refunds,revenue_by_currency", "/data"},
	"a series":         {"analytics/series?interval=week", "from,to,date," + measureColumns, "/data"},
	"a breakdown":      {"analytics/breakdown?by=event", "event," + measureColumns + ",share", "/data/results"},
	"products":         {"analytics/breakdown?by=product", "product," + measureColumns + ",share,quantity", "/data/results"},
	"a funnel":         {"analytics/funnel?steps=pageview&steps=purchase|lead", "step,event,events,visitors,conversion_rate,step_conversion_rate,drop_off,median_seconds", "/data/steps"},
	"an attribution":   {"analytics/attribution?model=linear", "channel,conversions,revenue,share", "/data/results"},
	"another one":      {"analytics/attribution?group_by=campaign", "campaign,conversions,revenue,share", "/data/results"},
}

const measureColumns = "events,unique_visitors,purchases,add_to_carts,pageviews,refunds,revenue,gross_revenue,refunded,average_order_value,conversion_rate,revenue_by_currency"

// rowsAt returns the elements of the list at a place of an answer in JSON.
func rowsAt(t *testing.T, answer *httptest.ResponseRecorder, at jsontext.Pointer) []jsontext.Value {
	t.Helper()
	if answer.Code != http.StatusOK {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	decoder := jsontext.NewDecoder(answer.Body)
	var rows []jsontext.Value
	for decoder.StackPointer() != at || decoder.PeekKind() != '[' {
		if _, err := decoder.ReadToken(); err != nil {
			t.Fatalf("there is nothing at %s: %v", at, err)
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for decoder.PeekKind() != ']' {
		row, err := decoder.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row.Clone())
	}
	return rows
}

// csvOf returns the line that a record has in CSV, as RFC 4180 and the reference have it.
func csvOf(t *testing.T, record jsontext.Value, columns string) []string {
	t.Helper()
	values := map[string]string{}
	err := eachMember(record, func(name string, value jsontext.Value) error {
		switch value.Kind() {
		case 'n':
			values[name] = ""
		case '"':
			text, err := jsontext.AppendUnquote(nil, value)
			values[name] = string(text)
			return err
		default:
			values[name] = string(value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var line []string
	for name := range strings.SplitSeq(columns, ",") {
		value, found := values[name]
		if !found {
			t.Errorf("there is no %s in %s", name, record)
		}
		delete(values, name)
		line = append(line, value)
	}
	if len(values) > 0 {
		t.Errorf("there are no columns for %v", values)
	}
	return line
}

func TestRowsOfFiguresAreThoseOfJSON(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for name, table := range figureCalls {
			for _, property := range []string{"berlin", "trimmed", "empty"} {
				t.Run(name+" of "+property, func(t *testing.T) {
					path := property + "/" + table.call
					want := rowsAt(t, getAs(api, typeJSON, path), table.rows)
					if property == "berlin" && len(want) == 0 {
						t.Fatal("there are no rows to compare")
					}
					var lines []jsontext.Value
					for line := range strings.Lines(getAs(api, typeNDJSON, path).Body.String()) {
						lines = append(lines, jsontext.Value(strings.TrimSuffix(line, "\n")))
					}
					if diff := cmp.Diff(want, lines); diff != "" {
						t.Errorf("NDJSON (-JSON +NDJSON):\n%s", diff)
					}
					answer := getAs(api, typeCSV, path)
					text := answer.Body.String()
					if strings.Count(text, "\n") != strings.Count(text, "\r\n") || !strings.HasPrefix(text, table.columns+"\r\n") {
						t.Errorf("lines must end in CR LF, the first must be %s: %q", table.columns, text)
					}
					got, err := csv.NewReader(answer.Body).ReadAll()
					if err != nil {
						t.Fatal(err)
					}
					wantLines := [][]string{strings.Split(table.columns, ",")}
					for _, record := range want {
						wantLines = append(wantLines, csvOf(t, record, table.columns))
					}
					if diff := cmp.Diff(wantLines, got); diff != "" {
						t.Errorf("CSV (-JSON +CSV):\n%s", diff)
					}
				})
			}
		}
	})
}

func TestRowsOfFiguresSayFromWhenOnTheyAreComplete(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for name, table := range figureCalls {
			for _, accept := range []string{typeCSV, typeNDJSON} {
				if got, want := getAs(api, accept, "trimmed/"+table.call).Header().Get("Weir-Complete-From"), "2026-10-24T22:00:00.000Z"; got != want {
					t.Errorf("%s as %s: got %q, want %q", name, accept, got, want)
				}
			}
		}
	})
}

func TestWhereVisitorsComeFromReachesThirtyDaysBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		for name, test := range map[string]struct {
			call string
			want bool
		}{
			"a summary alone":                      {"summary?period=24h", false},
			"one that is compared":                 {"summary?period=24h&compare=previous", true},
			"one of some pages":                    {"summary?period=24h&page=/", false},
			"one of some channels":                 {"summary?period=24h&channel=Direct", true},
			"a series of some sources":             {"series?period=24h&source=google", true},
			"a breakdown by page":                  {"breakdown?period=24h&by=page", false},
			"a breakdown by campaign":              {"breakdown?period=24h&by=campaign", true},
			"a funnel of some media":               {"funnel?period=24h&steps=a&steps=b&medium=cpc", true},
			"an attribution that looks back a day": {"attribution?period=24h&lookback=30m", false},
			"one of some campaigns":                {"attribution?period=24h&lookback=30m&campaign=(none)", true},
		} {
			t.Run(name, func(t *testing.T) {
				answer := getAs(api, typeJSON, "trimmed/analytics/"+test.call)
				if got := strings.Contains(answer.Body.String(), `"complete_from":"2026-10-24T22:00:00.000Z"`); answer.Code != 200 || got != test.want {
					t.Errorf("got %d %s, want a word on its completeness: %t", answer.Code, answer.Body, test.want)
				}
			})
		}
	})
}

func TestHEADOfFiguresHasNoRows(t *testing.T) {
	_, api := serve(t)
	for name, table := range figureCalls {
		for _, accept := range []string{typeCSV, typeNDJSON} {
			request := httptest.NewRequest(http.MethodHead, "/api/v1/properties/berlin/"+table.call, nil)
			request.Header.Set("Authorization", "Bearer "+tokens["berlin"])
			request.Header.Set("Accept", accept)
			answer := httptest.NewRecorder()
			api.ServeHTTP(answer, request)
			if kind := answer.Header().Get("Content-Type"); answer.Code != 200 || answer.Body.Len() > 0 || !strings.HasPrefix(kind, accept) {
				t.Errorf("%s: got %d, %d bytes, %s", name, answer.Code, answer.Body.Len(), kind)
			}
		}
	}
}

func TestWhatSendersNameIsNoFormulaInRowsOfFigures(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		api, _, _ := fewEvents(t, engine,
			`{"event":"=1+1","client_id":"c","context":{"page_url":"https://shop.example/","utm_source":"@SUM(A1)","utm_campaign":"-1"},"data":{"content_id":"+49"}}`,
			`{"event":"purchase","client_id":"c","data":{"value":5,"currency":"EUR"}}`,
			`{"event":"refund","client_id":"c","data":{"value":7,"currency":"EUR"}}`,
		)
		for call, want := range map[string]string{
			"events/stats":                                   "\n'=1+1,",
			"analytics/breakdown?by=event":                   "\n'=1+1,",
			"analytics/breakdown?by=product":                 "\n'+49,",
			"analytics/breakdown?by=source":                  "\n'@SUM(A1),",
			"analytics/funnel?steps=%3D1%2B1&steps=purchase": "\n1,'=1+1,\"[\"\"=1+1\"\"]\",",
			"analytics/attribution?group_by=campaign":        "\n'-1,",
			"analytics/series?interval=month&event=refund":   ",-7,0,7,0,0,",
		} {
			if text := getAs(api, typeCSV, "berlin/"+call).Body.String(); !strings.Contains(text, want) {
				t.Errorf("%s: got %s, want it to hold %q", call, text, want)
			}
		}
	})
}

func TestStatisticsInRowsSayWhereTheNextPageIs(t *testing.T) {
	api := varied(t, nil)
	seen := 0
	path := "berlin/events/stats?limit=1000"
	for pages := 1; ; pages++ {
		answer := getAs(api, typeNDJSON, path)
		seen += strings.Count(answer.Body.String(), "\n")
		link := answer.Header().Get("Link")
		if link == "" {
			if pages != 3 || seen != variedEvents+1 {
				t.Errorf("%d names on %d pages, want %d on 3", seen, pages, variedEvents+1)
			}
			return
		}
		path = strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`), "/api/v1/properties/")
		if pages > 3 {
			t.Fatal(fmt.Sprint("there is no end of pages behind ", link))
		}
	}
}
