package analytics

// visits holds chosen rows of a span visitor by visitor, each visitor's in stream order. They are first added
// in stream order and then sorted.
type visits struct {
	visitors []uint32
	offsets  []uint32
	// count is per visitor while rows are added, then where the visitor's rows end.
	count []uint32
}

// newVisits makes room for visitors with numbers below limit.
func newVisits(limit int) *visits { return &visits{count: make([]uint32, limit)} }

// add chooses the row that lies offset rows behind the span's first.
func (v *visits) add(visitor, offset uint32) {
	v.visitors = append(v.visitors, visitor)
	v.offsets = append(v.offsets, offset)
	v.count[visitor]++
}

// sort puts the rows in order; afterwards of may be called.
func (v *visits) sort() {
	from := uint32(0)
	for visitor, count := range v.count {
		v.count[visitor] = from
		from += count
	}
	sorted := make([]uint32, len(v.offsets))
	for i, visitor := range v.visitors {
		sorted[v.count[visitor]] = v.offsets[i]
		v.count[visitor]++
	}
	v.visitors, v.offsets = nil, sorted
}

// of returns a visitor's rows.
func (v *visits) of(visitor int) []uint32 {
	from := uint32(0)
	if visitor > 0 {
		from = v.count[visitor-1]
	}
	return v.offsets[from:v.count[visitor]]
}
