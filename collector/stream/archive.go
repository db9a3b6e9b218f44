package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrArchiveDeposed says that another archive has begun since: what this one notes is refused.
var ErrArchiveDeposed = errors.New("another archive has taken over")

// The lanes of an archive: the two streams that it copies.
const (
	EventsLane  = "events"
	RecordsLane = "records"
)

// ArchiveState is how far the archive of a property's history is. It is noted beside the streams.
type ArchiveState struct {
	// Epoch counts the archives that have begun; 0 where there was never one.
	Epoch uint64
	// Events and Records are up to which entries of the two streams everything is in the history.
	Events, Records Position
	// EventsIntent and RecordsIntent are what may be on its way there.
	EventsIntent, RecordsIntent ArchiveIntent
	// Lost and LostRecords are up to where [Stream.Trim] may have taken entries that were not confirmed; 0 where it took none.
	Lost, LostRecords Position
	// Beyond is up to where the history has events that the events stream does not have and that never left it, as imported ones; 0
	// where it has none.
	Beyond Position
	// Current is the time up to which everything that was appended had been archived, by [Clock], when the archive looked last;
	// zero before it did.
	Current time.Time
	// Beat changes each second while an archive is at work.
	Beat uint64
}

// ArchiveIntent is a block that may be on its way: the entries behind the confirmed one, up to Last. The zero value is none.
type ArchiveIntent struct {
	Last  Position
	Token string
}

// ArchiveNote is what an archive notes of one of its lanes.
type ArchiveNote struct {
	// Lane is [EventsLane] or [RecordsLane].
	Lane      string
	Confirmed Position
	Intent    ArchiveIntent
}

// ArchiveState returns how far the archive is. What is noted and makes no sense is as though it were not noted.
func (s *Stream) ArchiveState(ctx context.Context) (ArchiveState, error) {
	fields, err := s.redis.HGetAll(ctx, s.keys.archive()).Result()
	if err != nil {
		return ArchiveState{}, fmt.Errorf("read how far the archive is: %w", err)
	}
	position := func(field string) Position {
		p, err := ParsePosition(fields[field])
		if err != nil {
			return 0
		}
		return p
	}
	number := func(field string) uint64 {
		n, err := strconv.ParseUint(fields[field], 10, 53)
		if err != nil {
			return 0
		}
		return n
	}
	intent := func(lane string) ArchiveIntent {
		last, token, found := strings.Cut(fields[lane+":intent"], " ")
		p, err := ParsePosition(last)
		if err != nil || !found {
			return ArchiveIntent{}
		}
		return ArchiveIntent{p, token}
	}
	state := ArchiveState{
		Epoch: number("epoch"), Events: position(EventsLane), Records: position(RecordsLane), Beat: number("beat"),
		EventsIntent: intent(EventsLane), RecordsIntent: intent(RecordsLane), Lost: position("lost"), LostRecords: position("lost:records"),
		Beyond: position("beyond"),
	}
	if ms := number("current"); ms > 0 {
		state.Current = time.UnixMilli(int64(ms)).UTC()
	}
	return state, nil
}

// Beyond returns [ArchiveState.Beyond]: what is older is not all in the events stream, though nothing was trimmed.
func (s *Stream) Beyond(ctx context.Context) (Position, error) {
	state, err := s.ArchiveState(ctx)
	return state.Beyond, err
}

// NoteBeyond notes [ArchiveState.Beyond]. It stays where the history is taken from the property.
func (s *Stream) NoteBeyond(ctx context.Context, position Position) error {
	if err := s.redis.HSet(ctx, s.keys.archive(), "beyond", position.String()).Err(); err != nil {
		return fmt.Errorf("note what the history alone has: %w", err)
	}
	return nil
}

// BeginArchive has an archive take over from all others, and returns its epoch.
func (s *Stream) BeginArchive(ctx context.Context) (epoch uint64, err error) {
	n, err := s.redis.FCall(ctx, functionArchiveBegin, []string{s.keys.archive()}).Uint64()
	return n, describe("begin an archive", err)
}

// NoteArchive notes how far lanes are, and that the archive of an epoch is at work; current is the time up to which everything
// that was appended is archived, zero where that is as before. It returns up to where [Stream.Trim] may have taken events and records
// that were not confirmed. It fails with [ErrArchiveDeposed].
func (s *Stream) NoteArchive(ctx context.Context, epoch uint64, current time.Time, notes ...ArchiveNote) (lost, lostRecords Position, err error) {
	args := []any{epoch, ""}
	if !current.IsZero() {
		args[1] = current.UnixMilli()
	}
	for _, note := range notes {
		last := ""
		if note.Intent.Token != "" {
			last = note.Intent.Last.String()
		}
		args = append(args, note.Lane, note.Confirmed.String(), last, note.Intent.Token)
	}
	reply, err := s.redis.FCall(ctx, functionArchiveNote, []string{s.keys.archive()}, args...).Slice()
	switch {
	case err != nil:
		return 0, 0, describe("note how far the archive is", err)
	case len(reply) == 1 && reply[0] == int64(0):
		return 0, 0, ErrArchiveDeposed
	case len(reply) != 3:
		return 0, 0, malformedReply(functionArchiveNote)
	}
	if lost, err = positionOf(reply[1]); err != nil {
		return 0, 0, err
	}
	lostRecords, err = positionOf(reply[2])
	return lost, lostRecords, err
}
