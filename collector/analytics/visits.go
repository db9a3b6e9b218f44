package analytics

import "context"

// visit is what attribution needs of one event: when it was received, its touch's number, 0 for none, and the
// number of its conversion, 0 for none.
type visit struct {
	ms                int64
	touch, conversion uint32
}

// visits holds chosen events of a span visitor by visitor, each visitor's in stream order. Their rows are first
// added in stream order, then sorted.
type visits struct {
	rows []chosenRow
	// ends is per visitor the count of its rows while they are added, then where its events end in sorted.
	ends   []uint32
	sorted []visit
}

// chosenRow is the row that lies offset rows behind a span's first.
type chosenRow struct {
	offset     uint32
	conversion uint32
}

// newVisits makes room for visitors with numbers below limit.
func newVisits(limit int) *visits { return &visits{ends: make([]uint32, limit)} }

// add chooses the row that lies offset rows behind the span's first.
func (v *visits) add(visitor, offset, conversion uint32) {
	v.rows = append(v.rows, chosenRow{offset, conversion})
	v.ends[visitor]++
}

// sort puts the rows of a span in order; afterwards of may be called.
func (v *visits) sort(ctx context.Context, rows span) error {
	from := uint32(0)
	for visitor, count := range v.ends {
		v.ends[visitor] = from
		from += count
	}
	v.sorted = make([]visit, len(v.rows))
	for i, chosen := range v.rows {
		if i%chunkRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		c, row := rows.at(rows.first + uint64(chosen.offset))
		end := &v.ends[c.visitor[row]]
		v.sorted[*end] = visit{ms: c.position[row].Milliseconds(), touch: c.touch[row], conversion: chosen.conversion}
		*end++
	}
	v.rows = nil
	return nil
}

// of returns a visitor's events.
func (v *visits) of(visitor int) []visit {
	from := uint32(0)
	if visitor > 0 {
		from = v.ends[visitor-1]
	}
	return v.sorted[from:v.ends[visitor]]
}
