package history

import (
	"context"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/stream"
)

// completeFrom returns the time from which on no event is missing; zero where none ever was.
func (e *Engine) completeFrom(ctx context.Context) (time.Time, error) {
	// What is older than is kept is missing, whether it has left the table yet or not.
	before := max(uint64(e.oldest()), 1) - 1
	end, err := one[uint64](ctx, e, clickhouse.Query{
		SQL: `SELECT max(end) FROM (SELECT end FROM gaps
			UNION ALL SELECT {before:UInt64} AS end FROM (SELECT at FROM events WHERE at <= {before:UInt64} LIMIT 1))`,
		Parameters: map[string]any{"before": before},
	})
	if err != nil || end == 0 {
		return time.Time{}, err
	}
	// Events of the position's millisecond may be among those that are missing.
	return stream.Position(end).Time().Add(time.Millisecond), nil
}
