package stream

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// week is the default window.
const week = 7 * 24 * time.Hour

// dial returns a client with the library loaded.
func dial(t testing.TB, address string) *Client {
	t.Helper()
	client, err := Dial(address, DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := client.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return client
}

// newStream returns the stream of a property in a server of the test's own.
func newStream(t testing.TB) *Stream {
	t.Helper()
	return dial(t, redistest.URL(t)).Stream("default", "shop")
}

func newAppender(t testing.TB, s *Stream, options AppenderOptions) *Appender {
	t.Helper()
	if options.Window == 0 {
		options.Window = week
	}
	if options.JoinedFor == 0 {
		options.JoinedFor = 8 * week
	}
	a := NewAppender(s, options)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := a.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return a
}

// addition makes an addition with the ids; an empty event id is made up.
func addition(eventID, orderID string) Addition {
	if eventID == "" {
		eventID = uuid.NewString()
	}
	return Addition{Entry: []byte("entry of " + eventID), EventID: eventID, OrderID: orderID}
}

// public is an addition whose id anybody may have chosen.
func public(eventID string) Addition {
	a := addition(eventID, "")
	a.Public = true
	return a
}

func mustAppend(t testing.TB, a *Appender, additions ...Addition) []Added {
	t.Helper()
	added, err := a.Append(t.Context(), additions)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// fill appends n events and returns their positions.
func fill(t testing.TB, s *Stream, n int) []Position {
	t.Helper()
	a := newAppender(t, s, AppenderOptions{})
	for i := range n {
		mustAppend(t, a, addition(fmt.Sprint("filled-", i), ""))
	}
	var positions []Position
	for _, entry := range allEvents(t, s) {
		positions = append(positions, entry.Position)
	}
	return positions
}

func allEvents(t testing.TB, s *Stream) []Entry {
	t.Helper()
	var all []Entry
	after := Position(0)
	for {
		entries, err := s.ReadEvents(t.Context(), after, 1000, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			return all
		}
		all = append(all, entries...)
		after = entries[len(entries)-1].Position
	}
}

func allRecords(t testing.TB, s *Stream) []Record {
	t.Helper()
	var all []Record
	for after := Position(0); ; {
		records, err := s.ReadRecords(t.Context(), after, 1000, 0)
		if err != nil {
			t.Fatal(err)
		}
		if records.Last == after {
			return all
		}
		all, after = append(all, records.Records...), records.Last
	}
}

// eventually polls until the condition holds, and fails the test where it does not within 20 seconds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(20 * time.Second); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// clock is a server's clock that stands still where a test sets it. Nobody looks at it, so every step of it is believed.
type clock struct {
	server *redistest.Clock
	at     time.Time
}

func newClock(t testing.TB, address string, start time.Time) *clock {
	t.Helper()
	c := &clock{server: redistest.TurnClock(t, address)}
	c.set(start)
	return c
}

func (c *clock) set(at time.Time) {
	c.at = at
	c.server.Stop(at)
}

func (c *clock) advance(d time.Duration) { c.set(c.at.Add(d)) }

// newStreamAt is newStream with a clock that is set.
func newStreamAt(t testing.TB, start time.Time) (*Stream, *clock) {
	t.Helper()
	address := redistest.URL(t)
	s := dial(t, address).Stream("default", "shop")
	return s, newClock(t, address, start)
}

// proxy stands between a client and Redis and can swallow answers.
type proxy struct {
	address  string
	upstream *url.URL
	// swallow is how many answers to drop, and their connections with them.
	swallow atomic.Int64
	// swallowed counts those that were.
	swallowed atomic.Int64
	// silent makes answers vanish while connections stay.
	silent atomic.Bool
	group  sync.WaitGroup
}

// newProxy starts a proxy before the server at address.
func newProxy(t testing.TB, address string) *proxy {
	t.Helper()
	upstream, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := url.URL{Scheme: "redis", User: upstream.User, Host: listener.Addr().String()}
	p := &proxy{address: front.String(), upstream: upstream}
	p.group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.group.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.group.Wait()
	})
	return p
}

func (p *proxy) serve(front net.Conn) {
	defer front.Close()
	network, address := "tcp", p.upstream.Host
	if p.upstream.Scheme == "unix" {
		network, address = "unix", p.upstream.Path
	}
	back, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer back.Close()
	go func() {
		// When the client goes, so does the connection behind.
		_, _ = io.Copy(back, front)
		back.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := back.Read(buffer)
		if err != nil {
			return
		}
		if p.swallow.Load() > 0 {
			p.swallow.Add(-1)
			p.swallowed.Add(1)
			return
		}
		if p.silent.Load() {
			p.swallowed.Add(1)
			continue
		}
		if _, err := front.Write(buffer[:n]); err != nil {
			return
		}
	}
}
