package role_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// startReader runs a pod that only reads, on a Redis that holds one event and can be killed.
func startReader(t *testing.T, redis *redisserver.Server) *pod {
	t.Helper()
	p := &pod{t: t, directory: t.TempDir(), property: shop("reader"), log: &logBuffer{}}
	p.write(config.PropertyFile, p.property)
	p.write(config.AccessTokensFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("token-1"), Scope: auth.ScopeRead}})
	p.writeText(config.RedisURLFile, redis.URL())
	p.run(role.Query)
	return p
}

// accept appends an event as a collector would.
func (p *pod) accept(redis *redisserver.Server, id string) {
	p.t.Helper()
	client, err := stream.Dial(redis.URL(), stream.DialOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	if err := client.Load(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	appender := stream.NewAppender(client.Stream("default", p.property.Name), stream.AppenderOptions{Window: time.Hour})
	e := event.Event{ID: id, Name: "purchase", DeliveryID: [16]byte{1}}
	if _, err := appender.Append(p.t.Context(), []stream.Addition{{Entry: wire.Encode(&e), EventID: id}}); err != nil {
		p.t.Fatal(err)
	}
	if err := appender.Close(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// purchases reads the summary: how many there are, and the Weir-As-Of header.
func (p *pod) purchases() (count int, asOf string, status int) {
	p.t.Helper()
	var answer struct {
		Data struct {
			KPIs struct{ Purchases int } `json:"kpis"`
		}
	}
	response := p.read("analytics/summary", &answer)
	return answer.Data.KPIs.Purchases, response.Header.Get("Weir-As-Of"), response.StatusCode
}

// read asks the read API and reads its answer.
func (p *pod) read(path string, answer any) *http.Response {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.collect+"/api/v1/properties/reader/"+path, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer token-1")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		p.t.Fatal(err)
	}
	return response
}

// metric returns the value of a metric of the pod's property.
func (p *pod) metric(name string) float64 {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.metrics+"/metrics", http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), name+`{namespace="default",property="reader"} `); found {
			value, err := strconv.ParseFloat(rest, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return value
		}
	}
	p.t.Fatalf("there is no metric %s of the property", name)
	return 0
}

func (p *pod) ready() bool {
	return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK
}

func TestAReaderGoesOnAnsweringWhileRedisIsAway(t *testing.T) {
	redis := redistest.Start(t, redisserver.Options{Persist: true, Loopback: true})
	p := startReader(t, redis)
	p.accept(redis, "before")
	p.await("the event is counted", func() bool { count, _, _ := p.purchases(); return count == 1 })
	_, before, _ := p.purchases()
	if lag := p.metric("weir_view_lag_seconds"); lag > 30 {
		t.Errorf("with Redis the view lags by %v s", lag)
	}

	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	p.await("the view has noticed", func() bool { return p.metric("weir_view_connected") == 0 })
	lag := p.metric("weir_view_lag_seconds")
	p.await("the lag grows", func() bool { return p.metric("weir_view_lag_seconds") > lag })
	count, asOf, status := p.purchases()
	if count != 1 || asOf != before || status != http.StatusOK {
		t.Errorf("without Redis: %d purchases as of %q, status %d; want 1 as of %q, 200", count, asOf, status, before)
	}
	if !p.ready() {
		t.Error("the reader is not ready, though it answers")
	}

	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.accept(redis, "after")
	p.await("the next event is counted", func() bool { count, _, _ := p.purchases(); return count == 2 })
	if _, asOf, _ := p.purchases(); asOf == before {
		t.Errorf("Weir-As-Of is %q still", asOf)
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestAReaderWithoutRedisFromTheStartIsNotReady(t *testing.T) {
	redis := redistest.Start(t, redisserver.Options{Persist: true, Loopback: true})
	address := redis.URL()
	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	if redis.URL() != address {
		t.Fatal("the address changed")
	}
	p := startReader(t, redis)
	p.await("it listens", func() bool { return p.metric("weir_view_ready") == 0 })
	if _, _, status := p.purchases(); status != http.StatusServiceUnavailable {
		t.Errorf("the status is %d, want 503", status)
	}
	if p.ready() {
		t.Error("the reader is ready, though it knows nothing")
	}
	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.await("it is ready once Redis is there", p.ready)
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// startRole runs a pod with one role that writes to Redis.
func startRole(t *testing.T, redis *redisserver.Server, name role.Name) *pod {
	t.Helper()
	p := &pod{t: t, directory: t.TempDir(), property: shop("writer"), log: &logBuffer{}}
	p.write(config.PropertyFile, p.property)
	p.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	p.writeText(config.RedisURLFile, redis.URL())
	p.run(name)
	return p
}

func TestReadinessOfTheRolesThatNeedRedis(t *testing.T) {
	tests := map[string]struct {
		role role.Name
		want bool
	}{
		"a collector stays ready, for its own answer is better than a balancer's": {role.Collect, true},
		"a deliverer does not, for nobody sends to it":                            {role.Deliver, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			redis := redistest.Start(t, redisserver.Options{Persist: true, Loopback: true})
			if err := redis.Kill(); err != nil {
				t.Fatal(err)
			}
			p := startRole(t, redis, test.role)
			if p.ready() {
				t.Error("it is ready before it has reached Redis")
			}
			if err := redis.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.await("it is ready", p.ready)
			if err := redis.Kill(); err != nil {
				t.Fatal(err)
			}
			if got := p.ready(); got != test.want {
				t.Errorf("without Redis it is ready: %v, want %v", got, test.want)
			}
			if err := redis.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.await("it is ready again", p.ready)
			if err := p.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
}
