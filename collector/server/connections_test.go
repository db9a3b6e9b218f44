package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/server"
)

// doors is a handler that lets in who knows the key.
func doors(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/key":
		server.Authenticated(r)
		server.Message(w, http.StatusOK, "served")
	case "/public":
		server.Message(w, http.StatusOK, "public")
	default:
		server.Refuse(w)
		server.Message(w, http.StatusUnauthorized, "Invalid API key.")
	}
}

// line is a client's connection.
type line struct {
	net.Conn
	*bufio.Reader
}

// Read reads what the line's reader has taken already.
func (l line) Read(p []byte) (int, error) { return l.Reader.Read(p) }

// connect opens a connection from an address of this machine. It fails the test unless it gets one.
func (r *running) connect(t *testing.T, from string) line {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 20 * time.Second}
	connection, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return line{connection, bufio.NewReader(connection)}
}

// ask sends a request for a path and returns the answer's status, 0 where the connection was closed instead.
func (l line) ask(t *testing.T, path string) int {
	t.Helper()
	if _, err := fmt.Fprintf(l.Conn, "GET %s HTTP/1.1\r\nHost: weir\r\n\r\n", path); err != nil {
		return 0
	}
	return l.status(t)
}

func (l line) status(t *testing.T) int {
	t.Helper()
	if err := l.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(l.Reader, nil)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("no answer within 20 s")
	}
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// isClosed waits until the server has closed a connection.
func (l line) isClosed(t *testing.T) {
	t.Helper()
	if err := l.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a closed connection", err)
	}
}

func TestThousandsWithoutAKeyLockNobodyOut(t *testing.T) {
	const limit, attackers = 500, 2500
	for name, attack := range map[string]func(t *testing.T, l line){
		"clients with a wrong key": func(t *testing.T, l line) {
			if got := l.ask(t, "/wrong"); got != http.StatusUnauthorized && got != 0 {
				t.Errorf("got %d, want 401", got)
			}
			l.isClosed(t)
		},
		"clients that say nothing": func(*testing.T, line) {},
		"clients that send half a header": func(_ *testing.T, l line) {
			_, _ = io.WriteString(l.Conn, "GET /key HTTP/1.1\r\nHost: we") // may be closed by now
		},
		"clients that send half a body with a wrong key": func(_ *testing.T, l line) {
			_, _ = io.WriteString(l.Conn, "POST /wrong HTTP/1.1\r\nHost: weir\r\nContent-Length: 10000000\r\n\r\n12345")
		},
		"clients that ask for what needs no key and stay": func(_ *testing.T, l line) {
			_, _ = io.WriteString(l.Conn, "GET /public HTTP/1.1\r\nHost: weir\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, server.Options{Handler: http.HandlerFunc(doors), MaxConnections: limit, MaxUnauthenticated: limit})
			kept := r.connect(t, "127.0.0.1")
			if got := kept.ask(t, "/key"); got != http.StatusOK {
				t.Fatalf("before the attack: got %d, want 200", got)
			}
			for n := range attackers {
				attack(t, r.connect(t, "127.0.0.1"))
				if n%250 == 0 {
					if got := kept.ask(t, "/key"); got != http.StatusOK {
						t.Fatalf("beside %d of them, on a connection from before: got %d, want 200", n, got)
					}
					if got := r.connect(t, "127.0.0.1").ask(t, "/key"); got != http.StatusOK {
						t.Fatalf("beside %d of them, on a new connection: got %d, want 200", n, got)
					}
				}
			}
		})
	}
}

func TestAnUnauthenticatedConnectionIsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		options server.Options
		// open asks for paths on connections from addresses; "" only connects.
		open [][2]string
		// want are the numbers of those that are closed, the others go on.
		want []int
	}{
		"when it has shown a wrong key":                      {server.Options{}, [][2]string{{"127.0.0.1", "/wrong"}, {"127.0.0.1", "/key"}}, []int{0}},
		"when there is no room, the oldest first":            {server.Options{MaxConnections: 2, MaxUnauthenticated: 2}, [][2]string{{"127.0.0.1", ""}, {"127.0.0.1", ""}, {"127.0.0.1", "/key"}}, []int{0}},
		"before that of anybody who has authenticated":       {server.Options{MaxConnections: 2, MaxUnauthenticated: 2}, [][2]string{{"127.0.0.1", "/key"}, {"127.0.0.1", "/public"}, {"127.0.0.1", "/key"}}, []int{1}},
		"when its address has too many":                      {server.Options{MaxUnauthenticated: 2}, [][2]string{{"127.0.0.2", ""}, {"127.0.0.1", ""}, {"127.0.0.1", "/public"}, {"127.0.0.1", ""}}, []int{1}},
		"those who have authenticated are not counted there": {server.Options{MaxUnauthenticated: 2}, [][2]string{{"127.0.0.1", "/key"}, {"127.0.0.1", "/key"}, {"127.0.0.1", "/key"}, {"127.0.0.1", "/key"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Handler = http.HandlerFunc(doors)
			r := run(t, test.options)
			var lines []line
			for n, one := range test.open {
				l := r.connect(t, one[0])
				lines = append(lines, l)
				if one[1] == "" {
					continue
				}
				if got := l.ask(t, one[1]); got == 0 {
					t.Fatalf("connection %d was closed before its answer", n)
				}
			}
			closed := map[int]bool{}
			for _, n := range test.want {
				closed[n] = true
				lines[n].isClosed(t)
			}
			for n, l := range lines {
				if closed[n] {
					continue
				}
				if got := l.ask(t, "/key"); got != http.StatusOK {
					t.Errorf("connection %d: got %d, want 200", n, got)
				}
			}
		})
	}
}

func TestConnectionsWaitWhereAllOthersAreBusy(t *testing.T) {
	gate := newGate()
	r := run(t, server.Options{MaxConnections: 1, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Authenticated(r)
		gate.ServeHTTP(w, r)
	})})
	first := r.connect(t, "127.0.0.1")
	if _, err := io.WriteString(first.Conn, "GET / HTTP/1.1\r\nHost: weir\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-gate.entered
	second := r.connect(t, "127.0.0.1")
	if _, err := io.WriteString(second.Conn, "GET / HTTP/1.1\r\nHost: weir\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gate.entered:
		t.Fatal("a second connection was served beside the one that there is room for")
	case <-time.After(100 * time.Millisecond):
	}
	close(gate.leave)
	for _, l := range []line{first, second} {
		if got := l.status(t); got != http.StatusOK {
			t.Errorf("got %d, want 200", got)
		}
	}
}

func TestAServerEndsThoughAConnectionWaitsForRoom(t *testing.T) {
	gate := newGate()
	r := run(t, server.Options{MaxConnections: 1, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Authenticated(r)
		gate.ServeHTTP(w, r)
	})})
	first := r.connect(t, "127.0.0.1")
	if _, err := io.WriteString(first.Conn, "GET / HTTP/1.1\r\nHost: weir\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-gate.entered
	second := r.connect(t, "127.0.0.1")
	r.stop()
	second.isClosed(t)
	close(gate.leave)
	if err := r.wait(t); err != nil {
		t.Errorf("got %v, want a clean end", err)
	}
}
