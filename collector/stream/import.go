package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNotEmpty says that a property has received events already.
var ErrNotEmpty = errors.New("the property has events already")

const (
	// importBatch is how many commands of an import are sent together.
	importBatch = 20_000
	// importRecords is how many delivery records an import writes in one entry. Readers take entries by the
	// thousand, so that larger ones would cost them memory.
	importRecords = 100
)

// Import fills the streams of a property that has never received an event with a past: entries at their own
// positions, in order, and delivery records, in the order of their times and each behind its event. It does so all
// or not at all, or fails with [ErrNotEmpty]. What has no final record is delivered like any other event; no id is
// recorded.
//
// The past is written to keys of its own, which take the streams' names at the end. Those that an import left behind
// that was broken off are removed by the next one.
func (s *Stream) Import(ctx context.Context, past iter.Seq2[[]Entry, []Record]) error {
	if err := s.checkFresh(ctx, s.redis); err != nil {
		return err
	}
	drafts := []string{s.keys.importedEvents(), s.keys.importedDeliveries()}
	if err := s.redis.Unlink(ctx, drafts...).Err(); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if err := s.writeDrafts(ctx, past); err != nil {
		return errors.Join(err, s.discard(drafts))
	}
	if err := s.publishDrafts(ctx); err != nil {
		return errors.Join(err, s.discard(drafts))
	}
	return nil
}

// discard removes drafts also where the caller's time is up.
func (s *Stream) discard(drafts []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.redis.Unlink(ctx, drafts...).Err(); err != nil {
		return fmt.Errorf("remove what was imported: %w", err)
	}
	return nil
}

// checkFresh fails with ErrNotEmpty where a position was ever given in one of the streams.
func (s *Stream) checkFresh(ctx context.Context, server redis.Cmdable) error {
	for _, key := range []string{s.keys.events(), s.keys.deliveries()} {
		info, err := server.XInfoStream(ctx, key).Result()
		switch {
		case isNoKey(err):
		case err != nil:
			return fmt.Errorf("import: %w", err)
		case info.LastGeneratedID != "0-0":
			return ErrNotEmpty
		}
	}
	return nil
}

func (s *Stream) writeDrafts(ctx context.Context, past iter.Seq2[[]Entry, []Record]) error {
	// As transactions, for a Redis that is on the disk before it answers would be so after every few commands of a
	// plain pipeline.
	pipe := s.redis.TxPipeline()
	flush := func() error {
		_, err := pipe.Exec(ctx)
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		return nil
	}
	for entries, records := range past {
		for _, entry := range entries {
			pipe.XAdd(ctx, &redis.XAddArgs{
				Stream: s.keys.importedEvents(), ID: entry.Position.String(), Values: []any{eventField, entry.Data},
			})
			if pipe.Len() >= importBatch {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		s.draftRecords(ctx, pipe, records)
		if pipe.Len() >= importBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// draftRecords adds the records as the deliverer would have: those of a platform together. They are dated like the
// last of them, so that trimming takes them along with their events.
func (s *Stream) draftRecords(ctx context.Context, pipe redis.Pipeliner, records []Record) {
	if len(records) == 0 {
		return
	}
	var platforms []string
	byPlatform := map[string][]Record{}
	for _, r := range records {
		if byPlatform[r.Platform] == nil {
			platforms = append(platforms, r.Platform)
		}
		byPlatform[r.Platform] = append(byPlatform[r.Platform], r)
	}
	id := strconv.FormatInt(records[len(records)-1].At.UnixMilli(), 10) + "-*"
	for _, platform := range platforms {
		for rest := byPlatform[platform]; len(rest) > 0; {
			n := min(len(rest), importRecords)
			add := recordsEntry(s.keys.importedDeliveries(), platform, rest[:n])
			add.ID = id
			pipe.XAdd(ctx, add)
			rest = rest[n:]
		}
	}
}

// publishDrafts gives the drafts the streams' names in one step, unless somebody has written to those meanwhile.
func (s *Stream) publishDrafts(ctx context.Context) error {
	events, deliveries := s.keys.events(), s.keys.deliveries()
	err := s.redis.Watch(ctx, func(tx *redis.Tx) error {
		if err := s.checkFresh(ctx, tx); err != nil {
			return err
		}
		renames := [][2]string{{s.keys.importedEvents(), events}, {s.keys.importedDeliveries(), deliveries}}
		written := make([]bool, len(renames))
		for i, rename := range renames {
			n, err := tx.Exists(ctx, rename[0]).Result()
			if err != nil {
				return err
			}
			written[i] = n > 0
		}
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, rename := range renames {
				if written[i] {
					pipe.Rename(ctx, rename[0], rename[1])
				}
			}
			return nil
		})
		return err
	}, events, deliveries)
	switch {
	case errors.Is(err, redis.TxFailedErr):
		return ErrNotEmpty
	case err != nil && !errors.Is(err, ErrNotEmpty):
		return fmt.Errorf("import: %w", err)
	default:
		return err
	}
}
