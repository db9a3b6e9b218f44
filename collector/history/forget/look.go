package forget

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// look is one way through the rows, for some of the ledger's entries.
type look struct {
	digester *erasure.Digester
	targets  map[erasure.Digest]target
	// unanswered are the erasures of which it has to be found what was seen with their subjects, by their ids.
	unanswered map[string]*linkedTo
	// state is that of the tables before it. parts are those of the table that are looked at, nil for all.
	state *tables
	parts []part
	// all says that all of the ledger is looked for.
	all bool

	// unwanted remembers numbers that are not looked for, each in one place: their digests cost more than all else.
	unwanted []uint64
	// found are the numbers that are.
	found map[uint64]found
	// waits are the digests by which rows go that cannot go yet.
	waits map[erasure.Digest]bool
	// hidden is how many rows were hidden.
	hidden int
}

// target is what is looked for: an entry of the ledger, and of the erasures among those that wait for what was seen with their
// subjects what they have under the same digest.
type target struct {
	entry erasure.Entry
	held  []heldEntry
}

type heldEntry struct {
	id    string
	entry erasure.Entry
}

// found is a visitor or identifier that is looked for.
type found struct {
	digest erasure.Digest
	target
}

// linkedTo is what was seen with an erasure's subject.
type linkedTo struct {
	erasure stream.HistoryErasure
	numbers map[uint64]struct{}
}

// remembered is how many places look.unwanted has.
const remembered = 1 << 18

// goesBy says whether what was received at a time goes by an entry.
func goesBy(entry erasure.Entry, received time.Time) bool {
	return entry.Suppress || !received.After(entry.At)
}

// plan returns the look that is to be taken now; nil for none.
func (f *Forgetter) plan(ctx context.Context, open []stream.HistoryErasure, entries []erasure.Entry, salt erasure.Salt) (*look, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	l := &look{
		digester: salt.Digester(), targets: map[erasure.Digest]target{}, unanswered: map[string]*linkedTo{}, found: map[uint64]found{},
		waits: map[erasure.Digest]bool{},
	}
	if err := f.hold(ctx, l, open); err != nil {
		return nil, err
	}
	var err error
	if l.state, err = f.read(ctx); err != nil {
		return nil, err
	}
	now := f.elapsed()
	// Rows may be back that had gone, where the server has started anew or its table is another.
	l.all = f.seen == nil || l.state.isAnother(f.seen) || now-f.whole >= wholly
	changed := l.add(entries, func(entry erasure.Entry) bool {
		known, isDone := f.done[entry.Digest]
		return l.all || (!isDone || known != entry) && !f.waits[entry.Digest]
	})
	if !changed && len(l.unanswered) == 0 {
		if now-f.looked < again {
			return nil, nil
		}
		l.all, l.parts = true, l.state.since(f.seen)
		if len(l.parts) == 0 {
			f.seen, f.looked = l.state, now
			return nil, nil
		}
		l.add(entries, func(erasure.Entry) bool { return true })
		return l, nil
	}
	// Blocks that were begun by somebody who did not know of the ledger as it is now are in the tables then.
	return l, f.settled(ctx)
}

// hold adds those erasures of which it is not known yet what was seen with their subjects: their rows are needed until then.
func (f *Forgetter) hold(ctx context.Context, l *look, open []stream.HistoryErasure) error {
	held, ids := map[string]time.Time{}, []string(nil)
	for _, one := range open {
		if one.Follow {
			held[one.ID] = one.Ledgered
			ids = append(ids, one.ID)
		}
	}
	if !maps.Equal(held, f.held) {
		f.held, f.waits = held, nil
	}
	if len(ids) == 0 {
		return nil
	}
	parts, err := f.erasures.ErasureEntries(ctx, ids)
	if err != nil {
		return err
	}
	// What was seen with a subject is looked for in Redis after it was here. What may leave Redis meanwhile has to be here by now.
	var current time.Time
	if f.current != nil {
		if current, err = f.current(ctx); err != nil {
			return err
		}
	}
	for _, one := range open {
		if !one.Follow {
			continue
		}
		if !one.Found && !f.behind(current, one) {
			l.unanswered[one.ID] = &linkedTo{one, map[uint64]struct{}{}}
		}
		for _, entry := range parts[one.ID] {
			t := l.targets[entry.Digest]
			t.held = append(t.held, heldEntry{one.ID, entry})
			l.targets[entry.Digest] = t
		}
	}
	return nil
}

// behind says whether the tables lack events that were there when an erasure stood in the ledger.
func (f *Forgetter) behind(current time.Time, one stream.HistoryErasure) bool {
	return f.current != nil && current.Before(one.Ledgered)
}

// add adds those entries that are wanted, and says whether there are any.
func (l *look) add(entries []erasure.Entry, wanted func(erasure.Entry) bool) (some bool) {
	for _, entry := range entries {
		t, isHeld := l.targets[entry.Digest]
		if isNew := wanted(entry); isNew || isHeld {
			t.entry = entry
			l.targets[entry.Digest] = t
			some = some || isNew
		}
	}
	return some
}

// look finds the rows that are to go and hides them, and notes what was seen with those subjects of which it is asked.
func (f *Forgetter) look(ctx context.Context, l *look) error {
	began := f.elapsed()
	l.unwanted = make([]uint64, remembered)
	if err := f.search(ctx, l); err != nil {
		return err
	}
	if err := f.hide(ctx, l); err != nil {
		return err
	}
	if l.hidden > 0 {
		f.hidden()
		if err := f.settled(ctx); err != nil { // blocks that were begun before may have rows that come from hidden ones
			return err
		}
	}
	var notes []stream.HistoryNote
	for id, one := range l.unanswered {
		notes = append(notes, stream.HistoryNote{ID: id, Ledgered: one.erasure.Ledgered, Step: stream.HistoryFound, Linked: l.linkedBy(id, one)})
	}
	if err := f.note(ctx, notes); err != nil {
		return err
	}
	if l.parts == nil {
		for digest, t := range l.targets {
			if !l.waits[digest] {
				f.done[digest] = t.entry
			}
		}
		maps.Copy(l.waits, f.waits)
		f.waits = l.waits
	}
	if l.all {
		if f.leftover { // what had gone may be back
			f.uncorrected, f.unfinished = true, true
		}
		f.seen, f.looked = l.state, f.elapsed()
		if l.parts == nil {
			f.whole = began
		}
	}
	if l.hidden > 0 {
		f.logger.LogAttrs(ctx, slog.LevelInfo, "erased persons' events are hidden in the history", slog.Int("events", l.hidden),
			slog.String("took", (f.elapsed()-began).Round(time.Millisecond).String()))
	}
	return nil
}

// linkedBy returns the identifiers that were seen with an erasure's subject and are not among its own.
func (l *look) linkedBy(id string, one *linkedTo) []event.Identifier {
	var list []event.Identifier
	for number := range one.numbers {
		identifier := rows.PersonOf(number)
		own := false
		for _, held := range l.targets[l.digester.Digest(identifier)].held {
			own = own || held.id == id
		}
		if !own {
			list = append(list, identifier)
		}
	}
	return list
}

// see looks whether a visitor or identifier is one that is looked for.
func (l *look) see(number uint64) {
	if number == 0 {
		return // nobody
	}
	place := &l.unwanted[number%remembered]
	if *place == number {
		return
	}
	if _, known := l.found[number]; known {
		return
	}
	digest := l.digester.Digest(rows.PersonOf(number))
	if t, wanted := l.targets[digest]; wanted {
		l.found[number] = found{digest, t}
		return
	}
	*place = number
}

// judge says whether an event goes that was received at a time and has some identifiers. One that waits for what was seen with it
// does not.
func (l *look) judge(identifiers []uint64, received time.Time) bool {
	goes, waits := false, false
	for _, number := range identifiers {
		one, known := l.found[number]
		if !known {
			continue
		}
		goes = goes || goesBy(one.entry, received)
		for _, held := range one.held {
			if !goesBy(held.entry, received) {
				continue
			}
			waits = true
			if linked := l.unanswered[held.id]; linked != nil {
				for _, other := range identifiers {
					linked.numbers[other] = struct{}{}
				}
			}
		}
	}
	if waits {
		for _, number := range identifiers {
			if one, known := l.found[number]; known {
				l.waits[one.digest] = true
			}
		}
	}
	return goes && !waits
}
