package stream

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Errors of a restore that callers tell apart.
var (
	// ErrRestoring says that somebody else restores the property at the same time.
	ErrRestoring = errors.New("somebody else restores this Property at the same time")
	// ErrFull says that Redis has no room.
	ErrFull = errors.New("redis is out of memory, that is maxmemory")
	// ErrClock says that Redis's clock, by which events expire, is another than that of whoever restores.
	ErrClock = errors.New("redis's clock and this machine's differ by more than an hour: with a wrong one Redis would forget what is restored")
)

const (
	// restorePrefix is how the names begin, within the property's, of what a restore has written and not published yet.
	restorePrefix = "restore:"
	// restoreBackup and restoreNext are the fields of the note of a restore that is under way: the backup's id, and how many pieces
	// are there.
	restoreBackup, restoreNext = "backup", "next"
	// renamedAtOnce is how many of the hashes of which there may be many are published in one step.
	renamedAtOnce = 500
	// clockTolerance is how far the clock of whoever restores may be from Redis's.
	clockTolerance = time.Hour
)

// orderName is what names of hashes of orders look like.
var orderName = regexp.MustCompile(`^order:[^{}]+:[0-9a-f]{20}$`)

// Restore puts a backup's pieces back into a property that has never received an event. They are written under names of their own,
// each in one step with the note that it is there, and take the streams' names in one step at the end: so nobody ever reads, or
// delivers from, half a backup, and whoever is killed goes on where that was.
type Restore struct {
	stream *Stream
	backup string
	next   int64
	// last are pieces that can be put back when all others are there.
	last []Piece
}

// restoring is the note of a restore that is under way.
func (k keys) restoring() string { return k.prefix + "restoring" }

// draft is a key's name until it is published.
func (k keys) draft(name string) string { return k.prefix + restorePrefix + name }

// BeginRestore begins to put back the backup of an id, or goes on with it. What a restore of another backup has left is removed.
// The error is [ErrNotEmpty] where the property has ever received an event, or [ErrClock].
func (s *Stream) BeginRestore(ctx context.Context, backup string, now time.Time) (*Restore, error) {
	theirs, err := s.redis.Time(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("look at redis's clock: %w", err)
	}
	if theirs.Sub(now).Abs() > clockTolerance {
		return nil, ErrClock
	}
	if err := s.checkFresh(ctx, s.redis); err != nil {
		return nil, err
	}
	note, err := s.redis.HGetAll(ctx, s.keys.restoring()).Result()
	if err != nil {
		return nil, fmt.Errorf("look for a restore that was begun: %w", err)
	}
	r := &Restore{stream: s, backup: backup}
	if note[restoreBackup] == backup {
		r.next, err = strconv.ParseInt(note[restoreNext], 10, 64)
		return r, err
	}
	if err := s.DiscardRestore(ctx); err != nil {
		return nil, err
	}
	return r, orFull(s.redis.HSet(ctx, s.keys.restoring(), restoreBackup, backup, restoreNext, 0).Err())
}

// DiscardRestore removes what a restore has left that was not finished.
func (s *Stream) DiscardRestore(ctx context.Context) error {
	err := s.eachKey(ctx, s.keys.draft("*"), func(ctx context.Context, names []string) error {
		return s.redis.Unlink(ctx, names...).Err()
	})
	if err == nil {
		err = s.redis.Unlink(ctx, s.keys.restoring()).Err()
	}
	if err != nil {
		return fmt.Errorf("remove what a restore has left: %w", err)
	}
	return nil
}

// Done is how many pieces are there already, from the first.
func (r *Restore) Done() int64 { return r.next }

// Put puts back the next piece, or passes over it where it is there. Those of a backup have to be put one after the other, from the
// first. It fails with [ErrRestoring] where somebody else does the same.
func (r *Restore) Put(ctx context.Context, number int64, p *Piece) error {
	if err := p.Check(); err != nil {
		return err
	}
	switch p.Kind {
	case PieceEnds, PieceGroup, PiecePending:
		r.last = append(r.last, *p)
		return nil
	case PieceCut:
		return nil
	}
	if number < r.next {
		return nil
	}
	err := r.step(ctx, number+1, func(pipe redis.Pipeliner) { r.write(ctx, pipe, p) })
	if err == nil {
		r.next = number + 1
	}
	return err
}

// step does something in one step with the note of how many pieces are there then, unless somebody else has done so.
func (r *Restore) step(ctx context.Context, next int64, do func(redis.Pipeliner)) error {
	s := r.stream
	err := s.redis.Watch(ctx, func(tx *redis.Tx) error {
		note, err := tx.HGetAll(ctx, s.keys.restoring()).Result()
		if err != nil {
			return err
		}
		if note[restoreBackup] != r.backup || note[restoreNext] != strconv.FormatInt(r.next, 10) {
			return ErrRestoring
		}
		commands, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			do(pipe)
			pipe.HSet(ctx, s.keys.restoring(), restoreNext, next)
			return nil
		})
		return orFull(err, commands...)
	}, s.keys.restoring())
	switch {
	case errors.Is(err, redis.TxFailedErr):
		return ErrRestoring
	case err != nil && !errors.Is(err, ErrRestoring):
		return fmt.Errorf("restore: %w", err)
	default:
		return err
	}
}

// orFull makes of an error that Redis has no room [ErrFull]. Of a transaction, whose commands are given, Redis only says at the end that
// it was discarded.
func orFull(err error, commands ...redis.Cmder) error {
	if redis.HasErrorPrefix(err, "OOM") || slices.ContainsFunc(commands, func(c redis.Cmder) bool { return redis.HasErrorPrefix(c.Err(), "OOM") }) {
		return ErrFull
	}
	return err
}

// write puts a piece under its draft's name. It may be done twice.
func (r *Restore) write(ctx context.Context, pipe redis.Pipeliner, p *Piece) {
	key := r.stream.keys.draft(p.Key)
	switch p.Kind {
	case PieceText:
		pipe.Set(ctx, key, p.Items[0], 0)
	case PieceHash:
		for some := range slices.Chunk(p.Items, 2*scanBatch) {
			pipe.Do(ctx, commandOf("HSET", key, some)...)
		}
	case PieceScores:
		for some := range slices.Chunk(p.Items, 2*scanBatch) {
			turned := make([]string, 0, len(some))
			for i := 0; i < len(some); i += 2 {
				turned = append(turned, some[i+1], some[i])
			}
			pipe.Do(ctx, commandOf("ZADD", key, turned)...)
		}
	case PieceEntries:
		for i := 0; i < len(p.Items); i += 3 {
			pipe.Do(ctx, "XADD", key, p.Items[i], p.Items[i+1], p.Items[i+2])
		}
	}
	if p.Expires > 0 {
		pipe.Do(ctx, "PEXPIREAT", key, p.Expires)
	}
}

func commandOf(command, key string, items []string) []any {
	args := make([]any, 0, 2+len(items))
	args = append(args, command, key)
	for _, item := range items {
		args = append(args, item)
	}
	return args
}

// Publish has everything take its name, once all pieces are put: from then on the property has what it had at the cut. It fails with
// [ErrNotEmpty] where the property has received an event meanwhile; then nothing of the backup is in its streams.
func (r *Restore) Publish(ctx context.Context) error {
	if err := r.finishStreams(ctx); err != nil {
		return fmt.Errorf("restore: %w", orFull(err))
	}
	s := r.stream
	var rest []string
	err := s.eachKey(ctx, s.keys.draft("*"), func(ctx context.Context, names []string) error {
		var early []string
		for _, key := range names {
			name := strings.TrimPrefix(key, s.keys.draft(""))
			if orderName.MatchString(name) || strings.HasPrefix(name, "erasure:state:") {
				early = append(early, name)
			} else if !slices.Contains(rest, name) {
				rest = append(rest, name)
			}
		}
		for some := range slices.Chunk(early, renamedAtOnce) {
			if err := r.step(ctx, r.next, func(pipe redis.Pipeliner) { r.rename(ctx, pipe, some) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.publish(ctx, rest)
}

func (r *Restore) rename(ctx context.Context, pipe redis.Pipeliner, names []string) {
	for _, name := range names {
		pipe.Rename(ctx, r.stream.keys.draft(name), r.stream.keys.prefix+name)
	}
}

// publish gives the drafts their names in one step, unless somebody has written to the streams meanwhile.
func (r *Restore) publish(ctx context.Context, names []string) error {
	s := r.stream
	err := s.redis.Watch(ctx, func(tx *redis.Tx) error {
		if err := s.checkFresh(ctx, tx); err != nil {
			return err
		}
		if note, err := tx.HGet(ctx, s.keys.restoring(), restoreBackup).Result(); err != nil || note != r.backup {
			return errors.Join(ErrRestoring, err)
		}
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			r.rename(ctx, pipe, names)
			pipe.Unlink(ctx, s.keys.restoring(), s.keys.clock())
			return nil
		})
		return err
	}, s.keys.events(), s.keys.deliveries(), s.keys.restoring())
	switch {
	case errors.Is(err, redis.TxFailedErr):
		return ErrNotEmpty
	case err != nil && !errors.Is(err, ErrNotEmpty) && !errors.Is(err, ErrRestoring):
		return fmt.Errorf("restore: %w", err)
	default:
		return err
	}
}

// finishStreams makes groups, what they have under way, and the streams' ends. It may be done twice.
func (r *Restore) finishStreams(ctx context.Context) error {
	s := r.stream
	for i := range r.last {
		p := &r.last[i]
		if p.Kind == PieceGroup {
			if err := r.makeGroup(ctx, p); err != nil {
				return err
			}
		}
	}
	for i := range r.last {
		p := &r.last[i]
		key := s.keys.draft(p.Key)
		switch p.Kind {
		case PiecePending:
			if err := r.claim(ctx, key, p); err != nil {
				return err
			}
		case PieceEnds:
			n, err := s.redis.Exists(ctx, key).Result()
			if err != nil {
				return err
			}
			if n == 0 { // a stream that has an end and no entries: it knows what it has given all the same
				if err := r.makeEmpty(ctx, key); err != nil {
					return err
				}
			}
			if err := s.redis.Do(ctx, "XSETID", key, p.Items[0], "ENTRIESADDED", p.Items[1], "MAXDELETEDID", p.Items[2]).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Restore) makeGroup(ctx context.Context, p *Piece) error {
	args := []any{"XGROUP", "CREATE", r.stream.keys.draft(p.Key), p.Items[0], p.Items[1], "MKSTREAM"}
	if p.Items[2] != "" {
		args = append(args, "ENTRIESREAD", p.Items[2])
	}
	err := r.stream.redis.Do(ctx, args...).Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") {
		return nil
	}
	return err
}

// makeEmpty makes a stream without entries and without groups.
func (r *Restore) makeEmpty(ctx context.Context, key string) error {
	const group = "weir-restore"
	_, err := r.stream.redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.XGroupCreateMkStream(ctx, key, group, "0")
		pipe.XGroupDestroy(ctx, key, group)
		return nil
	})
	return err
}

// claim gives what was pending back to who had it, as long ago as anybody waits for: a deliverer of that name, or whoever comes
// first, sends it again.
func (r *Restore) claim(ctx context.Context, key string, p *Piece) error {
	_, err := r.stream.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := 1; i < len(p.Items); i += 3 {
			pipe.Do(ctx, "XCLAIM", key, p.Items[0], p.Items[i+1], 0, p.Items[i],
				"IDLE", releasedIdle.Milliseconds(), "RETRYCOUNT", p.Items[i+2], "FORCE", "JUSTID")
		}
		return nil
	})
	return err
}
