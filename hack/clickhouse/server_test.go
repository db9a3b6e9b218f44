package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startServer starts the program, which hack/clickhouse.sh builds, and returns its address.
func startServer(t *testing.T) string {
	t.Helper()
	program, err := exec.Command("../clickhouse.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	dir := t.TempDir()
	users := "<clickhouse><users><root><password_sha256_hex>" + digest("root") + "</password_sha256_hex></root></users></clickhouse>"
	config := fmt.Sprintf("<clickhouse><listen_host>127.0.0.1</listen_host><http_port>%d</http_port><path>%s/data/</path>"+
		"<user_directories><users_xml><path>%s/users.xml</path></users_xml></user_directories></clickhouse>", port, dir, dir)
	for name, text := range map[string]string{"users.xml": users, "config.xml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := exec.Command(strings.TrimSpace(string(program)), "server", "--config-file="+filepath.Join(dir, "config.xml"))
	server.Stderr = t.Output()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	address := fmt.Sprintf("http://127.0.0.1:%d/", port)
	await(t, func() bool {
		answer, err := http.Get(address + "ping")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
	return address
}

func await(t *testing.T, is func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-deadline:
			t.Fatal("it has not come true within a minute")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ask sends a statement, as root unless the parameters name another user.
func ask(ctx context.Context, address string, parameters url.Values, body io.Reader, header ...string) (status int, text string, err error) {
	if parameters == nil {
		parameters = url.Values{}
	}
	if !parameters.Has("user") {
		parameters.Set("user", "root")
		parameters.Set("password", "root")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"?"+parameters.Encode(), body)
	if err != nil {
		return 0, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(content), err
}

func zipped(text string) io.Reader {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = io.WriteString(writer, text)
	_ = writer.Close()
	return &out
}

// form is a body with fields, each a name and a value behind it, and its Content-Type as the rest of a request's header.
func form(fields ...string) (io.Reader, []string) {
	var out bytes.Buffer
	writer := multipart.NewWriter(&out)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = writer.WriteField(fields[i], fields[i+1])
	}
	_ = writer.Close()
	return &out, []string{"Content-Type", writer.FormDataContentType()}
}

func TestForms(t *testing.T) {
	address := startServer(t)
	for name, test := range map[string]struct {
		parameters url.Values
		fields     []string
		status     int
		want       string // what the answer begins with
	}{
		"statement and parameter are fields":     {fields: []string{"query", "SELECT {p:UInt8} + {q:UInt8}", "param_p", "3", "param_q", "4"}, status: 200, want: "7\n"},
		"a parameter is unescaped, as in an URL": {fields: []string{"query", "SELECT {p:String} = 'a\\tb'", "param_p", `a\tb`}, status: 200, want: "1\n"},
		"it may be empty":                        {fields: []string{"query", "SELECT length({p:String})", "param_p", ""}, status: 200, want: "0\n"},
		"one of an INSERT too": {
			fields: []string{"query", "INSERT INTO FUNCTION null('n UInt8') SELECT {p:UInt8}", "param_p", "3"}, status: 200, want: ""},
		"what the URL has stands before":    {parameters: url.Values{"query": {"SELECT "}, "param_p": {"3"}}, fields: []string{"query", "{p:UInt8}"}, status: 200, want: "3\n"},
		"a setting counts in the URL alone": {fields: []string{"query", "SELECT getSetting('max_threads') = 3", "max_threads", "3"}, status: 200, want: "0\n"},
		"a field has 128 KiB":               {fields: []string{"query", "SELECT length({p:String})", "param_p", strings.Repeat("x", 128<<10)}, status: 200, want: "131072\n"},
		"more than that is refused":         {fields: []string{"query", "SELECT length({p:String})", "param_p", strings.Repeat("x", 128<<10+1)}, status: 500, want: "Code: 1000."},
	} {
		t.Run(name, func(t *testing.T) {
			body, header := form(test.fields...)
			status, text, err := ask(t.Context(), address, test.parameters, body, header...)
			if err != nil || status != test.status || !strings.HasPrefix(text, test.want) {
				t.Errorf("the answer is %d %q (%v), want %d %q", status, text, err, test.status, test.want)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	address := startServer(t)
	for name, test := range map[string]struct {
		parameters url.Values
		body       io.Reader
		header     []string
		status     int
		want       string // what the answer begins with
	}{
		"a statement in the body":            {body: strings.NewReader("SELECT 1"), status: 200, want: "1\n"},
		"a statement in the URL":             {parameters: url.Values{"query": {"SELECT 2"}}, status: 200, want: "2\n"},
		"a body that is a gzip":              {body: zipped("SELECT 3"), header: []string{"Content-Encoding", "gzip"}, status: 200, want: "3\n"},
		"a parameter is unescaped":           {parameters: url.Values{"param_p": {`a\tb`}}, body: strings.NewReader("SELECT {p:String} = 'a\\tb'"), status: 200, want: "1\n"},
		"a setting counts":                   {parameters: url.Values{"max_threads": {"3"}}, body: strings.NewReader("SELECT getSetting('max_threads')"), status: 200, want: "3\n"},
		"another's setting does not":         {body: strings.NewReader("SELECT getSetting('max_threads') = 3"), status: 200, want: "0\n"},
		"a format by default":                {parameters: url.Values{"default_format": {"JSONEachRow"}}, body: strings.NewReader("SELECT 4 AS n"), status: 200, want: "{\"n\":4}\n"},
		"a wrong password":                   {parameters: url.Values{"user": {"root"}, "password": {"?"}}, body: strings.NewReader("SELECT 1"), status: 403, want: "Code: 516."},
		"nobody":                             {parameters: url.Values{"user": {"default"}}, body: strings.NewReader("SELECT 1"), status: 403, want: "Code: 516."},
		"a database that is not there":       {parameters: url.Values{"database": {"none"}}, body: strings.NewReader("SELECT 1"), status: 404, want: "Code: 81."},
		"a table that is not there":          {body: strings.NewReader("SELECT * FROM none"), status: 404, want: "Code: 60."},
		"a statement that cannot be read":    {body: strings.NewReader("SELECT FROM WHERE"), status: 400, want: "Code: 62."},
		"a query that takes too long":        {parameters: url.Values{"max_execution_time": {"1"}}, body: strings.NewReader("SELECT sum(sleepEachRow(1)) FROM numbers(9) SETTINGS max_block_size = 1"), status: 408, want: "Code: 159."},
		"one that takes too much memory":     {parameters: url.Values{"max_memory_usage": {"1000000"}}, body: strings.NewReader("SELECT groupArray(number) FROM numbers(10000000)"), status: 500, want: "Code: 241."},
		"compressed blocks are not emulated": {parameters: url.Values{"compress": {"1"}}, body: strings.NewReader("SELECT 1"), status: 501, want: "Code: 48."},
	} {
		t.Run(name, func(t *testing.T) {
			status, text, err := ask(t.Context(), address, test.parameters, test.body, test.header...)
			if err != nil || status != test.status || !strings.HasPrefix(text, test.want) {
				t.Errorf("the answer is %d %q (%v), want %d %q", status, text, err, test.status, test.want)
			}
		})
	}
}

func TestRowsArriveAsTheyAre(t *testing.T) {
	address := startServer(t)
	statement := func(query, rows string) string {
		t.Helper()
		status, text, err := ask(t.Context(), address, url.Values{"query": {query}, "insert_deduplication_token": {"token"}}, strings.NewReader(rows))
		if err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d %s %v", query, status, text, err)
		}
		return text
	}
	statement("CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s SETTINGS non_replicated_deduplication_window = 10", "")
	// A block of one column with two rows, which have in them what ends statements, lines and rows in other formats.
	block := "\x01\x02\x01s\x06String\x05\n\n;\x00'\x03\t\\N"
	for range 2 {
		statement("INSERT INTO t (s) FORMAT Native", block)
	}
	if got, want := statement("SELECT count(), max(s) = '\\n\\n;\\0\\'' OR min(s) = '\\n\\n;\\0\\'' FROM t", ""), "2\t1\n"; got != want {
		t.Errorf("there are %q, want %q", got, want)
	}
}

func TestRequestsRunSideBySide(t *testing.T) {
	address := startServer(t)
	left, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := ask(left, address, nil, strings.NewReader("SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(rand64())"))
		ended <- err
	}()
	running := func() bool {
		_, text, err := ask(t.Context(), address, nil, strings.NewReader("SELECT count() FROM system.processes WHERE query LIKE '%numbers(10%'"))
		return err == nil && text == "2\n" // it and the question
	}
	await(t, running)
	leave()
	if err := <-ended; err == nil {
		t.Error("the long query has been answered, want that nobody waits for it")
	}
	await(t, func() bool { return !running() })
}
