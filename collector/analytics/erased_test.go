package analytics

import (
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

// erase erases the events at some places of the stream, the first being 0.
func (s *shop) erase(places ...int) {
	s.Helper()
	entries, err := s.stream.ReadEvents(s.Context(), 0, 1000, 0)
	mustNot(s, err)
	var erased []stream.ErasedEvent
	for _, place := range places {
		erased = append(erased, stream.ErasedEvent{
			Position: entries[place].Position, EventID: "e", Erasures: []string{uuid.NewString()},
		})
	}
	mustNot(s, s.stream.EraseEvents(s.Context(), erased))
}

func TestErasedEventsLeaveAViewAndNothingElseDoes(t *testing.T) {
	s := newShop(t, redistest.Start(t, redisserver.Options{}))
	s.accept("a", "b", "c", "d")
	s.awaitNames("a b c d ")
	s.erase(0, 3) // the first and the newest
	s.awaitNames("b c ")
	s.accept("e", "f")
	s.awaitNames("b c e f ")
	s.erase(0, 1)
	s.awaitNames("e f ")
	second := s.follow()
	s.await("a view that begins now is ready", func() bool { return second.Status(t.Context()).Ready })
	for name, view := range map[string]*View{"the view": s.view, "one that begins now": second} {
		if status := view.Status(t.Context()); s.names(view) != "e f " || status.Events != 2 || !status.CompleteFrom.IsZero() {
			t.Errorf("%s holds %q with the status %+v, want e and f, and nothing missing", name, s.names(view), status)
		}
	}
	s.erase(0)
	_, err := s.stream.Trim(t.Context(), stream.TrimPolicy{MaxEvents: 0})
	mustNot(t, err)
	s.accept("g", "h")
	_, err = s.stream.Trim(t.Context(), stream.TrimPolicy{MaxEvents: 1})
	mustNot(t, err)
	s.awaitNames("h ")
	if got, want := s.view.Status(t.Context()).CompleteFrom, s.now.Add(time.Millisecond); !got.Equal(want) {
		t.Errorf("after trimming it is complete from %s, want %s", got, want)
	}
}

func TestEventsOfErasedPersonsNeverGetIntoAView(t *testing.T) {
	received := stream.At(begin).Time()
	v := NewView(Options{
		Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler),
		Erased: func(e *event.Event, at time.Time) bool { return e.ClientID == "erased" && at.Equal(received) },
	})
	var entries []stream.Entry
	for i, who := range []string{"erased", "kept"} {
		e := event.Event{ID: who, DeliveryID: uuid.New(), Name: "pageview", ClientID: who}
		entries = append(entries, stream.Entry{Position: stream.At(begin) + stream.Position(i), Data: wire.Encode(&e)})
	}
	mustNot(t, v.AddEvents(entries))
	page, err := v.Listing(t.Context(), ListingQuery{Range: Range{To: begin.Add(time.Hour)}, Limit: 10})
	mustNot(t, err)
	if status := v.Status(t.Context()); len(page.Records) != 1 || page.Records[0].EventID != "kept" || status.Unreadable != 0 {
		t.Errorf("the listing is %+v with the status %+v, want the other one's event alone", page.Records, status)
	}
}
