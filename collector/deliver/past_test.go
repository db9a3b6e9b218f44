package deliver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// longAgo is a property with a history, in which there are events of a hundred days ago that Redis has no more.
type longAgo struct {
	*harness
	receiver *receiver
	proxy    *clickhousetest.Proxy
	client   *clickhouse.Client
	history  *history.Engine
	// ids are the delivery ids, positions where the events were.
	ids       []string
	positions []stream.Position
}

// newLongAgo has an event for each of the records' lists; their positions are filled in.
func newLongAgo(t *testing.T, of ...[]stream.Record) *longAgo {
	t.Helper()
	receiver := newReceiver(t, nil)
	h := newHarness(t, receiver.platform("crm"))
	receiver.tolerance = 1000 * time.Hour
	h.property.History = &config.History{RetentionDays: 400}
	l := &longAgo{harness: h, receiver: receiver, proxy: clickhousetest.StartProxy(t, clickhousetest.Shared(t))}
	var err error
	if l.client, err = clickhouse.Dial(l.proxy.URL(), clickhouse.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.client.Close)
	if _, err := schema.Ensure(t.Context(), l.client); err != nil {
		t.Fatal(err)
	}
	l.history = history.New(history.Options{Client: l.client, Currency: "EUR"})
	var events []rows.Event
	var records []rows.Record
	begin := time.Now().Add(-100 * 24 * time.Hour)
	for i, said := range of {
		at := stream.At(begin.Add(time.Duration(i) * time.Second))
		e := event.Event{
			ID: fmt.Sprint("old-", i), DeliveryID: uuid.New(), Name: "purchase", ClientID: fmt.Sprint("client-", i), Platforms: []string{"crm"},
			Context: event.Context{IP: "203.0.113.7", UserAgent: "UA"},
		}
		events = append(events, rows.FromEvent("default/shop", at, &e))
		l.ids, l.positions = append(l.ids, e.DeliveryID.String()), append(l.positions, at)
		for n, record := range said {
			record.Event, record.Platform, record.At = at, "crm", at.Time().Add(time.Duration(n)*time.Second)
			records = append(records, rows.FromRecord(stream.At(record.At), n, &record, e.Name))
		}
	}
	if err := errors.Join(
		clickhouse.Insert(t.Context(), l.client, schema.Events, events, ""), clickhouse.Insert(t.Context(), l.client, schema.Records, records, ""),
	); err != nil {
		t.Fatal(err)
	}
	return l
}

// reading has an engine read the history.
func (l *longAgo) reading(e *Engine) { e.options.Past = l.history }

// replay asks for one of everything, as a query pod does.
func (l *longAgo) replay(statuses ...stream.Status) (int, error) {
	return stream.ReplayRequester{Stream: l.stream}.Replay(l.t.Context(), stream.ReplayRequest{
		Platform: "crm", From: l.now().Add(-365 * 24 * time.Hour), To: l.now(), Statuses: statuses,
	})
}

// failedEvents are records of so many events that failed.
func failedEvents(n int) [][]stream.Record {
	list := make([][]stream.Record, n)
	for i := range list {
		list[i] = []stream.Record{{Status: stream.Failed, Attempts: 2, Reason: "http_400"}}
	}
	return list
}

func TestAReplayDeliversWhatRedisNoLongerHas(t *testing.T) {
	said := map[string][]stream.Record{
		"failed":             {{Status: stream.Failed, Attempts: 2, Reason: "http_400"}},
		"expired at last":    {{Status: stream.Retrying, Attempts: 1, Reason: "http_500"}, {Status: stream.Expired, Attempts: 9, Reason: "too_old"}},
		"in the mode Shadow": {{Status: stream.Skipped, Reason: stream.ReasonShadow}},
		"skipped":            {{Status: stream.Skipped, Reason: "no_consent"}},
		"delivered":          {{Status: stream.Failed, Attempts: 1}, {Status: stream.Delivered, Attempts: 2}},
		"never decided":      nil,
	}
	names := []string{"failed", "expired at last", "in the mode Shadow", "skipped", "delivered", "never decided"}
	for name, test := range map[string]struct {
		statuses []stream.Status
		want     []string
	}{
		"what failed or expired":             {[]stream.Status{stream.Failed, stream.Expired}, []string{"failed", "expired at last"}},
		"what failed alone":                  {[]stream.Status{stream.Failed}, []string{"failed"}},
		"what was not sent for being Shadow": {[]stream.Status{stream.Skipped}, []string{"in the mode Shadow"}},
	} {
		t.Run(name, func(t *testing.T) {
			var list [][]stream.Record
			for _, of := range names {
				list = append(list, said[of])
			}
			l := newLongAgo(t, list...)
			now := l.accept(purchase)
			l.start("one", l.reading)
			l.await("the event of today", func() string { return cmp.Diff("delivered", l.last("crm", now).Status) })
			before := len(l.receiver.acceptances())
			if n, err := l.replay(test.statuses...); err != nil || n != len(test.want) {
				t.Fatalf("Replay = %d, %v, want %d", n, err, len(test.want))
			}
			want := map[string]int{}
			for i, of := range names {
				for _, wanted := range test.want {
					if of == wanted {
						want[l.ids[i]] = 1
						l.await("the record of it", func() string { return cmp.Diff("delivered", l.last("crm", l.positions[i]).Status) })
					}
				}
			}
			got := l.receiver.acceptances()
			if len(got) != before+len(want) {
				t.Errorf("%d events arrived, want %d", len(got)-before, len(want))
			}
			for id, n := range want {
				if got[id] != n {
					t.Errorf("an event arrived %d times under the delivery id that it had, want once", got[id])
				}
			}
			if n, err := l.replay(test.statuses...); err != nil || n != 0 {
				t.Errorf("the same again = %d, %v, want 0", n, err)
			}
		})
	}
}

func TestAHistoryThatIsAwayHoldsUpReplaysAndLosesNone(t *testing.T) {
	l := newLongAgo(t, failedEvents(50)...)
	l.receiver.setFailure(always(answer{status: 500}))
	running := l.start("one", l.reading)
	l.proxy.Add(clickhousetest.Fault{CutBefore: true})
	if _, err := l.replay(stream.Failed); err == nil {
		t.Fatal("it is said that events were put back that nobody could read")
	}
	l.proxy.Heal()
	if n, err := l.replay(stream.Failed); err != nil || n != 50 {
		t.Fatalf("Replay = %d, %v, want 50", n, err)
	}
	l.proxy.Add(clickhousetest.Fault{CutBefore: true})
	l.receiver.setFailure(nil)
	fresh := l.accept(purchase)
	l.await("an event of today meanwhile", func() string { return cmp.Diff("delivered", l.last("crm", fresh).Status) })
	running.stop()
	l.start("one", l.reading)
	l.proxy.Heal()
	for i, id := range l.ids {
		l.await("the event", func() string { return cmp.Diff("delivered", l.last("crm", l.positions[i]).Status) })
		if got := l.receiver.acceptances()[id]; got < 1 {
			t.Errorf("event %d arrived %d times", i, got)
		}
	}
}

func TestADelivererThatIsKilledLosesNothingThatWasPutBack(t *testing.T) {
	const events = 400
	l := newLongAgo(t, failedEvents(events)...)
	l.receiver.setFailure(first(20, answer{status: 503}))
	victim := l.startVictim("one", l.reading)
	if n, err := l.replay(stream.Failed); err != nil || n != events {
		t.Fatalf("Replay = %d, %v, want %d", n, err, events)
	}
	for kill := range 5 {
		victim.kill()
		victim = l.startVictim(fmt.Sprint("pod-", kill), l.reading)
		l.await("some of them", func() string {
			if got := len(l.receiver.acceptances()); got < min(events, 40*(kill+1)) {
				return fmt.Sprint(got)
			}
			return ""
		})
	}
	l.await("all of them", func() string { return cmp.Diff(events, len(l.receiver.acceptances())) })
	l.await("that nothing waits", func() string { return cmp.Diff(int64(0), l.group("crm").Waiting) })
	want := map[stream.Position]record{}
	for _, position := range l.positions {
		want[position] = record{Status: "delivered"}
	}
	l.eventuallyLike("crm", want)
}

func TestNothingOfErasedPersonsIsDeliveredFromTheHistory(t *testing.T) {
	l := newLongAgo(t, failedEvents(3)...)
	l.receiver.setFailure(func(*http.Request) *answer { return &answer{status: 503} })
	l.start("one", l.reading)
	if n, err := l.replay(stream.Failed); err != nil || n != 3 {
		t.Fatalf("Replay = %d, %v, want 3", n, err)
	}
	// Hidden, as an erasure does first.
	if err := clickhouse.Insert(context.WithoutCancel(t.Context()), l.client, schema.Erased, []erasedRow{{uint64(l.positions[1]), 1}}, ""); err != nil {
		t.Fatal(err)
	}
	l.await("that it waits no more", func() string { return cmp.Diff(int64(2), l.group("crm").Waiting) })
	before := l.receiver.arrivals()[l.ids[1]]
	l.receiver.setFailure(nil)
	l.await("the others", func() string { return cmp.Diff(2, len(l.receiver.acceptances())) })
	if got := l.receiver.arrivals()[l.ids[1]]; got != before {
		t.Errorf("it was sent %d times after it was erased", got-before)
	}
	if n, err := l.replay(stream.Failed); err != nil || n != 0 {
		t.Errorf("Replay = %d, %v, want 0", n, err)
	}
}

// erasedRow is a row of the table of what was erased.
type erasedRow struct {
	At    uint64 `ch:"at"`
	Batch uint32 `ch:"batch"`
}

func TestWhatIsNowhereAnyMoreExpires(t *testing.T) {
	l := newLongAgo(t, failedEvents(1)...)
	l.receiver.setFailure(always(answer{status: 503}))
	running := l.start("one", l.reading)
	if n, err := l.replay(stream.Failed); err != nil || n != 1 {
		t.Fatalf("Replay = %d, %v, want 1", n, err)
	}
	running.stop()
	l.property.History = nil // switched off
	l.start("one", nil)
	l.await("its end", func() string { return cmp.Diff("trimmed", l.last("crm", l.positions[0]).Reason) })
}
