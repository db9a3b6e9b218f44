package role

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

func TestTheOperatorIsToldWhatAPersonHasToMend(t *testing.T) {
	client, err := stream.Dial(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	shop := &deliveries{stream: client.Stream("default", "shop"), logger: slog.New(slog.DiscardHandler), current: config.Property{Namespace: "default", Name: "shop", Platforms: []config.Platform{
		{Name: "meta"}, {Name: "crm"}, {Name: "slow"}, {Name: "unset"}, {Name: "fine"},
	}}}
	p := &process{Options: Options{Logger: slog.New(slog.DiscardHandler)}, deliver: map[*property]*deliveries{{}: shop}, registry: prometheus.NewRegistry()}
	faults := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: faultMetric}, []string{"namespace", "property", "platform", "reason"})
	p.registry.MustRegister(faults)
	set := func(property, platform, reason string) {
		faults.WithLabelValues("default", property, platform, reason).Set(1)
	}
	set("shop", "meta", "unauthorized")
	set("shop", "crm", "http_410")
	set("shop", "slow", "throttled")
	set("shop", "unset", "misconfigured")
	set("other", "fine", "unauthorized")
	if err := shop.stream.PausePlatform(t.Context(), "fine", "CredentialsRejected"); err != nil { // by a process before
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.reportFaults(ctx) }()
	defer func() { cancel(); <-done }()
	paused := func(want map[string]string) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for {
			got, err := shop.stream.PausedPlatforms(t.Context())
			diff := cmp.Diff(want, got)
			if err == nil && diff == "" {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("error %v, reported (-want +got):\n%s", err, diff)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	paused(map[string]string{"meta": "CredentialsRejected", "crm": "ConfigurationRejected", "unset": "SecretInvalid"})
	faults.DeletePartialMatch(prometheus.Labels{"platform": "meta"})
	paused(map[string]string{"crm": "ConfigurationRejected", "unset": "SecretInvalid"})
}
