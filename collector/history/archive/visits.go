package archive

import (
	"maps"
	"math"

	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// mostVisitors is about of how many visitors it is remembered when they were here last. Each takes some 40 bytes.
const mostVisitors = 2_000_000

// visits know when visitors were here last, of those of late. What they do not know costs questions time and changes no answer: so
// where a block begins elsewhere, as after a doubt, they know nothing.
type visits struct {
	at    stream.Position
	known bool
	// recent and former have the millisecond of the latest event, of which the table has the row.
	recent, former map[uint64]int64
	// block are those of the block that begins there, up to end.
	block map[uint64]int64
	end   stream.Position
}

// fill says of rows, those of the entries behind after, up to last, how long before their visitor was here.
func (v *visits) fill(after, last stream.Position, list []rows.Event) {
	v.move(after)
	v.block, v.end = map[uint64]int64{}, last
	for i := range list {
		row := &list[i]
		if row.Since = 0; row.Visitor == 0 {
			continue
		}
		now := stream.Position(row.At).Milliseconds()
		for _, known := range []map[uint64]int64{v.block, v.recent, v.former} {
			if before, has := known[row.Visitor]; has {
				if age := now - before; age >= 0 && age < math.MaxUint32 {
					row.Since = uint32(age) + 1
				}
				break
			}
		}
		v.block[row.Visitor] = now
	}
}

// move has them be of a place.
func (v *visits) move(to stream.Position) {
	switch {
	case v.known && to == v.at:
	case v.known && v.block != nil && to == v.end:
		maps.Copy(v.recent, v.block)
		v.at = to
		if len(v.recent) > mostVisitors/2 {
			v.recent, v.former = map[uint64]int64{}, v.recent
		}
	default:
		*v = visits{at: to, known: true, recent: map[uint64]int64{}}
	}
	v.block = nil
}
