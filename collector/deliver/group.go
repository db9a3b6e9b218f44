package deliver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// scanCount is how many entries are read at a time when a group is made.
	scanCount = 5000
	// restoreCalm is how long a group must have lasted for its next loss to count as a new one.
	restoreCalm = time.Minute
)

// group is a platform's consumer group.
type group struct {
	stream   *stream.Stream
	platform string
	// backoff is between attempts while Redis fails.
	backoff backoff
	// pendingIdle is for how long others may be busy with events that a lost group had handed out.
	pendingIdle time.Duration
	// now is the clock by which events are dated.
	now    func() time.Time
	logger *slog.Logger

	// failures counts the failures in a row to take events.
	failures atomic.Int32
	// mu lets one at a time make the group; made is when that was done last, remade how often in a row.
	mu     sync.Mutex
	made   time.Time
	remade int
}

// await makes sure of the group, however long that takes; false means that taking has ended.
func (g *group) await(taking context.Context) bool {
	for {
		err := g.ensure(taking)
		if err == nil {
			return true
		}
		if !g.recover(taking, err) {
			return false
		}
	}
}

// recover does what can be done about a failure to take events and waits a moment, longer and longer. It returns
// false when taking has ended.
func (g *group) recover(taking context.Context, err error) bool {
	if taking.Err() != nil {
		return false
	}
	if errors.Is(err, stream.ErrNoGroup) {
		if err = g.ensure(taking); err == nil {
			return true
		}
	}
	failures := g.failures.Add(1)
	if failures == 1 {
		g.logger.Error("events cannot be taken from Redis; it is tried again and again", "error", err)
	}
	return pause(taking, g.backoff.jittered(int(failures)-1))
}

// recovered notes that Redis answers.
func (g *group) recovered() {
	if g.failures.Swap(0) > 0 {
		g.logger.Info("events are taken from Redis again")
	}
}

// ensure makes the group where it is missing: because the platform is new, or because Redis lost it. What has a final
// record is not handed out again; what has none is, or waits for another attempt.
func (g *group) ensure(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	groups, err := g.stream.Groups(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(groups, func(other stream.Group) bool { return other.Platform == g.platform }) {
		return nil
	}
	if time.Since(g.made) > restoreCalm {
		g.remade = 0
	} else if !pause(ctx, g.backoff.jittered(g.remade)) {
		return ctx.Err()
	}
	s := scan{group: g, open: map[stream.Position]int{}}
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	created, err := g.stream.EnsureGroup(ctx, g.platform, state)
	if err != nil {
		return err
	}
	g.made = time.Now()
	g.remade++
	if created {
		g.logger.Info("consumer group made", "after", state.After.String(), "waiting", len(state.Waiting))
	}
	return nil
}

// scan finds out where a group is to begin. It goes through the records, and through the events as far as those
// reach: up to there events were handed out, so that what has no final record was pending or waiting, and no more
// of them have to be held in memory than Redis held before.
type scan struct {
	group *group
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
	g := s.group
	if _, _, err := s.peek(ctx); err != nil {
		return stream.GroupState{}, err
	}
	if err := s.records(ctx); err != nil {
		return stream.GroupState{}, err
	}
	// Retries may have outlived the group.
	waiting, err := g.stream.LastWaiting(ctx, g.platform)
	if err == nil {
		err = s.advance(ctx, waiting)
	}
	if err == nil {
		err = s.passOver(ctx)
	}
	if err != nil {
		return stream.GroupState{}, err
	}
	// Others may be busy with some of these; they get as long to say so as for any pending entry.
	state := stream.GroupState{After: s.loaded, Passed: s.passed, Due: g.now().Add(g.pendingIdle)}
	for position, attempts := range s.open {
		state.Waiting = append(state.Waiting, stream.Delivery{Entry: stream.Entry{Position: position}, Attempts: attempts})
	}
	slices.SortFunc(state.Waiting, func(a, b stream.Delivery) int { return cmp.Compare(a.Position, b.Position) })
	return state, nil
}

// records goes through the platform's records in order: an event's last one holds.
func (s *scan) records(ctx context.Context) error {
	for after := stream.Position(0); ; {
		records, err := s.group.stream.ReadRecords(ctx, after, scanCount, 0)
		var unreadable *stream.RecordsError
		switch {
		case errors.As(err, &unreadable):
			s.group.logger.Error("delivery records cannot be read; their events may be delivered again", "error", err)
		case err != nil:
			return err
		}
		for _, record := range records.Records {
			if record.Platform != s.group.platform || record.Event < s.first {
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
		if records.Last == after {
			return nil
		}
		after = records.Last
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
		entries, err := s.group.stream.ReadEvents(ctx, s.read, scanCount, 0)
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
	e, err := wire.Decode(entry.Data)
	return err != nil || slices.Contains(e.Platforms, s.group.platform)
}
