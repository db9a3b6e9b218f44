package forget

import (
	"context"
	"log/slog"
	"time"
)

const (
	// tolerance is by how much clocks may differ, settled for how long a time has to have stood that nobody saw come.
	tolerance, settled = time.Hour, 24 * time.Hour
)

// witness says by which times something may go for good: what is believed of Redis's clock is believed at first sight where the Redis
// is a new one, and the history is older than that. A time that is ahead of this process's own clock removes nothing. Nor does one that
// is further ahead of the last that removed something than this process has run since, before it has stood for a day: both clocks may
// be set together. A time that is behind removes less, and needs no witness.
type witness struct {
	// wall is this process's clock, which may be set, elapsed how long something runs.
	wall    func() time.Time
	elapsed func() time.Duration
	logger  *slog.Logger

	// last is the time that was trusted last, and lastAt when that was; zero before there was one.
	last   time.Time
	lastAt time.Duration
	// doubted is the time that was doubted first of those that go on from there, doubtedAt when that was; zero where none is doubted.
	doubted   time.Time
	doubtedAt time.Duration
}

// trusts says whether something may go for good by a time.
func (w *witness) trusts(ctx context.Context, now time.Time) bool {
	at := w.elapsed()
	ahead := now.Sub(w.wall())
	agrees := ahead <= tolerance
	if !w.last.IsZero() {
		ahead = max(ahead, now.Sub(w.last)-(at-w.lastAt))
	}
	if ahead > tolerance && (!w.stood(now, at) || !agrees) {
		if w.doubted.IsZero() {
			w.doubted, w.doubtedAt = now, at
			w.logger.LogAttrs(ctx, slog.LevelWarn, "nothing leaves the history for being too old: the time that is believed is ahead of what has passed",
				slog.Duration("ahead", ahead.Round(time.Minute)))
		}
		return false
	}
	if !w.doubted.IsZero() {
		w.logger.LogAttrs(ctx, slog.LevelInfo, "what is too old leaves the history again")
	}
	w.last, w.lastAt, w.doubted = now, at, time.Time{}
	return true
}

// stood says whether a time that is doubted has gone on for long enough as time goes. Where it has made a further step, that one is
// doubted from now on.
func (w *witness) stood(now time.Time, at time.Duration) bool {
	if w.doubted.IsZero() {
		return false
	}
	if step := now.Sub(w.doubted) - (at - w.doubtedAt); step.Abs() > tolerance {
		w.doubted, w.doubtedAt = now, at
	}
	return at-w.doubtedAt >= settled
}
