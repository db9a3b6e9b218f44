package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/egress"
)

// listen serves connections until the test ends, and returns where.
func listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, connection)
			mu.Unlock()
			all.Go(func() {
				defer connection.Close()
				serve(connection)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, connection := range open {
			connection.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return listener.Addr().String()
}

// answers serves as a Redis that answers each command, named in lower case, with what answer returns.
func answers(answer func(command string) string) func(net.Conn) {
	return func(connection net.Conn) {
		reader := bufio.NewReader(connection)
		for {
			words, err := readCommand(reader)
			if err != nil {
				return
			}
			var reply string
			switch command := strings.ToLower(strings.Join(words, " ")); {
			case command == "ping":
				reply = "+PONG\r\n"
			case strings.HasPrefix(command, "hello"):
				reply = "*0\r\n"
			default:
				reply = answer(command)
			}
			if _, err := io.WriteString(connection, reply); err != nil {
				return
			}
		}
	}
}

// bulk returns texts as Redis sends them.
func bulk(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(text), text)
	}
	return b.String()
}

func readCommand(reader *bufio.Reader) ([]string, error) {
	line, err := reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	var n int
	if _, err := fmt.Sscanf(line, "*%d", &n); err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		var length int
		if line, err = reader.ReadString('\n'); err != nil {
			return nil, err
		}
		if _, err := fmt.Sscanf(line, "$%d", &length); err != nil {
			return nil, err
		}
		word := make([]byte, length+2)
		if _, err := io.ReadFull(reader, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:length])
	}
	return words, nil
}

const secretOfOthers = "s3cret-of-another-team"

func TestAnUntrustedServerIsToldNothingBeforeItHasGreeted(t *testing.T) {
	tests := map[string]struct {
		says string
		want error
	}{
		"a banner":                 {"220 " + secretOfOthers + "\r\n", ErrReply},
		"a POP server":             {"+OK " + secretOfOthers + "\r\n", ErrReply},
		"an error of another kind": {"-" + secretOfOthers + "\r\n", ErrReply},
		"HTTP":                     {"HTTP/1.1 400 Bad Request\r\n\r\n" + secretOfOthers, ErrReply},
		"a line without an end":    {strings.Repeat("x", 1<<20), ErrReply},
		"nothing, and the end":     {"", ErrUnreachable},
		"Redis in protected mode":  {"-DENIED Redis is running in protected mode " + secretOfOthers + "\r\n", ErrUnreachable},
		"Redis that has as many clients as it may": {"-ERR max number of clients reached\r\n", ErrUnreachable},
		"Redis that wants a password, and another": {"-NOAUTH " + secretOfOthers + "\r\n-WRONGPASS " + secretOfOthers + "\r\n-WRONGPASS x\r\n", ErrAuthentication},
		"Redis, then a string of all memory":       {"+PONG\r\n*0\r\n$536870912000\r\n", ErrReply},
		"Redis, then one that no slice can hold":   {"+PONG\r\n*0\r\n$4611686018427387904\r\n", ErrReply},
		"Redis, then another's error":              {"+PONG\r\n*0\r\n-" + secretOfOthers + "\r\n", ErrRefused},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var heard atomic.Pointer[string]
			address := listen(t, func(connection net.Conn) {
				first := make([]byte, 4096)
				n, _ := connection.Read(first)
				text := string(first[:n])
				heard.Store(&text)
				_, _ = io.WriteString(connection, tt.says)
				_ = connection.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, connection)
			})
			client, err := Dial("redis://user:password@"+address, DialOptions{Untrusted: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			err = Explain(client.Check(t.Context()))
			if !errors.Is(err, tt.want) || strings.Contains(err.Error(), secretOfOthers) {
				t.Errorf("error = %v, want %v", err, tt.want)
			}
			if text := heard.Load(); text == nil || *text != "*1\r\n$4\r\nPING\r\n" {
				t.Errorf("the server has heard %q before it said anything", *text)
			}
		})
	}
}

// TestNoServerLeadsElsewhere has servers name addresses that may not be connected to, in each of the ways in which they
// can. The guard permits 127.0.0.1 alone; who connects to 127.0.0.2 has gone too far.
func TestNoServerLeadsElsewhere(t *testing.T) {
	var reached atomic.Int64
	inner, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	go func() {
		for {
			connection, err := inner.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			connection.Close()
		}
	}()
	forbidden := inner.Addr().String()
	host, port, err := net.SplitHostPort(forbidden)
	if err != nil {
		t.Fatal(err)
	}
	slots := func(host, port string) string {
		return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + bulk(host) + ":" + port + "\r\n"
	}
	here := func(address string) string {
		host, port, _ := net.SplitHostPort(address)
		return slots(host, port)
	}
	redirect := func(with string) func(at, command string) string {
		return func(at, command string) string {
			switch command {
			case "cluster slots":
				return here(at)
			case "command":
				return "*0\r\n"
			default:
				return with + forbidden + "\r\n"
			}
		}
	}

	tests := map[string]struct {
		// answer is what a server at an address says to a command; query is the URL's.
		answer func(address, command string) string
		query  string
		url    string
		// closed has the guard permit nothing that is private.
		closed bool
		want   error
	}{
		"the URL itself":                     {url: "redis://" + forbidden, want: ErrAddress},
		"a name that leads to one":           {url: "redis://localhost:" + port, closed: true, want: ErrAddress},
		"an address that is mapped":          {url: "redis://[::ffff:127.0.0.2]:" + port, want: ErrAddress},
		"the list of a cluster's nodes":      {query: "?addr=HERE", answer: func(string, string) string { return slots(host, port) }, want: ErrAddress},
		"a node that the URL names":          {query: "?addr=" + forbidden, answer: func(string, string) string { return slots(host, port) }, want: ErrAddress},
		"a slot that has moved":              {query: "?addr=HERE", answer: redirect("-MOVED 1 "), want: ErrRefused},
		"a slot that is asked for elsewhere": {query: "?addr=HERE", answer: redirect("-ASK 1 "), want: ErrRefused},
		"Sentinels":                          {query: "?master_name=shop", answer: func(string, string) string { return "*2\r\n" + bulk(host, port) }, want: ErrAddress},
		"Sentinels that name half a primary": {query: "?master_name=shop", answer: func(string, string) string { return "*1\r\n" + bulk(host) }, want: ErrUnreachable},
		"Sentinels that name none":           {query: "?master_name=shop", answer: func(string, string) string { return "*0\r\n" }, want: ErrUnreachable},
		"Sentinels that know none":           {query: "?master_name=shop", answer: func(string, string) string { return "*-1\r\n" }, want: ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var address string
			ready := make(chan struct{})
			address = listen(t, func(connection net.Conn) {
				<-ready
				answers(func(command string) string { return tt.answer(address, command) })(connection)
			})
			close(ready)
			text := tt.url
			if text == "" {
				text = "redis://" + address + strings.ReplaceAll(tt.query, "HERE", address)
			}
			guard := egress.Guard{}
			if !tt.closed {
				guard.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
			}
			client, err := Dial(text, DialOptions{Untrusted: true, Control: guard.Control})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err = client.Stream("default", "shop").PausedPlatforms(ctx, []string{"meta"})
			if err = Explain(err); !errors.Is(err, tt.want) {
				t.Errorf("error = %v, want %v", err, tt.want)
			}
			if reached.Load() > 0 {
				t.Error("the forbidden address has been connected to")
			}
			if tt.answer == nil || errors.Is(tt.want, ErrUnreachable) {
				return
			}
			// Without a guard it is: the row shows something.
			open, err := Dial(text, DialOptions{Untrusted: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { open.Close() })
			if _, err := open.Stream("default", "shop").PausedPlatforms(ctx, []string{"meta"}); err == nil || reached.Swap(0) == 0 {
				t.Errorf("the server does not lead there, error %v", err)
			}
		})
	}
}

// TestLooksAtNonsenseLeaveNothingBehind looks at servers again and again, each time with a client of its own as the
// operator does, and counts what is left.
func TestLooksAtNonsenseLeaveNothingBehind(t *testing.T) {
	wait := t.Context().Done()
	drip := func(connection net.Conn) {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			if _, err := io.WriteString(connection, "+"); err != nil {
				return
			}
			select {
			case <-ticker.C:
			case <-wait:
				return
			}
		}
	}
	endless := func(connection net.Conn) {
		junk := strings.Repeat("+OK\r\n", 4096)
		for {
			if _, err := io.WriteString(connection, junk); err != nil {
				return
			}
		}
	}
	var names atomic.Int64
	tests := map[string]struct {
		serve func(net.Conn)
		query string
	}{
		"a byte now and then":  {serve: drip},
		"bytes without an end": {serve: endless},
		"a cursor without an end": {serve: answers(func(command string) string {
			if strings.HasPrefix(command, "scan") {
				return "*2\r\n$1\r\n1\r\n*0\r\n"
			}
			return "$0\r\n\r\n"
		})},
		"other nodes each time": {query: "?addr=127.0.0.1:1", serve: answers(func(string) string {
			return fmt.Sprintf("-MOVED 1 127.0.%d.%d:1\r\n", names.Add(1)/250%250, names.Load()%250)
		})},
		"Sentinels of many words": {query: "?master_name=shop", serve: answers(func(string) string {
			return "*1000\r\n" + strings.Repeat("$1\r\nx\r\n", 1000)
		})},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			address := listen(t, tt.serve)
			once := func() {
				client, err := Dial("redis://user:password@"+address+tt.query, DialOptions{Untrusted: true})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if err := errors.Join(client.Check(ctx), client.Load(ctx), client.Erase(ctx, "default", "shop")); err == nil {
					t.Error("nothing is wrong")
				}
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			}
			held := func() (goroutines int, heap uint64) {
				runtime.GC()
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				return runtime.NumGoroutine(), memory.HeapAlloc
			}
			once()
			goroutines, heap := held()
			for range 10 {
				once()
			}
			// A greeting that is waited for ends within its time.
			eventually(t, "what is left is as before", func() bool {
				now, size := held()
				return now <= goroutines+5 && size < heap+8<<20
			})
		})
	}
}
