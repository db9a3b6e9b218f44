package analytics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"time"

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

	// retained is read-locked by a query while it runs and locked to free the numbers of dropped events.
	retained sync.RWMutex

	// mu guards what follows. It is never held for long.
	mu     sync.Mutex
	table  *table
	status Status
	// rebuilding is true from a Reset until the view is ready again: what it holds meanwhile is a part of the truth.
	rebuilding bool
	// asked is how many questions are being answered.
	asked int
	// shedding says that events were left out because the view is as large as it may be.
	shedding bool
}

// ErrReplaying says that the view is being built anew and cannot answer meanwhile.
var ErrReplaying = errors.New("the view is still being built anew")

// NewView returns an empty view.
func NewView(o Options) *View {
	budget := o.Budget
	if budget == nil {
		budget = NewBudget(0)
	}
	return &View{
		property: o.Property, currency: o.Currency, log: o.Logger, budget: budget, maxBytes: o.MaxBytes, table: newTable(),
	}
}

// AddEvents appends entries of the events stream, in its order; those that are known already are passed over.
// An entry that cannot be decoded is left out and counted; the error names each.
func (v *View) AddEvents(entries []stream.Entry) error { return v.add(v.decode(entries)) }

// decoded are entries on their way into the view.
type decoded struct {
	rows []row
	// errs name the entries that could not be decoded.
	errs []error
	// last is the position of the last entry.
	last stream.Position
	// cut is the position before which nothing is retained, where events between those of the view and these may have
	// been trimmed unread; otherwise 0.
	cut stream.Position
}

// decode does what can be done for entries without the view's lock.
func (v *View) decode(entries []stream.Entry) decoded {
	d := decoded{rows: make([]row, 0, len(entries))}
	for _, entry := range entries {
		d.last = entry.Position
		e, err := event.DecodeEntry(entry.Data)
		if err != nil {
			d.errs = append(d.errs, fmt.Errorf("entry %s: %w", entry.Position, err))
			continue
		}
		d.rows = append(d.rows, rowOf(v.property, entry.Position, &e))
	}
	return d
}

// add appends decoded entries, and hides in the same step what no longer is of one piece with them.
func (v *View) add(d decoded) error {
	defer v.shed()
	v.mu.Lock()
	defer v.mu.Unlock()
	errs := d.errs
	for i := range d.rows {
		if err := v.table.add(&d.rows[i]); err != nil {
			errs = append(errs, fmt.Errorf("entry %s: %w", d.rows[i].position, err))
		}
	}
	if d.cut != 0 {
		v.table.forget(d.cut) // its memory is given back with the next Forget
		v.status.trimmed(d.cut)
	}
	v.table.discardOrphans()
	v.status.Unreadable += len(errs)
	return errors.Join(errs...)
}

// shed forgets the oldest events while the view is larger than it may be.
func (v *View) shed() {
	for {
		v.mu.Lock()
		before := v.table.excess(v.maxBytes)
		first := before != 0 && !v.shedding
		v.shedding = v.shedding || before != 0
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
		v.table.apply(record)
	}
}

// Forget drops the events before a position: from then on they are in no answer, and [Status.CompleteFrom] says
// so where there were any.
func (v *View) Forget(before stream.Position) {
	v.mu.Lock()
	first := v.table.first
	droppable := v.table.forget(before)
	if v.table.first > first {
		v.status.trimmed(before)
	}
	v.mu.Unlock()
	if !droppable {
		return
	}
	v.retained.Lock()
	defer v.retained.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.table.drop()
}

// Reset empties the view: it is not ready until it has been filled again.
func (v *View) Reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.table, v.rebuilding, v.shedding = newTable(), true, false
	v.status = Status{Connected: v.status.Connected, CurrentAt: v.status.CurrentAt}
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

// Status returns how far the view has come.
func (v *View) Status() Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.status
	s.Events = int(v.table.next - v.table.first)
	s.Bytes, s.MaxBytes = v.table.size(), v.maxBytes
	if v.table.next > 0 {
		s.Last, s.AsOf = v.table.last, v.table.last.Time()
	}
	return s
}

// snapshot is the view at one moment, for one query.
type snapshot struct {
	span
	// The values by number, to be read only at numbers that stand in a column of the rows.
	names      []string
	touches    []Touch
	currencies []string
	platforms  []string
	keys       []visitorKey
	clientIDs  []string
	reasons    *reasons
	// numbers are those of the names that were asked for, noName where no event has one.
	numbers []uint32
	// reporting is the number of the property's currency, and minorUnit the smallest amount that is paid in it.
	reporting uint32
	minorUnit event.Amount
	// completeFrom is the view's [Status.CompleteFrom].
	completeFrom time.Time
	// account is what the query has taken of the budget.
	account *account
	// workers says how many goroutines the query may use now: see [View.workers].
	workers func() int
}

// noName is the number of a name that no event has.
const noName = ^uint32(0)

// read returns the view as it is now, and what must be called when the query is done. names are those whose
// numbers the query needs. It fails only with [ErrReplaying].
func (v *View) read(names ...string) (s *snapshot, done func(), err error) {
	v.retained.RLock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.rebuilding {
		v.retained.RUnlock()
		return nil, nil, ErrReplaying
	}
	t := v.table
	s = &snapshot{
		span:  span{chunks: t.chunks, base: t.base, first: t.first, end: t.next},
		names: t.names.values, touches: t.touches.values, currencies: t.currencies.values, platforms: t.platforms.values,
		keys: t.visitors.keys, clientIDs: t.visitors.clientIDs, reasons: t.reasons,
		numbers: make([]uint32, len(names)), reporting: noName, minorUnit: event.MinorUnit(v.currency),
		completeFrom: v.status.CompleteFrom, workers: v.workers,
	}
	for i, name := range names {
		s.numbers[i] = noName
		if number, known := t.names.numbers[name]; known {
			s.numbers[i] = number
		}
	}
	if number, known := t.currencies.numbers[v.currency]; known {
		s.reporting = number
	}
	v.asked++
	return s, v.answered, nil
}

// answered ends what read began.
func (v *View) answered() {
	v.mu.Lock()
	v.asked--
	v.mu.Unlock()
	v.retained.RUnlock()
}

// in returns the rows that were received in a range.
func (s *snapshot) in(r Range) span {
	rows := s.span
	rows.first, rows.end = s.search(firstAt(r.From)), s.search(firstAt(r.To))
	rows.end = max(rows.first, rows.end)
	return rows
}

// firstAt returns the first position that is not before t.
func firstAt(t time.Time) stream.Position {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	const last = 1<<44 - 1
	return stream.At(time.UnixMilli(min(max(ms, 0), last)))
}

// len is the number of rows.
func (s *span) len() int { return int(s.end - s.first) }

// trail is a place in a span that only moves forward: behind events that are visited in their order it keeps where
// those begin that are not too old.
type trail struct {
	span
	at uint64
}

func newTrail(rows span) trail { return trail{rows, rows.first} }

// to moves on to the first row that was not received before a moment, given in milliseconds, and returns how many rows
// of the span lie before it. The moments that it is asked for must not decrease. They lie close together, so that steps
// which grow find the place in fewer looks than halving all rows would.
func (t *trail) to(ms int64) uint32 {
	for step := uint64(1); t.isBefore(t.at, ms); step *= 2 {
		if !t.isBefore(t.at+step, ms) {
			t.at += 1 + uint64(sort.Search(int(step-1), func(i int) bool { return !t.isBefore(t.at+1+uint64(i), ms) }))
			break
		}
		t.at += step
	}
	return uint32(t.at - t.first)
}

func (t *trail) isBefore(ordinal uint64, ms int64) bool {
	return ordinal < t.end && t.milliseconds(ordinal) < ms
}

// milliseconds returns when the row with an ordinal was received.
func (s *span) milliseconds(ordinal uint64) int64 {
	c, row := s.at(ordinal)
	return c.position[row].Milliseconds()
}

// stretch is a run of rows within one chunk: those from row from to before row to; ordinal is the ordinal of row from.
type stretch struct {
	*chunk
	from, to int
	ordinal  uint64
}

// offset returns how many rows of a span lie before its chunk's row 0. It wraps around where the span begins within the
// chunk, so that what is added to it must be a row of the span.
func (c *stretch) offset(of *span) uint32 { return uint32(c.ordinal-of.first) - uint32(c.from) }

// each calls visit for the rows chunk by chunk, in stream order. It stops where the context ends.
func (s *span) each(ctx context.Context, visit func(stretch)) error {
	for ordinal := s.first; ordinal < s.end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, from := s.at(ordinal)
		to := min(chunkRows, from+int(s.end-ordinal))
		visit(stretch{chunk: c, from: from, to: to, ordinal: ordinal})
		ordinal += uint64(to - from)
	}
	return nil
}

// eachBackwards is each from the last chunk to the first.
func (s *span) eachBackwards(ctx context.Context, visit func(stretch)) error {
	for end := s.end; end > s.first; {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, last := s.at(end - 1)
		from := max(0, last+1-int(end-s.first))
		end -= uint64(last + 1 - from)
		visit(stretch{chunk: c, from: from, to: last + 1, ordinal: end})
	}
	return nil
}
