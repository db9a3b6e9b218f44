package iab_test

import (
	"fmt"
	"strings"
)

// text is bits as base64url, padded to whole letters.
func text(bits string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	bits += strings.Repeat("0", (6-len(bits)%6)%6)
	letters := make([]byte, 0, len(bits)/6)
	for ; len(bits) > 0; bits = bits[6:] {
		value := 0
		for _, bit := range bits[:6] {
			value = value<<1 | int(bit-'0')
		}
		letters = append(letters, alphabet[value])
	}
	return string(letters)
}

// number is a number of so many bits.
func number(value, bits int) string { return fmt.Sprintf("%0*b", bits, value) }

// flags is a bit for each of the ids 1 to count.
func flags(count int, ids ...int) string {
	bits := []byte(strings.Repeat("0", count))
	for _, id := range ids {
		bits[id-1] = '1'
	}
	return string(bits)
}

// ranges are pairs of a first and a last vendor; equal ones are a single vendor.
func ranges(pairs ...[2]int) string {
	var bits strings.Builder
	bits.WriteString(number(len(pairs), 12))
	for _, pair := range pairs {
		if pair[0] == pair[1] {
			bits.WriteString("0" + number(pair[0], 16))
		} else {
			bits.WriteString("1" + number(pair[0], 16) + number(pair[1], 16))
		}
	}
	return bits.String()
}

// restriction is one of a publisher.
func restriction(purpose, kind int, pairs ...[2]int) string {
	return number(purpose, 6) + number(kind, 2) + ranges(pairs...)
}

// core is a core segment of a TC string, bit by bit. What is not given is empty, but for the version, the policy and being
// service-specific.
type core struct {
	version, policy      int
	global               bool
	consents, interests  []int
	vendors, liVendors   string
	restrictions         []string
	restrictionsAreCount int
}

// bitfield is a section of vendors with a bit for each.
func bitfield(highest int, ids ...int) string {
	return number(highest, 16) + "0" + flags(highest, ids...)
}

// rangeField is a section of vendors in ranges.
func rangeField(highest int, pairs ...[2]int) string {
	return number(highest, 16) + "1" + ranges(pairs...)
}

func (c core) bits() string {
	or := func(bits, other string) string {
		if bits == "" {
			return other
		}
		return bits
	}
	version, policy, specific, count := 2, 4, 1, len(c.restrictions)
	if c.version != 0 {
		version = c.version
	}
	if c.policy != 0 {
		policy = c.policy
	}
	if c.global {
		specific = 0
	}
	if c.restrictionsAreCount != 0 {
		count = c.restrictionsAreCount
	}
	return number(version, 6) + number(17_000_000_000, 36) + number(17_000_864_000, 36) + number(880, 12) + number(3, 12) + number(1, 6) +
		number(3, 6) + number(4, 6) + number(48, 12) + number(policy, 6) + number(specific, 1) + "0" + flags(12, 1) +
		flags(24, c.consents...) + flags(24, c.interests...) + "0" + number(0, 6) + number(19, 6) +
		or(c.vendors, bitfield(0)) + or(c.liVendors, bitfield(0)) + number(count, 12) + strings.Join(c.restrictions, "")
}

func (c core) text() string { return text(c.bits()) }
