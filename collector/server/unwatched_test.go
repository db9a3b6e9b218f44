package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/weir-dev/weir/collector/server"
)

// watches says whether net/http watches a connection for a client that leaves.
func watches() bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "backgroundRead(")
}

func TestAClientThatLeavesIsWatchedForWhereThatMatters(t *testing.T) {
	for name, unwatched := range map[string]bool{"watched": false, "unwatched": true} {
		t.Run(name, func(t *testing.T) {
			gate := newGate()
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					t.Error(err)
				}
				gate.ServeHTTP(w, r)
			})
			r := run(t, server.Options{Handler: handler, Unwatched: unwatched})
			connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			// Three on one connection, two of them at once.
			const request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
			answers := bufio.NewReader(connection)
			for _, text := range []string{request, request + request} {
				if _, err := io.WriteString(connection, text); err != nil {
					t.Fatal(err)
				}
				for range strings.Count(text, "POST") {
					<-gate.entered
					if text == request {
						waitUntil(t, "the connection is "+name, func() bool { return watches() != unwatched })
					}
					gate.leave <- struct{}{}
					answer, err := http.ReadResponse(answers, nil)
					if err != nil {
						t.Fatal(err)
					}
					if body, err := io.ReadAll(answer.Body); err != nil || string(body) != `{"message":"served"}` {
						t.Errorf("got %q, %v", body, err)
					}
				}
			}
		})
	}
}

// pipes is a listener of one connection, of which a write returns when the other end has read all of it.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case connection := <-p.accepted:
		return connection, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestAnUnwatchedConnectionIsReadToTheLastByte(t *testing.T) {
	// net/http reads into a buffer of 4096 bytes, in which there may be room for one byte more.
	for _, first := range []int{4094, 4095, 4096, 4097} {
		listener := &pipes{accepted: make(chan net.Conn, 1), closed: make(chan struct{})}
		got := make(chan string, 1)
		r := run(t, server.Options{Listener: listener, Unwatched: true, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got <- r.URL.Path
		})})
		client, served := net.Pipe()
		listener.accepted <- served
		want := "/" + strings.Repeat("a", 5000)
		text := "GET " + want + " HTTP/1.1\r\nHost: x\r\n\r\n"
		for _, piece := range []string{text[:first], text[first:]} {
			if _, err := io.WriteString(client, piece); err != nil {
				t.Fatalf("in pieces of %d bytes: %v", first, err)
			}
		}
		if got := <-got; got != want {
			t.Errorf("in pieces of %d bytes: got %d characters, want %d", first, len(got), len(want))
		}
		client.Close()
		r.stop()
		if err := r.wait(t); err != nil {
			t.Error(err)
		}
	}
}
