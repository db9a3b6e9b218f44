package archive

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// mostSaid is about of how many deliveries it is remembered that they have a record. Each takes some 20 bytes.
const mostSaid = 1_000_000

// said knows of which deliveries there are records before others: of those of late from memory, of those of events that are older
// than that from the table. It is of one place in the deliveries stream: where a block begins elsewhere it remembers nothing.
type said struct {
	client *clickhouse.Client
	seed   maphash.Seed

	at    stream.Position
	known bool
	// recent and former are the deliveries that had a record behind the place since; of those of events behind it none has another.
	recent, former     map[uint64]struct{}
	since, recentSince stream.Position
	// block are those of the block that begins there, up to end.
	block map[uint64]struct{}
	end   stream.Position
}

// delivery names one by its hash: where two share one, a first record is
// taken for a later one, which costs those who count a look and no more.
func (s *said) delivery(at uint64, platform string) uint64 {
	return maphash.Comparable(s.seed, delivered{at, platform})
}

// delivered is which event was sent to which platform.
type delivered struct {
	At       uint64 `ch:"at"`
	Platform string `ch:"platform"`
}

// fill says which rows, those of the entries behind after, up to last, are not the first of their delivery.
func (s *said) fill(ctx context.Context, after, last stream.Position, list []rows.Record) error {
	s.move(after)
	s.block, s.end = map[uint64]struct{}{}, last
	there, err := s.read(ctx, after, list)
	if err != nil {
		return err
	}
	for i := range list {
		row := &list[i]
		delivery := s.delivery(row.At, row.Platform)
		row.Again = 0
		for _, known := range []map[uint64]struct{}{s.block, s.recent, s.former, there} {
			if _, has := known[delivery]; has {
				row.Again = 1
			}
		}
		s.block[delivery] = struct{}{}
	}
	return nil
}

// move has it be of a place.
func (s *said) move(to stream.Position) {
	switch {
	case s.known && to == s.at:
	case s.known && s.block != nil && to == s.end:
		maps.Copy(s.recent, s.block)
		s.at = to
		if len(s.recent) > mostSaid/2 {
			s.former, s.since = s.recent, s.recentSince
			s.recent, s.recentSince = map[uint64]struct{}{}, to
		}
	default:
		s.recent, s.former = map[uint64]struct{}{}, nil
		s.at, s.known, s.since, s.recentSince = to, true, to, to
	}
	s.block = nil
}

// read asks the table of which deliveries it has records before a place: of events that are older than what is remembered.
func (s *said) read(ctx context.Context, before stream.Position, list []rows.Record) (map[uint64]struct{}, error) {
	var older []uint64
	for i := range list {
		// An event whose position is behind its record's is one of another clock.
		if list[i].At <= uint64(s.since) || list[i].At > list[i].Entry {
			older = append(older, list[i].At)
		}
	}
	slices.Sort(older)
	older = slices.Compact(older)
	found := map[uint64]struct{}{}
	for some := range slices.Chunk(older, askedAtOnce) {
		query := clickhouse.Query{
			SQL: `SELECT DISTINCT at, toString(platform) AS platform FROM records
				WHERE at >= {first:UInt64} AND at <= {last:UInt64} AND at IN {positions:Array(UInt64)} AND entry <= {before:UInt64}`,
			Parameters: map[string]any{"first": some[0], "last": last(some), "positions": some, "before": uint64(before)},
		}
		for row, err := range clickhouse.Rows[delivered](ctx, s.client, query) {
			if err != nil {
				return nil, err
			}
			found[s.delivery(row.At, row.Platform)] = struct{}{}
		}
	}
	return found, nil
}
