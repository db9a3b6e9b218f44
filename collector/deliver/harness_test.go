package deliver

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// Secrets and persons of all tests: none of these may ever show in a log or a record.
const (
	accessToken   = "access-token-for-tests"
	signingSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

var secrets = []string{accessToken, signingSecret, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "ada@example.com", "15550100999", "Lovelace"}

// harness is a property with a real Redis of its own.
type harness struct {
	t        testing.TB
	url      string
	stream   *stream.Stream
	appender *stream.Appender
	property config.Property
	metrics  *Metrics
	registry *prometheus.Registry
	log      *logBuffer
	// ledger is the engines' one; nil for none.
	ledger Ledger

	mu          sync.Mutex
	credentials map[string]map[string]string
	clock       time.Duration
	redisClock  *redistest.Clock
	engines     []*Engine
	// wrong is how far the deliverer's own clock is ahead of that.
	wrong time.Duration
}

func newHarness(t testing.TB, to ...platforms.Platform) *harness {
	t.Helper()
	return newHarnessOn(t, redistest.URL(t), to...)
}

// newHarnessOn is newHarness with a Redis that the test itself started.
func newHarnessOn(t testing.TB, url string, to ...platforms.Platform) *harness {
	t.Helper()
	client, err := stream.Dial(url, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := &harness{
		t:          t,
		url:        url,
		redisClock: redistest.TurnClock(t, url),
		stream:     client.Stream("default", "shop"),
		property: config.Property{
			Namespace: "default", Name: "shop", Platforms: to, Egress: loopback,
			Retention: config.Retention{Days: 62, MaxEvents: 1_000_000},
		},
		registry:    prometheus.NewRegistry(),
		log:         &logBuffer{},
		credentials: map[string]map[string]string{},
	}
	for _, p := range to {
		h.credentials[p.Name] = map[string]string{"accessToken": accessToken, "signingSecret": signingSecret}
	}
	if h.metrics, err = NewMetrics(h.registry); err != nil {
		t.Fatal(err)
	}
	h.appender = stream.NewAppender(h.stream, stream.AppenderOptions{Window: time.Hour})
	t.Cleanup(func() {
		if err := h.appender.Close(context.Background()); err != nil {
			t.Error(err)
		}
		text := h.log.String()
		for _, secret := range secrets {
			if bytes.Contains([]byte(text), []byte(secret)) {
				t.Errorf("the log shows %q:\n%s", secret, text)
			}
		}
	})
	return h
}

// accept appends an envelope the way the collector does and returns its position.
func (h *harness) accept(body string) stream.Position {
	h.t.Helper()
	decoded := new(envelope.Envelope)
	if err := decoded.Decode([]byte(body)); err != nil {
		h.t.Fatal(err)
	}
	valid, errs := decoded.Validate(time.Now(), nil)
	if len(errs) > 0 {
		h.t.Fatal(errs)
	}
	id, err := uuid.NewV7()
	if err != nil {
		h.t.Fatal(err)
	}
	e := envelope.Pseudonymise(valid, envelope.Acceptance{
		DeliveryID: id, Variants: h.property.Variants(), AccountVariants: h.property.AccountVariants(), Platforms: h.property.PlatformNames(),
	})
	parts := wire.Split(&e, h.property.Retention.SealsIdentity())
	return h.append(stream.Addition{Entry: parts.Entry, Sealed: parts.Sealed, EventID: e.ID})
}

func (h *harness) append(addition stream.Addition) stream.Position {
	h.t.Helper()
	if _, err := h.appender.Append(h.t.Context(), []stream.Addition{addition}); err != nil {
		h.t.Fatal(err)
	}
	bounds, err := h.stream.Bounds(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return bounds.Last
}

func (h *harness) setCredential(platform, key, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.credentials[platform] = map[string]string{key: value}
}

func (h *harness) credentialsOf(platform string) (map[string]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys, ok := h.credentials[platform]
	if !ok {
		return nil, errors.New("its Secret is missing")
	}
	return maps.Clone(keys), nil
}

// now is the real clock, put forward by what advance was given. Redis's clock and the engines' monotonic one go on likewise.
func (h *harness) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.clock)
}

// wall is the deliverer's own clock.
func (h *harness) wall() time.Time {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Add(h.wrong)
}

// redis returns a connection of its own, for what the stream's client has no words for.
func (h *harness) redis() *redis.Client {
	h.t.Helper()
	options, err := redis.ParseURL(h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	client := redis.NewClient(options)
	h.t.Cleanup(func() { _ = client.Close() })
	return client
}

// advance puts all clocks forward, and no engine looks at one of them meanwhile.
func (h *harness) advance(d time.Duration) {
	h.mu.Lock()
	engines := slices.Clone(h.engines)
	h.mu.Unlock()
	for _, e := range engines {
		e.looking.Lock()
	}
	defer func() {
		for _, e := range engines {
			e.looking.Unlock()
		}
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock += d
	h.redisClock.Ahead(h.clock)
}

// running is an engine that has been started, with connections to Redis of its own.
type running struct {
	redis      *stream.Client
	stopTaking context.CancelFunc
	done       chan struct{}
}

// start runs an engine with intervals short enough for a test. adjust may change them.
func (h *harness) start(consumer string, adjust func(*Engine)) *running {
	h.t.Helper()
	client, err := stream.Dial(h.url, stream.DialOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	e := New(Options{
		Stream: client.Stream("default", "shop"), Property: h.property, Credentials: h.credentialsOf, Consumer: consumer, Metrics: h.metrics,
		Logger: slog.New(slog.NewTextHandler(h.log, nil)), Now: h.wall, DrainTimeout: 5 * time.Second, Ledger: h.ledger,
	})
	started := time.Now()
	e.monotonic = func() time.Duration { return h.now().Sub(started) }
	e.timing = quickTiming()
	if adjust != nil {
		adjust(e)
	}
	h.mu.Lock()
	h.engines = append(h.engines, e)
	h.mu.Unlock()
	taking, stopTaking := context.WithCancel(context.Background())
	r := &running{client, stopTaking, make(chan struct{})}
	go func() {
		defer close(r.done)
		if err := e.Run(taking); err != nil {
			h.t.Error(err)
		}
	}()
	h.t.Cleanup(func() {
		r.stop()
		_ = client.Close()
	})
	return r
}

// victim is an engine that can be killed.
type victim struct{ running *running }

// startVictim starts an engine that waits for nothing when it ends.
func (h *harness) startVictim(consumer string, adjust func(*Engine)) victim {
	h.t.Helper()
	return victim{h.start(consumer, func(e *Engine) {
		e.options.DrainTimeout, e.timing.settle = 0, 0
		if adjust != nil {
			adjust(e)
		}
	})}
}

// kill ends the engine without writing what became of what is under way: as after a kill of its process nothing of it
// reaches Redis any more. So its connections go before any part of it hears that it ends.
func (v victim) kill() {
	_ = v.running.redis.Close()
	v.running.stop()
}

// quickTiming has intervals short enough for a test.
func quickTiming() timing {
	quick := backoff{unit: 20 * time.Millisecond, cap: 100 * time.Millisecond, floor: 10 * time.Millisecond}
	return timing{
		backoff: quick, breaker: quick, request: 5 * time.Second, slow: 2 * time.Second, block: 50 * time.Millisecond,
		poll: 10 * time.Millisecond, idlePoll: 30 * time.Millisecond, lease: 2 * time.Second,
		pendingIdle: 2 * time.Second, reclaim: 50 * time.Millisecond, trim: 50 * time.Millisecond, replay: 20 * time.Millisecond,
		erase: 20 * time.Millisecond, eraseGrace: 50 * time.Millisecond, erasePatience: 500 * time.Millisecond,
		past: 30 * time.Millisecond, forward: 2 * time.Second, forwardPass: 3 * time.Second,
		redis: quick, reopen: 20 * time.Millisecond, lag: 10 * time.Millisecond,
		removal: 100 * time.Millisecond, removalPoll: 20 * time.Millisecond, settle: time.Second,
	}
}

// stop ends the engine as Run's context would.
func (r *running) stop() {
	r.stopTaking()
	<-r.done
}

// record is what the listing shows of a delivery.
type record struct {
	Status   string
	Attempts int
	Reason   string
}

// records returns, for a platform, every event's last record, and fails where an event has two final ones.
func (h *harness) records(platform string) map[stream.Position]record {
	h.t.Helper()
	last := map[stream.Position]record{}
	finals := map[stream.Position]int{}
	for _, r := range h.recordsOf(platform) {
		last[r.Event] = record{r.Status.String(), r.Attempts, r.Reason}
		if r.Status.Final() {
			finals[r.Event]++
		}
	}
	for position, n := range finals {
		if n > 1 {
			h.t.Errorf("event %s has %d final records on %s", position, n, platform)
		}
	}
	return last
}

// eventually waits until the platform's records are as wanted.
func (h *harness) eventually(platform string, want map[stream.Position]record) {
	h.t.Helper()
	h.await("records of "+platform, func() string { return cmp.Diff(want, h.records(platform), cmpopts.EquateEmpty()) })
}

// eventuallyLike is eventually for records whose attempts depend on timing.
func (h *harness) eventuallyLike(platform string, want map[stream.Position]record) {
	h.t.Helper()
	h.await("records of "+platform, func() string {
		return cmp.Diff(want, h.records(platform), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(record{}, "Attempts"))
	})
}

// await polls until difference returns "".
func (h *harness) await(what string, difference func() string) {
	h.t.Helper()
	h.awaitFor(15*time.Second, what, difference)
}

func (h *harness) awaitFor(most time.Duration, what string, difference func() string) {
	h.t.Helper()
	deadline := time.Now().Add(most)
	for {
		diff := difference()
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%s never came (-want +got):\n%s\nlog:\n%s", what, diff, h.log)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// metric returns the value of a counter or gauge with these label values, 0 where there is none.
func (h *harness) metric(name string, labels map[string]string) float64 {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			got := map[string]string{}
			for _, label := range metric.GetLabel() {
				got[label.GetName()] = label.GetValue()
			}
			if maps.Equal(got, labels) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// logBuffer is a log that several goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
