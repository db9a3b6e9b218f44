package analytics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// View is what a property's two streams say, in columns. All its methods may be called at once; those that add
// to it are meant for one follower. A query sees the events of the moment at which it began; while it runs,
// further events are added, but none is freed.
//
// What the view holds is of one piece at any moment: all events of the stream from [Status.CompleteFrom] up to the last
// that was read. Trimmed events stay until their trimming is noticed, all of them; an answer says by its own
// CompleteFrom from when on it is complete.
type View struct {
	property string
	currency string
	log      *slog.Logger
	budget   *Budget
	maxBytes int64
	erased   func(e *event.Event, received time.Time) bool

	// retained is read-locked by a query while it runs and locked to change what a query may look at: to free the numbers
	// of dropped events, and to take persons out.
	retained sync.RWMutex

	// mu guards what follows. It is never held for long.
	mu     sync.Mutex
	table  *columns.Table
	status Status
	// anonymous is the position before which events are nobody's.
	anonymous stream.Position
	// rebuilding is true from a Reset until the view is ready again: what it holds meanwhile is a part of the truth.
	rebuilding bool
	// running is how many queries are running.
	running int
	// evicting says that events were left out because the view is as large as it may be.
	evicting bool
}

// ErrReplaying says that the view is being rebuilt and cannot answer meanwhile.
var ErrReplaying = errors.New("the view is still being rebuilt")

// ErrUnavailable says that the store that an engine reads cannot be read at the moment. A view never fails with it.
var ErrUnavailable = errors.New("the history cannot be read at the moment")

// NewView returns an empty view.
func NewView(o Options) *View {
	budget := o.Budget
	if budget == nil {
		budget = NewBudget(0)
	}
	return &View{
		property: o.Property, currency: o.Currency, log: o.Logger, budget: budget, maxBytes: o.MaxBytes, erased: o.Erased, table: columns.NewTable(),
	}
}

// AddEvents appends entries of the events stream, in its order; those that are known already are passed over.
// An entry that cannot be decoded is left out and counted; the error names each.
func (v *View) AddEvents(entries []stream.Entry) error { return v.add(v.decode(entries)) }

// add appends decoded entries, and hides in the same step what no longer is of one piece with them.
func (v *View) add(d decoded) error {
	defer v.evict()
	v.mu.Lock()
	defer v.mu.Unlock()
	errs := d.errs
	for i := range d.rows {
		if err := v.table.Add(&d.rows[i]); err != nil {
			errs = append(errs, fmt.Errorf("entry %s: %w", d.rows[i].Position, err))
		}
	}
	if d.cut != 0 {
		v.table.Forget(d.cut) // its memory is given back with the next Forget
		v.status.trimmed(d.cut)
	}
	v.table.DiscardOrphans()
	v.status.Unreadable += len(errs)
	return errors.Join(errs...)
}

// largestChunks is how many of the largest chunks a view has room for. It gives memory back by the chunk.
const largestChunks = 8

// evict forgets the oldest events while the view is larger than it may be.
func (v *View) evict() {
	if v.maxBytes > 0 {
		v.mu.Lock()
		v.table.EndChunk(v.maxBytes / largestChunks)
		v.mu.Unlock()
	}
	for {
		v.mu.Lock()
		before := v.table.Excess(v.maxBytes)
		first := before != 0 && !v.evicting
		v.evicting = v.evicting || before != 0
		v.mu.Unlock()
		if first {
			v.log.Warn("the view is as large as it may be and leaves out the oldest events; "+
				"give the pod more memory or shorten the retention", slog.String("property", v.property), slog.Int64("bytes", v.maxBytes))
		}
		if before == 0 {
			return
		}
		v.Forget(before)
	}
}

// AddRecords notes delivery records, in the order of their stream. A record may come before its event.
func (v *View) AddRecords(records []stream.Record) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, record := range records {
		v.table.Apply(record)
	}
}

// Forget drops the events before a position: from then on they are in no answer, and [Status.CompleteFrom] says
// so where there were any.
func (v *View) Forget(before stream.Position) {
	v.mu.Lock()
	table := v.table
	first := table.First()
	droppable := table.Forget(before)
	if table.First() > first {
		v.status.trimmed(before)
	}
	v.mu.Unlock()
	if droppable {
		v.change(table, table.Drop)
	}
}

// Reset empties the view: it is not ready until it has been filled again.
func (v *View) Reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.table, v.rebuilding, v.evicting = columns.NewTable(), true, false
	v.table.AnonymizeBefore(v.anonymous)
	v.status = Status{Connected: v.status.Connected, CurrentAt: v.status.CurrentAt}
}

// newestBefore returns the position of the newest event before a position, 0 where there is none.
func (v *View) newestBefore(position stream.Position) stream.Position {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.table.NewestBefore(position)
}

// setConnected notes whether the source can be reached.
func (v *View) setConnected(connected bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status.Connected = connected
}

// setTrimmed notes that events before a position are gone, whether the view has had them or not.
func (v *View) setTrimmed(before stream.Position) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status.trimmed(before)
}

// trimmed notes that events before a position are gone.
func (s *Status) trimmed(before stream.Position) {
	// Events of the position's millisecond may be among them.
	if from := before.Time().Add(time.Millisecond); from.After(s.CompleteFrom) {
		s.CompleteFrom = from
	}
}

// setCurrent notes that the view held at a moment all that the events stream had.
func (v *View) setCurrent(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at.After(v.status.CurrentAt) {
		v.status.CurrentAt = at
	}
}

func (v *View) setReady() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status.Ready, v.rebuilding = true, false
}

// Status returns how far the view has come. It is there at once, whatever the context: engines that ask a store need that.
func (v *View) Status(context.Context) Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.status
	s.Events, s.Bytes, s.MaxBytes = v.table.Events(), v.table.Size(), v.maxBytes
	if last := v.table.Last(); last != 0 {
		s.Last, s.AsOf = last, last.Time()
	}
	return s
}

// snapshot is the view at one moment, for one query.
type snapshot struct {
	columns.Snapshot
	// numbers are those of the names that were asked for, [columns.NoNumber] where no event has one.
	numbers []uint32
	// currency is the property's, reporting its number, and minorUnit the smallest amount that is paid in it.
	currency  string
	reporting uint32
	minorUnit event.Amount
	// completeFrom is the view's [Status.CompleteFrom].
	completeFrom time.Time
	// reservation is what the query has taken of the budget.
	reservation *reservation
	// lookUp lets somebody look up numbers in the table. It is not to take long.
	lookUp func(look func(*columns.Table))
	// workers says how many goroutines the query may use now: see [View.workers].
	workers func() int
}

// read returns the view as it is now, and what must be called when the query is done. names are those whose
// numbers the query needs. It fails only with [ErrReplaying].
func (v *View) read(names ...columns.Name) (s *snapshot, done func(), err error) {
	v.retained.RLock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.rebuilding {
		v.retained.RUnlock()
		return nil, nil, ErrReplaying
	}
	s = &snapshot{
		Snapshot: v.table.Snapshot(), numbers: make([]uint32, len(names)),
		currency: v.currency, reporting: v.table.CurrencyNumber(v.currency), minorUnit: event.MinorUnit(v.currency),
		completeFrom: v.status.CompleteFrom, workers: v.workers,
	}
	table := v.table
	s.lookUp = func(look func(*columns.Table)) {
		v.mu.Lock()
		defer v.mu.Unlock()
		look(table)
	}
	for i, name := range names {
		s.numbers[i] = v.table.NameNumber(name)
	}
	v.running++
	return s, v.endQuery, nil
}

// endQuery ends what read began.
func (v *View) endQuery() {
	v.mu.Lock()
	v.running--
	v.mu.Unlock()
	v.retained.RUnlock()
}

// namesOf returns names as events of a class have them.
func namesOf(class event.Class, names ...string) []columns.Name {
	list := make([]columns.Name, len(names))
	for i, name := range names {
		list[i] = columns.Name{Event: name, Class: class}
	}
	return list
}

// in returns the rows that were received in a range.
func (s *snapshot) in(r Range) columns.RowRange { return s.Between(FirstAt(r.From), FirstAt(r.To)) }

// FirstAt returns the first position that is not before t.
func FirstAt(t time.Time) stream.Position {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	const last = 1<<44 - 1
	return stream.At(time.UnixMilli(min(max(ms, 0), last)))
}
