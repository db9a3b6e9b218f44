package clickhouse_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
)

// TestNoURLHasWhatWasAsked: servers on the way write URLs into their logs.
func TestNoURLHasWhatWasAsked(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		w.Header().Set("X-ClickHouse-Query-Id", "1")
	}))
	defer server.Close()
	client := dial(t, strings.Replace(server.URL, "http://", "http://u:p@", 1)+"/shop")
	const secret = "pa55w0rd"
	query := clickhouse.Query{SQL: "SELECT {text:String} IN {texts:Array(String)}", Parameters: map[string]any{"text": secret, "texts": []string{secret}},
		Settings: clickhouse.Settings{"max_threads": 1}}
	if _, err := clickhouse.Select[uint8](t.Context(), client, query); err != nil {
		t.Fatal(err)
	}
	if err := client.Exec(t.Context(), query); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"cancel_http_readonly_queries_on_client_close=1&database=shop&default_format=Native&max_threads=1",
		"database=shop&max_threads=1",
	} {
		if asked[i] != want {
			t.Errorf("the URL has %s, want %s", asked[i], want)
		}
	}
}

func TestHowLongStatementsAndParametersMayBe(t *testing.T) {
	client := dial(t, clickhousetest.Shared(t))
	const field = 128 << 10
	ask := func(statement, parameter int) error {
		sql := "SELECT toUInt8(0) -- "
		var parameters map[string]any
		if parameter > 0 {
			sql = "SELECT toUInt8(length({x:String}) = {n:UInt64}) -- "
			parameters = map[string]any{"x": strings.Repeat("x", parameter), "n": parameter}
		}
		_, err := clickhouse.One[uint8](t.Context(), client, clickhouse.Query{SQL: sql + strings.Repeat("x", statement-len(sql)), Parameters: parameters})
		return err
	}
	for name, test := range map[string]struct {
		statement, parameter int
		want                 error
	}{
		"what fits a field, both":               {field, field, nil},
		"a parameter that is longer":            {100, field + 1, clickhouse.Other},
		"a statement with parameters":           {field + 1, 1, clickhouse.Other},
		"a statement without any may be longer": {field + 1, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := ask(test.statement, test.parameter)
			if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), "more than 131072 bytes") {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
