package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/weir-dev/weir/collector/redisserver"
)

// neighbour is a well-behaved client beside the others.
type neighbour struct {
	t       *testing.T
	stop    context.CancelFunc
	all     sync.WaitGroup
	mu      sync.Mutex
	served  int
	slowest time.Duration
}

// timeout is how long a neighbour waits for an answer at most: far less than any abuse lasts, far more than the
// machine's other work takes.
const timeout = 10 * time.Second

func startNeighbour(t *testing.T, c *collector) *neighbour {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background()) // the test's own ends before its cleanup
	n := &neighbour{t: t, stop: stop}
	n.all.Go(func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			sender := &client{&http.Client{Transport: &http.Transport{}, Timeout: time.Minute}} // a new connection each time
			r, err := sender.send(context.Background(), c, "", []byte(`{"event": "pageview"}`))
			sender.http.CloseIdleConnections()
			if err != nil || r.status != http.StatusAccepted {
				t.Errorf("a neighbour got %d %s, %v", r.status, r.body, err)
				return
			}
			n.mu.Lock()
			n.served++
			n.slowest = max(n.slowest, r.took)
			n.mu.Unlock()
			<-ticker.C
		}
	})
	t.Cleanup(n.end)
	return n
}

// requests returns how many were served so far.
func (n *neighbour) requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.served
}

// end checks that the neighbour was served all the time.
func (n *neighbour) end() {
	n.stop()
	n.all.Wait()
	if n.served == 0 || n.slowest > timeout {
		n.t.Errorf("a neighbour was served %d times, the slowest after %s", n.served, n.slowest)
	}
}

// connect opens a connection to the collector.
func (c *collector) connect() net.Conn {
	c.t.Helper()
	connection, err := net.Dial("tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		c.t.Fatal(err)
	}
	return connection
}

// post is a request's header and body, as they go over the wire.
func post(header string, body []byte) []byte {
	return fmt.Appendf(nil, "POST /collect/%s HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		shopKey, header, len(body), body)
}

// zeros is a stream of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func gzipBomb(t *testing.T, size int64) []byte {
	t.Helper()
	var into bytes.Buffer
	writer := gzip.NewWriter(&into)
	if _, err := io.CopyN(writer, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

func zstdBomb(t *testing.T, size int64) []byte {
	t.Helper()
	var into bytes.Buffer
	writer, err := zstd.NewWriter(&into)
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

// TestAbuseIsAnsweredClearlyAndCostsLittle sends what no well-meaning client sends, many times at once.
func TestAbuseIsAnsweredClearlyAndCostsLittle(t *testing.T) {
	t.Parallel()
	const growth, atOnce = 64 << 20, 4
	tenMegabytes := bytes.Repeat([]byte("x"), 10<<20)
	deep := func(open, end string, n int) []byte {
		return []byte(`{"event": "x", "a": ` + strings.Repeat(open, n) + "1" + strings.Repeat(end, n) + "}")
	}
	valid := []byte(`{"event": "pageview"}`)
	s := newSite(t, redisserver.Options{})
	c := s.start("collect")
	warm := newClient(t)
	if r, err := warm.send(t.Context(), c, "", valid); err != nil || r.status != http.StatusAccepted {
		t.Fatalf("got %d, %v", r.status, err)
	}
	before := c.memory()
	startNeighbour(t, c)
	for name, abuse := range map[string]struct {
		sent []byte
		// want are the statuses of the answers, the connection's end after the last.
		want string
		// half closes the sending side afterwards.
		half bool
	}{
		"10 MB":                        {post("Connection: close\r\n", tenMegabytes), "413", false},
		"10 MB in chunks":              {chunked(tenMegabytes), "413", false},
		"half a body":                  {post("", valid)[:len(post("", valid))-5], "400", true},
		"half a header":                {[]byte("POST /collect/x HTTP/1.1\r\nHost: we"), "400", true},
		"a gzip bomb":                  {post("Content-Encoding: gzip\r\nConnection: close\r\n", gzipBomb(t, 48<<20)), "413", false},
		"a zstd bomb":                  {post("Content-Encoding: zstd\r\nConnection: close\r\n", zstdBomb(t, 1<<30)), "413", false},
		"arrays 30,000 deep":           {post("Connection: close\r\n", deep("[", "]", 30_000)), "400", false},
		"objects 10,500 deep":          {post("Connection: close\r\n", deep(`{"":`, "}", 10_500)), "400", false},
		"arrays that never end":        {post("Connection: close\r\n", bytes.Repeat([]byte("["), 60_000)), "400", false},
		"a member twice":               {post("Connection: close\r\n", []byte(`{"event": "a", "event": "b"}`)), "400", false},
		"text that is not UTF-8":       {post("Connection: close\r\n", []byte("{\"event\": \"a\xff\"}")), "400", false},
		"a NUL byte":                   {post("Connection: close\r\n", []byte("{\"event\": \"a\x00\"}")), "400", false},
		"an escaped NUL":               {post("Connection: close\r\n", []byte(`{"event": "a\u0000"}`)), "422", false},
		"a number of 10^9 digits":      {post("Connection: close\r\n", []byte(`{"event": "x", "data": {"value": 1e1000000000}}`)), "422", false},
		"a number of 60,000 digits":    {post("Connection: close\r\n", []byte(`{"event": "x", "data": {"value": `+strings.Repeat("9", 60_000)+`}}`)), "422", false},
		"1,000 header lines":           {post(strings.Repeat("X-Header-Of-Many: 0123456789\r\n", 1000), valid), "431", false},
		"a header line of 100 KB":      {post("X-Long: "+strings.Repeat("x", 100<<10)+"\r\n", valid), "431", false},
		"a path of 100 KB":             {[]byte("POST /collect/" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: weir\r\n\r\n"), "431", false},
		"garbage behind a request":     {append(post("", valid), "\x00\x16\x03garbage\r\n\r\n"...), "202 400", false},
		"garbage":                      {[]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n"), "400", false},
		"another protocol":             {[]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "405", false},
		"a chunk that is none":         {[]byte("POST /collect/" + shopKey + " HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"), "400", false},
		"lengths that contradict":      {[]byte("POST /collect/" + shopKey + " HTTP/1.1\r\nHost: weir\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), "400", false},
		"no host":                      {[]byte("POST /collect/" + shopKey + " HTTP/1.1\r\n\r\n"), "400", false},
		"a batch of 1,000 events":      {batchOf(1000), "422", false},
		"a batch of bad events in 1MB": {batchOf(500, strings.Repeat(`\u0001`, 300)), "202", false},
	} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for range atOnce {
				all.Go(func() {
					for range max(1, *abuses/atOnce) {
						if got := c.exchange(t, abuse.sent, abuse.half); got != abuse.want {
							t.Errorf("got %q, want %q", got, abuse.want)
						}
					}
				})
			}
			all.Wait()
		})
	}
	if grown := c.memory() - before; grown > growth {
		t.Errorf("the collector grew by %d MiB, want at most %d", grown>>20, growth>>20)
	}
}

// chunked is a request whose body's length is not told beforehand.
func chunked(body []byte) []byte {
	return fmt.Appendf(nil, "POST /collect/%s HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
		shopKey, len(body), body)
}

// batchOf is a batch of n events with the name, or one that is good.
func batchOf(n int, name ...string) []byte {
	one := `{"event": "` + strings.Join(append(name, "x")[:1], "") + `"}`
	body := `{"events": [` + strings.Repeat(one+",", n-1) + one + "]}"
	return fmt.Appendf(nil, "POST /collect/%s/batch HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		shopKey, len(body), body)
}

// exchange sends bytes over a connection of its own and returns the statuses of the answers until its end.
func (c *collector) exchange(t *testing.T, sent []byte, half bool) string {
	connection, err := net.Dial("tcp", c.address)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Error(err)
		return ""
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		// The collector may answer and close before it has read all.
		_, _ = connection.Write(sent)
		if half {
			_ = connection.(*net.TCPConn).CloseWrite()
		}
	}()
	var statuses []string
	answers := bufio.NewReader(connection)
	for {
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			break // the end, or a reset where unread bytes were thrown away
		}
		_, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		statuses = append(statuses, fmt.Sprint(answer.StatusCode))
		if err != nil || answer.Close {
			break
		}
	}
	connection.Close()
	<-written
	return strings.Join(statuses, " ")
}

// TestConnectionsThatHangCostLittle opens thousands of connections that do nothing, or next to it, and keeps them.
func TestConnectionsThatHangCostLittle(t *testing.T) {
	t.Parallel()
	const growth, perConnection = 32 << 20, 40 << 10
	s := newSite(t, redisserver.Options{})
	c := s.start("collect")
	before, opened := c.memory(), 0
	n := startNeighbour(t, c)
	valid := post("", []byte(`{"event": "pageview"}`))
	for _, hang := range []struct {
		what        string
		connections int
		begin       []byte
		answered    bool
	}{
		{"have sent nothing", 5000, nil, false},
		{"are idle after a request", 200, valid, true},
		{"stop in the header", 200, []byte("POST /collect/" + shopKey + " HTTP/1.1\r\nHost: we"), false},
		{"stop in the body", 200, valid[:len(valid)-1], false},
		{"claim a body of 64 KB", 200, post("", make([]byte, 64<<10))[:200], false},
		{"pipeline and never read", 100, bytes.Repeat(valid, 200), false},
		{"stop in a compressed body", 200, post("Content-Encoding: gzip\r\n", gzipBomb(t, 1<<20))[:300], false},
		{"stop in a batch with an unknown key", 200, bytes.Replace(post("", make([]byte, 1<<20)), []byte(shopKey), []byte("wk_unknown/batch"), 1)[:300], false},
	} {
		for range hang.connections {
			connection := c.connect()
			if _, err := connection.Write(hang.begin); err != nil {
				t.Fatalf("connections that %s: %v", hang.what, err)
			}
			if hang.answered {
				if _, err := connection.Read(make([]byte, 1)); err != nil {
					t.Fatalf("connections that %s: %v", hang.what, err)
				}
			}
		}
		opened += hang.connections
		already := n.requests()
		eventually(t, "a neighbour is served beside connections that "+hang.what, func() bool { return n.requests() >= already+10 })
	}
	grown := c.memory() - before
	t.Logf("%d connections, %d KiB each", opened, grown/int64(opened)>>10)
	if limit := int64(growth + opened*perConnection); grown > limit {
		t.Errorf("the collector grew by %d MiB, want at most %d", grown>>20, limit>>20)
	}
}
