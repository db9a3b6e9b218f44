package iab

import (
	"cmp"
	"slices"
)

// Bits of the fields from which vendors and restrictions are read.
const (
	vendorIDBits    = 16
	countBits       = 12
	purposeBits     = 6
	restrictionBits = 2
	// shortestRange and shortestRestriction are the least that an entry takes; they bound how many there can be.
	shortestRange       = 1 + vendorIDBits
	shortestRestriction = purposeBits + restrictionBits + countBits
	maxVendor           = 1<<vendorIDBits - 1
)

// IDs is a set of small numbers from 1 on, such as purposes.
type IDs uint64

// Has says whether the set has a number. Numbers that it cannot have, such as 0, are not in it.
func (s IDs) Has(id int) bool { return id >= 1 && id <= 64 && s>>(id-1)&1 == 1 }

// Vendors is a set of vendors by their ids, which are 1 to 65,535. The zero value is the empty set. It shares the memory of the bits
// that it was read from.
type Vendors struct {
	// A string has a bit for each vendor, or ranges. Of bits the first belongs to vendor 1.
	data  []byte
	first int
	count int
	// ranges are in ascending order, and none of them overlaps another.
	ranges []vendorRange
}

// vendorRange is from its first to its last vendor, both of them in it.
type vendorRange struct{ first, last uint16 }

// Has says whether a vendor is in the set. It takes a constant time for bits, and a logarithmic one for ranges.
func (v Vendors) Has(id int) bool {
	if v.data != nil {
		at := v.first + id - 1
		return id >= 1 && id <= v.count && v.data[at>>3]<<(at&7)&0x80 != 0
	}
	if id < 1 || id > maxVendor {
		return false
	}
	_, found := slices.BinarySearchFunc(v.ranges, uint16(id), func(r vendorRange, id uint16) int {
		switch {
		case r.last < id:
			return -1
		case r.first > id:
			return 1
		}
		return 0
	})
	return found
}

// vendors reads a set as the TC string has it: the highest id, and bits or ranges.
func (r *bitReader) vendors(field string) Vendors {
	highest := r.int(field, vendorIDBits)
	if !r.bool(field) {
		return r.vendorBits(field, highest)
	}
	set := Vendors{ranges: r.ranges(field, nil)}
	r.loose = r.loose || !set.Has(highest)
	return set
}

// vendorBits reads a bit for each of the vendors 1 to count.
func (r *bitReader) vendorBits(field string, count int) Vendors {
	if count == 0 || !r.need(field, count) {
		return Vendors{}
	}
	set := Vendors{data: r.data, first: r.next, count: count}
	r.next += count
	r.loose = r.loose || !set.Has(count)
	return set
}

// ranges reads how many ranges there are, and these, and returns them in order and without overlaps. Many short lists of them
// may share a pool, which is empty and has the room; nil is none.
func (r *bitReader) ranges(field string, pool []vendorRange) []vendorRange {
	count := r.int(field, countBits)
	if !r.need(field, count*shortestRange) {
		return nil
	}
	if pool == nil {
		pool = make([]vendorRange, 0, count)
	}
	sorted := true
	for range count {
		isRange := r.bool(field)
		one := vendorRange{first: uint16(r.int(field, vendorIDBits))}
		one.last = one.first
		if isRange {
			one.last = uint16(r.int(field, vendorIDBits))
		}
		if one.first == 0 || one.last < one.first {
			r.fail("%s must be ranges of vendors from 1 on, the lower one first", field)
		}
		if r.err != nil {
			return nil
		}
		sorted = sorted && (len(pool) == 0 || pool[len(pool)-1].last < one.first)
		pool = append(pool, one)
	}
	if sorted {
		return pool
	}
	return merged(pool)
}

// merged puts ranges in order and makes one of those that overlap or touch, in the same memory.
func merged(ranges []vendorRange) []vendorRange {
	slices.SortFunc(ranges, func(a, b vendorRange) int { return cmp.Compare(a.first, b.first) })
	kept := ranges[:1]
	for _, next := range ranges[1:] {
		if last := &kept[len(kept)-1]; int(next.first) <= int(last.last)+1 {
			last.last = max(last.last, next.last)
		} else {
			kept = append(kept, next)
		}
	}
	return kept
}

// Restriction is what a publisher demands of vendors beyond what the user chose.
type Restriction int

// The types of restrictions.
const (
	// NotAllowed forbids the purpose, whatever a vendor declares.
	NotAllowed Restriction = 0
	// RequireConsent allows the purpose on the basis of consent alone.
	RequireConsent Restriction = 1
	// RequireLegitimateInterest allows it on the basis of legitimate interest alone.
	RequireLegitimateInterest Restriction = 2
)

// PublisherRestriction restricts a purpose for vendors. A string may have several for the same purpose, and of the same type.
type PublisherRestriction struct {
	// Purpose is 1 to 63; the framework has purposes up to 24.
	Purpose int
	Type    Restriction
	Vendors Vendors
}

// restrictions reads the restrictions of a publisher, whose vendors are ranges.
func (r *bitReader) restrictions(field string) []PublisherRestriction {
	count := r.int(field, countBits)
	if count == 0 || !r.need(field, count*shortestRestriction) {
		return nil
	}
	list := make([]PublisherRestriction, 0, count)
	pool := make([]vendorRange, 0, r.left()/shortestRange)
	for range count {
		one := r.restriction(field)
		one.Vendors.ranges = r.ranges(field, pool)
		if r.err != nil {
			return nil
		}
		pool = one.Vendors.ranges[len(one.Vendors.ranges):]
		list = append(list, one)
	}
	return list
}

// restriction reads what a publisher demands, without the vendors of whom.
func (r *bitReader) restriction(field string) PublisherRestriction {
	one := PublisherRestriction{Purpose: r.int(field, purposeBits), Type: Restriction(r.int(field, restrictionBits))}
	if one.Purpose == 0 || one.Type > RequireLegitimateInterest {
		r.fail("%s must have purposes from 1 on and types up to 2", field)
	}
	return one
}
