package archive

import (
	"math"

	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// mostVisitors is about of how many visitors it is remembered when they were here last. Each takes some 40 bytes.
const mostVisitors = 2_000_000

// visits know in which millisecond visitors were here last, by events of which the table has the row. What they do not know costs
// questions time and changes no answer.
type visits struct{ memory[int64] }

func newVisits() *visits { return &visits{memory[int64]{most: mostVisitors}} }

// fill says of rows, those of the entries behind after, up to last, how long before their visitor was here.
func (v *visits) fill(after, last stream.Position, list []rows.Event) {
	v.begin(after, last)
	for i := range list {
		row := &list[i]
		if row.Since = 0; row.Visitor == 0 {
			continue
		}
		now := stream.Position(row.At).Milliseconds()
		if before, has := v.find(row.Visitor); has {
			if age := now - before; age >= 0 && age < math.MaxUint32 {
				row.Since = uint32(age) + 1
			}
		}
		v.note(row.Visitor, now)
	}
}
