package history_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/forget"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// ledgerOf is a ledger and the one erasure that everybody in it stands in.
type ledgerOf struct {
	erasure.Ledger
	steps []stream.HistoryStep
	// interrupt is called when something is noted.
	interrupt func(stream.HistoryStep) error
}

func (l *ledgerOf) Known(context.Context) ([]erasure.Entry, erasure.Salt, error) {
	return l.Entries(), l.Salt, nil
}

func (l *ledgerOf) HistoryErasures(context.Context) ([]stream.HistoryErasure, error) {
	return []stream.HistoryErasure{{ID: "one", Hidden: slices.Contains(l.steps, stream.HistoryHidden)}}, nil
}

func (l *ledgerOf) ErasureEntries(context.Context, []string) (map[string][]erasure.Entry, error) {
	return map[string][]erasure.Entry{"one": l.Entries()}, nil
}

func (l *ledgerOf) NoteHistory(_ context.Context, notes []stream.HistoryNote) error {
	for _, note := range notes {
		if err := l.interrupt(note.Step); err != nil {
			return err
		}
		l.steps = append(l.steps, note.Step)
	}
	return nil
}

var errStop = errors.New("that far")

// eraseSomebody stands somebody in the ledger, and returns the events that go.
func (p *past) eraseSomebody(t *testing.T, l *ledgerOf) (gone []stream.Position) {
	t.Helper()
	entry := erasure.Entry{At: begin.Add(time.Duration(p.Int64N(p.last.Time().Sub(begin).Milliseconds()+1)) * time.Millisecond), Suppress: p.IntN(2) == 0}
	ids := make([]event.Identifiers, len(p.entries))
	for i, one := range p.entries {
		e, err := wire.Decode(one.Data)
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = e.Identifiers(property, nil)
	}
	who := ids[p.IntN(len(ids))].List
	if len(who) == 0 {
		return nil
	}
	entry.Digest = l.Salt.Digest(who[p.IntN(len(who))])
	l.Add(entry)
	for i := range ids {
		if l.Erased(ids[i], p.entries[i].Position.Time()) {
			gone = append(gone, p.entries[i].Position)
		}
	}
	return gone
}

// steps has a forgetter do all that it can.
func steps(t *testing.T, f *forget.Forgetter) error {
	t.Helper()
	const rounds = 5
	for range rounds {
		err := f.Step(t.Context())
		f.Wait()
		if err != nil {
			return err
		}
	}
	return nil
}

// TestBothEnginesAnswerTheSameAfterErasures erases persons of made-up pasts, whom the view forgets at once: the answers of the history
// are the same from the moment on when the erasure is noted as hidden, and when the rows are gone.
func TestBothEnginesAnswerTheSameAfterErasures(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	kinds := allKinds()
	delete(kinds, "status") // how far a view is it knows of events that have gone, too
	names := slices.Sorted(maps.Keys(kinds))
	for n := range max(1, *questions/50) {
		p := newPast(t, first+uint64(n))
		again := fmt.Sprintf("-seed %d -questions 1", first+uint64(n))
		l := &ledgerOf{}
		l.Salt[0] = byte(n)
		for range 1 + p.IntN(3) {
			l.steps = nil
			if err := p.view.Erase(p.eraseSomebody(t, l)); err != nil {
				t.Fatal(err)
			}
			f := forget.New(forget.Options{Client: p.client, Ledger: l, Erasures: l, Logger: slog.New(slog.DiscardHandler)})
			for _, until := range []error{errStop, nil} {
				l.interrupt = func(step stream.HistoryStep) error {
					if step != stream.HistoryHidden {
						return nil
					}
					for range 12 {
						p.compare(t, pick(p.Rand, names...), again)
					}
					return until
				}
				if err := steps(t, f); !errors.Is(err, until) {
					t.Fatalf("%s: %v", again, err)
				}
			}
			hidden, err := clickhouse.One[uint64](t.Context(), p.client, clickhouse.Query{
				SQL: "SELECT count() FROM (SELECT at FROM events UNION ALL SELECT at FROM records) WHERE at IN (SELECT at FROM " + schema.Erased + ")",
			})
			if err != nil || hidden > 0 {
				t.Fatalf("%s: %d rows are left, %v", again, hidden, err)
			}
			for range 12 {
				p.compare(t, pick(p.Rand, names...), again)
			}
		}
	}
}
