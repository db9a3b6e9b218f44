package deliver

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// TestADelivererThatIsKilledAtAnyCommandToRedisLosesAndRepeatsNothing kills deliverers that write files after ever more commands.
func TestADelivererThatIsKilledAtAnyCommandToRedisLosesAndRepeatsNothing(t *testing.T) {
	s := newLakeSite(t, nil)
	all := s.store(1500, "c.1")
	for commands := 20; commands <= 200; commands += 10 {
		wire := newCutWire(t, s.url, commands)
		client, err := stream.Dial("unix://"+wire.listener.Addr().String(), stream.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e := New(Options{
			Stream: client.Stream("default", "shop"), Property: s.property, Credentials: s.credentialsOf, Consumer: "victim", Metrics: s.metrics,
			Logger: slog.New(slog.NewTextHandler(s.log, nil)), Now: s.wall, DrainTimeout: time.Nanosecond,
		})
		e.timing = quickTiming()
		e.timing.erasePatience = 0
		quick(e)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := e.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		<-wire.cut
		cancel()
		<-done
		_ = client.Close()
		all = append(all, s.store(100, "c.1")...)
	}
	s.start("two", quick)
	s.eventuallyOnce(all)
}
