package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// The tests of this package run the program itself, as processes that can be killed and looked at from outside: the
// test binary starts itself again as the collector.
const asCollector = "WEIR_TEST_AS_COLLECTOR"

// These scale the tests up for make soak.
var (
	kills      = flag.Int("soak.kills", 4, "how many processes the crash tests kill, for each fsync policy")
	events     = flag.Int("soak.events", 80, "how many events every client sends in the test of exactness")
	repeats    = flag.Int("soak.repeats", 2, "how many times every client sends them")
	outage     = flag.Duration("soak.outage", 1500*time.Millisecond, "how long Redis is away in the test of failovers; two seconds are promised")
	standstill = flag.Duration("soak.standstill", 4*time.Second, "how long Redis is away in the test of longer outages")
	abuses     = flag.Int("soak.abuses", 4, "how many times each abuse is committed")
	waiting    = flag.Int("soak.waiting", 500, "how many requests wait at once in the test of overload")
	restarts   = flag.Int("soak.restarts", 2, "how many collectors are restarted under load, one after the other")
)

func TestMain(m *testing.M) {
	if os.Getenv(asCollector) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// shopKey is the API key of every test's property.
const shopKey = "wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI"

// shop is what collectors under test serve.
func shop() config.Property {
	return config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR", TimeZone: "UTC", DeduplicationWindowHours: 168,
		Retention: config.Retention{Days: 62, MaxEvents: 10_000_000}, Limits: config.Limits{MaxBodyBytes: 64 << 10},
	}
}

// site is a Property's configuration and its Redis.
type site struct {
	t         *testing.T
	directory string
	redis     *redisserver.Server
	redisDir  string
	stream    *stream.Stream
}

// newSite starts a Redis, loads the library and writes the configuration.
func newSite(t *testing.T, options redisserver.Options) *site {
	t.Helper()
	redisDir, err := os.MkdirTemp("", "weir-") // where t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(redisDir); err != nil {
			t.Error(err)
		}
	})
	options.Dir = redisDir
	server := redistest.Start(t, options)
	s := newSiteAt(t, dialAndLoad(t, config.Redis{URL: server.URL()}), config.Redis{URL: server.URL()})
	s.redis, s.redisDir = server, redisDir
	return s
}

// newSiteAt writes the configuration of collectors that reach a Redis so, which a client is connected to.
func newSiteAt(t *testing.T, client *stream.Client, redis config.Redis) *site {
	t.Helper()
	s := &site{t: t, directory: t.TempDir(), stream: client.Stream("default", "shop")}
	s.write(config.PropertyFile, shop())
	s.write(config.APIKeysFile, []auth.Credential{{Name: "server", Hash: auth.HashOf(shopKey)}})
	s.write(config.AccessTokensFile, []auth.Credential{{Name: "bi", Hash: auth.HashOf("token"), Scope: auth.ScopeRead}})
	for path, content := range redis.Files() {
		s.writeText(path, string(content))
	}
	return s
}

func (s *site) write(path string, content any) {
	s.t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		s.t.Fatal(err)
	}
	s.writeText(path, string(text))
}

func (s *site) writeText(path, text string) {
	s.t.Helper()
	file := filepath.Join(s.directory, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// stored returns how many times each event id stands in the stream.
func (s *site) stored() map[string]int {
	s.t.Helper()
	ids := map[string]int{}
	for _, e := range s.events() {
		ids[e.ID]++
	}
	return ids
}

// events returns all events of the stream.
func (s *site) events() []event.Event {
	s.t.Helper()
	var events []event.Event
	for after := stream.Position(0); ; {
		entries, err := s.stream.ReadEvents(s.t.Context(), after, 10_000, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(entries) == 0 {
			return events
		}
		for _, entry := range entries {
			e, err := wire.Decode(entry.Data)
			if err != nil {
				s.t.Fatal(err)
			}
			events = append(events, e)
		}
		after = entries[len(entries)-1].Position
	}
}

// collector is a running collector process.
type collector struct {
	t                *testing.T
	directory        string
	roles            string
	address, metrics string
	flags            []string
	environment      []string
	log, acts        lockedBuffer // standard error, and output with the audit log
	process          *exec.Cmd
	// ended is closed when the process is gone; failure is how it ended, for whoever has seen that.
	ended   chan struct{}
	failure error
}

// lockedBuffer is a log that may be written and read at once.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start runs a collector with the roles, and the variables in its environment, until the test ends.
func (s *site) start(roles string, environment ...string) *collector {
	s.t.Helper()
	c := &collector{
		t: s.t, directory: s.directory, roles: roles, environment: environment,
		address: freeAddress(s.t), metrics: freeAddress(s.t),
	}
	c.launch()
	s.t.Cleanup(func() {
		c.stop()
		if text := c.log.String(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") {
			s.t.Errorf("the collector's log:\n%s", text)
		}
	})
	return c
}

// freeAddress finds a port that nobody listens on; the same one serves after a restart. It lies below those that systems
// give to outgoing connections: else, while a killed collector is away, a client's own connection could take its port.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+rand.IntN(12_000)))
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// launch starts the process and waits until it serves.
func (c *collector) launch() {
	c.t.Helper()
	c.process = exec.Command(os.Args[0], append([]string{
		"--roles", c.roles, "--config-dir", c.directory, "--listen", c.address, "--metrics-listen", c.metrics,
	}, c.flags...)...)
	c.process.Env = append(append(os.Environ(), asCollector+"=1"), c.environment...)
	c.process.Stdout, c.process.Stderr = &c.acts, &c.log
	if err := c.process.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.ended = make(chan struct{})
	go func(process *exec.Cmd, ended chan struct{}) {
		c.failure = process.Wait()
		close(ended)
	}(c.process, c.ended)
	eventually(c.t, "the collector serves", func() bool {
		select {
		case <-c.ended:
			c.t.Fatalf("the collector ended: %v\n%s", c.failure, c.log.String())
		default:
		}
		response, err := http.Get("http://" + c.metrics + "/livez")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// kill ends the process at once, as a crash does, and waits until it is gone.
func (c *collector) kill() {
	c.t.Helper()
	if err := c.process.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	<-c.ended
}

// stop ends the process gracefully; one that is gone already is no error.
func (c *collector) stop() {
	c.t.Helper()
	select {
	case <-c.ended:
		return
	default:
	}
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Error(err)
	}
	select {
	case <-c.ended:
		if c.failure != nil {
			c.t.Errorf("the collector ended with %v\n%s", c.failure, c.log.String())
		}
	case <-time.After(40 * time.Second):
		c.t.Error("the collector does not end")
		c.kill()
	}
}

// memory returns how much memory the collector's heap and stacks have ever taken from the system, in bytes. What the
// race detector takes beside them is not counted.
func (c *collector) memory() int64 {
	c.t.Helper()
	var sum float64
	for line := range strings.Lines(c.scrape()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "go_memstats_heap_sys_bytes" || name == "go_memstats_stack_sys_bytes" {
			bytes, err := strconv.ParseFloat(value, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			sum += bytes
		}
	}
	if sum == 0 {
		c.t.Fatal("the collector does not tell its memory")
	}
	return int64(sum)
}

// scrape returns what /metrics says.
func (c *collector) scrape() string {
	c.t.Helper()
	response, err := http.Get("http://" + c.metrics + "/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// reply is what a collector answered.
type reply struct {
	status     int
	retryAfter string
	body       string
	took       time.Duration
	EventID    string `json:"event_id"`
	Duplicate  bool   `json:"duplicate"`
	Results    []struct {
		OK        bool   `json:"ok"`
		EventID   string `json:"event_id"`
		Duplicate bool   `json:"duplicate"`
	} `json:"results"`
}

// client sends to collectors over connections of its own.
type client struct{ http *http.Client }

func newClient(t *testing.T) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{&http.Client{Transport: transport, Timeout: 30 * time.Second}}
}

// send posts a body to the collector's path below /collect/KEY. It fails where no whole answer comes.
func (c *client) send(ctx context.Context, to *collector, suffix string, body []byte) (reply, error) {
	begin := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to.address+"/collect/"+shopKey+suffix, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After"), body: string(text), took: time.Since(begin)}
	if err := json.Unmarshal(text, &r); err != nil {
		return reply{}, fmt.Errorf("the answer %q: %w", text, err)
	}
	return r, nil
}

// eventually polls until the condition holds, and fails the test where it does not within a minute.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// pause waits without an end of its own: a test's own pace, such as how long an outage lasts.
func pause(d time.Duration) { <-time.After(d) }
