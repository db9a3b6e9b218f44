package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/stream"
)

// cutWire is a way to a Redis that breaks after so many commands have gone over it.
type cutWire struct {
	listener net.Listener
	server   *url.URL
	left     atomic.Int64
	// cut is closed when it has broken.
	cut  chan struct{}
	once sync.Once

	mu          sync.Mutex
	connections []net.Conn
}

func newCutWire(t *testing.T, address string, commands int) *cutWire {
	t.Helper()
	server, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	w := &cutWire{listener: listener, server: server, cut: make(chan struct{})}
	w.left.Store(int64(commands))
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			w.carry(client)
		}
	}()
	t.Cleanup(w.end)
	return w
}

// carry joins a client's connection with one to the server. What a client writes at once is a command, or a few that belong
// together; all of it is done or nothing.
func (w *cutWire) carry(client net.Conn) {
	server, err := net.Dial("unix", w.server.Path)
	if err != nil {
		client.Close()
		return
	}
	w.mu.Lock()
	w.connections = append(w.connections, client, server)
	w.mu.Unlock()
	select {
	case <-w.cut: // meanwhile
		client.Close()
		server.Close()
		return
	default:
	}
	pass := func(to, from net.Conn, counted bool) {
		buffer := make([]byte, 1<<20)
		for {
			n, err := from.Read(buffer)
			if counted && n > 0 && w.left.Add(-1) < 0 {
				w.end()
				return
			}
			if n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go pass(server, client, true)
	go pass(client, server, false)
}

// end breaks it for good.
func (w *cutWire) end() {
	w.once.Do(func() {
		close(w.cut)
		w.listener.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range w.connections {
			c.Close()
		}
	})
}

// eraseUntilCut runs an eraser whose process is killed after so many commands to Redis, and says whether it was.
func (h *harness) eraseUntilCut(t *testing.T, commands int, done func() bool) bool {
	t.Helper()
	return h.eraseUntilCutBy(t, commands, func(*cutWire) {}, done)
}

// eraseUntilCutBy is eraseUntilCut with somebody who may cut the wire.
func (h *harness) eraseUntilCutBy(t *testing.T, commands int, who func(*cutWire), done func() bool) bool {
	t.Helper()
	wire := newCutWire(t, h.url, commands)
	who(wire)
	client, err := stream.Dial("unix://"+wire.listener.Addr().String(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	e := New(Options{
		Stream: client.Stream("default", "shop"), Property: h.property, Credentials: h.credentialsOf, Consumer: "victim", Metrics: h.metrics,
		Logger: slog.New(slog.NewTextHandler(h.log, nil)), Now: h.wall, Ledger: h.ledger,
	})
	e.timing = quickTiming()
	e.timing.erase, e.timing.eraseGrace, e.timing.erasePatience = time.Millisecond, time.Millisecond, 20*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.eraser().run(ctx)
	}()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-wire.cut:
			cancel()
			<-ended
			return true
		case <-ticker.C:
			if done() {
				cancel()
				<-ended
				return false
			}
		}
	}
}

// TestAnEraserThatIsKilledFinishes kills it fifty times, each after some number of commands, while events come in. What is
// counted in the end is what was there.
func TestAnEraserThatIsKilledFinishes(t *testing.T) {
	const kills, subjects, each = 50, 120, 3
	hook := newReceiver(t, nil)
	h := newHarness(t, hook.platform("crm"))
	h.keepLedger()
	a := h.joiner()
	wanted := map[stream.Position]record{}
	var rest []stream.Position
	var ids []string
	for i := range each {
		for n := range subjects {
			gone := person{client: fmt.Sprint("gone.", n), email: fmt.Sprint("gone-", n, "@example.com")}
			stays := person{client: fmt.Sprint("stays.", n)}
			h.visits(a, gone.event(fmt.Sprint("gone-", n, "-", i)))
			rest = append(rest, h.visits(a, stays.event(""))...)
		}
	}
	delivering := h.start("one", func(e *Engine) { e.options.Ledger = nil })
	h.await("deliveries", func() string { return cmp.Diff(2*subjects*each, len(h.records("crm"))) })
	delivering.stop()
	for _, position := range rest {
		wanted[position] = h.records("crm")[position]
	}
	hidden := func() bool {
		for _, id := range ids {
			if state, err := h.stream.Erasure(t.Context(), id); err != nil || state.Hidden.IsZero() {
				return false
			}
		}
		return true
	}
	request := func() {
		n := len(ids)
		ids = append(ids, h.requestErasure(stream.ErasureRequest{
			Identifiers: person{email: fmt.Sprint("gone-", n, "@example.com")}.identifiers(), Linked: n%2 == 0, Suppress: n%3 == 0,
		}))
	}
	for killed := 0; killed < kills; {
		if hidden() && len(ids) < subjects {
			request()
		}
		if h.eraseUntilCut(t, 1+rand.IntN(40), hidden) {
			killed++
		}
		rest = append(rest, h.visits(a, person{client: "late.1"}.event(""))...)
	}
	for len(ids) < subjects {
		request()
	}
	h.eraseUntilCut(t, 1_000_000, hidden)

	if diff := cmp.Diff(rest, h.positions()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wanted, h.records("crm")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	for _, state := range h.awaitHidden(ids...) {
		if state.Events != each || state.Records != each || !slices.Equal(state.Platforms, []string{"crm"}) {
			t.Errorf("%+v, want %d events and records", state, each)
		}
	}
	if n := len(h.announced()); n != subjects*each {
		t.Errorf("%d events are announced, want %d", n, subjects*each)
	}
	for _, key := range h.redis().Keys(t.Context(), "*join:*").Val() {
		for field := range h.redis().HGetAll(t.Context(), key).Val() {
			t.Errorf("%x is joined still", field)
		}
	}
}
