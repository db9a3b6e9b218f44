package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/stream"
)

// attempts is how often a backup is begun anew because somebody was erased meanwhile.
const attempts = 3

// Report says what was backed up, or put back.
type Report struct {
	Property string
	// Cut is the moment that the backup is of.
	Cut time.Time
	// Pieces and Bytes are how many the file has, Events how many events.
	Pieces, Bytes, Events int64
}

// String is a line for people.
func (r Report) String() string {
	return fmt.Sprintf("%s as of %s: %d events, %d MiB", r.Property, r.Cut.UTC().Format(time.RFC3339), r.Events, (r.Bytes+1<<19)>>20)
}

// target is where a backup is written to.
type target interface {
	// begin returns a writer of an empty file, however often it is called; where it cannot be taken back what was written it fails
	// from the second time on.
	begin(ctx context.Context) (io.Writer, error)
	// finish makes the file whole, discard takes away what cannot be gone on with.
	finish(ctx context.Context) error
	discard(ctx context.Context) error
}

// errTaken says that what was written to a pipe cannot be taken back.
var errTaken = errors.New("what was written cannot be taken back")

// job is one property's backup.
type job struct {
	stream  *stream.Stream
	version string
	to      target
	// said is called every now and then.
	said func(Report)
	now  func() time.Time
}

// run makes a backup, anew where somebody is erased meanwhile.
func (j *job) run(ctx context.Context) (Report, error) {
	for attempt := 1; ; attempt++ {
		report, err := j.once(ctx)
		if err == nil {
			return report, nil
		}
		again := errors.Is(err, stream.ErrErased) && attempt < attempts
		if !again {
			return report, errors.Join(err, j.to.discard(context.WithoutCancel(ctx)))
		}
	}
}

func (j *job) once(ctx context.Context) (Report, error) {
	to, err := j.to.begin(ctx)
	if err != nil {
		return Report{}, err
	}
	w, err := NewWriter(to, Header{ID: uuid.NewString(), Property: j.stream.Property(), Began: j.now().UTC().Truncate(time.Second), Weir: j.version})
	if err != nil {
		return Report{}, err
	}
	return j.write(ctx, w, &stream.BackupProgress{}, 0)
}

// write writes what a backup lacks, and its end.
func (j *job) write(ctx context.Context, w *Writer, progress *stream.BackupProgress, events int64) (Report, error) {
	report := Report{Property: j.stream.Property(), Events: events}
	err := j.stream.Backup(ctx, progress, func(p *stream.Piece) error {
		if err := w.Piece(p); err != nil {
			return err
		}
		report.Events += eventsIn(p)
		report.Pieces, report.Bytes = w.Pieces(), w.Bytes()
		j.said(report)
		return nil
	})
	if err == nil {
		err = w.Close()
	}
	report.Cut, report.Pieces, report.Bytes = time.UnixMilli(progress.At()), w.Pieces(), w.Bytes()
	if err != nil {
		return report, err
	}
	return report, j.to.finish(ctx)
}

// eventsIn is how many events a piece has.
func eventsIn(p *stream.Piece) int64 {
	if p.Kind != stream.PieceEntries || p.Key != "events" {
		return 0
	}
	return int64(len(p.Items) / 3)
}

// Verify reads a backup to its end, and says whether it is whole and of this Weir's.
func Verify(from io.Reader) (Report, error) {
	r, err := NewReader(from)
	if err != nil {
		return Report{}, err
	}
	report := Report{Property: r.Header.Property}
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			report.Cut, report.Bytes = time.UnixMilli(r.Progress.At()), r.offset
			return report, nil
		}
		if err != nil {
			return report, err
		}
		report.Pieces++
		report.Events += eventsIn(p)
	}
}

// restore puts a backup back, or goes on with that. Only when all of it has been read, and found whole, the Property has it.
func restore(ctx context.Context, s *stream.Stream, from io.Reader, now time.Time, said func(Report)) (Report, error) {
	r, err := NewReader(from)
	if err != nil {
		return Report{}, err
	}
	report := Report{Property: r.Header.Property}
	if r.Header.Property != s.Property() {
		return report, &OtherError{Has: r.Header.Property, Wanted: s.Property()}
	}
	put, err := s.BeginRestore(ctx, r.Header.ID, now)
	if err != nil {
		return report, err
	}
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			report.Bytes = r.offset
			return report, put.Publish(ctx)
		}
		if err == nil {
			err = put.Put(ctx, report.Pieces, p)
		}
		if err != nil {
			return report, err
		}
		report.Cut = time.UnixMilli(r.Progress.At())
		report.Pieces++
		report.Events += eventsIn(p)
		report.Bytes = r.offset
		said(report)
	}
}

// OtherError says that a backup is of another Property. An event's identifiers are made with the Property's name, and so are the
// digests of the ledger: under another name nobody would be found who asks to be erased.
type OtherError struct{ Has, Wanted string }

// Error names both.
func (e *OtherError) Error() string {
	return fmt.Sprintf("the backup is of %s, and not of %s", e.Has, e.Wanted)
}
