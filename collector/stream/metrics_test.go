package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// observe makes metrics for a client, and returns what reads its errors: by "command kind".
func observe(t *testing.T, c *Client) (*Metrics, func() map[string]float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	c.Observe(m)
	return m, func() map[string]float64 {
		t.Helper()
		found := map[string]float64{}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if family.GetName() == "weir_redis_errors_total" {
					found[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = metric.GetCounter().GetValue()
				}
				if h := metric.GetHistogram(); h != nil {
					found[family.GetName()+" count"] = float64(h.GetSampleCount())
					found[family.GetName()+" sum"] = h.GetSampleSum()
				}
			}
		}
		return found
	}
}

func TestMetricsOfAppending(t *testing.T) {
	client := dial(t, redistest.URL(t))
	m, read := observe(t, client)
	a := newAppender(t, client.Stream("default", "shop"), AppenderOptions{Metrics: m})
	mustAppend(t, a, addition("a", ""), addition("b", ""), addition("a", ""))
	mustAppend(t, a, addition("c", ""))
	got := read()
	if got["weir_append_batch_events count"] != 2 || got["weir_append_batch_events sum"] != 4 {
		t.Errorf("batches: %v, want 2 with 4 events together", got)
	}
	if got["weir_append_duration_seconds count"] != 2 || got["weir_append_duration_seconds sum"] <= 0 {
		t.Errorf("durations: %v, want 2", got)
	}
}

func TestWhatRedisDoesNotDoIsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*testing.T, *redisserver.Server, *Stream)
		want  []string
	}{
		"when it is gone": {func(t *testing.T, server *redisserver.Server, _ *Stream) {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
		}, []string{"dial connection", "fcall connection"}},
		"when it is full": {func(t *testing.T, _ *redisserver.Server, s *Stream) {
			if err := s.redis.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
				t.Fatal(err)
			}
		}, []string{"fcall full"}},
		"when it lacks the library": {func(t *testing.T, _ *redisserver.Server, s *Stream) {
			if err := s.redis.FunctionFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}, []string{"fcall library"}},
		"when the stream's key holds something else": {func(t *testing.T, _ *redisserver.Server, s *Stream) {
			if err := s.redis.Set(t.Context(), s.keys.dedup(), "x", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}, []string{"fcall reply"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redisserver.Options{})
			client := dial(t, server.URL())
			m, read := observe(t, client)
			s := client.Stream("default", "shop")
			a := newAppender(t, s, AppenderOptions{Metrics: m})
			test.spoil(t, server, s)
			if _, err := a.Append(t.Context(), []Addition{addition("x", "")}); !errors.Is(err, ErrUnavailable) {
				t.Errorf("Append = %v, want ErrUnavailable", err)
			}
			got := read()
			for _, want := range test.want {
				if got[want] == 0 {
					t.Errorf("no %q among %v", want, got)
				}
			}
			maps.DeleteFunc(got, func(name string, _ float64) bool {
				return name == "weir_append_duration_seconds count" || name == "weir_append_duration_seconds sum" ||
					name == "weir_append_batch_events count" || name == "weir_append_batch_events sum"
			})
			if len(got) != len(test.want) {
				t.Errorf("got %v, want %q alone", got, test.want)
			}
		})
	}
}

func TestKindsOfErrorsAreFew(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"no error":                            {nil, ""},
		"a value that is missing":             {redis.Nil, ""},
		"a caller that has gone":              {fmt.Errorf("x: %w", context.Canceled), ""},
		"a deadline":                          {context.DeadlineExceeded, "timeout"},
		"a network's timeout":                 {&net.OpError{Err: os.ErrDeadlineExceeded}, "timeout"},
		"a connection that is refused":        {&net.OpError{Err: errors.New("refused")}, "connection"},
		"a connection that ends":              {io.EOF, "connection"},
		"a client that is closed":             {redis.ErrClosed, "connection"},
		"an error that names what was sent":   {errors.New("jane@example.com"), "connection"},
		"a deadline that is a caller's of us": {fmt.Errorf("x: %w", os.ErrDeadlineExceeded), "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := errorKind(test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheSameMetricsTwiceAreAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("the second registration has succeeded")
	}
}

// TestMetricsAreSafeForConcurrentUse is for the race detector.
func TestMetricsAreSafeForConcurrentUse(t *testing.T) {
	client := dial(t, redistest.URL(t))
	m, read := observe(t, client)
	a := newAppender(t, client.Stream("default", "shop"), AppenderOptions{Metrics: m})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if _, err := a.Append(t.Context(), []Addition{addition("", "")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff(float64(160), read()["weir_append_batch_events sum"]); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
