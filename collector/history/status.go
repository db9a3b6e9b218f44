package history

import (
	"context"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/stream"
)

// completeFrom returns the time from which on no event is missing; zero where none ever was.
func (e *Engine) completeFrom(ctx context.Context) (time.Time, error) {
	end, err := one[uint64](ctx, e, clickhouse.Query{SQL: "SELECT max(end) FROM gaps"})
	if err != nil || end == 0 {
		return time.Time{}, err
	}
	// Events of the position's millisecond may be among those that are missing.
	return stream.Position(end).Time().Add(time.Millisecond), nil
}
