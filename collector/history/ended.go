package history

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// endedAtOnce is how many deliveries that ended are found at once.
	endedAtOnce = 1500
	// importedBit is set in the positions of events that were imported: those are delivered to nobody.
	importedBit = 1 << 19
)

// endedSQL are the deliveries to a platform whose last record has one of some statuses, and none of which succeeded. The table is
// in the order of positions, so that it is read only as far as is asked for.
const endedSQL = `SELECT at, tupleElement(last, 1) AS status, tupleElement(last, 2) AS attempts, tupleElement(last, 3) AS decided FROM (
	SELECT at, argMax((status, attempts, decided, toString(reason)), (entry, nth)) AS last, countIf(status = {delivered:UInt8}) AS delivered FROM records
	WHERE at > {after:UInt64} AND at < {end:UInt64} AND platform = {platform:String} AND bitAnd(at, {imported:UInt64}) = 0 GROUP BY at
) WHERE delivered = 0 AND has({statuses:Array(UInt8)}, status) AND (status != {skipped:UInt8} OR tupleElement(last, 4) = {shadow:String})
ORDER BY at LIMIT {count:UInt32}`

// Ended implements [stream.Past].
func (e *Engine) Ended(ctx context.Context, platform string, statuses []stream.Status, after, end stream.Position) ([]stream.Record, stream.Position, error) {
	asked := make([]uint64, len(statuses))
	for i, status := range statuses {
		asked[i] = uint64(status)
	}
	found, err := all[struct {
		At       uint64 `ch:"at"`
		Status   uint8  `ch:"status"`
		Attempts uint16 `ch:"attempts"`
		Decided  int64  `ch:"decided"`
	}](ctx, e, clickhouse.Query{SQL: endedSQL, Settings: clickhouse.Settings{"optimize_aggregation_in_order": 1}, Parameters: map[string]any{
		"after": max(uint64(after), max(uint64(e.oldest()), 1)-1), "end": uint64(end), "platform": platform, "imported": importedBit, "statuses": asked,
		"delivered": int(stream.Delivered), "skipped": int(stream.Skipped), "shadow": stream.ReasonShadow, "count": endedAtOnce,
	}})
	if err != nil || len(found) == 0 {
		return nil, 0, err
	}
	positions := make([]uint64, len(found))
	for i := range found {
		positions[i] = found[i].At
	}
	there, err := e.named(ctx, platform, positions)
	if err != nil {
		return nil, 0, err
	}
	var list []stream.Record
	for i := range found {
		if f := &found[i]; there[f.At] {
			list = append(list, stream.Record{
				Event: stream.Position(f.At), Platform: platform, Status: stream.Status(f.Status), Attempts: int(f.Attempts), At: time.UnixMilli(f.Decided).UTC(),
			})
		}
	}
	next := stream.Position(0)
	if len(found) == endedAtOnce {
		next = stream.Position(positions[len(positions)-1])
	}
	return list, next, nil
}

// named returns which positions have an event that names a platform.
func (e *Engine) named(ctx context.Context, platform string, positions []uint64) (map[uint64]bool, error) {
	there := map[uint64]bool{}
	for listed := range slices.Chunk(positions, positionsAtOnce) {
		parameters := map[string]any{"platform": platform, "separator": rows.PlatformSeparator}
		maps.Copy(parameters, atPositions(listed))
		found, err := all[uint64](ctx, e, clickhouse.Query{
			SQL:        "SELECT at FROM events WHERE " + isListed + " AND has(splitByString({separator:String}, toString(platforms)), {platform:String})",
			Parameters: parameters,
		})
		if err != nil {
			return nil, err
		}
		for _, at := range found {
			there[at] = true
		}
	}
	return there, nil
}

// withoutPerson takes from a row whose event it is, as of one that has become nobody's.
func withoutPerson(row *rows.Event) {
	row.Visitor, row.ClientID, row.Identity, row.Identifiers = 0, "", "", nil
}
