package deliver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// scanCount is how many entries are read at a time when a group is made.
	scanCount = 5000
	// restoreCalm is how long a group must have lasted for its next loss to count as a new one.
	restoreCalm = time.Minute
)

// awaitGroup makes sure of the platform's group, however long that takes; false means that taking has ended.
func (l *lane) awaitGroup(taking context.Context) bool {
	for {
		err := l.ensureGroup(taking)
		if err == nil {
			return true
		}
		if !l.recover(taking, err) {
			return false
		}
	}
}

// ensureGroup makes the platform's group where it is missing: because the platform is new, or because Redis lost
// it. What has a final record is not handed out again; what has none is, or waits for another attempt.
func (l *lane) ensureGroup(ctx context.Context) error {
	l.restoring.Lock()
	defer l.restoring.Unlock()
	groups, err := l.stream.Groups(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(groups, func(g stream.Group) bool { return g.Platform == l.cfg.Name }) {
		return nil
	}
	if time.Since(l.restored) > restoreCalm {
		l.restores = 0
	} else if !pause(ctx, l.timing.redis.jittered(l.restores)) {
		return ctx.Err()
	}
	s := scan{lane: l, open: map[stream.Position]int{}}
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	created, err := l.stream.EnsureGroup(ctx, l.cfg.Name, state)
	if err != nil {
		return err
	}
	l.restored = time.Now()
	l.restores++
	if created {
		l.logger.Info("consumer group made", "after", state.After.String(), "waiting", len(state.Waiting))
	}
	return nil
}

// scan finds out where a group is to begin. It goes through the records, and through the events as far as those
// reach: up to there events were handed out, so that what has no final record was claimed or waiting, and no more
// of them have to be held in memory than Redis held before.
type scan struct {
	lane *lane
	// first is the oldest event, loaded the newest that was gone through, passed how many were.
	first, loaded stream.Position
	passed        int64
	// ahead are events that were read and not gone through yet, read is the last of them.
	ahead []stream.Entry
	read  stream.Position
	// open are the events up to loaded that name the platform and have no final record, with the attempts made.
	open map[stream.Position]int
}

// state goes through both streams.
func (s *scan) state(ctx context.Context) (stream.GroupState, error) {
	l := s.lane
	if _, _, err := s.peek(ctx); err != nil {
		return stream.GroupState{}, err
	}
	if err := s.records(ctx); err != nil {
		return stream.GroupState{}, err
	}
	// Retries may have outlived the group.
	waiting, err := l.stream.LastWaiting(ctx, l.cfg.Name)
	if err == nil {
		err = s.advance(ctx, waiting)
	}
	if err == nil {
		err = s.passOver(ctx)
	}
	if err != nil {
		return stream.GroupState{}, err
	}
	// Others may have some of these in their hands; they get as long to say so as for any claim.
	state := stream.GroupState{After: s.loaded, Passed: s.passed, Due: l.now().Add(l.timing.claimIdle)}
	for position, attempts := range s.open {
		state.Waiting = append(state.Waiting, stream.Delivery{Entry: stream.Entry{Position: position}, Attempts: attempts})
	}
	slices.SortFunc(state.Waiting, func(a, b stream.Delivery) int { return cmp.Compare(a.Position, b.Position) })
	return state, nil
}

// records goes through the platform's records in order: an event's last one holds.
func (s *scan) records(ctx context.Context) error {
	for after := stream.Position(0); ; {
		records, last, err := s.lane.stream.ReadRecords(ctx, after, scanCount, 0)
		var unreadable *stream.RecordsError
		switch {
		case errors.As(err, &unreadable):
			s.lane.logger.Error("delivery records cannot be read; their events may be delivered again", "error", err)
		case err != nil:
			return err
		}
		for _, record := range records {
			if record.Platform != s.lane.cfg.Name || record.Event < s.first {
				continue
			}
			if err := s.advance(ctx, record.Event); err != nil {
				return err
			}
			if record.Status.Final() {
				delete(s.open, record.Event)
			} else {
				s.open[record.Event] = record.Attempts
			}
		}
		if last == after {
			return nil
		}
		after = last
	}
}

// advance goes through the events up to a position.
func (s *scan) advance(ctx context.Context, to stream.Position) error {
	for s.loaded < to {
		entry, found, err := s.peek(ctx)
		if err != nil || !found || entry.Position > to {
			return err
		}
		if s.named(entry) {
			s.open[entry.Position] = 0
		}
		s.pass()
	}
	return nil
}

// passOver goes through the events that do not name the platform, up to the first that does.
func (s *scan) passOver(ctx context.Context) error {
	for {
		entry, found, err := s.peek(ctx)
		if err != nil || !found || s.named(entry) {
			return err
		}
		s.pass()
	}
}

// peek returns the next event; there may be none.
func (s *scan) peek(ctx context.Context) (stream.Entry, bool, error) {
	if len(s.ahead) == 0 {
		entries, err := s.lane.stream.ReadEvents(ctx, s.read, scanCount, 0)
		if err != nil || len(entries) == 0 {
			return stream.Entry{}, false, err
		}
		if s.read == 0 {
			s.first = entries[0].Position
		}
		s.ahead, s.read = entries, entries[len(entries)-1].Position
	}
	return s.ahead[0], true, nil
}

func (s *scan) pass() {
	s.loaded = s.ahead[0].Position
	s.passed++
	s.ahead = s.ahead[1:]
}

// named says whether an event is the platform's. What cannot be decoded is for the worker to judge.
func (s *scan) named(entry stream.Entry) bool {
	e, err := event.DecodeEntry(entry.Data)
	return err != nil || slices.Contains(e.Platforms, s.lane.cfg.Name)
}
