package analytics

import (
	"encoding/binary"
	"math/big"
	"math/bits"
)

// wide is a sum of shares of conversions that are shared into many parts, or of their values: a whole is [wholeUnits]
// times 2 to the power of wideBits. A share is rounded down to such a unit, of which there are 2 to the power of 175 in a
// whole. What 2^32 conversions of a million million each lose by that is less than 2^-90 ten-thousandths, so that it
// takes a fixed number of operations to share a conversion, however many parts it has.
type wide [wideWords]uint64 // in two's complement, the least word first

const (
	wideWords = 5
	wideBits  = 128
	// guardBits are those of wideBits that are kept for [wide.exact]. The others are rounded away, and what all shares have
	// lost with them: sums that are the same number of parts come out as the same number.
	guardBits = 13
)

// wideShare returns a whole divided by parts, rounded down.
func wideShare(parts uint64) (share wide) {
	whole, remainder := bits.Div64(0, wholeUnits, parts)
	share[wideBits/64] = whole
	for word := wideBits/64 - 1; word >= 0; word-- {
		share[word], remainder = bits.Div64(remainder, 0, parts)
	}
	return share
}

func (w *wide) add(o *wide) {
	carry := uint64(0)
	for i := range w {
		w[i], carry = bits.Add64(w[i], o[i], carry)
	}
}

func (w *wide) subtract(o *wide) {
	borrow := uint64(0)
	for i := range w {
		w[i], borrow = bits.Sub64(w[i], o[i], borrow)
	}
}

// multiply takes w, which is not negative, times n.
func (w *wide) multiply(n int64) {
	factor, carry := uint64(n), uint64(0)
	if n < 0 {
		factor = -factor
	}
	for i := range w {
		high, low := bits.Mul64(w[i], factor)
		var more uint64
		w[i], more = bits.Add64(low, carry, 0)
		carry = high + more
	}
	if n < 0 {
		var zero wide
		zero.subtract(w)
		*w = zero
	}
}

// exact returns the number in parts of [wholeUnits] times 2 to the power of guardBits, rounded to the nearest.
func (w *wide) exact() *big.Int {
	const dropped = wideBits - guardBits
	rounded := *w
	half := wide{(dropped - 1) / 64: 1 << ((dropped - 1) % 64)}
	rounded.add(&half)
	negative := int64(rounded[wideWords-1]) < 0
	if negative {
		for i := range rounded {
			rounded[i] = ^rounded[i]
		}
	}
	var text [8 * wideWords]byte
	for i, word := range rounded {
		binary.BigEndian.PutUint64(text[8*(wideWords-1-i):], word)
	}
	n := new(big.Int).SetBytes(text[:])
	if negative {
		n.Not(n)
	}
	return n.Rsh(n, dropped)
}
