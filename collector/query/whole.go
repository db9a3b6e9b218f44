package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// EventReader reads whole events: [StreamEvents] those of a stream, the engine on disk its own.
type EventReader interface {
	// EventsAt returns the events at the positions, in their order, nil for each that has been erased. It fails with [ErrCutShort]
	// where one has been trimmed.
	EventsAt(ctx context.Context, positions []stream.Position) ([]*event.Event, error)
	// AtOnce is how many events are best asked for at once.
	AtOnce() int
}

// ErrCutShort says that events were trimmed before an export has come to them.
var ErrCutShort = errors.New("events of the export were trimmed before their turn")

// errUndecodable says that what is kept of an event is none.
var errUndecodable = errors.New("entry")

// errNoEntries says that Redis does not give the events.
var errNoEntries = errors.New("the events of the export cannot be read")

const (
	// entriesAtOnce is how many events are had from Redis at a time: each may be as large as a body.
	entriesAtOnce = 100
	// entriesTimeout is how long Redis may take for them.
	entriesTimeout = 5 * time.Second
)

// EntryReader reads entries of the events stream, where that is or as a history has kept them.
type EntryReader interface {
	// Entries returns the events at the positions, in their order, without those that are gone.
	Entries(ctx context.Context, positions []stream.Position) ([]stream.Entry, error)
	// Bounds returns the ends of the stream that has them.
	Bounds(ctx context.Context) (stream.Bounds, error)
}

// StreamEvents reads the events of a view, which are those of its stream.
type StreamEvents struct{ Stream EntryReader }

// AtOnce is how many are asked for at once.
func (StreamEvents) AtOnce() int { return entriesAtOnce }

// EventsAt implements [EventReader].
func (s StreamEvents) EventsAt(ctx context.Context, positions []stream.Position) ([]*event.Event, error) {
	within, cancel := context.WithTimeout(ctx, entriesTimeout)
	defer cancel()
	events, err := EventsAt(within, s.Stream, positions)
	if err != nil && !errors.Is(err, ErrCutShort) && !errors.Is(err, errUndecodable) {
		return nil, fmt.Errorf("%w: %s", errNoEntries, err) //nolint:errorlint // a time that is up here is Redis's, not the request's
	}
	return events, err
}

// EventsAt reads the events at positions where they are kept as entries, as an [EventReader] does: what is older than the first entry
// was trimmed, what is missing else was erased.
func EventsAt(ctx context.Context, kept EntryReader, positions []stream.Position) ([]*event.Event, error) {
	entries, err := kept.Entries(ctx, positions)
	if err != nil {
		return nil, err
	}
	if len(entries) < len(positions) {
		bounds, err := kept.Bounds(ctx)
		if err != nil {
			return nil, err
		}
		if bounds.Length == 0 || slices.Min(positions) < bounds.First {
			return nil, ErrCutShort
		}
	}
	events := make([]*event.Event, len(positions))
	for i := range positions {
		if len(entries) == 0 || entries[0].Position != positions[i] {
			continue
		}
		e, err := wire.Decode(entries[0].Data)
		if err != nil {
			return nil, fmt.Errorf("%w %s: %w", errUndecodable, entries[0].Position, err)
		}
		events[i], entries = &e, entries[1:]
	}
	return events, nil
}

// wholeEvents has the events of records, nil for each that has been erased meanwhile.
func wholeEvents(ctx context.Context, t *Tenant, records []analytics.Record) ([]*event.Event, error) {
	positions := make([]stream.Position, len(records))
	for i := range records {
		positions[i] = records[i].Position
	}
	events, err := t.Events.EventsAt(ctx, positions)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		if e == nil {
			continue
		}
		if e.Anonymous { // identifiers that it has are for platforms
			e.Keep(event.Needed{})
		}
		if records[i].Anonymous { // also where nothing was sealed yet when it was stored
			e.DropIdentity()
		}
	}
	return events, nil
}
