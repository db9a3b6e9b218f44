package analytics

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

// processors lets Go use a number of processors until the test ends.
func processors(t *testing.T, count int) {
	before := runtime.GOMAXPROCS(count)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestNumbersAreTheSameOnAnyNumberOfProcessors(t *testing.T) {
	for _, count := range []int{1, 2, maxWorkers} {
		t.Run(fmt.Sprint(count, " of them"), func(t *testing.T) {
			processors(t, count)
			w := newWorld(5)
			w.visitors, w.pace = 700, 1000 // so that most visitors have some pageviews in a chunk
			w.grow(t, columns.ChunkRows*9/2)
			w.check(t)
			everything := Range{To: w.last.Time().Add(time.Hour)}
			for _, steps := range [][][]string{
				{{"pageview"}, {"add_to_cart"}, {"purchase"}}, {{"pageview"}, {"pageview"}, {"lead"}, {"pageview"}},
				{{"pageview", "lead"}, {"add_to_cart", "purchase"}, {"refund", "pageview"}},
			} {
				q := FunnelQuery{Range: everything, Steps: steps}
				got, err := w.view.Funnel(t.Context(), q)
				mustNot(t, err)
				sameAs(t, fmt.Sprint("funnel of ", steps), got, w.oracle.funnel(q))
			}
			for _, model := range []Model{FirstTouch, LastTouch} {
				for _, lookback := range []time.Duration{0, time.Hour} {
					q := AttributionQuery{Range: everything, Model: model, ConversionEvent: "purchase", Lookback: lookback, GroupBy: BySource}
					got, err := w.view.Attribution(t.Context(), q)
					mustNot(t, err)
					sameAs(t, fmt.Sprintf("attribution %+v", q), got, w.oracle.attribution(q))
				}
			}
		})
	}
}

func TestAQueryHasTheProcessorsThatNoOtherUses(t *testing.T) {
	for sentence, scene := range map[string]struct{ processors, others, want int }{
		"alone it has all":                  {2, 0, 2},
		"beside another it has its own":     {2, 1, 1},
		"one processor is its own":          {1, 0, 1},
		"of four it has three beside one":   {4, 1, 3},
		"there may be more queries":         {2, 5, 1},
		"of very many it has what can help": {64, 0, maxWorkers},
	} {
		t.Run(sentence, func(t *testing.T) {
			processors(t, scene.processors)
			v := tale(t, "0h a purchase 10 EUR")
			s, done, err := v.read()
			mustNot(t, err)
			t.Cleanup(done)
			for range scene.others {
				_, othersDone, err := v.read()
				mustNot(t, err)
				t.Cleanup(othersDone)
			}
			if got := s.workers(); got != scene.want {
				t.Errorf("got %d workers, want %d", got, scene.want)
			}
		})
	}
}

// countdown is a context that ends when it has been looked at so many times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestAQueryThatIsGivenUpEndsWithAllItsWorkers(t *testing.T) {
	processors(t, 2)
	w := newWorld(5)
	w.grow(t, 4*columns.ChunkRows)
	everything := Range{To: w.last.Time().Add(time.Hour)}
	attribution := func(ctx context.Context, model Model) error {
		_, err := w.view.Attribution(ctx, AttributionQuery{Range: everything, Model: model, ConversionEvent: "purchase", GroupBy: BySource})
		return err
	}
	for name, ask := range map[string]func(context.Context) error{
		"funnel": func(ctx context.Context) error {
			_, err := w.view.Funnel(ctx, funnelOf(everything, []string{"pageview", "purchase"}, 0))
			return err
		},
		"first touch": func(ctx context.Context) error { return attribution(ctx, FirstTouch) },
		"last touch":  func(ctx context.Context) error { return attribution(ctx, LastTouch) },
		"linear":      func(ctx context.Context) error { return attribution(ctx, Linear) },
	} {
		t.Run(name, func(t *testing.T) {
			looks := int64(0)
			for ; ; looks++ {
				ctx := &countdown{Context: t.Context()}
				ctx.left.Store(looks)
				err := ask(ctx)
				left := ctx.left.Load()
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("given up after %d looks it says %v, want context.Canceled", looks, err)
				}
				if !w.view.retained.TryLock() {
					t.Fatalf("given up after %d looks it still holds the view", looks)
				}
				w.view.retained.Unlock()
				if now := ctx.left.Load(); now != left {
					t.Fatalf("given up after %d looks it was looked at %d times more", looks, left-now)
				}
			}
			if looks < 4 { // once a chunk
				t.Errorf("it looked at its context %d times, want one look a chunk at least", looks)
			}
		})
	}
}
