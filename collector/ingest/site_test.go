package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// shopKey is the API key of every test's property.
const shopKey = "wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI"

// noon is when every test takes place.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// property is a property without a rate limit, with one alias.
func property(name string) config.Property {
	return config.Property{
		Namespace: "default", Name: name, Currency: "EUR", TimeZone: "UTC",
		EventAliases:             map[string]string{"page_view": "pageview"},
		DeduplicationWindowHours: 168,
		Retention:                config.Retention{Days: 62, MaxEvents: 10_000_000},
		Limits:                   config.Limits{MaxBodyBytes: 64 << 10},
		Platforms: []platforms.Platform{
			{Name: "console", Type: platforms.TypeLog},
			{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example.com/hook"}}},
		},
	}
}

// keysOf is a list of one API key.
func keysOf(key string) []auth.Credential {
	return []auth.Credential{{Name: "server", Hash: auth.HashOf(key)}}
}

// site is a collector under test, as the role wires it.
type site struct {
	*httptest.Server
	handler  *ingest.Handler
	registry *prometheus.Registry
	log      *safeBuffer
}

// newSite starts a collector that serves the tenants, at noon, with delivery ids that count from 1.
func newSite(t testing.TB, tenants ...ingest.Tenant) *site {
	t.Helper()
	return newSiteWith(t, ingest.Options{}, tenants...)
}

// newSiteWith is newSite with options of its own beside those that every test needs.
func newSiteWith(t testing.TB, o ingest.Options, tenants ...ingest.Tenant) *site {
	t.Helper()
	s := &site{registry: prometheus.NewRegistry(), log: new(safeBuffer)}
	var ids counter
	o.Now, o.Registerer, o.NewID = func() time.Time { return noon }, s.registry, ids.next
	s.handler = ingest.New(o)
	s.handler.Serve(tenants)
	router := server.NewRouter(server.NewObserver(slog.New(slog.NewJSONHandler(s.log, nil)), s.registry))
	s.handler.Routes(router)
	s.Server = httptest.NewServer(router)
	t.Cleanup(s.Close)
	return s
}

// counter reads a counter of the registry's: the sums by the values of these labels, with spaces between.
func (s *site) counter(t *testing.T, name string, by ...string) map[string]float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			values := make([]string, len(by))
			for i, label := range by {
				values[i] = labels[label]
			}
			found[strings.Join(values, " ")] += metric.GetCounter().GetValue()
		}
	}
	return found
}

// counter makes the UUIDs …0001, …0002, and so on.
type counter struct {
	mu   sync.Mutex
	last uint32
}

func (c *counter) next() uuid.UUID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return uuid.UUID{6: 0x70, 8: 0x80, 12: byte(c.last >> 24), 13: byte(c.last >> 16), 14: byte(c.last >> 8), 15: byte(c.last)}
}

// safeBuffer is a log that may be written and read at once.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// memory is an appender that keeps what it is given.
type memory struct {
	mu        sync.Mutex
	additions []stream.Addition
	seen      map[string]bool
	fail      error
}

func (m *memory) Append(_ context.Context, additions []stream.Addition) ([]stream.Added, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	added := make([]stream.Added, len(additions))
	for i, a := range additions {
		added[i] = stream.Added{EventID: a.EventID, Duplicate: m.seen[a.EventID]}
		if !m.seen[a.EventID] {
			m.seen[a.EventID] = true
			m.additions = append(m.additions, a)
		}
	}
	return added, nil
}

// stored returns the events that were kept.
func (m *memory) stored(t testing.TB) []event.Event {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var events []event.Event
	for _, a := range m.additions {
		// What is sealed before it is stored is fields of the entry.
		e, err := wire.Decode(slices.Concat(a.Entry, a.Sealed[wire.Device], a.Sealed[wire.Identity]))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// inMemory is a tenant without a Redis.
func inMemory() (ingest.Tenant, *memory) {
	kept := new(memory)
	return ingest.Tenant{Property: property("shop"), Keys: keysOf(shopKey), Appender: kept}, kept
}

// dial prepares a client for a Redis that is there, with the library loaded.
func dial(t testing.TB, address string) *stream.Client {
	t.Helper()
	client, err := stream.Dial(address, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

func newRedis(t testing.TB) *stream.Client { return dial(t, redistest.URL(t)) }

// inRedis is a tenant of the given name with a stream of its own.
func inRedis(t testing.TB, client *stream.Client, p config.Property) (ingest.Tenant, *stream.Stream) {
	t.Helper()
	s := client.Stream(p.Namespace, p.Name)
	appender := stream.NewAppender(s, stream.AppenderOptions{Window: p.DeduplicationWindow(), JoinedFor: p.RetentionAge(), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := appender.Close(context.Background()); err != nil && !errors.Is(err, stream.ErrUnavailable) {
			t.Error(err)
		}
	})
	return ingest.Tenant{Property: p, Keys: keysOf(shopKey), Appender: appender, Limiter: s}, s
}

// request is one call of the collect API.
type request struct {
	// method is POST where it is "", path /collect/{shopKey} with suffix behind it.
	method, suffix, path string
	// contentType is application/json where it is "", and "-" for none.
	contentType string
	header      map[string]string
	body        []byte
	// chunked sends the body without its length.
	chunked bool
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *site) send(t testing.TB, r request) answer {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.path == "" {
		r.path = "/collect/" + shopKey
	}
	var body io.Reader = bytes.NewReader(r.body)
	if r.chunked {
		body = io.MultiReader(body) // whose length net/http cannot see
	}
	sent, err := http.NewRequestWithContext(t.Context(), r.method, s.URL+r.path+r.suffix, body)
	if err != nil {
		t.Fatal(err)
	}
	switch r.contentType {
	case "":
		sent.Header.Set("Content-Type", "application/json")
	case "-":
	default:
		sent.Header.Set("Content-Type", r.contentType)
	}
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	response, err := s.Client().Do(sent)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

func gzipped(t testing.TB, text []byte) []byte {
	t.Helper()
	var into bytes.Buffer
	writer := gzip.NewWriter(&into)
	if _, err := writer.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

// zstandard compresses as a stream of unknown length does, with a window of up to 8 MiB.
func zstandard(t testing.TB, text []byte) []byte {
	t.Helper()
	var into bytes.Buffer
	writer, err := zstd.NewWriter(&into, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := writer.Flush(); err != nil { // the frame's head is written before the length is known
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}
