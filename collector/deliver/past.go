package deliver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// Past is a property's history, where replays find what the stream no longer has.
type Past interface {
	stream.Past
	// Entries returns the events at the positions, in their order, without those that are gone.
	Entries(ctx context.Context, positions []stream.Position) ([]stream.Entry, error)
}

// errPastUnknown says that the property has a history, and that nobody has said how it is reached.
var errPastUnknown = errors.New("it is not known yet how the history is reached")

const (
	// pastTimeout is how long the history may take for events that are due, far less than they are leased for.
	pastTimeout = 15 * time.Second
	// pastAtOnce is how many are asked for at once, and pastBytes about how much is read in one go.
	pastAtOnce, pastBytes = 100, 4 << 20
)

// pastReader reads, of a platform's events that are due, those that a replay has put back from the history. In Redis there is
// nothing of them but that they wait.
type pastReader struct {
	stream   *stream.Stream
	platform string
	// past is nil where the history is not reached, kept says that the property has one.
	past Past
	kept bool
	// pause is after how long those are due again that the history did not give.
	pause  time.Duration
	now    func() time.Time
	logger *slog.Logger
	// away says that the history did not answer the last time.
	away atomic.Bool
}

// read adds their data to those of due that are in the history, and leaves out those that cannot be had now, which are due again
// later, and those that are gone: erased, or too old by now.
func (r *pastReader) read(ctx context.Context, due []stream.Delivery) ([]stream.Delivery, error) {
	var past []stream.Delivery
	present := due[:0:0]
	for _, d := range due {
		if d.Past {
			past = append(past, d)
		} else {
			present = append(present, d)
		}
	}
	if len(past) == 0 {
		return due, nil
	}
	read, gone, err := r.find(ctx, past)
	if rest := past[len(read)+len(gone):]; err == nil && len(rest) > 0 {
		err = r.stream.Postpone(ctx, r.platform, rest, r.now())
		if err != nil {
			return append(present, read...), err
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return present, nil // they come again when their lease ends
		}
		if !r.away.Swap(true) {
			r.logger.Warn("events that a replay put back cannot be read from the history; they wait until they can", "error", err)
		}
		return present, r.stream.Postpone(ctx, r.platform, past, r.now().Add(r.pause))
	}
	if r.away.Swap(false) {
		r.logger.Info("events that a replay put back are read from the history again")
	}
	return append(present, read...), r.stream.Settle(ctx, r.platform, gone)
}

// find parts events that a replay has put back into those that the history has, and the settlements of those that it has not: of
// the first ones, so many as are read in one go.
func (r *pastReader) find(ctx context.Context, past []stream.Delivery) (read []stream.Delivery, gone []stream.Settlement, err error) {
	ctx, cancel := context.WithTimeout(ctx, pastTimeout)
	defer cancel()
	bytes := 0
	for some := range slices.Chunk(past, pastAtOnce) {
		entries, err := r.entries(ctx, some)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range some {
			if data, ok := entries[d.Position]; ok {
				d.Data = data
				read = append(read, d)
			} else {
				gone = append(gone, r.gone(d))
			}
			bytes += len(entries[d.Position])
		}
		if bytes >= pastBytes {
			break
		}
	}
	return read, gone, nil
}

// entries returns what the history has of events. A property that has none any more has nothing.
func (r *pastReader) entries(ctx context.Context, of []stream.Delivery) (map[stream.Position][]byte, error) {
	if r.past == nil && r.kept {
		return nil, errPastUnknown
	}
	entries := map[stream.Position][]byte{}
	if r.past == nil {
		return entries, nil
	}
	positions := make([]stream.Position, len(of))
	for i := range of {
		positions[i] = of[i].Position
	}
	found, err := r.past.Entries(ctx, positions)
	for _, entry := range found {
		entries[entry.Position] = entry.Data
	}
	return entries, err
}

// gone is what becomes of an event that is nowhere any more: where there is a history it is in no answer, and has no record.
func (r *pastReader) gone(d stream.Delivery) stream.Settlement {
	return stream.Settlement{
		Record: stream.Record{Event: d.Position, Platform: r.platform, Status: stream.Expired, Attempts: d.Attempts, Reason: reasonTrimmed, At: r.now()},
		Silent: r.kept,
	}
}
