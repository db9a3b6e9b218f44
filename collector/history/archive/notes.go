package archive

import (
	"context"
	"errors"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// notes are kept in Redis.
type notes struct{ stream *stream.Stream }

// Note implements [Notes].
func (n notes) Note(ctx context.Context, lane Lane) (Note, error) {
	state, err := n.stream.ArchiveState(ctx)
	if err != nil {
		return Note{}, err
	}
	note, intent := Note{Confirmed: state.Events, Lost: state.Lost}, state.EventsIntent
	if lane == Records {
		note, intent = Note{Confirmed: state.Records, Lost: state.LostRecords}, state.RecordsIntent
	}
	if intent.Token != "" {
		note.Intent = &Intent{intent.Last, intent.Token}
	}
	return note, nil
}

// Write implements [Notes].
func (n notes) Write(ctx context.Context, epoch uint64, lane Lane, note Note) (stream.Position, error) {
	written := stream.ArchiveNote{Lane: string(lane), Confirmed: note.Confirmed}
	if note.Intent != nil {
		written.Intent = stream.ArchiveIntent{Last: note.Intent.Last, Token: note.Intent.Token}
	}
	lost, lostRecords, err := n.write(ctx, epoch, time.Time{}, written)
	if lane == Records {
		return lostRecords, err
	}
	return lost, err
}

// beat notes that an archive is at work, and up to when all was archived; zero where that is as before.
func (n notes) beat(ctx context.Context, epoch uint64, current time.Time) error {
	_, _, err := n.write(ctx, epoch, current)
	return err
}

func (n notes) write(ctx context.Context, epoch uint64, current time.Time, list ...stream.ArchiveNote) (lost, lostRecords stream.Position, err error) {
	lost, lostRecords, err = n.stream.NoteArchive(ctx, epoch, current, list...)
	if errors.Is(err, stream.ErrArchiveDeposed) {
		err = ErrDeposed
	}
	return lost, lostRecords, err
}
