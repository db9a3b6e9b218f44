package analytics

import (
	"math/bits"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

// bitset is a set of numbers such as visitors have.
type bitset []uint64

// newBitset makes room for numbers below limit.
func newBitset(limit int) bitset { return make(bitset, limit/64+1) }

// add puts n into the set and says whether it was not in it before.
func (s bitset) add(n uint32) bool {
	word, bit := n>>6, uint64(1)<<(n&63)
	if s[word]&bit != 0 {
		return false
	}
	s[word] |= bit
	return true
}

// bit is 1 where n is in the set.
func (s bitset) bit(n uint32) int { return int(s[n>>6] >> (n & 63) & 1) }

// rowSet is a set of a chunk's rows.
type rowSet [columns.ChunkRows / 64]uint64

func (s *rowSet) add(rows []uint16) {
	for _, row := range rows {
		s.addOne(row)
	}
}

// addAll adds the rows from one to before another to an empty set.
func (s *rowSet) addAll(from, to int) {
	for i := from / 64; i*64 < to; i++ {
		s[i] = ^uint64(0) << max(0, from-i*64) & (^uint64(0) >> max(0, i*64+64-to))
	}
}

func (s *rowSet) remove(rows []uint16) {
	for _, row := range rows {
		s[row>>6&(columns.ChunkRows/64-1)] &^= 1 << (row & 63)
	}
}

func (s *rowSet) addOne(row uint16) { s[row>>6&(columns.ChunkRows/64-1)] |= 1 << (row & 63) }

// bit is 1 where row is in the set.
func (s *rowSet) bit(row uint16) int {
	return int(s[row>>6&(columns.ChunkRows/64-1)] >> (row & 63) & 1)
}

// take appends the rows to a list, in order, and empties the set.
func (s *rowSet) take(list []uint16) []uint16 {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, uint16(i<<6|bits.TrailingZeros64(word)))
		}
		s[i] = 0
	}
	return list
}
