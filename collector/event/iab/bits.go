package iab

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// slack is how many bytes lie behind the bits of a segment, so that whatever begins in them is read as one word.
const slack = 8

// sextets are the six bits of each letter of the base64url alphabet, notSextet for what is no letter of it.
var sextets = func() (values [256]byte) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range values {
		values[i] = notSextet
	}
	for i := range len(alphabet) {
		values[alphabet[i]] = byte(i)
	}
	return values
}()

const notSextet = 0x80

// bitReader reads the fields of a segment, most significant bit first. The first thing that is wrong ends it: all that is read
// afterwards is zero, and err says what it was.
type bitReader struct {
	data []byte
	// next and end count bits: where the next field begins, and how many there are.
	next, end int
	// loose is set by a set of vendors that lacks the one said to be its highest.
	loose bool
	err   error
}

// newBitReader reads text, six bits a letter. Unlike encoding/base64 it takes any number of letters, since a segment is padded
// to whole letters alone, and no line breaks.
func newBitReader(text string) bitReader {
	r := bitReader{data: make([]byte, (6*len(text)+7)/8+slack), end: 6 * len(text)}
	at, all := 0, byte(0)
	for ; len(text) >= 4; text = text[4:] {
		a, b, c, d := sextets[text[0]], sextets[text[1]], sextets[text[2]], sextets[text[3]]
		all |= a | b | c | d
		r.data[at], r.data[at+1], r.data[at+2] = a<<2|b>>4, b<<4|c>>2, c<<6|d
		at += 3
	}
	rest := uint32(0)
	for i := range len(text) {
		value := sextets[text[i]]
		all |= value
		rest |= uint32(value) << (26 - 6*i)
	}
	if len(text) > 0 { // the bytes behind it are slack
		binary.BigEndian.PutUint32(r.data[at:], rest)
	}
	if all&notSextet != 0 {
		r.fail("it must be base64url without padding")
	}
	return r
}

// fail notes what is wrong, if nothing was before.
func (r *bitReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.end = r.next
	}
}

// left is how many bits there are still to read.
func (r *bitReader) left() int { return r.end - r.next }

// need says whether there are as many bits left as a field has.
func (r *bitReader) need(field string, count int) bool {
	if count > r.left() {
		r.fail("it ends before %s does", field)
		return false
	}
	return true
}

// int reads a number of at most 57 bits.
func (r *bitReader) int(field string, count int) int {
	if count == 0 || !r.need(field, count) {
		return 0
	}
	word := binary.BigEndian.Uint64(r.data[r.next>>3:]) << (r.next & 7)
	r.next += count
	return int(word >> (64 - count))
}

// bool reads one bit.
func (r *bitReader) bool(field string) bool { return r.int(field, 1) == 1 }

// set reads a bit for each of the ids 1 to count, at most 64 of them.
func (r *bitReader) set(field string, count int) IDs {
	first := min(count, 32)
	low := uint64(r.int(field, first)) << (64 - first)
	high := uint64(r.int(field, count-first)) << (64 - first - max(count-first, 0))
	return IDs(bits.Reverse64(low | high))
}

// letters reads two capital letters of six bits each.
func (r *bitReader) letters(field string) string {
	first, second := r.int(field, 6), r.int(field, 6)
	if max(first, second) >= 26 {
		r.fail("%s must be two letters from A to Z", field)
	}
	if r.err != nil {
		return ""
	}
	return string([]byte{'A' + byte(first), 'A' + byte(second)})
}

// fibonacci reads a number from 1 to most in Fibonacci coding: a bit for each of the numbers 1, 2, 3, 5, 8 … that it is the sum
// of, and a set bit after the last of them.
func (r *bitReader) fibonacci(field string, most int) int {
	sum, summand, next, last := 0, 1, 2, false
	for {
		bit := r.bool(field)
		switch {
		case r.err != nil:
			return 0
		case bit && last:
			return sum
		case summand > most, bit && sum+summand > most:
			r.fail("%s must be numbers up to %d", field, most)
			return 0
		case bit:
			sum += summand
		}
		summand, next, last = next, summand+next, bit
	}
}
