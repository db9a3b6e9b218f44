package stream

import (
	"context"
	"fmt"
)

// MostPast is how many of a platform's events wait at most for a replay to put more back from the history: of each Redis keeps its
// position and attempts, some 200 bytes.
const MostPast = 200_000

// findPast finds out where the stream begins, where there is a history that has what was before.
func (r *replay) findPast(ctx context.Context) error {
	if r.request.Past == nil {
		return nil
	}
	bounds, err := r.stream.Bounds(ctx)
	if r.before = r.end; bounds.First > 0 {
		r.before = min(r.end, bounds.First)
	}
	return err
}

// replayPast puts back what the history has and the stream does not. Redis's records have been read before, so what the history
// says holds for every event of which they say nothing: the history has those that Redis has let go of. Whatever comes meanwhile
// is read before anything is put back.
func (r *replay) replayPast(ctx context.Context) (total int, err error) {
	if r.before <= r.first {
		return 0, nil
	}
	waiting, err := r.stream.redis.ZCard(ctx, r.stream.keys.due(r.request.Platform)).Result()
	if err != nil {
		return 0, fmt.Errorf("count what waits for platform %s: %w", r.request.Platform, err)
	}
	for after, room := max(r.first, 1)-1, MostPast-int(waiting); room > 0; {
		list, next, err := r.request.Past.Ended(ctx, r.request.Platform, r.request.Statuses, after, r.before)
		if err != nil {
			return total, err
		}
		n, err := r.replayAll(ctx, functionReplayPast, r.add(list[:min(len(list), room)]))
		total, room = total+n, room-n
		if err != nil || next == 0 {
			return total, err
		}
		after = next
	}
	return total, nil
}

// add notes what the history has found, but for what Redis has later records of, and returns which events those are.
func (r *replay) add(list []Record) []Position {
	var positions []Position
	for _, record := range list {
		if r.told[record.Event] {
			continue
		}
		if _, later := r.found[record.Event]; !later {
			r.found[record.Event] = finished{record.Attempts, record.At}
		}
		positions = append(positions, record.Event)
	}
	return positions
}
