package analytics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// interrupted is a stream between whose reads something happens.
type interrupted struct {
	*stream.Stream
	// replay is called before each read of events while the view catches up, tail before each that waits.
	replay, tail func(after stream.Position)
}

func (i interrupted) ReadEvents(ctx context.Context, after stream.Position, count int, block time.Duration) ([]stream.Entry, error) {
	if block > 0 {
		i.tail(after)
	} else if count > 1 {
		i.replay(after)
	}
	return i.Stream.ReadEvents(ctx, after, count, block)
}

// numbered appends events a second apart, the first of them at begin plus a second; their ids are their numbers.
func (s *shop) numbered(count int) {
	s.Helper()
	appender := stream.NewAppender(s.stream, stream.AppenderOptions{Window: time.Hour})
	defer func() { mustNot(s, appender.Close(context.Background())) }()
	for range count {
		s.now = s.now.Add(time.Second)
		s.clock.Stop(s.now)
		s.ids++
		e := event.Event{ID: fmt.Sprint(s.ids), DeliveryID: uuid.New(), Name: "pageview", ClientID: "c", Platforms: []string{"crm"}}
		_, err := appender.Append(context.Background(), []stream.Addition{{Entry: wire.Encode(&e), EventID: e.ID}})
		mustNot(s, err)
	}
}

// keep trims the stream to its newest events, or to none.
func (s *shop) keep(count int) {
	s.Helper()
	policy := stream.TrimPolicy{MaxEvents: int64(count)}
	if count == 0 {
		s.clock.Stop(s.now.Add(time.Hour))
		policy.HardAge = time.Minute
	}
	for more := true; more; {
		result, err := s.stream.Trim(context.Background(), policy)
		mustNot(s, err)
		more = result.More
	}
}

// untrue says what is wrong with an answer of a view: its events have to be of one piece, and it has to be complete from
// behind the event before them.
func (s *shop) untrue(view *View) error {
	page, err := view.Listing(context.Background(), ListingQuery{Range: Range{To: s.now.Add(time.Hour)}, Limit: 10_000})
	if err != nil {
		return err
	}
	for i, r := range page.Records {
		if i > 0 && !r.ReceivedAt.Equal(page.Records[i-1].ReceivedAt.Add(-time.Second)) {
			return fmt.Errorf("behind event %s the answer lists event %s", r.EventID, page.Records[i-1].EventID)
		}
	}
	if len(page.Records) == 0 {
		return nil
	}
	oldest := page.Records[len(page.Records)-1].ReceivedAt
	if before := oldest.Add(-time.Second); before.After(begin) && !page.CompleteFrom.After(before) {
		return fmt.Errorf("the oldest event is of %s, and the answer says that it is complete from %s", oldest, page.CompleteFrom)
	}
	if page.CompleteFrom.After(oldest.Add(time.Millisecond)) {
		return fmt.Errorf("the answer is complete from %s, and says %s", oldest, page.CompleteFrom)
	}
	return nil
}

func TestAViewThatIsReadyToldTheTruthThoughMuchWasTrimmedMeanwhile(t *testing.T) {
	const all = 2*readCount + 200
	for name, scene := range map[string]struct {
		// batch is before which batch the stream is trimmed to what is kept; 3 is the one that finds nothing more.
		batch, kept int
	}{
		"before the first batch":                       {0, 150},
		"behind the first batch, to before its end":    {1, all - 500},
		"behind the first batch, beyond it":            {1, 300},
		"behind the second batch, to within the first": {2, all - 10},
		"behind the second batch, beyond it":           {2, 100},
		"behind the last batch":                        {3, 50},
		"behind the last batch, all of it":             {3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := redistest.Start(t, redisserver.Options{}).URL()
			client, err := stream.Dial(address, stream.DialOptions{})
			mustNot(t, err)
			t.Cleanup(func() { mustNot(t, client.Close()) })
			s := &shop{TB: t, client: client, stream: client.Stream("default", "shop"), now: begin, address: address}
			s.load()
			s.numbered(all)
			view := NewView(Options{Property: "default/shop", Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
			ctx, cancel := context.WithCancel(t.Context())
			batches := 0
			source := interrupted{
				Stream: s.stream,
				replay: func(stream.Position) {
					if batches++; batches == scene.batch+1 {
						s.keep(scene.kept)
					}
				},
				tail: func(stream.Position) { cancel() }, // the view has just become ready
			}
			if err := view.Follow(ctx, source); !errors.Is(err, context.Canceled) {
				t.Fatalf("Follow ended with %v", err)
			}
			status := view.Status(t.Context())
			if !status.Ready || status.Events != scene.kept {
				t.Errorf("status is %+v, want ready with %d events", status, scene.kept)
			}
			if want := s.now.Add(-time.Duration(scene.kept-1) * time.Second).Add(time.Millisecond); scene.kept > 0 && !status.CompleteFrom.Equal(want) {
				t.Errorf("complete from %s, want %s", status.CompleteFrom, want)
			}
			if scene.kept == 0 && !status.CompleteFrom.After(s.now) {
				t.Errorf("complete from %s, want after %s", status.CompleteFrom, s.now)
			}
			mustNot(t, s.untrue(view))
		})
	}
}

func TestAnswersAreTrueWhileTrimmingOvertakesTheView(t *testing.T) {
	address := redistest.Start(t, redisserver.Options{}).URL()
	client, err := stream.Dial(address, stream.DialOptions{})
	mustNot(t, err)
	t.Cleanup(func() { mustNot(t, client.Close()) })
	s := &shop{TB: t, client: client, stream: client.Stream("default", "shop"), now: begin, address: address}
	s.load()
	s.numbered(40)
	view := NewView(Options{Property: "default/shop", Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	source := interrupted{
		Stream: s.stream,
		replay: func(stream.Position) {},
		tail: func(stream.Position) {
			if err := s.untrue(view); err != nil {
				t.Errorf("after %d reads: %v", reads, err)
				cancel()
			}
			if reads++; reads == 60 {
				cancel()
				return
			}
			s.numbered(reads % 7 * 5)
			if reads%3 > 0 {
				s.keep(1 + reads%11*2)
			}
		},
	}
	if err := view.Follow(ctx, source); !errors.Is(err, context.Canceled) {
		t.Fatalf("Follow ended with %v", err)
	}
	if got, want := view.Status(t.Context()).AsOf, s.now; got.Before(want.Add(-40 * time.Second)) {
		t.Errorf("the view is as of %s, and the newest event of %s", got, want)
	}
}

func TestAnAnswerSaysFromWhenOnTheRowsThatItWasMadeOfAreComplete(t *testing.T) {
	v := tale(t, "0h a pageview", "1h a pageview", "2h a purchase 1 EUR")
	s, done, err := v.read()
	mustNot(t, err)
	v.Forget(stream.At(begin.Add(2 * time.Hour)))
	if !s.completeFrom.IsZero() || s.Len() != 3 {
		t.Errorf("a query that was asked before the trimming is complete from %s with %d events, want all three", s.completeFrom, s.Len())
	}
	done()
	want := begin.Add(2*time.Hour + time.Millisecond)
	ctx, r := t.Context(), Range{begin, begin.Add(24 * time.Hour)}
	for name, ask := range map[string]func() (time.Time, error){
		"a listing": func() (time.Time, error) {
			a, err := v.Listing(ctx, ListingQuery{Range: r, Limit: 1})
			return a.CompleteFrom, err
		},
		"a summary": func() (time.Time, error) { a, err := v.Summary(ctx, r, nil); return a.CompleteFrom, err },
		"days":      func() (time.Time, error) { a, err := v.Series(ctx, []Range{r}, nil); return a.CompleteFrom, err },
		"a breakdown": func() (time.Time, error) {
			a, err := v.Breakdown(ctx, BreakdownQuery{Range: r, By: ByPage, Order: OrderEvents})
			return a.CompleteFrom, err
		},
		"event statistics": func() (time.Time, error) {
			a, err := v.EventStats(ctx, StatsQuery{Range: r, Limit: 10})
			return a.CompleteFrom, err
		},
		"a funnel": func() (time.Time, error) {
			a, err := v.Funnel(ctx, funnelOf(r, []string{"pageview", "purchase"}, 0))
			return a.CompleteFrom, err
		},
		"an attribution": func() (time.Time, error) {
			a, err := v.Attribution(ctx, AttributionQuery{Range: r, Model: Linear, ConversionEvent: "purchase", GroupBy: ByChannel})
			return a.CompleteFrom, err
		},
	} {
		if got, err := ask(); err != nil || !got.Equal(want) {
			t.Errorf("%s says that it is complete from %s, %v, want %s", name, got, err, want)
		}
	}
}
