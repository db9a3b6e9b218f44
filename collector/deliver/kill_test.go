package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// These scale the test of killed deliverers up for make soak.
var (
	kills     = flag.Int("soak.kills", 12, "how many deliverer processes are killed")
	collector = flag.String("soak.collector", "", "the collector's binary to kill; by default the test's own, with shorter intervals")
)

// asDeliverer makes the test binary a deliverer of the configuration directory that it names.
const asDeliverer = "WEIR_TEST_AS_DELIVERER"

func TestMain(m *testing.M) {
	if directory := os.Getenv(asDeliverer); directory != "" {
		if err := deliverFrom(directory, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// deliverFrom runs an engine with a test's intervals until the process is killed.
func deliverFrom(directory, consumer string) error {
	property, err := config.Load(directory)
	if err != nil {
		return err
	}
	redis, err := config.LoadRedis(directory)
	if err != nil {
		return err
	}
	client, err := stream.Dial(redis.URL, stream.DialOptions{})
	if err != nil {
		return err
	}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		return err
	}
	e := New(Options{
		Stream: client.Stream(property.Namespace, property.Name), Property: property, Consumer: consumer, Resume: true,
		Credentials: func(platform string) (map[string]string, error) {
			return config.PlatformCredentials(directory, platform)
		},
		Metrics: metrics, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	e.timing = quickTiming()
	return e.Run(context.Background())
}

// deliverers are two processes that deliver to the same platforms.
type deliverers struct {
	h         *harness
	directory string
	running   [2]*exec.Cmd
	names     int
}

// start starts a process in a slot, under its predecessor's name or a new one.
func (d *deliverers) start(slot int, renamed bool) {
	d.h.t.Helper()
	name := fmt.Sprint("deliverer-", slot)
	if renamed {
		d.names++
		name = fmt.Sprint("successor-", d.names)
	}
	process := exec.Command(os.Args[0], name)
	process.Env = append(os.Environ(), asDeliverer+"="+d.directory)
	if *collector != "" {
		process = exec.Command(*collector, "--roles", "deliver", "--config-dir", d.directory, "--metrics-listen", "127.0.0.1:0", "--consumer", name)
	}
	process.Stderr = d.h.log
	if err := process.Start(); err != nil {
		d.h.t.Fatal(err)
	}
	d.running[slot] = process
}

func (d *deliverers) kill(slot int) {
	if err := d.running[slot].Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.h.t.Error(err)
	}
	_ = d.running[slot].Wait() // it says that it was killed
}

// configure writes the harness's property as a pod's configuration directory.
func (h *harness) configure() string {
	h.t.Helper()
	directory := h.t.TempDir()
	property := h.property
	property.Currency, property.TimeZone = "EUR", "UTC"
	property.DeduplicationWindowHours, property.Limits.MaxBodyBytes = 168, 64<<10
	text, err := json.Marshal(property)
	if err != nil {
		h.t.Fatal(err)
	}
	files := map[string]string{config.PropertyFile: string(text), config.RedisURLFile: h.url}
	for name, keys := range h.credentials {
		for key, value := range keys {
			files[filepath.Join(config.PlatformsDir, name, key)] = value
		}
	}
	for path, text := range files {
		file := filepath.Join(directory, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	return directory
}

// moody is a receiver's mood: some ids are refused always, some requests fail, wait or are throttled.
func moody(r *http.Request) *answer {
	hash := fnv.New32()
	hash.Write([]byte(r.Header.Get("webhook-id")))
	<-time.After(rand.N(20 * time.Millisecond))
	switch n := rand.IntN(100); {
	case hash.Sum32()%10 == 0:
		return &answer{status: 422}
	case n < 8:
		return &answer{status: 500}
	case n < 10:
		return &answer{status: 429, header: map[string]string{"Retry-After": "0"}}
	case n < 12:
		panic(http.ErrAbortHandler)
	}
	return nil
}

// Deliverers that are killed at any point, again and again, while the groups are lost now and then, leave no event
// without its final record on any platform, none with two, and never another id on a later attempt.
func TestDeliverersThatAreKilled(t *testing.T) {
	hook, fb := newReceiver(t, moody), newMeta(t, nil)
	choosy := hook.platform("choosy")
	choosy.Events = []string{"purchase"}
	h := newHarness(t, hook.platform("crm"), choosy, fb.platform("meta"))
	d := &deliverers{h: h, directory: h.configure()}
	d.start(0, false)
	d.start(1, false)
	t.Cleanup(func() { d.kill(0); d.kill(1) })

	deliveryIDs, positions := map[string]bool{}, map[stream.Position]event.Event{}
	for i := range *kills {
		for range 20 {
			id := uuid.New()
			e := event.Event{
				ID: id.String(), DeliveryID: id, Name: []string{"pageview", "purchase"}[rand.IntN(2)], ClientID: "1.2",
				Platforms: h.property.PlatformNames(),
			}
			if e.Name == "purchase" {
				amount := event.Amount(95_000)
				e.Value, e.Currency = &amount, "EUR"
			}
			if rand.IntN(10) == 0 {
				e.OccurredAt = time.Now().Add(-7 * 24 * time.Hour) // too old for Meta
			}
			positions[h.append(stream.Addition{Entry: wire.Encode(&e), EventID: e.ID})] = e
			deliveryIDs[id.String()] = true
		}
		<-time.After(rand.N(150 * time.Millisecond))
		slot := rand.IntN(2)
		d.kill(slot)
		if i%7 == 3 {
			h.loseGroup(h.property.Platforms[rand.IntN(3)].Name)
		}
		d.start(slot, rand.IntN(3) == 0)
	}

	most := 30 * time.Second
	if *collector != "" {
		most = 3 * time.Minute // pending entries and leases of the dead last for 45 s
	}
	h.awaitFor(most, "a final record for every event", func() string {
		open := ""
		for _, platform := range h.property.PlatformNames() {
			records, missing := h.records(platform), 0
			for position := range positions {
				if status := records[position].Status; status == "" || status == "retrying" {
					missing++
				}
			}
			if missing > 0 {
				open += fmt.Sprintf("%s lacks %d of %d\n", platform, missing, len(positions))
			}
		}
		return open
	})
	taken, statuses := hook.acceptances(), map[string]int{}
	for _, platform := range h.property.PlatformNames() {
		for position, r := range h.records(platform) {
			e := positions[position]
			statuses[platform+" "+r.Status+" "+r.Reason]++
			got := taken[e.DeliveryID.String()]
			if platform == "meta" {
				got = 0
				for key, n := range fb.counts() {
					if strings.HasSuffix(key, " "+e.ID) {
						got += n
					}
				}
			}
			if r.Status == "delivered" && got == 0 {
				t.Errorf("%s: event %s is delivered, but never came", platform, position)
			}
		}
	}
	t.Logf("%d kills, %d events: %v; the receiver got %d requests", *kills, len(positions), statuses, len(hook.arrived))
	for id := range hook.arrivals() {
		if !deliveryIDs[id] {
			t.Errorf("a request came with the id %s, which is no event's", id)
		}
	}
	h.await("nothing left to do", func() string {
		left := map[string]int64{}
		for _, platform := range h.property.PlatformNames() {
			g := h.group(platform)
			left[platform] = g.Pending + g.Waiting + g.Lag
		}
		return cmp.Diff(map[string]int64{"crm": 0, "choosy": 0, "meta": 0}, maps.Clone(left))
	})
}
