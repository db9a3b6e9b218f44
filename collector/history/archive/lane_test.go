package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

var (
	errKilled  = errors.New("the process was killed")
	errRefused = errors.New("no answer")
)

// row is one of a table in these tests.
type row Place

// world is a stream, its table and its notes, with a fault at one of the calls that are made to them.
type world struct {
	entries []stream.Position // 2 rows each
	stored  []row
	tokens  map[string]bool
	note    Note
	epoch   uint64
	made    int

	// calls counts what was asked, fault is at which call something happens.
	calls, fault int
	does         func(*world)
	// fails is what the call answers; executed says that it was done nevertheless.
	fails    error
	executed bool
	// late are blocks that are still on their way.
	late []block
	// keep says that a block that gets no answer stays on its way.
	keep bool
}

type block struct {
	rows  []row
	token string
}

// call counts a call, and says whether it is carried out and what it answers.
func (w *world) call() (carry bool, err error) {
	w.calls++
	if w.calls != w.fault {
		return true, nil
	}
	if w.does != nil {
		w.does(w)
	}
	return w.executed || w.fails == nil, w.fails
}

func (w *world) Note(context.Context, Lane) (Note, error) {
	_, err := w.call()
	note := w.note
	if note.Intent != nil {
		intent := *note.Intent
		note.Intent = &intent
	}
	return note, err
}

func (w *world) Write(_ context.Context, epoch uint64, _ Lane, note Note) (stream.Position, error) {
	carry, err := w.call()
	if epoch != w.epoch {
		return 0, ErrDeposed
	}
	if carry {
		w.note = note
	}
	return 0, err
}

func (w *world) Read(_ context.Context, after stream.Position, limit int) (Block[row], error) {
	block := Block[row]{First: after, Last: after, End: true}
	if _, err := w.call(); err != nil {
		return block, err
	}
	for _, entry := range w.entries {
		switch {
		case entry <= after:
			continue
		case limit == 0:
			block.End = false
			return block, nil
		case block.First == after:
			block.First = entry
		}
		block.Rows, block.Last, limit = append(block.Rows, row{Entry: entry}, row{Entry: entry, Nth: 1}), entry, limit-1
	}
	return block, nil
}

func (w *world) Last(context.Context, stream.Position) (last stream.Position, err error) {
	_, err = w.call()
	for _, r := range w.stored {
		last = max(last, r.Entry)
	}
	return last, err
}

func (w *world) Places(_ context.Context, after, last stream.Position) (map[Place]bool, error) {
	_, err := w.call()
	places := map[Place]bool{}
	for _, r := range w.stored {
		if r.Entry > after && r.Entry <= last {
			places[Place(r)] = true
		}
	}
	return places, err
}

func (w *world) Insert(_ context.Context, rows []row, token string) error {
	carry, err := w.call()
	if carry {
		w.add(block{slices.Clone(rows), token})
	} else if w.keep {
		w.late = append(w.late, block{slices.Clone(rows), token})
	}
	return err
}

func (w *world) add(b block) {
	if months := map[int]bool{monthOf(b.rows[0].Entry): true, monthOf(b.rows[len(b.rows)-1].Entry): true}; len(months) > 1 {
		panic("a block of two months")
	}
	if !w.tokens[b.token] {
		w.tokens[b.token] = true
		w.stored = append(w.stored, b.rows...)
	}
}

func (w *world) Place(r *row) Place { return Place(*r) }
func (w *world) Prepare(_ context.Context, _, _ stream.Position, rows []row) ([]row, error) {
	return rows, nil
}

// writer is a new one, which has taken over.
func (w *world) writer() *lane[row] {
	w.epoch++
	return &lane[row]{name: Events, notes: w, source: w, table: w, epoch: w.epoch, limit: 3, token: func() string {
		w.made++
		return strconv.Itoa(w.made)
	}}
}

// newWorld has ten entries, on both sides of a month's end.
func newWorld() *world {
	w := &world{tokens: map[string]bool{}}
	end := stream.At(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	for i := range stream.Position(10) {
		w.entries = append(w.entries, end-5+i)
	}
	return w
}

// run lets writers copy until all is copied; one that is killed is followed by another. It returns how many calls that took.
func (w *world) run(t *testing.T) int {
	t.Helper()
	writer, idle := w.writer(), 0
	for range 100 {
		copied, err := writer.step(t.Context())
		switch {
		case errors.Is(err, errKilled), errors.Is(err, ErrDeposed):
			writer = w.writer()
		case err == nil && !copied:
			if idle++; idle > 1 {
				return w.calls
			}
			// What comes late comes when all else is there.
			for _, b := range w.late {
				w.add(b)
			}
			w.late = nil
		}
	}
	t.Fatal("the stream is never copied to its end")
	return 0
}

// check fails unless the table has each row once.
func (w *world) check(t *testing.T) {
	t.Helper()
	count := map[row]int{}
	for _, r := range w.stored {
		count[r]++
	}
	for _, entry := range w.entries {
		for nth := range uint16(2) {
			if got := count[row{entry, nth}]; got != 1 {
				t.Errorf("row %d of entry %s is there %d times, want once", nth, entry, got)
			}
		}
	}
	if want := 2 * len(w.entries); len(count) != want {
		t.Errorf("the table has %d different rows, want %d", len(count), want)
	}
}

func TestEachRowIsThereOnceWhateverHappensAtAnyCall(t *testing.T) {
	plain := newWorld()
	calls := plain.run(t)
	plain.check(t)
	faults := map[string]func(w *world){
		"killed before the call":                             func(w *world) { w.fails = errKilled },
		"killed after the call":                              func(w *world) { w.fails, w.executed = errKilled, true },
		"killed, and the block comes when all else is there": func(w *world) { w.fails, w.keep = errKilled, true },
		"refused":                func(w *world) { w.fails = errRefused },
		"done without an answer": func(w *world) { w.fails, w.executed = errRefused, true },
		"without an answer, and the block comes late":         func(w *world) { w.fails, w.keep = errRefused, true },
		"another writer takes over and copies all meanwhile":  func(w *world) { w.does = takeOver },
		"the notes are lost":                                  func(w *world) { w.fails, w.does = errKilled, func(w *world) { w.note = Note{} } },
		"the notes are those of long ago":                     func(w *world) { w.fails, w.does = errKilled, rewindNotes },
		"the table is that of a while ago":                    func(w *world) { w.fails, w.does = errKilled, func(w *world) { rewindTable(w, 3) } },
		"the table is empty again":                            func(w *world) { w.fails, w.does = errKilled, func(w *world) { rewindTable(w, 0) } },
		"the table and the notes are those of different days": func(w *world) { w.fails, w.does = errKilled, rewindBoth },
	}
	for name, fault := range faults {
		for at := 1; at <= calls; at++ {
			t.Run(fmt.Sprintf("%s %d", name, at), func(t *testing.T) {
				w := newWorld()
				w.fault = at
				fault(w)
				w.run(t)
				w.check(t)
			})
		}
	}
}

// takeOver is a writer that begins and ends while another waits for an answer.
func takeOver(w *world) {
	w.does = nil
	writer := w.writer()
	for {
		if copied, err := writer.step(context.Background()); err != nil || !copied {
			return
		}
	}
}

func rewindNotes(w *world) {
	w.note = Note{Intent: &Intent{Last: w.entries[2], Token: "old"}}
}

// rewindTable leaves the rows of the first entries. Where there are any it also leaves all tokens: that is how much it may know.
func rewindTable(w *world, entries int) {
	w.stored = slices.DeleteFunc(w.stored, func(r row) bool { return r.Entry >= w.entries[entries] })
	if len(w.stored) == 0 {
		w.tokens = map[string]bool{}
	}
}

func rewindBoth(w *world) {
	rewindNotes(w)
	rewindTable(w, 5)
}

func TestWhatATableHasOfABlockIsNotSentAgain(t *testing.T) {
	w := newWorld()
	w.stored = []row{{w.entries[0], 1}, {w.entries[2], 0}}
	w.note = Note{Intent: &Intent{Last: w.entries[2], Token: "old"}}
	w.run(t)
	w.check(t)
}

func TestADeposedWriterBeginsNoBlock(t *testing.T) {
	w := newWorld()
	first := w.writer()
	w.writer()
	if copied, err := first.step(t.Context()); copied || !errors.Is(err, ErrDeposed) {
		t.Errorf("step = %t, %v; want false, %v", copied, err, ErrDeposed)
	}
	if len(w.stored) > 0 {
		t.Errorf("%d rows are there, want none", len(w.stored))
	}
}

func TestATableThatLacksWhatIsNotedIsToldOf(t *testing.T) {
	w := newWorld()
	w.run(t)
	rewindTable(w, 4)
	want, err := w.Last(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var told []stream.Position
	writer := w.writer()
	writer.lacks = func(_ context.Context, last stream.Position) error {
		told = append(told, last)
		return nil
	}
	if _, err := writer.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0] != want {
		t.Errorf("told of %v, want %v alone", told, want)
	}
}
