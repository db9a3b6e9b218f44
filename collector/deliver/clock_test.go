package deliver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/stream"
)

const clockDay = 24 * time.Hour

// TestClocks turns the deliverer's and Redis's clock, at the deliverer's start and while it runs: an event that has waited,
// one that waits for another attempt and new ones are delivered, not too old, and stay where they are.
func TestClocks(t *testing.T) {
	for name, test := range map[string]struct {
		// deliverer and redis are how far the clocks are ahead, begun that they are at the deliverer's start already.
		deliverer, redis time.Duration
		begun            bool
		// ahead is what is reported.
		ahead time.Duration
	}{
		"both are right":                                      {},
		"the deliverer's is minutes ahead":                    {deliverer: 5 * time.Minute},
		"the deliverer's is 12 days ahead":                    {deliverer: 12 * clockDay},
		"the deliverer's is 70 days ahead":                    {deliverer: 70 * clockDay},
		"the deliverer's is 70 days behind":                   {deliverer: -70 * clockDay},
		"the deliverer's is 70 days ahead from its start":     {deliverer: 70 * clockDay, begun: true},
		"the deliverer's is 70 days behind from its start":    {deliverer: -70 * clockDay, begun: true},
		"Redis's is minutes ahead":                            {redis: 5 * time.Minute},
		"Redis's is minutes behind":                           {redis: -5 * time.Minute},
		"Redis's is 12 days ahead":                            {redis: 12 * clockDay, ahead: 12 * clockDay},
		"Redis's is 12 days behind":                           {redis: -12 * clockDay, ahead: -12 * clockDay},
		"Redis's is 70 days ahead":                            {redis: 70 * clockDay, ahead: 70 * clockDay},
		"Redis's is 70 days behind":                           {redis: -70 * clockDay, ahead: -70 * clockDay},
		"Redis's is 70 days ahead from the deliverer's start": {redis: 70 * clockDay, ahead: 70 * clockDay, begun: true},
		"Redis's is 70 days behind from then":                 {redis: -70 * clockDay, ahead: -70 * clockDay, begun: true},
		"both are 70 days ahead":                              {deliverer: 70 * clockDay, redis: 70 * clockDay, ahead: 70 * clockDay},
		"both are 70 days behind":                             {deliverer: -70 * clockDay, redis: -70 * clockDay, ahead: -70 * clockDay},
		"both are 70 days ahead from the deliverer's start":   {deliverer: 70 * clockDay, redis: 70 * clockDay, ahead: 70 * clockDay, begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := newReceiver(t, always(answer{status: 500}))
			hook.tolerance = 71 * clockDay // signatures are dated by the deliverer's own clock
			h := newHarness(t, hook.platform("crm"), console)
			before := stream.NewClock(h.stream, time.Now, func() time.Duration { return 0 })
			if _, err := before.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			waiting := h.accept(purchase)
			turn := func() {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.wrong = test.deliverer
				h.redisClock.Ahead(test.redis)
			}
			if test.begun {
				turn()
			}
			h.start("one", nil)
			h.eventuallyLike("crm", one(waiting, record{"retrying", 0, "http_500"}))
			turn()
			h.await("the report", func() string {
				got := time.Duration(h.metric("weir_redis_clock_ahead_seconds", map[string]string{}) * float64(time.Second))
				if off := (got - test.ahead).Abs(); off > time.Minute {
					return fmt.Sprint("reported as ahead: ", got)
				}
				return ""
			})
			fresh := h.accept(pageview)
			hook.setFailure(nil)
			for _, platform := range []string{"crm", "console"} {
				h.eventuallyLike(platform, map[stream.Position]record{waiting: {"delivered", 0, ""}, fresh: {"delivered", 0, ""}})
			}
			if off := time.Since(fresh.Time()).Abs(); off > 10*time.Minute {
				t.Errorf("the new event is dated %s from the true time", off)
			}
			if got := h.entries(); len(got) != 2 {
				t.Errorf("%d events are left, want both", len(got))
			}
			if said := strings.Contains(h.log.String(), "is not believed"); said != (test.ahead != 0) {
				t.Errorf("the log says that Redis's clock is not believed: %t", said)
			}
			h.redisClock.Ahead(0)
			h.await("the end of the report", func() string {
				return cmp.Diff(0.0, h.metric("weir_redis_clock_ahead_seconds", map[string]string{}))
			})
		})
	}
}

func (h *harness) entries() []stream.Entry {
	h.t.Helper()
	var all []stream.Entry
	for after := stream.Position(0); ; {
		entries, err := h.stream.ReadEvents(h.t.Context(), after, 1000, 0)
		if err != nil {
			h.t.Fatal(err)
		}
		if len(entries) == 0 {
			return all
		}
		all, after = append(all, entries...), entries[len(entries)-1].Position
	}
}
