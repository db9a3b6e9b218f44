package archive

import (
	"context"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// recordEntries is how many entries of the deliveries stream are asked for at a time. One has up to a hundred records, or more.
const recordEntries = 200

// records are the deliveries stream as rows.
type records struct {
	stream *stream.Stream
	// events is how far the events are: none of their records is archived before them, for it has their names.
	events *progress
	names  *names
	said   *said
	faulty *faulty
}

// Read implements [Source].
func (s *records) Read(ctx context.Context, after stream.Position, limit int) (block Block[rows.Record], err error) {
	block = Block[rows.Record]{First: after, Last: after, Began: time.Now()}
	if block.Asked, err = s.stream.Now(ctx); err != nil {
		return block, err
	}
	for n := 0; n < limit && len(block.Rows) < limit && !block.End; {
		count := min(recordEntries, limit-n)
		entries, err := s.stream.ReadRecordEntries(ctx, block.Last, count)
		if err != nil {
			return block, err
		}
		if n == 0 && len(entries) > 0 {
			block.First = entries[0].Position
		}
		for i := range entries {
			s.add(ctx, &block, &entries[i])
		}
		n += len(entries)
		block.End = len(entries) == 0
	}
	return block, nil
}

func (s *records) add(ctx context.Context, block *Block[rows.Record], entry *stream.RecordEntry) {
	block.Last = entry.Position
	if entry.Err != nil {
		s.faulty.tell(ctx, entry.Position, entry.Err)
		return
	}
	block.Rows = slices.Grow(block.Rows, len(entry.Records))
	for nth := range entry.Records {
		block.Rows = append(block.Rows, rows.FromRecord(entry.Position, nth, &entry.Records[nth], ""))
	}
}

// Place implements [Source].
func (s *records) Place(row *rows.Record) Place {
	return Place{Entry: stream.Position(row.Entry), Nth: row.Nth}
}

// Prepare implements [Source]. It waits for the events of the records. Records of events that are not there any more, and of
// platforms that these do not name, say nothing that anybody can ask for.
func (s *records) Prepare(ctx context.Context, after, last stream.Position, list []rows.Record) ([]rows.Record, error) {
	if len(list) == 0 {
		return list, nil
	}
	positions, newest := make([]stream.Position, len(list)), stream.Position(0)
	for i := range list {
		positions[i] = stream.Position(list[i].At)
		newest = max(newest, positions[i])
	}
	if err := s.events.await(ctx, newest); err != nil {
		return nil, err
	}
	kinds, err := s.names.find(ctx, positions)
	if err != nil {
		return nil, err
	}
	kept := make([]rows.Record, 0, len(list))
	for i := range list {
		if kinds[i] != nil && slices.Contains(kinds[i].platforms, list[i].Platform) {
			list[i].Name = kinds[i].name
			kept = append(kept, list[i])
		}
	}
	return kept, s.said.fill(ctx, after, last, kept)
}
