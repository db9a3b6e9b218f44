// Package imports brings the past of other systems into a property's history: exports of Weir's own, and what Segment and
// RudderStack have left in a bucket. Events come into the tables alone, at their own times; nothing of them is delivered.
//
// It goes in two passes. The first reads all files, makes events of the lines and sorts them by time, in files where they are too
// many for memory; it writes nothing to the history, so that a file with mistakes changes nothing. The second takes them in the
// order of time, tells whose they are, looks which of them the history has and adds the others, block by block.
//
// What tells whether an event is there is its id, its class and its millisecond, and the table is asked. So whatever is imported
// again, in whatever order, or after it was broken off, is added once.
package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/ingest"
)

// Options say what is imported, and where to.
type Options struct {
	// Property is whose history it is; it has one.
	Property config.Property
	// Client reaches the database with its tables.
	Client *clickhouse.Client
	// Bots tells programs by their user agents, as the collector does; nil where none are told.
	Bots ingest.Bots
	// Erased says of an event that was received at a time that its person was erased: such events stay out. nil for none. It is
	// called from one goroutine at a time.
	Erased func(ids event.Identifiers, received time.Time) bool
	// Refresh is called before each block, so that Erased knows of those who were erased meanwhile; nil for nothing.
	Refresh func(ctx context.Context) error
	// Paths are files, folders, patterns of such, or "-" for Input.
	Paths []string
	Input io.Reader
	// Format is what all files are in; "" to tell it by each file's first line.
	Format Format
	// Times says which of an event's times is the one that it counts by.
	Times Times
	// Before leaves out events at this time and later; zero for none.
	Before time.Time
	// SkipBad is how many lines may be bad and are left out. Where there are more nothing is imported.
	SkipBad int
	// DryRun reads, judges and asks, and adds nothing.
	DryRun bool
	// Memory is about how many bytes of events are held at a time; 0 means 64 MiB. Beyond it they go to files in TempDir, "" for
	// the system's.
	Memory  int
	TempDir string
	// BlockRows is how many events are added at a time; 0 means 40,000.
	BlockRows int
	// Pauses are those between the attempts to add a block; nil for some that add up to nearly two minutes.
	Pauses []time.Duration
	// Workers is how many lines are read at once; at least 1.
	Workers int
	Now     func() time.Time
	// Bad is told of each line that is bad, Progress of how far it is; nil for nobody.
	Bad      func(Bad)
	Progress func(Progress)
}

// Format is what lines of a file are.
type Format string

// The formats. Those of Segment and RudderStack are read alike.
const (
	Weir        Format = "weir"
	Segment     Format = "segment"
	RudderStack Format = "rudderstack"
)

// Times is which of its times an event counts by.
type Times string

// The values of [Times].
const (
	// Received is when the other system has received it, as everywhere in Weir.
	Received Times = "received"
	// Happened is when it happened.
	Happened Times = "happened"
)

// Bad is what is wrong with a line. It repeats nothing of the line but names that Weir knows.
type Bad struct {
	File string
	Line int
	// Field is where in the line; "" for the line itself.
	Field string
	// Message is what would be right there, a sentence.
	Message string
}

// String is FILE:LINE: FIELD: MESSAGE.
func (b Bad) String() string {
	text := fmt.Sprintf("%s:%d: ", b.File, b.Line)
	if b.Field != "" {
		text += b.Field + ": "
	}
	return text + b.Message
}

// Progress is how far an import is.
type Progress struct {
	// Lines and Bytes have been read, of Files files; Sorted says that all have.
	Lines, Bytes int64
	Files        int
	Sorted       bool
	// Done are the events that are in the history or were left out since.
	Done int64
}

// Report is what became of an import.
type Report struct {
	// Files and Lines were read, PassedOver are files in folders whose names are of no export's.
	Files, PassedOver int
	Lines             int64
	// Imported were added, There were in the history already.
	Imported, There int64
	// NoEvents are messages of types that are no events.
	NoEvents int64
	// Bad are lines that were left out because of what is wrong with them, and the rest what was left out for another reason.
	Bad, TooOld, NotBefore, Erased, Repeated int64
	// Nobodys are those of Imported that are nobody's for they are older than what tells of visitors is kept.
	Nobodys int64
	// Records are the delivery records that were added.
	Records int64
	// Origins is of how many rows where the visitor comes from has changed.
	Origins int64
	// First and Last are the times of the first and the last event that is in the history now; zero for none.
	First, Last time.Time
}

// Errors of [Run] that callers tell apart.
var (
	// ErrBadLines says that more lines are bad than may be. Nothing was imported.
	ErrBadLines = errors.New("lines are bad, and nothing was imported")
	// ErrInput says that a file cannot be read.
	ErrInput = errors.New("the input cannot be read")
)

// What options are by default. A block of more rows takes more memory on both sides, one of fewer makes more parts to merge.
const (
	defaultMemory    = 64 << 20
	defaultBlockRows = 40_000
)

// Run imports. After an error some of the events may be there; run again it goes on with the others.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.BlockRows == 0 {
		o.BlockRows = defaultBlockRows
	}
	if o.Pauses == nil {
		o.Pauses = []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}
	}
	o.Workers = max(o.Workers, 1)
	sorted := newSorter(o.TempDir, o.Memory)
	defer sorted.close()
	r := &run{Options: o, sorted: sorted, now: o.Now().UTC()}
	if err := r.read(ctx); err != nil {
		return r.report, err
	}
	if r.report.Bad > int64(o.SkipBad) {
		return r.report, fmt.Errorf("%d %w", r.report.Bad, ErrBadLines)
	}
	err := r.write(ctx)
	return r.report, err
}

// run is one import.
type run struct {
	Options
	sorted *sorter
	now    time.Time
	report Report
	// descending has for each file whether its newest events come first.
	descending []bool
	// newest is the millisecond of the newest event of the files, 0 where they have none.
	newest   int64
	progress Progress
}

func (r *run) tell() {
	if r.Progress != nil {
		r.Progress(r.progress)
	}
}

// oldest is the time before which the history keeps nothing.
func (r *run) oldest() time.Time {
	return r.now.Add(-time.Duration(r.Property.History.RetentionDays) * 24 * time.Hour)
}
