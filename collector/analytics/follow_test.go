package analytics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// shop is a property on a real Redis, and a view that follows it.
type shop struct {
	testing.TB
	stream *stream.Stream
	client *stream.Client
	view   *View
	// now is the time of the next event.
	now time.Time
	ids int
	// clock is Redis's, which goes by now.
	address string
	clock   *redistest.Clock
}

func newShop(t testing.TB, server *redisserver.Server) *shop {
	t.Helper()
	client, err := stream.Dial(server.URL(), stream.DialOptions{})
	mustNot(t, err)
	t.Cleanup(func() { mustNot(t, client.Close()) })
	s := &shop{TB: t, client: client, stream: client.Stream("default", "shop"), now: begin, address: server.URL()}
	s.load()
	s.view = s.follow()
	return s
}

// load gives an empty Redis its function library.
func (s *shop) load() {
	s.Helper()
	mustNot(s, s.client.Load(s.Context()))
	s.clock = redistest.TurnClock(s, s.address)
}

// follow starts a view that ends with the test.
func (s *shop) follow() *View {
	view := NewView(Options{Property: "default/shop", Currency: "EUR", Logger: slog.New(slog.NewTextHandler(s.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- view.Follow(ctx, s.stream) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			s.Errorf("Follow ended with %v", err)
		}
	})
	return view
}

// accept appends events of a name, a second apart.
func (s *shop) accept(names ...string) {
	s.Helper()
	appender := stream.NewAppender(s.stream, stream.AppenderOptions{Window: time.Hour})
	defer func() { mustNot(s, appender.Close(s.Context())) }()
	for _, name := range names {
		s.now = s.now.Add(time.Second)
		s.clock.Stop(s.now)
		s.ids++
		e := event.Event{ID: fmt.Sprint(name, " ", s.ids), DeliveryID: uuid.New(), Name: name, ClientID: "c", Platforms: []string{"crm"}}
		_, err := appender.Append(s.Context(), []stream.Addition{{Entry: wire.Encode(&e), EventID: e.ID}})
		mustNot(s, err)
	}
}

func (s *shop) newest() Record {
	s.Helper()
	page, err := s.view.Listing(s.Context(), ListingQuery{Range: Range{To: s.now.Add(time.Hour)}, Limit: 1})
	mustNot(s, err)
	if len(page.Records) == 0 {
		return Record{}
	}
	return page.Records[0]
}

// names lists what a view holds, oldest first.
func (s *shop) names(view *View) string {
	s.Helper()
	page, err := view.Listing(s.Context(), ListingQuery{Range: Range{To: s.now.Add(time.Hour)}, Limit: 1000})
	if errors.Is(err, ErrReplaying) {
		return "replaying"
	}
	mustNot(s, err)
	text := ""
	for _, r := range page.Records {
		text = r.Event + " " + text
	}
	return text
}

// await waits until something holds.
func (s *shop) await(what string, holds func() bool) {
	s.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			s.Fatalf("after 30 s still not: %s; status %+v, events %s", what, s.view.Status(s.Context()), s.names(s.view))
		case <-tick.C:
		}
	}
}

func (s *shop) awaitNames(want string) {
	s.Helper()
	s.await("the view holds "+want, func() bool { return s.view.Status(s.Context()).Ready && s.names(s.view) == want })
}

func TestAViewShowsEventsAndWhatBecameOfThem(t *testing.T) {
	s := newShop(t, redistest.Start(t, redisserver.Options{}))
	s.accept("pageview", "purchase")
	s.awaitNames("pageview purchase ")
	newest := s.newest()
	if got := newest.Deliveries[0]; got.Status != stream.Pending || got.Latency != nil || !got.UpdatedAt.Equal(newest.ReceivedAt) {
		t.Errorf("before any record the delivery is %+v, want pending since the event was received", got)
	}
	delivered := stream.Record{
		Event: newest.Position, Status: stream.Delivered, Attempts: 2, Latency: 30 * time.Millisecond, At: s.now.Add(time.Second),
	}
	mustNot(t, s.stream.Record(t.Context(), "crm", []stream.Record{delivered}))
	s.await("the record is seen", func() bool { return s.newest().Deliveries[0].Status == stream.Delivered })
	latency := 30 * time.Millisecond
	sameAs(t, "delivery", s.newest().Deliveries[0], Delivery{
		Platform: "crm", Status: stream.Delivered, Attempts: 2, Latency: &latency, UpdatedAt: delivered.At,
	})
	second := s.follow()
	s.await("another view has replayed both streams", func() bool { return second.Status(t.Context()).Ready })
	if got := s.names(second); got != "pageview purchase " {
		t.Errorf("another view holds %q when it is ready", got)
	}
	status := second.Status(t.Context())
	if !status.Connected || status.Events != 2 || !status.AsOf.Equal(s.now) || !status.CompleteFrom.IsZero() {
		t.Errorf("status is %+v, want connected, 2 events, as of %s, nothing missing", status, s.now)
	}
}

func TestAViewReadsOnAfterRedisWasGone(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Persist: true, Loopback: true})
	s := newShop(t, server)
	s.accept("before")
	s.awaitNames("before ")
	mustNot(t, server.Kill())
	s.await("the view notices", func() bool { return !s.view.Status(t.Context()).Connected })
	if status := s.view.Status(t.Context()); !status.Ready || s.names(s.view) != "before " {
		t.Errorf("without Redis the status is %+v: the view must go on to answer from what it knows", status)
	}
	mustNot(t, server.Restart(t.Context()))
	s.accept("after")
	s.awaitNames("before after ")
	s.await("the view is connected", func() bool { return s.view.Status(t.Context()).Connected })
}

func TestAViewOfARedisThatCameBackWithLessHoldsWhatRedisHolds(t *testing.T) {
	for name, scene := range map[string]struct {
		accept []string
		from   time.Duration
		want   string
	}{
		"with nothing":                               {nil, 0, ""},
		"with other events that are older":           {[]string{"older"}, -time.Hour, "older "},
		"with the first event but without the last":  {[]string{"kept"}, 0, "kept "},
		"with newer events in place of the last one": {[]string{"kept", "skipped", "newer"}, 500 * time.Millisecond, "kept skipped newer "},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redisserver.Options{Loopback: true})
			s := newShop(t, server)
			s.accept("kept", "lost")
			s.awaitNames("kept lost ")
			mustNot(t, server.Kill())
			mustNot(t, server.Restart(t.Context()))
			s.load()
			s.now = begin.Add(scene.from)
			s.accept(scene.accept...)
			s.now = begin.Add(time.Hour)
			s.awaitNames(scene.want)
		})
	}
}

func TestAViewForgetsWhatIsTrimmed(t *testing.T) {
	s := newShop(t, redistest.Start(t, redisserver.Options{}))
	s.accept("a", "b", "c")
	s.awaitNames("a b c ")
	result, err := s.stream.Trim(t.Context(), stream.TrimPolicy{MaxEvents: 1})
	mustNot(t, err)
	if result.Removed != 2 {
		t.Fatalf("trimming removed %d events, want 2", result.Removed)
	}
	s.awaitNames("c ")
	if got, want := s.view.Status(t.Context()).CompleteFrom, s.now.Add(time.Millisecond); !got.Equal(want) {
		t.Errorf("complete from %s, want %s", got, want)
	}
	second := s.follow()
	s.await("a view that begins after the trimming is ready", func() bool { return second.Status(t.Context()).Ready })
	if got, want := second.Status(t.Context()).CompleteFrom, s.now.Add(time.Millisecond); !got.Equal(want) {
		t.Errorf("it is complete from %s, want %s", got, want)
	}
}

func TestAViewOfAStreamThatWasTrimmedEmptyIsCompleteFromItsEnd(t *testing.T) {
	s := newShop(t, redistest.Start(t, redisserver.Options{}))
	s.accept("a", "b")
	s.awaitNames("a b ")
	s.clock.Stop(s.now.Add(time.Hour))
	_, err := s.stream.Trim(t.Context(), stream.TrimPolicy{HardAge: time.Minute})
	mustNot(t, err)
	second := s.follow()
	s.await("a view that begins after the trimming is ready", func() bool { return second.Status(t.Context()).Ready })
	if got := second.Status(t.Context()); got.Events != 0 || !got.CompleteFrom.After(s.now) {
		t.Errorf("status is %+v, want no events and complete from after %s", got, s.now)
	}
}

func TestAViewSaysThatAPastIsMissingThatWasNeverInTheStream(t *testing.T) {
	for name, test := range map[string]struct {
		// events are how many come before the past, and how many are left after trimming; 0 for all.
		events, left int
		// beyond is how long after the first event the past ends.
		beyond time.Duration
		want   time.Duration
	}{
		"before the first event":           {3, 0, -time.Hour, -time.Hour + time.Millisecond},
		"among the events":                 {3, 0, 1500 * time.Millisecond, 1501 * time.Millisecond},
		"and events that were trimmed too": {3, 1, -time.Hour, 2*time.Second + time.Millisecond},
		"in an empty stream":               {0, 0, -time.Hour, -time.Hour + time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, redistest.Start(t, redisserver.Options{}))
			first := s.now.Add(time.Second)
			s.accept(make([]string, test.events)...)
			if test.left > 0 {
				_, err := s.stream.Trim(t.Context(), stream.TrimPolicy{MaxEvents: int64(test.left)})
				mustNot(t, err)
			}
			s.await("the first view is ready", func() bool { return s.view.Status(t.Context()).Ready })
			mustNot(t, s.stream.NoteBeyond(t.Context(), stream.At(first.Add(test.beyond))+1<<19))
			want := first.Add(test.want)
			for name, view := range map[string]*View{"one that was there": s.view, "one that begins": s.follow()} {
				s.await(name+" says so", func() bool { return view.Status(t.Context()).CompleteFrom.Equal(want) })
			}
		})
	}
}

// scriptedSource answers as its functions say.
type scriptedSource struct {
	events  func(after stream.Position) ([]stream.Entry, error)
	records func(after stream.Position) ([]stream.Record, stream.Position, error)
}

func (s scriptedSource) ReadEvents(ctx context.Context, after stream.Position, _ int, block time.Duration) ([]stream.Entry, error) {
	entries, err := s.events(after)
	return entries, pause(ctx, block, err, len(entries) > 0)
}

func (s scriptedSource) ReadRecords(ctx context.Context, after stream.Position, _ int, block time.Duration) (stream.Records, error) {
	records, last, err := s.records(after)
	return stream.Records{Records: records, Last: last}, pause(ctx, block, err, last != after)
}

func pause(ctx context.Context, block time.Duration, err error, found bool) error {
	if err != nil || found || block == 0 {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(block):
		return nil
	}
}

func (s scriptedSource) Bounds(context.Context) (stream.Bounds, error) { return stream.Bounds{}, nil }

func (s scriptedSource) Dropped(context.Context) (stream.Dropped, error) {
	return stream.Dropped{}, nil
}

func (s scriptedSource) Beyond(context.Context) (stream.Position, error) { return 0, nil }

func (s scriptedSource) RecordBounds(context.Context) (stream.Bounds, error) {
	return stream.Bounds{}, nil
}

func TestAViewAsksADeadSourceEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		began := time.Now()
		source := scriptedSource{events: func(stream.Position) ([]stream.Entry, error) {
			asked = append(asked, time.Since(began))
			return nil, errors.New("connection refused")
		}}
		view := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := view.Follow(ctx, source); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Follow ended with %v", err)
		}
		var want []time.Duration
		for at, wait := time.Duration(0), 100*time.Millisecond; at < 20*time.Second; at, wait = at+wait, min(2*wait, 5*time.Second) {
			want = append(want, at)
		}
		sameAs(t, "times of attempts", asked, want)
		if status := view.Status(t.Context()); status.Ready || status.Connected {
			t.Errorf("status is %+v, want neither ready nor connected", status)
		}
	})
}

func TestUnreadableEntriesArePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		position := stream.At(begin)
		good := event.Event{ID: "good", DeliveryID: uuid.New(), Name: "pageview", Platforms: []string{"crm"}}
		source := scriptedSource{
			events: func(after stream.Position) ([]stream.Entry, error) {
				all := []stream.Entry{{Position: position, Data: []byte{255}}, {Position: position + 1, Data: wire.Encode(&good)}}
				return slices.DeleteFunc(all, func(e stream.Entry) bool { return e.Position <= after }), nil
			},
			records: func(after stream.Position) ([]stream.Record, stream.Position, error) {
				switch after {
				case 0:
					return nil, 1, &stream.RecordsError{Position: 1, Cause: errors.New("damaged")}
				case 1:
					return []stream.Record{{Event: position + 1, Platform: "crm", Status: stream.Failed, At: begin}}, 2, nil
				}
				return nil, after, nil
			},
		}
		view := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := view.Follow(ctx, source); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Follow ended with %v", err)
		}
		status := view.Status(t.Context())
		if !status.Ready || status.Events != 1 || status.Unreadable != 1 {
			t.Errorf("status is %+v, want ready with one event and one unreadable entry", status)
		}
		page, err := view.Listing(t.Context(), ListingQuery{Range: Range{To: begin.Add(time.Hour)}, Limit: 10})
		mustNot(t, err)
		if len(page.Records) != 1 || page.Records[0].Deliveries[0].Status != stream.Failed {
			t.Errorf("the listing is %+v, want the readable event and its failed delivery", page)
		}
	})
}

func TestAViewIsRebuiltWhenOnlyTheRecordsWereRewound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		position := stream.At(begin)
		e := event.Event{ID: "e", DeliveryID: uuid.New(), Name: "pageview", Platforms: []string{"crm"}}
		delivered := []stream.Record{{Event: position, Platform: "crm", Status: stream.Delivered, Attempts: 1, At: begin}}
		rewoundAt := time.Now().Add(time.Minute)
		source := scriptedSource{
			events: func(after stream.Position) ([]stream.Entry, error) {
				if after >= position {
					return nil, nil
				}
				return []stream.Entry{{Position: position, Data: wire.Encode(&e)}}, nil
			},
			records: func(after stream.Position) ([]stream.Record, stream.Position, error) {
				if after >= 7 || time.Now().After(rewoundAt) {
					return nil, after, nil
				}
				return delivered, 7, nil
			},
		}
		view := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
		status := func() stream.Status {
			page, err := view.Listing(t.Context(), ListingQuery{Range: Range{To: begin.Add(time.Hour)}, Limit: 1})
			mustNot(t, err)
			return page.Records[0].Deliveries[0].Status
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		ended := make(chan error)
		go func() { ended <- view.Follow(ctx, source) }()
		<-time.After(30 * time.Second)
		if got := status(); got != stream.Delivered {
			t.Errorf("before the rewind the delivery is %s, want delivered", got)
		}
		<-time.After(time.Minute)
		if got := status(); got != stream.Pending || !view.Status(t.Context()).Ready {
			t.Errorf("after it the delivery is %s, want pending again, and the view ready", got)
		}
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Follow ended with %v", err)
		}
	})
}
