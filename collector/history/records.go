package history

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// knownRecords are the records that an answer may know, of statuses that there are. It takes the parameters of [moment.recordBounds].
const knownRecords = "entry <= {records:UInt64} AND status <= {expired:UInt8}"

// recordBounds are the parameters of [knownRecords] and [countingSQL].
func (m moment) recordBounds() map[string]any {
	return map[string]any{"records": m.records, "expired": int(stream.Expired), "longest": columns.MaxLatency, "bias": columns.UpdatedBias}
}

// countingSQL is the record that counts for each event and platform, which is nearly always the only one, of the records that
// a condition keeps. Where there are several they are taken in the order in which they were written: a delivery that succeeded
// stays delivered, a final status is only reopened by something later, and of two of a kind the later one holds. How far a
// time may be from its event's is bounded, but not that of what is compared with it: see package columns.
func countingSQL(kept string) string {
	return `SELECT at, platform, name,
	groupArray((entry, nth, status, attempts, latency, toString(reason), toInt64(bitShiftRight(entry, 20)) + decided, again)) AS said,
	toInt64(bitShiftRight(at, 20)) AS received,
	if(length(said) = 1, said[1], arrayFold((known, r) -> if(
		multiIf(known.3 = 2, 0, r.3 = 2, 1, r.3 >= 3 AND known.3 < 2, 1,
			known.3 >= 3 AND r.3 < 2, r.7 > least(greatest(known.7, received - {bias:Int64}), received + {bias:Int64} - 1),
			r.7 >= least(greatest(known.7, received - {bias:Int64}), received + {bias:Int64} - 1)), r, known),
		arraySort(said), arraySort(said)[1])) AS record
	FROM records WHERE ` + knownRecords + ` AND ` + kept + ` GROUP BY at, platform, name`
}

// positionsAtOnce is how many positions a statement lists at most: a parameter has room for 6,000 (see [clickhouse.Query]).
const positionsAtOnce = 5000

// recordsOf returns the records of events that an answer may know, in the order in which they were written.
func (e *Engine) recordsOf(ctx context.Context, m moment, positions []uint64) (map[uint64][]rows.Record, error) {
	found := map[uint64][]rows.Record{}
	for listed := range slices.Chunk(positions, positionsAtOnce) {
		parameters := m.recordBounds()
		maps.Copy(parameters, atPositions(listed))
		records, err := all[rows.Record](ctx, e, clickhouse.Query{
			SQL:        "SELECT * FROM records WHERE " + isListed + " AND " + knownRecords + " ORDER BY entry, nth",
			Parameters: parameters,
		})
		if err != nil {
			return nil, err
		}
		for i := range records {
			found[records[i].At] = append(found[records[i].At], records[i])
		}
	}
	return found, nil
}

// isListed keeps rows of some positions. The parameters are those of [atPositions].
const isListed = "at >= {from:UInt64} AND at <= {to:UInt64} AND at IN (SELECT arrayJoin({positions:Array(UInt64)})) AND at NOT IN (SELECT at FROM erased)"

func atPositions(positions []uint64) map[string]any {
	return map[string]any{"from": slices.Min(positions), "to": slices.Max(positions), "positions": positions}
}

// deliveriesOf returns what became of an event on its platforms, as its records say, which are in the order in which they were
// written.
func deliveriesOf(platforms string, received time.Time, records []rows.Record) []analytics.Delivery {
	if platforms == "" {
		return nil
	}
	var list []analytics.Delivery
	for platform := range strings.SplitSeq(platforms, rows.PlatformSeparator) {
		var delivery columns.Delivery
		var reason string
		for i := range records {
			if records[i].Platform == platform {
				delivery.Note(records[i].Restore(), func(text string) uint16 {
					reason = text
					return uint16(min(1, len(text)))
				})
			}
		}
		list = append(list, analytics.DeliveryOf(delivery, platform, reason, received))
	}
	return list
}
