// Package server is the HTTP side that all roles share: a server with limits that drains gracefully, health and
// metrics on a listener of their own, the middleware around every route, and the forms of answers.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// The limits of a connection. They bound what a slow or hostile client can hold; a route that has reason to
// take longer extends its own deadlines with [http.ResponseController].
const (
	readTimeout    = 15 * time.Second
	writeTimeout   = 60 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	// headerSlop is how much longer net/http lets a header be than it is told.
	headerSlop = 4 << 10
)

// DefaultMaxConnections is how many connections are open at a time where [Options] say nothing.
const DefaultMaxConnections = 8192

// DefaultDrainTimeout is how long requests in flight may take to finish where [Options] say nothing.
const DefaultDrainTimeout = 25 * time.Second

// Options say what [Run] serves and how it ends.
type Options struct {
	// Listener is served and closed.
	Listener net.Listener
	Handler  http.Handler
	Logger   *slog.Logger
	// Health turns unready as soon as the drain begins; nil where readiness belongs to another server.
	Health *Health
	// DrainDelay is for how long connections are still accepted after readiness has turned false, so that load
	// balancers notice first. Answers of that time ask the client to close its connection.
	DrainDelay time.Duration
	// DrainTimeout is how long requests in flight may then take; 0 means [DefaultDrainTimeout].
	DrainTimeout time.Duration
	// MaxConnections is how many connections may be open; 0 means [DefaultMaxConnections]. For a further one the oldest is
	// closed on which nobody has authenticated, or else the one that has been idle for longest; where there is neither
	// it waits.
	MaxConnections int
	// MaxUnauthenticated is how many of an address's connections may be open on which nobody has authenticated; for a
	// further one the oldest of them is closed. 0 means a quarter of MaxConnections.
	MaxUnauthenticated int
	// MaxHeaderBytes is how long a request's line and header may be together; 0 means 16 KiB.
	MaxHeaderBytes int
	// ReadTimeout is how long a request may take to arrive, its body included; 0 means 15 s.
	ReadTimeout time.Duration
}

// Run serves until ctx ends, then drains: readiness turns false, after DrainDelay the listener closes, and
// requests in flight finish. They keep a living context all the while. Run fails when the listener does, or
// when requests had to be cut off at DrainTimeout.
func Run(ctx context.Context, o Options) error {
	var draining atomic.Bool
	// One time for the header and for all of a request is one deadline to set.
	arrival := positive(o.ReadTimeout, readTimeout)
	most := positive(o.MaxConnections, DefaultMaxConnections)
	limited := limitConnections(o.Listener, most, positive(o.MaxUnauthenticated, max(1, most/4)))
	server := &http.Server{
		Handler:           limited.busy(closeWhen(&draining, o.Handler)),
		ConnState:         limited.changed,
		ConnContext:       limited.within,
		ReadHeaderTimeout: arrival,
		ReadTimeout:       arrival,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    positive(o.MaxHeaderBytes, maxHeaderBytes) - headerSlop,
		ErrorLog:          log.New(errorLog{o.Logger, newSampler()}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(limited) }()

	select {
	case err := <-ended:
		return fmt.Errorf("serving %s: %w", o.Listener.Addr(), err)
	case <-ctx.Done():
	}
	draining.Store(true)
	if o.Health != nil {
		o.Health.Drain()
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serving %s: %w", o.Listener.Addr(), err)
	case <-time.After(o.DrainDelay):
	}

	timeout := positive(o.DrainTimeout, DefaultDrainTimeout)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		return errors.Join(fmt.Errorf("draining %s: requests still in flight after %s were cut off", o.Listener.Addr(), timeout), server.Close())
	}
	return nil
}

func positive[N int | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

// closeWhen asks clients to close their connections once flag is set.
func closeWhen(flag *atomic.Bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if flag.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// errorLog takes the lines that net/http writes of its own accord. They may name a client's address or repeat
// what it sent, so only the part that net/http itself worded is logged.
type errorLog struct {
	logger  *slog.Logger
	sampler *sampler
}

// wholeLines begin lines of net/http that hold nothing of a request.
var wholeLines = []string{"http: Accept error", "http: superfluous response.WriteHeader"}

// Write logs one line.
func (e errorLog) Write(text []byte) (int, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	message := worded(string(line))
	if suppressed, logged := e.sampler.take(message, time.Now()); logged {
		e.logger.Warn("http server", "error", message, "suppressed", suppressed)
	}
	return len(text), nil
}

// worded cuts a line where something of the client's may begin: an address, a number or a quoted text.
func worded(line string) string {
	for _, prefix := range wholeLines {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	if at := strings.IndexAny(line, "0123456789[\"'`<"); at >= 0 {
		line = line[:at]
	}
	return strings.TrimRight(line, " :")
}
