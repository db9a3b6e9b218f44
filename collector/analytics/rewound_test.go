package analytics

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// imitation is a property's two streams as Redis has them: entries that are added, trimmed, erased with an announcement in
// the same step, and lost. It is one thing at a time; meddle is called before each read, and may do any of these.
type imitation struct {
	*rand.Rand
	meddle func()

	mu              sync.Mutex
	now             time.Time
	events, records imitated
	// trimmed is the newest event that was trimmed.
	trimmed stream.Position
	// backups are states of earlier.
	backups []backup
	rewound bool
	// ledger are all events that were ever erased: they are erased again where a backup brings them back.
	ledger map[stream.Position]bool
}

// backup is a state of both streams.
type backup struct {
	events, records imitated
	trimmed         stream.Position
}

// imitated is one stream.
type imitated struct {
	entries []imitatedEntry
	bounds  stream.Bounds
}

// imitatedEntry is an event, or what an entry of the deliveries stream says.
type imitatedEntry struct {
	stream.Entry
	stream.Records
}

func (s *imitated) add(entry imitatedEntry) {
	s.entries = append(s.entries, entry)
	s.bounds.Newest = entry.Position
	s.bounds.Added++
}

func (s *imitated) erase(p stream.Position) {
	s.entries = slices.DeleteFunc(s.entries, func(e imitatedEntry) bool { return e.Position == p })
	s.bounds.MaxDeleted = max(s.bounds.MaxDeleted, p)
}

// behind returns up to count entries behind a position.
func (s *imitated) behind(after stream.Position, count int) []imitatedEntry {
	var found []imitatedEntry
	for _, e := range s.entries {
		if e.Position > after && len(found) < count {
			found = append(found, e)
		}
	}
	return found
}

func (s *imitated) ends() stream.Bounds {
	b := s.bounds
	if b.Length = int64(len(s.entries)); b.Length > 0 {
		b.First, b.Last = s.entries[0].Position, s.entries[b.Length-1].Position
	}
	return b
}

// tick moves the clock on and returns the position of what happens then.
func (m *imitation) tick() stream.Position {
	m.now = m.now.Add(time.Second)
	return stream.At(m.now)
}

func (m *imitation) add(count int) {
	for range count {
		p := m.tick()
		e := event.Event{ID: fmt.Sprint(uint64(p)), DeliveryID: uuid.UUID{6: 0x70, 8: 0x80}, Name: "pageview", ClientID: "c", Platforms: []string{"crm"}}
		m.events.add(imitatedEntry{Entry: stream.Entry{Position: p, Data: wire.Encode(&e)}})
	}
}

// record notes that an event was delivered.
func (m *imitation) record() {
	if len(m.events.entries) > 0 {
		e := pick(m.Rand, m.events.entries...)
		m.say(stream.Records{Records: []stream.Record{{Event: e.Position, Platform: "crm", Status: stream.Delivered, Attempts: 1, At: e.Position.Time()}}})
	}
}

func (m *imitation) say(r stream.Records) {
	p := m.tick()
	m.records.add(imitatedEntry{Entry: stream.Entry{Position: p}, Records: r})
}

// erase erases some events.
func (m *imitation) erase(which func(e imitatedEntry, at, count int) bool) {
	var erased []stream.Position
	for i, e := range m.events.entries {
		if which(e, i, len(m.events.entries)) {
			erased = append(erased, e.Position)
		}
	}
	for _, p := range erased {
		m.events.erase(p)
		m.ledger[p] = true
	}
	if len(erased) > 0 {
		m.say(stream.Records{Erased: erased})
		if m.IntN(4) == 0 { // some of them for another reason too
			m.say(stream.Records{Erased: erased[:1+m.IntN(len(erased))]})
		}
	}
}

// replace writes an entry of the deliveries stream anew, as where one of its records was of an erased event.
func (m *imitation) replace() {
	if last := len(m.records.entries) - 1; last >= 0 && m.records.entries[last].Erased == nil {
		e := m.records.entries[last]
		m.records.erase(e.Position)
		m.say(e.Records)
	}
}

func (m *imitation) trim(count int) {
	gone := m.events.entries[:min(count, len(m.events.entries))]
	if len(gone) > 0 {
		m.trimmed = gone[len(gone)-1].Position
	}
	m.events.entries = slices.Clone(m.events.entries[len(gone):])
}

// backUp remembers both streams as they are.
func (m *imitation) backUp() {
	b := backup{m.events, m.records, m.trimmed}
	b.events.entries, b.records.entries = slices.Clone(m.events.entries), slices.Clone(m.records.entries)
	m.backups = append(m.backups, b)
}

// restore goes back to an earlier state.
func (m *imitation) restore() {
	b := pick(m.Rand, m.backups...)
	m.events, m.records, m.trimmed, m.backups, m.rewound = b.events, b.records, b.trimmed, nil, true
}

// lock begins something that happens at once.
func (m *imitation) lock() (unlock func()) {
	m.mu.Lock()
	if m.meddle != nil {
		m.meddle()
	}
	return m.mu.Unlock
}

func (m *imitation) ReadEvents(ctx context.Context, after stream.Position, count int, block time.Duration) ([]stream.Entry, error) {
	unlock := m.lock()
	var entries []stream.Entry
	for _, e := range m.events.behind(after, min(count, 7)) {
		entries = append(entries, e.Entry)
	}
	unlock()
	return entries, pause(ctx, block, nil, len(entries) > 0)
}

func (m *imitation) ReadRecords(ctx context.Context, after stream.Position, count int, block time.Duration) (stream.Records, error) {
	unlock := m.lock()
	found := stream.Records{Last: after}
	for _, e := range m.records.behind(after, min(count, 7)) {
		found.Last = e.Position
		found.Records, found.Erased = append(found.Records, e.Records.Records...), append(found.Erased, e.Erased...)
	}
	unlock()
	return found, pause(ctx, block, nil, found.Last != after)
}

func (m *imitation) Bounds(context.Context) (stream.Bounds, error) {
	defer m.lock()()
	return m.events.ends(), nil
}

func (m *imitation) Dropped(context.Context) (stream.Dropped, error) { return stream.Dropped{}, nil }
func (m *imitation) Beyond(context.Context) (stream.Position, error) { return 0, nil }

func (m *imitation) RecordBounds(context.Context) (stream.Bounds, error) {
	defer m.lock()()
	return m.records.ends(), nil
}

// settle lets nothing happen any more until the view has noticed everything.
func (m *imitation) settle() {
	m.mu.Lock()
	m.meddle = nil
	m.erase(func(e imitatedEntry, _, _ int) bool { return m.ledger[e.Position] })
	m.mu.Unlock()
	<-time.After(30 * time.Second)
}

// ids lists the events that there are, or those of a view.
func (m *imitation) ids() string {
	var list []string
	for _, e := range m.events.entries {
		list = append(list, fmt.Sprint(uint64(e.Position)))
	}
	return strings.Join(list, " ")
}

func idsOf(t *testing.T, v *View) string {
	t.Helper()
	page, err := v.Listing(t.Context(), ListingQuery{Range: Range{To: begin.AddDate(1, 0, 0)}, Limit: 100_000})
	mustNot(t, err)
	var list []string
	for _, r := range slices.Backward(page.Records) {
		list = append(list, r.EventID)
	}
	return strings.Join(list, " ")
}

// messages remembers what was logged.
type messages struct{ text strings.Builder }

func (m *messages) Write(b []byte) (int, error) { return m.text.Write(b) }

// following is a view that follows an imitation until the test's bubble ends.
func (m *imitation) following(t *testing.T) (*View, *messages) {
	logged := &messages{}
	view := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.NewTextHandler(logged, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = view.Follow(ctx, m) // ends with its context
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return view, logged
}

// wantTrue fails where a view is not of the imitation's events, or is complete from another time than is true.
func (m *imitation) wantTrue(t *testing.T, what string, v *View) {
	t.Helper()
	if got, want := idsOf(t, v), m.ids(); got != want {
		t.Fatalf("%s holds\n%s, want\n%s", what, got, want)
	}
	status := v.Status(t.Context())
	switch from := status.CompleteFrom; {
	case !status.Ready || status.Events != len(m.events.entries):
		t.Fatalf("%s: status is %+v, want ready with %d events", what, status, len(m.events.entries))
	// Lost events whose place was erased look like trimmed ones, which says no more than that less is complete.
	case m.trimmed == 0 && !m.rewound && !from.IsZero():
		t.Fatalf("%s says that it is complete from %s, and nothing was trimmed", what, from)
	case m.trimmed != 0 && !from.After(m.trimmed.Time()):
		t.Fatalf("%s says that it is complete from %s, and an event of %s was trimmed", what, from, m.trimmed.Time())
	case from.After(beginOf(m.events.ends()).Time().Add(time.Millisecond)):
		t.Fatalf("%s says that it is complete from %s, and its first event is of %s", what, from, m.events.ends().First.Time())
	}
}

// happen does something that happens to streams.
func (m *imitation) happen() {
	switch m.IntN(16) {
	case 0, 1, 2, 3:
		m.add(1 + m.IntN(20))
	case 4, 5, 6:
		m.record()
	case 7, 8:
		m.replace()
	case 9:
		m.erase(func(_ imitatedEntry, at, count int) bool { return at == count-1 })
	case 10:
		m.erase(func(_ imitatedEntry, at, _ int) bool { return at == 0 })
	case 11:
		one := m.IntN(3) + 1
		m.erase(func(imitatedEntry, int, int) bool { return m.IntN(4) < one })
	default:
	}
}

func TestAViewIsThatOfItsStreamWhateverIsErasedTrimmedOrLost(t *testing.T) {
	for name, more := range map[string]func(m *imitation){
		"erasures alone":        func(*imitation) {},
		"erasures and trimming": func(m *imitation) { m.trim(m.IntN(30) * m.IntN(2)) },
		"erasures and a restore": func(m *imitation) {
			if len(m.backups) > 0 && m.IntN(5) == 0 {
				m.restore()
			}
			m.backUp()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(150) {
				synctest.Test(t, func(t *testing.T) {
					m := &imitation{Rand: rand.New(rand.NewPCG(seed, 11)), now: begin, ledger: map[stream.Position]bool{}}
					m.add(m.IntN(60))
					v, logged := m.following(t)
					for range 4 {
						m.mu.Lock()
						wait := time.Duration(m.IntN(20)) * time.Second
						m.meddle = func() {
							if m.IntN(8) == 0 {
								m.happen()
							}
							if m.IntN(40) == 0 {
								more(m)
							}
						}
						m.mu.Unlock()
						<-time.After(wait)
						m.settle()
						m.wantTrue(t, fmt.Sprint("seed ", seed, ": the view"), v)
						if !m.rewound && strings.Contains(logged.text.String(), "rebuilding") {
							t.Fatalf("seed %d: the view was rebuilt though nothing was lost: %s", seed, logged.text.String())
						}
					}
					fresh, _ := m.following(t)
					m.settle()
					m.wantTrue(t, fmt.Sprint("seed ", seed, ": a view that begins now"), fresh)
				})
			}
		})
	}
}
