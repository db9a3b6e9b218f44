package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ReplayRequest says which of a platform's deliveries are to be made again.
type ReplayRequest struct {
	Platform string
	// From (inclusive) and To (exclusive) bound when the events were received.
	From, To time.Time
	// Statuses are those to make again: [Failed], [Expired] and [Skipped], of which it is those alone whose reason is
	// [ReasonShadow]. What a platform does not get it gets by no replay.
	Statuses []Status
	// Now is when the replay is made, by [Clock]; whoever has a deliverer make it leaves it out.
	Now time.Time
	// Past finds what the stream no longer has; nil where nothing does.
	Past Past
}

// Past is what a property's history knows of how deliveries ended.
type Past interface {
	// Ended returns deliveries to a platform of events behind one position and below another, in order, whose last record has one
	// of the statuses, as [ReplayRequest] has them, and whose events are there; and the position to go on behind, 0 at the end.
	Ended(ctx context.Context, platform string, statuses []Status, after, end Position) ([]Record, Position, error)
}

// ReasonReplayed is the reason of the record that a replay writes.
const ReasonReplayed = "replayed"

// ReasonShadow is the reason of the record of an event that would have been sent, were the platform's mode not Shadow.
const ReasonShadow = "shadow"

const (
	// replayRead is how many entries of records are read at a time.
	replayRead = 5000
	// replayClock is how far the clocks that positions of events and of records come from may differ.
	replayClock = time.Minute
	// replayTries is how often a step is tried that others' records come before.
	replayTries = 200
)

// Replay puts events back whose last record on the platform has one of the statuses: each gets a record of status
// [Retrying] and is due at once, in one atomic step of 512. It returns how many. Only what the stream still has, or the
// history in its place, and no deliverer or retry is busy with, is put back; whatever others do at the same time, nothing is put
// back twice or after it was delivered. From the history so many are put back that [MostPast] wait, the oldest first: the same
// again puts more back when these have gone. It fails with [ErrNoGroup].
func (s *Stream) Replay(ctx context.Context, request ReplayRequest) (int, error) {
	first := At(request.From)
	if request.From.UnixMilli() < 0 {
		first = 0
	}
	r := replay{stream: s, request: request, first: first, end: At(request.To), found: map[Position]finished{}, told: map[Position]bool{}}
	if margin := At(time.UnixMilli(replayClock.Milliseconds())); first > margin {
		r.known = first - margin // an event's records come after it
	}
	if err := r.findPast(ctx); err != nil {
		return 0, err
	}
	if err := r.read(ctx); err != nil {
		return 0, err
	}
	past, err := r.replayPast(ctx)
	if err != nil {
		return past, err
	}
	present, err := r.replayAll(ctx, functionReplay, slices.Sorted(maps.Keys(r.found)))
	return past + present, err
}

// replayAll puts back those of the positions that are found.
func (r *replay) replayAll(ctx context.Context, function string, positions []Position) (total int, err error) {
	for tries := 0; ; {
		// Of those that have got another record meanwhile, it may be that somebody else put them back.
		positions = slices.DeleteFunc(positions, func(p Position) bool { _, still := r.found[p]; return !still })
		if len(positions) == 0 {
			return total, nil
		}
		step := positions[:min(len(positions), settleCap)]
		n, err := r.putBack(ctx, function, step)
		if err != nil {
			return total, err
		}
		if n >= 0 {
			total, positions, tries = total+n, positions[len(step):], 0
			continue
		}
		if tries++; tries == replayTries {
			return total, fmt.Errorf("replay deliveries of platform %s: its records change faster than they are read", r.request.Platform)
		}
		if err := r.read(ctx); err != nil {
			return total, err
		}
	}
}

// replay is the state of one replay.
type replay struct {
	stream  *Stream
	request ReplayRequest
	// first and end bound the events.
	first, end Position
	// found are the events to put back, as far as the records up to known tell.
	found map[Position]finished
	known Position
	// before is the stream's first event, where there is a history to look for those before it; of these told has the ones that
	// another record in Redis counts of.
	before Position
	told   map[Position]bool
}

// finished is how an event ended.
type finished struct {
	attempts int
	at       time.Time
}

// read goes through the records that it does not know yet.
func (r *replay) read(ctx context.Context) error {
	for {
		records, err := r.stream.ReadRecords(ctx, r.known, replayRead, 0)
		if unreadable := (*RecordsError)(nil); err != nil && !errors.As(err, &unreadable) {
			return err
		}
		for _, record := range records.Records {
			switch {
			case record.Platform != r.request.Platform || record.Event < r.first || record.Event >= r.end:
			case slices.Contains(r.request.Statuses, record.Status) && (record.Status != Skipped || record.Reason == ReasonShadow):
				r.found[record.Event] = finished{record.Attempts, record.At}
				delete(r.told, record.Event)
			default:
				delete(r.found, record.Event)
				if record.Event < r.before {
					r.told[record.Event] = true
				}
			}
		}
		if records.Last == r.known {
			return nil
		}
		r.known = records.Last
	}
}

// putBack puts events back; it returns -1 where there are records that it does not know.
func (r *replay) putBack(ctx context.Context, function string, positions []Position) (int, error) {
	name, now := r.request.Platform, r.request.Now
	base := positions[0]
	args := make([]any, 0, 6+3*len(positions))
	args = append(args, name, r.known.String(), headOf(name), now.UnixMilli(), now.UnixMilli(), recordsHead(name, base))
	for _, p := range positions {
		end := r.found[p]
		record := Record{Event: p, Status: Retrying, Attempts: end.attempts, Reason: ReasonReplayed, At: now}
		if !now.After(end.at) {
			record.At = end.at.Add(time.Millisecond) // by another's clock; readers go by these times
		}
		args = append(args, p.String(), end.attempts, appendRecord(nil, base, &record))
	}
	names := append([]string{r.stream.keys.events(), r.stream.keys.deliveries()}, r.stream.keys.retries(name)...)
	n, err := r.stream.redis.FCall(ctx, function, names, args...).Int()
	return n, describe("replay deliveries of platform "+name, err)
}
