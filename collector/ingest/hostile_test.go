package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/weir-dev/weir/collector/server"
)

func TestEveryWrongKeyGetsTheSameAnswer(t *testing.T) {
	tenant, kept := inMemory()
	s := newSite(t, tenant)
	var first *answer
	for name, r := range map[string]request{
		"an unknown one":                 {path: "/collect/wk_unknown", body: []byte(purchase)},
		"one that is nearly right":       {path: "/collect/" + shopKey[:len(shopKey)-1] + "x", body: []byte(purchase)},
		"one with more behind it":        {path: "/collect/" + shopKey + "x", body: []byte(purchase)},
		"one in other case":              {path: "/collect/" + strings.ToUpper(shopKey), body: []byte(purchase)},
		"one that cannot be unescaped":   {path: "/collect/%2F%F0%9F", body: []byte(purchase)},
		"one of a thousand characters":   {path: "/collect/" + strings.Repeat("k", 1000), body: []byte(purchase)},
		"one with no body":               {path: "/collect/wk_unknown"},
		"one with a body that is none":   {path: "/collect/wk_unknown", body: []byte("{")},
		"one with a body that is huge":   {path: "/collect/wk_unknown", body: make([]byte, 300_000)},
		"one with another content type":  {path: "/collect/wk_unknown", contentType: "text/plain", body: []byte("x")},
		"one with an unknown encoding":   {path: "/collect/wk_unknown", header: map[string]string{"Content-Encoding": "br"}},
		"one with a batch":               {path: "/collect/wk_unknown/batch", body: []byte(`{"events": []}`)},
		"one with something like a hash": {path: "/collect/" + strings.Repeat("0", 64), body: []byte(purchase)},
	} {
		got := s.send(t, r)
		got.header.Del("Date")
		got.header.Del("Connection") // closed where the unread body is too long to be read over
		if first == nil {
			first = &got
		}
		if diff := cmp.Diff(*first, got, cmp.AllowUnexported(answer{})); diff != "" || got.status != 401 || got.body != invalidKey {
			t.Errorf("%s: %d %s\n%s", name, got.status, got.body, diff)
		}
	}
	if stored := kept.stored(t); len(stored) > 0 {
		t.Errorf("%d events were stored", len(stored))
	}
}

func TestAWrongKeyCostsTheConnection(t *testing.T) {
	tenant, _ := inMemory()
	s := newSite(t, tenant)
	for name, body := range map[string][]byte{"with a small body": []byte(purchase), "with a large body": padded(65000)} {
		t.Run(name, func(t *testing.T) {
			response, err := s.Client().Post(s.URL+"/collect/nobody", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusUnauthorized || !response.Close {
				t.Errorf("got %d and the connection is to be closed: %v, want 401 and true", response.StatusCode, response.Close)
			}
		})
	}
}

func TestTheConnectionStaysUsableAfterARefusal(t *testing.T) {
	tenant, _ := inMemory()
	s := newSite(t, tenant)
	reused := false
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	for i, c := range []struct {
		path, contentType string
		body              []byte
		want              int
	}{
		{"/collect/" + shopKey, "application/json", []byte(purchase), 202},
		{"/collect/" + shopKey, "text/plain", []byte(purchase), 415},
		{"/collect/" + shopKey, "application/json", padded(70_000), 413},
		{"/collect/" + shopKey, "application/json", []byte("{"), 400},
		{"/collect/" + shopKey, "application/json", []byte("{}"), 422},
		{"/nowhere", "application/json", []byte(purchase), 404},
		{"/collect/" + shopKey, "application/json", []byte(purchase), 202},
	} {
		sent, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+c.path, bytes.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		sent.Header.Set("Content-Type", c.contentType)
		response, err := s.Client().Do(sent)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.want || reused != (i > 0) {
			t.Errorf("request %d: got %d on a used connection: %v, want %d", i, response.StatusCode, reused, c.want)
		}
	}
}

func TestTwoContentTypesOrEncodingsAreRefused(t *testing.T) {
	tenant, _ := inMemory()
	s := newSite(t, tenant)
	for _, field := range []string{"Content-Type: application/json", "Content-Encoding: gzip\r\nContent-Encoding: gzip"} {
		connection := s.connect(t)
		fmt.Fprintf(connection, "POST /collect/%s HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\n%s\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", shopKey, field)
		if got := readAll(t, connection); !strings.HasPrefix(got, "HTTP/1.1 415 ") {
			t.Errorf("%s: got %s, want 415", field, got)
		}
	}
}

// connect opens a connection of its own.
func (s *site) connect(t *testing.T) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return connection
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestALengthOverTheLimitIsRefusedBeforeTheBodyComes(t *testing.T) {
	tenant, _ := inMemory()
	s := newSite(t, tenant)
	connection := s.connect(t)
	// Nothing of the body is ever sent; 1 GiB is too much for net/http to wait for.
	fmt.Fprintf(connection, "POST /collect/%s HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n", shopKey)
	if got := readAll(t, connection); !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.HasSuffix(got, bodyTooLarge) {
		t.Errorf("got %s, want 413", got)
	}
}

func TestABodyThatDoesNotComeInTimeIsGivenUp(t *testing.T) {
	tenant, kept := inMemory()
	s := newSite(t, tenant)
	listener, err := server.Listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{Listener: listener, Handler: s.Config.Handler, ReadTimeout: 50 * time.Millisecond})
	}()
	for encoding, beginning := range map[string][]byte{
		"identity": []byte(`{"event": `), "gzip": gzipped(t, []byte(purchase))[:30], "zstd": zstandard(t, []byte(purchase))[:30],
	} {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		head := "POST /collect/" + shopKey + " HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nContent-Encoding: " + encoding + "\r\nContent-Length: 1000\r\n\r\n"
		if _, err := connection.Write(append([]byte(head), beginning...)); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, connection); !strings.HasPrefix(got, "HTTP/1.1 408 ") || !strings.Contains(got, "Connection: close") {
			t.Errorf("%s: got %s, want 408", encoding, got)
		}
		connection.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if stored := kept.stored(t); len(stored) > 0 {
		t.Errorf("%d events were stored", len(stored))
	}
}

func TestABodyThatEndsTooEarlyIsNotStored(t *testing.T) {
	tenant, kept := inMemory()
	s := newSite(t, tenant)
	connection := s.connect(t)
	// What has come is valid by itself.
	fmt.Fprintf(connection, "POST /collect/%s HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n%s", shopKey, purchase)
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, connection); !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.HasSuffix(got, `{"message":"The request body did not arrive in full."}`) {
		t.Errorf("got %s, want 400", got)
	}
	if stored := kept.stored(t); len(stored) > 0 {
		t.Errorf("%d events were stored", len(stored))
	}
}

// gzipBomb is a few KiB that inflate to size zero bytes.
func gzipBomb(t *testing.T, size int64) []byte {
	t.Helper()
	var into bytes.Buffer
	writer, err := gzip.NewWriterLevel(&into, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(writer, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

func zstdBomb(t *testing.T, size int64, options ...zstd.EOption) []byte {
	t.Helper()
	var into bytes.Buffer
	writer, err := zstd.NewWriter(&into, options...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(writer, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestBombsCostNoMoreThanTheLimit(t *testing.T) {
	const inflated = 48 << 20
	repeat := func(part []byte, total int) []byte { return bytes.Repeat(part, total/len(part)) }
	for name, c := range map[string]struct {
		encoding string
		body     []byte
		status   int
	}{
		"gzip that inflates a thousandfold": {"gzip", gzipBomb(t, inflated), 413},
		"zstd that inflates a thousandfold": {"zstd", zstdBomb(t, inflated), 413},
		"zstd with a window of 128 MiB":     {"zstd", zstdBomb(t, inflated, zstd.WithWindowSize(128<<20), zstd.WithEncoderConcurrency(1)), 413},
		"gzip of nothing, again and again":  {"gzip", repeat(gzipped(t, nil), 60_000), 400},
		"gzip of nothing, without end":      {"gzip", repeat(gzipped(t, nil), 1<<20), 413},
		// A skippable frame of zstd, with a length that nothing follows.
		"zstd that skips 4 GiB": {"zstd", []byte{0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff}, 400},
		// A frame that says it holds an exbibyte.
		"zstd that claims to hold 2^60 bytes": {"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x10, 1, 0, 0}, 413},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %v", name, chunked), func(t *testing.T) {
				tenant, _ := inMemory()
				s := newSite(t, tenant)
				r := request{header: map[string]string{"Content-Encoding": c.encoding}, body: c.body, chunked: chunked}
				s.send(t, r) // the decoders that are kept have their memory now
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got := s.send(t, r)
				runtime.ReadMemStats(&after)
				if got.status != c.status {
					t.Errorf("got %d %s, want %d", got.status, got.body, c.status)
				}
				if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
					t.Errorf("the request took %d bytes of memory", grown)
				}
			})
		}
	}
}

func TestNothingOfAPersonIsLoggedCountedOrAnswered(t *testing.T) {
	tenant, kept := inMemory()
	refused := new(refusals)
	tenant.Rejections = refused
	s := newSite(t, tenant)
	const person = `"user": {"email": "jane.roe@example.com", "phone": "+14155550123", "first_name": "Jacqueline"}`
	bodies := []string{
		`{"event": "pageview", ` + person + `}`,
		`{"event": "purchase", ` + person + `}`,
		`{"event": "pageview", ` + person,
		`{"event": 1, ` + person + `, "event": 2}`,
		`{"event": "pageview", "user": {"email": "jane.roe@example.com@", "phone": "x+14155550123", "first_name": ["Jacqueline"]}}`,
		`{"event": "pageview", "client_id": {"jane.roe@example.com": "Jacqueline"}, "timestamp": "+14155550123"}`,
		`{"event": "call of 4155550123", "event_id": "o-4155550123", "data": 1, ` + person + `}`,
		`{"event": "purchase", "event_id": "o-4155550123", "user": {"phone": "4155550123"}}`,
		`{"event": "jane.roe@example.com", "event_id": "jane.roe@example.com"}`,
	}
	var answers strings.Builder
	for _, body := range bodies {
		for _, r := range []request{
			{body: []byte(body)},
			{body: gzipped(t, []byte(body)), header: map[string]string{"Content-Encoding": "gzip"}},
			{body: []byte(`{"events": [` + body + `]}`), suffix: "/batch"},
			{body: []byte(body), path: "/collect/jane.roe@example.com"},
			{body: []byte(body), contentType: "text/Jacqueline"},
			{body: []byte(body), header: map[string]string{"Content-Encoding": "Jacqueline"}},
		} {
			got := s.send(t, r)
			fmt.Fprintln(&answers, got.status, got.header, got.body)
		}
	}
	kept.fail = errors.New("gone")
	s.send(t, request{body: []byte(bodies[0])})

	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var metrics strings.Builder
	for _, family := range families {
		metrics.WriteString(family.String())
	}
	if !strings.Contains(s.log.String(), `"status":422`) || !strings.Contains(s.log.String(), `"property":"shop"`) {
		t.Errorf("the log lacks the refused requests: %s", s.log)
	}
	var stored bytes.Buffer
	for _, addition := range kept.additions {
		stored.Write(addition.Entry)
	}
	listed := fmt.Sprintf("%+s", refused.list)
	for place, text := range map[string]string{"rejections": listed, "log": s.log.String(), "metrics": metrics.String(), "answers": answers.String(), "stored bytes": stored.String()} {
		if text == "" {
			t.Errorf("the %s are empty", place)
		}
		for _, personal := range []string{"jane", "roe@", "4155550123", "acqueline", shopKey} {
			if strings.Contains(text, personal) {
				t.Errorf("%q stands in the %s", personal, place)
			}
		}
	}
}

func TestOutcomesAreCounted(t *testing.T) {
	tenant, kept := inMemory()
	s := newSite(t, tenant)
	s.send(t, request{body: []byte(`{"event": "pageview", "event_id": "a"}`)})
	s.send(t, request{body: []byte(`{"event": "pageview", "event_id": "a"}`)})
	s.send(t, request{body: []byte(`{}`)})
	s.send(t, request{suffix: "/batch", body: []byte(`{"events": [{"event": "pageview", "event_id": "a"}, {"event": "pageview", "event_id": "b"}, {}, {}]}`)})
	kept.fail = errors.New("gone")
	s.send(t, request{suffix: "/batch", body: []byte(`{"events": [{"event": "pageview"}, {"event": "pageview"}, {}]}`)})
	want := map[string]float64{"accepted": 2, "duplicate": 2, "rejected": 3, "unavailable": 3}
	if diff := cmp.Diff(want, s.outcomes(t)); diff != "" {
		t.Error(diff)
	}
}

// outcomes reads the counter of events, of all ways in together; only those that are not 0.
func (s *site) outcomes(t *testing.T) map[string]float64 {
	t.Helper()
	found := s.counter(t, "weir_collect_events_total", "outcome")
	maps.DeleteFunc(found, func(_ string, n float64) bool { return n == 0 })
	return found
}
