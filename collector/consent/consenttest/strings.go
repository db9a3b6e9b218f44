// Package consenttest writes consent strings for tests, by their specifications and not by what reads them.
package consenttest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// TCF is what a string of IAB Europe's framework says. All lists are of numbers from 1.
type TCF struct {
	// Purposes the visitor consents to, Interests those of whose legitimate interest they were told without objecting.
	Purposes, Interests []int
	// Vendors and InterestVendors are those of whom the same holds.
	Vendors, InterestVendors []int
	// Restrictions are what the publisher demands.
	Restrictions []Restriction
	// Disclosed are the vendors that the visitor was shown; nil where the string does not say.
	Disclosed []int
	// Unasked says that purpose 1 was not asked for: PurposeOneTreatment.
	Unasked bool
	// Shared says that the string holds for other services too, which makes it invalid.
	Shared bool
}

// Restriction is what a publisher demands of vendors for a purpose: 0 that they do not pursue it, 1 consent, 2 legitimate
// interest.
type Restriction struct {
	Purpose, Type int
	Vendors       []int
}

// String returns the core segment, and that of the disclosed vendors where there are some.
func (t TCF) String() string {
	var b bits
	b.number(2, 6) // version
	b.number(0, 36)
	b.number(0, 36)
	b.number(10, 12) // CMP
	b.number(1, 12)
	b.number(1, 6)
	b.letters("EN")
	b.number(178, 12) // vendor list
	b.number(5, 6)    // policy
	b.bool(!t.Shared)
	b.bool(false)
	b.number(0, 12)
	b.set(t.Purposes, 24)
	b.set(t.Interests, 24)
	b.bool(t.Unasked)
	b.letters("DE")
	b.vendors(t.Vendors)
	b.vendors(t.InterestVendors)
	b.number(len(t.Restrictions), 12)
	for _, r := range t.Restrictions {
		b.number(r.Purpose, 6)
		b.number(r.Type, 2)
		b.number(len(r.Vendors), 12)
		for _, id := range slices.Sorted(slices.Values(r.Vendors)) {
			b.bool(false)
			b.number(id, 16)
		}
	}
	if t.Disclosed == nil {
		return b.text()
	}
	var disclosed bits
	disclosed.number(1, 3)
	disclosed.vendors(t.Disclosed)
	return b.text() + "." + disclosed.text()
}

// States is what a section of the United States says of opt-outs: 0 nothing, 1 opted out, 2 not.
type States struct {
	Sale, Sharing, Advertising int
	// GPC says that the browser sent Global Privacy Control.
	GPC bool
}

// National returns the national section, which has number 7.
func (s States) National() string {
	var b bits
	b.number(1, 6)
	for range 6 {
		b.number(1, 2) // notices: given
	}
	b.number(s.Sale, 2)
	b.number(s.Sharing, 2)
	b.number(s.Advertising, 2)
	for range 16 + 3 {
		b.number(0, 2)
	}
	b.number(0, 2)
	for range 3 {
		b.number(2, 2)
	}
	var gpc bits
	gpc.number(1, 2)
	gpc.bool(s.GPC)
	return b.text() + "." + gpc.text()
}

// GPP returns a string of the Global Privacy Platform with some sections by their numbers.
func GPP(sections map[int]string) string {
	var header bits
	header.number(3, 6)
	header.number(1, 6)
	header.number(len(sections), 12)
	before, texts := 0, []string{""}
	for _, id := range slices.Sorted(maps.Keys(sections)) {
		header.bool(false)
		header.fibonacci(id - before)
		before = id
		texts = append(texts, sections[id])
	}
	texts[0] = header.text()
	return strings.Join(texts, "~")
}

// bits are written as zeros and ones.
type bits struct{ strings.Builder }

func (b *bits) number(n, count int) {
	fmt.Fprintf(b, "%0*s", count, strconv.FormatInt(int64(n), 2))
}

func (b *bits) bool(yes bool) {
	if yes {
		b.number(1, 1)
	} else {
		b.number(0, 1)
	}
}

func (b *bits) letters(two string) {
	for _, letter := range two {
		b.number(int(letter-'A'), 6)
	}
}

func (b *bits) set(ids []int, count int) {
	for id := 1; id <= count; id++ {
		b.bool(slices.Contains(ids, id))
	}
}

// vendors writes a bit for each up to the highest, or ranges of one each where that is shorter.
func (b *bits) vendors(ids []int) {
	most := slices.Max(append([]int{0}, ids...))
	b.number(most, 16)
	ranges := 12+17*len(ids) < most
	b.bool(ranges)
	if !ranges {
		b.set(ids, most)
		return
	}
	b.number(len(ids), 12)
	for _, id := range slices.Sorted(slices.Values(ids)) {
		b.bool(false)
		b.number(id, 16)
	}
}

// fibonacci writes a number as the sum of numbers of Fibonacci, the lowest first, and a one behind the last.
func (b *bits) fibonacci(n int) {
	numbers := []int{1, 2}
	for numbers[len(numbers)-1] <= n {
		numbers = append(numbers, numbers[len(numbers)-1]+numbers[len(numbers)-2])
	}
	code := ""
	for _, number := range slices.Backward(numbers) {
		switch {
		case number <= n:
			n -= number
			code = "1" + code
		case code != "":
			code = "0" + code
		}
	}
	b.WriteString(code + "1")
}

// text returns the bits as base64url, six a letter.
func (b *bits) text() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	all := b.String()
	for len(all)%6 > 0 {
		all += "0"
	}
	var text strings.Builder
	for at := 0; at < len(all); at += 6 {
		value, err := strconv.ParseUint(all[at:at+6], 2, 6)
		if err != nil {
			panic(err) // there is nothing but zeros and ones
		}
		text.WriteByte(alphabet[value])
	}
	return text.String()
}
