package history

import (
	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/stream"
)

// buckets are ranges that follow one another without a gap, so that one statement answers for all.
type buckets struct {
	// begins are the positions at which those begin that can hold something, places what number each has among the ranges.
	begins []uint64
	places map[uint64]int
	// end is the position before which the last of them ends.
	end uint64
}

// bucketsOf returns ranges as buckets, as many lists of them as it takes: one where each range begins where the one before
// ends, as those of a calendar do.
func (m moment) bucketsOf(ranges []analytics.Range) (list []buckets) {
	for i, r := range ranges {
		from, to := max(uint64(analytics.FirstAt(r.From)), m.oldest), min(uint64(analytics.FirstAt(r.To)), m.last+1)
		if from >= to {
			continue
		}
		if len(list) == 0 || list[len(list)-1].end != from {
			list = append(list, buckets{places: map[uint64]int{}})
		}
		b := &list[len(list)-1]
		b.begins, b.places[from], b.end = append(b.begins, from), i, to
	}
	return list
}

// span is from where the first begins to where the last one ends.
func (b *buckets) span() analytics.Range {
	return analytics.Range{From: stream.Position(b.begins[0]).Time(), To: stream.Position(b.end).Time()}
}

// parameters are those of [inRange] and [quarters] for all of the buckets together, and of [buckets.key].
func (b *buckets) parameters(m moment) map[string]any {
	parameters := map[string]any{
		"from": b.begins[0], "to": b.end, "begin": b.begins[0], "begins": b.begins, "anonymous": m.anonymous, "known": m.known,
	}
	quarters(parameters, b.begins[0], b.end, !m.hidden && b.isPrepared())
	return parameters
}

// key is what tells the bucket of a position, given as SQL: where that begins.
func (b *buckets) key(at string) string {
	if len(b.begins) == 1 {
		return "{begin:UInt64}"
	}
	return "toUInt64(roundDown(" + at + ", {begins:Array(UInt64)}))"
}
