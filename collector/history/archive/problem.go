package archive

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/stream"
)

// Problem is why nothing is archived at the moment. Its values, but for [RedisUnreachable], are reasons of the Property's condition
// HistoryReady.
type Problem string

// The problems.
const (
	// HistoryUnreachable: ClickHouse does not answer, takes too long, lacks the tables, or takes no writes at the moment.
	HistoryUnreachable Problem = "HistoryUnreachable"
	// HistoryAccessDenied: it does not take the user or its password, or the user lacks a right.
	HistoryAccessDenied Problem = "HistoryAccessDenied"
	// HistoryVersionTooOld: it is older than [clickhouse.MinimumVersion].
	HistoryVersionTooOld Problem = "HistoryVersionTooOld"
	// HistoryDiskFull: it has no room left.
	HistoryDiskFull Problem = "HistoryDiskFull"
	// HistoryTooManyParts: blocks come faster than they are merged.
	HistoryTooManyParts Problem = "HistoryTooManyParts"
	// RedisUnreachable: the streams cannot be read.
	RedisUnreachable Problem = "RedisUnreachable"
)

// problemOf returns what is wrong.
func problemOf(err error) Problem {
	if _, history := errors.AsType[*clickhouse.Problem](err); !history && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errUnsettled) {
		return RedisUnreachable
	}
	for kind, problem := range map[clickhouse.Kind]Problem{
		clickhouse.Denied: HistoryAccessDenied, clickhouse.TooOld: HistoryVersionTooOld, clickhouse.DiskFull: HistoryDiskFull,
		clickhouse.TooManyParts: HistoryTooManyParts,
	} {
		if errors.Is(err, kind) {
			return problem
		}
	}
	return HistoryUnreachable
}

// health is how it stands with an archive. It is safe for concurrent use.
type health struct {
	log *slog.Logger

	mu sync.Mutex
	// problems are those of the parts that have one, told is what was logged last.
	problems map[string]Problem
	told     Problem
}

// failed notes that a part has failed, and logs that once.
func (h *health) failed(ctx context.Context, part string, err error) Problem {
	problem := problemOf(err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems[part] = problem
	if h.told != problem {
		h.told = problem
		if problem == RedisUnreachable {
			err = stream.Explain(err)
		}
		h.log.WarnContext(ctx, "nothing is archived: it is tried again until it succeeds", "reason", problem, "error", err)
	}
	return problem
}

// fine notes that a part works.
func (h *health) fine(ctx context.Context, part string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.problems, part)
	if h.told != "" && len(h.problems) == 0 {
		h.told = ""
		h.log.InfoContext(ctx, "the archive goes on")
	}
}

// problem returns what is wrong, "" for nothing.
func (h *health) problem() Problem {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, part := range slices.Sorted(maps.Keys(h.problems)) {
		return h.problems[part]
	}
	return ""
}
