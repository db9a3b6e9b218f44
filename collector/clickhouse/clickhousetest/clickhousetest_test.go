package clickhousetest_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
)

func TestServerKeepsWhatItHasAnsweredWhenItIsKilled(t *testing.T) {
	server := clickhousetest.Start(t)
	address := server.Database(t)
	clickhousetest.Exec(t, address, "CREATE TABLE kept (n Int64) ENGINE = MergeTree ORDER BY n")
	clickhousetest.Exec(t, address, "INSERT INTO kept VALUES (1), (2)")
	server.Kill()
	server.Restart()
	if got := clickhousetest.Exec(t, address, "SELECT sum(n) FROM kept"); got != "3" {
		t.Errorf("after a restart the sum is %s, want 3", got)
	}
}

func TestDatabasesOfASharedServerAreApart(t *testing.T) {
	first, second := clickhousetest.Shared(t), clickhousetest.Shared(t)
	clickhousetest.Exec(t, first, "CREATE TABLE one (n Int64) ENGINE = Memory")
	if got := clickhousetest.Exec(t, second, "SELECT count() FROM system.tables WHERE database = currentDatabase()"); got != "0" {
		t.Errorf("the second database has %s tables, want none", got)
	}
}

func TestProxyFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault  clickhousetest.Fault
		status int // 0 is a connection that was cut
		body   string
		rows   string // how many the server has got
	}{
		"a request that is cut before does not reach the server": {fault: clickhousetest.Fault{CutBefore: true}, rows: "0"},
		"the answer of one that is cut after is lost":            {fault: clickhousetest.Fault{CutAfter: true}, rows: "1"},
		"nonsense comes with status 200":                         {fault: clickhousetest.Fault{Nonsense: "hello"}, status: 200, body: "hello", rows: "0"},
		"an exception comes instead of the server's answer": {
			fault: clickhousetest.Fault{Code: 243, Message: "no space"}, status: 500, body: "Code: 243. DB::Exception: no space\n", rows: "0"},
		"what matches nothing goes through": {
			fault: clickhousetest.Fault{CutBefore: true, Matching: func(sql string) bool { return strings.HasPrefix(sql, "ALTER") }}, status: 200, rows: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			address := clickhousetest.Shared(t)
			clickhousetest.Exec(t, address, "CREATE TABLE t (n Int64) ENGINE = MergeTree ORDER BY n")
			proxy := clickhousetest.StartProxy(t, address)
			proxy.Add(test.fault)
			status, body := insert(t, proxy.URL())
			if status != test.status || body != test.body {
				t.Errorf("the answer is %d %q, want %d %q", status, body, test.status, test.body)
			}
			if got := clickhousetest.Exec(t, address, "SELECT count() FROM t"); got != test.rows {
				t.Errorf("the server has %s rows, want %s", got, test.rows)
			}
		})
	}
}

func insert(t *testing.T, address string) (status int, body string) {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.RawQuery, parsed.Path = "database="+strings.Trim(parsed.Path, "/"), "/"
	answer, err := http.Post(parsed.String(), "text/plain", strings.NewReader("INSERT INTO t VALUES (1)"))
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
