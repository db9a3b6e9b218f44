package archive

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// readCount is how many events are asked for at a time. An event takes up to 64 KiB.
	readCount = 1000
	// mostBytes is about how many bytes of entries a block has at most.
	mostBytes = 32 << 20
)

// events are the events stream as rows.
type events struct {
	property string
	stream   *stream.Stream
	erased   func(e *event.Event, received time.Time) bool
	touches  *touches
	visits   *visits
	// stale is set when rows were taken out of the table from which touches and visits may know something.
	stale  *atomic.Bool
	names  *names
	faulty *faulty
}

// faulty are the entries of a stream that cannot be read. Each is told once, however often it is come across.
type faulty struct {
	lane    Lane
	metrics *Metrics
	log     *slog.Logger
	told    atomic.Uint64
}

func (f *faulty) tell(ctx context.Context, at stream.Position, err error) {
	if uint64(at) <= f.told.Load() {
		return
	}
	f.told.Store(uint64(at))
	f.metrics.unreadable.WithLabelValues(string(f.lane)).Inc()
	f.log.ErrorContext(ctx, "an entry is left out of the history", "lane", f.lane, "error", fmt.Errorf("entry %s: %w", at, err))
}

// Read implements [Source]. Of entries that cannot be read, and of those of erased persons, there are no rows.
func (s *events) Read(ctx context.Context, after stream.Position, limit int) (block Block[rows.Event], err error) {
	block = Block[rows.Event]{First: after, Last: after, Began: time.Now()}
	if block.Asked, err = s.stream.Now(ctx); err != nil {
		return block, err
	}
	for n, bytes := 0, 0; n < limit && bytes < mostBytes && !block.End; {
		count := min(readCount, limit-n)
		entries, err := s.stream.ReadEvents(ctx, block.Last, count, 0)
		if err != nil {
			return block, err
		}
		if n == 0 && len(entries) > 0 {
			block.First = entries[0].Position
			block.Rows = make([]rows.Event, 0, roomFor(len(entries), count, limit))
		}
		for i := range entries {
			bytes += len(entries[i].Data)
			s.add(ctx, &block, &entries[i])
		}
		n += len(entries)
		block.End = len(entries) < count
	}
	return block, nil
}

// roomFor is for how many rows a block needs room: a full reading is likely to be followed by others.
func roomFor(found, asked, limit int) int {
	if found == asked {
		return limit
	}
	return found
}

func (s *events) add(ctx context.Context, block *Block[rows.Event], entry *stream.Entry) {
	block.Last = entry.Position
	e, err := wire.Decode(entry.Data)
	switch {
	case err != nil:
		s.faulty.tell(ctx, entry.Position, err)
	case s.erased != nil && s.erased(&e, entry.Position.Time()):
	default:
		block.Rows = append(block.Rows, rows.FromEvent(s.property, entry.Position, &e))
	}
}

// Place implements [Source].
func (s *events) Place(row *rows.Event) Place { return Place{Entry: stream.Position(row.At)} }

// Prepare implements [Source].
func (s *events) Prepare(ctx context.Context, after, last stream.Position, list []rows.Event) ([]rows.Event, error) {
	if s.stale.Swap(false) {
		s.touches.known = false
		s.visits.forget()
	}
	if err := s.touches.fill(ctx, after, last, list); err != nil {
		s.stale.Store(true)
		return nil, err
	}
	s.visits.fill(after, last, list)
	s.names.add(list)
	return list, nil
}
