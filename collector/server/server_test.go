package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/server"
)

// listen opens a free loopback port.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := server.Listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// running is a server under test.
type running struct {
	url   string
	stop  context.CancelFunc
	ended chan error
}

func run(t *testing.T, o server.Options) *running {
	t.Helper()
	if o.Listener == nil {
		o.Listener = listen(t)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{url: "http://" + o.Listener.Addr().String(), stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- server.Run(ctx, o) }()
	t.Cleanup(stop)
	return r
}

// wait returns what Run returned.
func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("the server has not ended after 10 s")
		return nil
	}
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// gate is a handler whose requests announce themselves and wait to be let through.
type gate struct{ entered, leave chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 1), make(chan struct{})} }

func (g gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.entered <- struct{}{}
	select {
	case <-g.leave:
		server.Message(w, http.StatusOK, "served")
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

func TestDrainLetsRequestsInFlightFinish(t *testing.T) {
	gate := newGate()
	r := run(t, server.Options{Handler: gate})
	answers := make(chan string, 1)
	go func() {
		_, body := get(t, r.url)
		answers <- body
	}()
	<-gate.entered
	r.stop()
	// The listener closes although a request is still under way, and that request's context stays alive.
	waitUntil(t, "the listener closes", func() bool {
		connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err == nil {
			connection.Close()
		}
		return err != nil
	})
	close(gate.leave)
	if got, want := <-answers, `{"message":"served"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := r.wait(t); err != nil {
		t.Errorf("got %v, want a clean end", err)
	}
}

func TestDrainCutsOffWhatDoesNotFinishInTime(t *testing.T) {
	gate := newGate()
	r := run(t, server.Options{Handler: gate, DrainTimeout: 20 * time.Millisecond})
	failed := make(chan error, 1)
	go func() {
		response, err := http.Get(r.url)
		if err == nil {
			response.Body.Close()
		}
		failed <- err
	}()
	<-gate.entered
	r.stop()
	if err := r.wait(t); err == nil || !strings.Contains(err.Error(), "requests still in flight after 20ms were cut off") {
		t.Errorf("got %v, want that requests were cut off", err)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
}

func TestReadinessEndsBeforeTheListenerCloses(t *testing.T) {
	health := server.NewHealth()
	main := run(t, server.Options{
		Health: health, DrainDelay: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { server.Message(w, http.StatusOK, "served") }),
	})
	operations := run(t, server.Options{Handler: server.OperationsHandler(health, emptyRegistry())})
	if response, _ := get(t, operations.url+"/readyz"); response.StatusCode != http.StatusOK {
		t.Fatalf("before the drain: got %d, want 200", response.StatusCode)
	}
	if response, _ := get(t, main.url); response.Close {
		t.Error("before the drain the client is asked to close its connection")
	}
	main.stop()
	waitUntil(t, "readiness ends", func() bool {
		response, body := get(t, operations.url+"/readyz")
		return response.StatusCode == http.StatusServiceUnavailable && body == `{"status":"draining"}`
	})
	response, body := get(t, main.url)
	if response.StatusCode != http.StatusOK || body != `{"message":"served"}` {
		t.Errorf("while draining: got %d %s, want 200: load balancers have not noticed yet", response.StatusCode, body)
	}
	if !response.Close {
		t.Error("while draining the client is not asked to close its connection")
	}
	if response, _ := get(t, operations.url+"/livez"); response.StatusCode != http.StatusOK {
		t.Errorf("liveness while draining: got %d, want 200", response.StatusCode)
	}
	if err := main.wait(t); err != nil {
		t.Errorf("got %v, want a clean end", err)
	}
}

func TestRunFailsWhenItsListenerDoes(t *testing.T) {
	listener := listen(t)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	r := run(t, server.Options{Listener: listener, Handler: http.NotFoundHandler()})
	if err := r.wait(t); err == nil || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("got %v, want an error that names the address", err)
	}
}

// exchange sends a request as it stands and returns the first line of the answer.
func exchange(t *testing.T, r *running, request string) string {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	go func() { _, _ = io.WriteString(connection, request) }() // which may be cut off by the answer
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestARequestThatDoesNotArriveInTimeEnds(t *testing.T) {
	results := make(chan error, 1)
	r := run(t, server.Options{ReadTimeout: 50 * time.Millisecond, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		results <- err
	})})
	connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "POST / HTTP/1.1\r\nHost: weir\r\nContent-Length: 10\r\n\r\n12345"); err != nil {
		t.Fatal(err)
	}
	if err := <-results; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a deadline exceeded", err)
	}
}

func TestLinesOfNetHTTPAreLoggedWithoutWhatTheClientSent(t *testing.T) {
	var log bytes.Buffer
	r := run(t, server.Options{
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("jane@example.com") }),
	})
	connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: weir\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(connection).ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want a closed connection", err)
	}
	r.stop()
	if err := r.wait(t); err != nil { // and nobody writes to the log any more
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "http: panic serving") || strings.Contains(got, "jane") || strings.Contains(got, "127.0.0.1") {
		t.Errorf("got %s", got)
	}
}

func TestAPortInUseNamesItsHolderAndAnotherAddress(t *testing.T) {
	taken := listen(t)
	defer taken.Close()
	address := taken.Addr().String()
	listener, err := server.Listen(t.Context(), address, "--listen")
	if err == nil {
		listener.Close()
		t.Fatal("two listeners on one port")
	}
	for _, want := range []string{
		address + " is in use by process " + strconv.Itoa(os.Getpid()) + " (server.test)",
		"; stop it or pass another address: --listen 127.0.0.1:",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to hold %q", err, want)
		}
	}
	// What is advised works.
	words := strings.Fields(err.Error())
	advised, err := server.Listen(t.Context(), words[len(words)-1], "--listen")
	if err != nil {
		t.Fatal(err)
	}
	if err := advised.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnAddressThatCannotBeListenedOnNamesTheFlag(t *testing.T) {
	for name, address := range map[string]string{
		"an address of another machine": "192.0.2.1:8080",
		"no address":                    "8080",
		"a port beyond the last":        "127.0.0.1:65536",
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := server.Listen(t.Context(), address, "--metrics-listen")
			if err == nil {
				listener.Close()
				t.Fatal("it could be listened on")
			}
			if !strings.Contains(err.Error(), "cannot listen on "+address) || !strings.Contains(err.Error(), "--metrics-listen") {
				t.Errorf("got %q, want the address and the flag", err)
			}
		})
	}
}

// waitUntil polls until something holds.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for tick := time.NewTicker(5 * time.Millisecond); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s: not yet: %s", what)
		}
	}
}
