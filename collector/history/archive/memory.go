package archive

import (
	"maps"

	"github.com/weir-dev/weir/collector/stream"
)

// memory remembers values by number, those of late, at one place of a stream: where a block begins elsewhere, as after a doubt, it
// remembers nothing. Before it begins it is empty.
type memory[V any] struct {
	// most is about how many are remembered.
	most int

	at    stream.Position
	known bool
	// recent and former are what was noted behind the place since, in two generations.
	recent, former     map[uint64]V
	since, recentSince stream.Position
	// block is what is noted of the block that begins at the place, up to end: it holds once the lane goes on behind it.
	block map[uint64]V
	end   stream.Position
}

// begin has it be of the place where a block begins, that goes up to last.
func (m *memory[V]) begin(after, last stream.Position) {
	switch {
	case m.known && after == m.at:
	case m.known && m.block != nil && after == m.end:
		maps.Copy(m.recent, m.block)
		m.at = after
		if len(m.recent) > m.most/2 {
			m.former, m.since = m.recent, m.recentSince
			m.recent, m.recentSince = map[uint64]V{}, after
		}
	default:
		*m = memory[V]{most: m.most, at: after, known: true, recent: map[uint64]V{}, since: after, recentSince: after}
	}
	m.block, m.end = map[uint64]V{}, last
}

// find returns what was noted of a number last.
func (m *memory[V]) find(number uint64) (value V, found bool) {
	for _, known := range []map[uint64]V{m.block, m.recent, m.former} {
		if value, found = known[number]; found {
			return value, true
		}
	}
	return value, false
}

// note notes something of a number in the block.
func (m *memory[V]) note(number uint64, value V) { m.block[number] = value }

// forget has it remember nothing.
func (m *memory[V]) forget() { m.known = false }
