package archive

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// mostSaid is about of how many deliveries it is remembered that they have a record. Each takes some 20 bytes.
const mostSaid = 1_000_000

// said knows of which deliveries there are records before others: of those of late from memory, in which are all of those of events
// behind its since, and of the others from the table.
type said struct {
	memory[struct{}]
	client *clickhouse.Client
	seed   maphash.Seed
}

func newSaid(client *clickhouse.Client) *said {
	return &said{memory[struct{}]{most: mostSaid}, client, maphash.MakeSeed()}
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
	s.begin(after, last)
	there, err := s.read(ctx, after, list)
	if err != nil {
		return err
	}
	for i := range list {
		row := &list[i]
		delivery := s.delivery(row.At, row.Platform)
		_, has := s.find(delivery)
		if !has {
			_, has = there[delivery]
		}
		if row.Again = 0; has {
			row.Again = 1
		}
		s.note(delivery, struct{}{})
	}
	return nil
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
