package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ReadEvents returns up to count events behind after, in order. Where there are none it waits for at most block
// (0: not at all) and returns an empty list when still none has come. When ctx ends it returns at once.
func (s *Stream) ReadEvents(ctx context.Context, after Position, count int, block time.Duration) ([]Entry, error) {
	entries, err := s.read(ctx, s.keys.events(), eventField, after, count, block)
	if err == nil {
		err = s.opener.entries(ctx, entries)
	}
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return entries, nil
}

// RecordsError says that an entry of the deliveries stream cannot be read.
type RecordsError struct {
	Position Position
	Cause    error
}

// Error names the entry and the cause.
func (e *RecordsError) Error() string {
	return fmt.Sprintf("delivery records %s: %v", e.Position, e.Cause)
}

// Unwrap returns the cause.
func (e *RecordsError) Unwrap() error { return e.Cause }

// What is read of the deliveries stream at once. An entry holds what became of a whole batch of events, so that few
// entries may be many records; and records take eight times the room that they have in their entry.
const (
	recordEntriesAtOnce = 200
	recordsAtOnce       = 100_000
)

// Records is what some entries of the deliveries stream say.
type Records struct {
	// Records are what became of events, in order.
	Records []Record
	// Erased are events that have been erased: whoever holds anything of them lets go of it.
	Erased []Position
	// Last is the last entry's position, from which to read on.
	Last Position

	// erasure is what those of the last entry were erased by.
	erasure string
}

// ReadRecords returns the records of up to count entries of the deliveries stream behind after, in order. Last is after
// itself where there are none. It returns fewer where they have many records, so that what it takes is bounded. Waiting is
// as in [Stream.ReadEvents]. With a [*RecordsError] come the records before the unreadable entry, and Last is that entry: a
// reader that goes on from there passes it over.
func (s *Stream) ReadRecords(ctx context.Context, after Position, count int, block time.Duration) (Records, error) {
	entries, err := s.read(ctx, s.keys.deliveries(), recordField, after, min(count, recordEntriesAtOnce), block)
	if err != nil {
		return Records{Last: after}, fmt.Errorf("read delivery records: %w", err)
	}
	found := Records{Last: after}
	for _, entry := range entries {
		if len(found.Records)+len(found.Erased) >= recordsAtOnce {
			break
		}
		found.Last = entry.Position
		if err = found.decode(entry.Data); err != nil {
			return found, &RecordsError{Position: found.Last, Cause: err}
		}
	}
	return found, nil
}

// RecordEntry is what one entry of the deliveries stream says.
type RecordEntry struct {
	Position Position
	// Records are what became of events, in order.
	Records []Record
	// Err says why the entry cannot be read, nil where it can.
	Err error
}

// ReadRecordEntries is [Stream.ReadRecords] for a reader who has to know which entry says what, without waiting. Entries that cannot
// be read are among those that it returns.
func (s *Stream) ReadRecordEntries(ctx context.Context, after Position, count int) ([]RecordEntry, error) {
	entries, err := s.read(ctx, s.keys.deliveries(), recordField, after, min(count, recordEntriesAtOnce), 0)
	if err != nil {
		return nil, fmt.Errorf("read delivery records: %w", err)
	}
	list, records := make([]RecordEntry, 0, len(entries)), 0
	for _, entry := range entries {
		if records >= recordsAtOnce {
			break
		}
		var found Records
		err := found.decode(entry.Data)
		list = append(list, RecordEntry{Position: entry.Position, Records: found.Records, Err: err})
		records += len(found.Records)
	}
	return list, nil
}

// Bounds are the ends of a stream.
type Bounds struct {
	// First and Last are the positions of the oldest and the newest entry; 0 where there is none.
	First, Last Position
	// Newest is the highest position ever given, even where that entry is gone. It only falls when the stream is lost.
	Newest Position
	// MaxDeleted is the highest position of an entry that was erased, 0 where none ever was. Trimming erases none.
	MaxDeleted Position
	// Length counts the entries, Added those that were ever added: where there are more of these, some are gone.
	Length, Added int64
}

// Bounds returns the ends of the events stream; all zero where it does not exist.
func (s *Stream) Bounds(ctx context.Context) (Bounds, error) {
	return s.bounds(ctx, s.keys.events())
}

// RecordBounds returns the ends of the deliveries stream; all zero where it does not exist.
func (s *Stream) RecordBounds(ctx context.Context) (Bounds, error) {
	return s.bounds(ctx, s.keys.deliveries())
}

func (s *Stream) bounds(ctx context.Context, key string) (Bounds, error) {
	info, err := s.redis.XInfoStream(ctx, key).Result()
	if isNoKey(err) {
		return Bounds{}, nil
	}
	if err != nil {
		return Bounds{}, fmt.Errorf("look at the stream's ends: %w", err)
	}
	bounds := Bounds{Length: info.Length, Added: info.EntriesAdded}
	for _, end := range []struct {
		position *Position
		id       string
	}{{&bounds.First, info.FirstEntry.ID}, {&bounds.Last, info.LastEntry.ID}, {&bounds.Newest, info.LastGeneratedID}, {&bounds.MaxDeleted, info.MaxDeletedEntryID}} {
		if end.id == "" {
			continue
		}
		if *end.position, err = ParsePosition(end.id); err != nil {
			return Bounds{}, err
		}
	}
	return bounds, nil
}

// Exists says whether the events stream has an entry at p.
func (s *Stream) Exists(ctx context.Context, p Position) (bool, error) {
	entries, err := s.redis.XRangeN(ctx, s.keys.events(), p.String(), p.String(), 1).Result()
	if err != nil {
		return false, fmt.Errorf("look for entry %s: %w", p, err)
	}
	return len(entries) > 0, nil
}

// Entries returns the events at the positions, in their order, without those that are gone.
func (s *Stream) Entries(ctx context.Context, positions []Position) ([]Entry, error) {
	found := make([]*redis.XMessageSliceCmd, len(positions))
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, p := range positions {
			found[i] = pipe.XRangeN(ctx, s.keys.events(), p.String(), p.String(), 1)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read entries: %w", err)
	}
	entries := make([]Entry, 0, len(positions))
	for _, one := range found {
		if entries, err = appendEntries(entries, one.Val(), eventField); err != nil {
			return nil, err
		}
	}
	if err := s.opener.entries(ctx, entries); err != nil {
		return nil, fmt.Errorf("read entries: %w", err)
	}
	return entries, nil
}

// read returns entries behind after, those that are there already or else those that come while it waits.
func (s *Stream) read(ctx context.Context, key, field string, after Position, count int, block time.Duration) ([]Entry, error) {
	stored, err := s.redis.XRangeN(ctx, key, "("+after.String(), "+", int64(count)).Result()
	if err != nil {
		return nil, err
	}
	if len(stored) > 0 || block <= 0 {
		return entriesOf(stored, field)
	}
	streams, err := await(ctx, func(ctx context.Context) ([]redis.XStream, error) {
		return s.redis.XRead(ctx, &redis.XReadArgs{
			Streams: []string{key, after.String()}, Count: int64(count), Block: blockFor(block),
		}).Result()
	}, nil)
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var messages []redis.XMessage
	for _, stream := range streams { // one
		messages = stream.Messages
	}
	return entriesOf(messages, field)
}

func entriesOf(messages []redis.XMessage, field string) ([]Entry, error) {
	return appendEntries(make([]Entry, 0, len(messages)), messages, field)
}

func appendEntries(entries []Entry, messages []redis.XMessage, field string) ([]Entry, error) {
	for _, message := range messages {
		entry, err := entryOf(message, field)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
