package iab

import (
	"errors"
	"fmt"
	"strings"
)

// canadaVersion is the version of the Canadian section that is read.
const canadaVersion = 1

// TCFCanada is what a section of IAB Canada's Transparency & Consent Framework says. It has express consent where Europe's has
// consent, and implied consent where Europe's has legitimate interest. Purpose 1 is not used.
type TCFCanada struct {
	Metadata
	// UseNonStandardStacks says that the user was shown other texts than the framework's.
	UseNonStandardStacks bool
	// SpecialFeatureExpressConsent are the special features that the user agreed to.
	SpecialFeatureExpressConsent IDs
	// PurposesExpressConsent are the purposes, 2 to 24, that the user agreed to.
	PurposesExpressConsent IDs
	// PurposesImpliedConsent are the purposes that the user was told of and did not object to.
	PurposesImpliedConsent IDs
	// VendorExpressConsent and VendorImpliedConsent are the vendors of whom that holds.
	VendorExpressConsent, VendorImpliedConsent Vendors
	// PublisherRestrictions are what the publisher demands of vendors: [RequireConsent] demands express consent,
	// [RequireLegitimateInterest] implied consent.
	PublisherRestrictions []PublisherRestriction
	// DisclosedVendors are the vendors that the user was shown; nil where the section does not say.
	DisclosedVendors *Vendors
	// Publisher is what the user allowed the publisher itself; nil where the section does not say.
	Publisher *PublisherTC
}

func parseCanada(text string) (*TCFCanada, error) {
	core, rest, more := strings.Cut(text, ".")
	t, err := parseCanadaCore(core)
	if err != nil {
		return nil, fmt.Errorf("core segment: %w", err)
	}
	for more {
		var segment string
		segment, rest, more = strings.Cut(rest, ".")
		if err := t.addSegment(segment); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func parseCanadaCore(text string) (*TCFCanada, error) {
	r := newBitReader(text)
	var t TCFCanada
	t.Metadata = r.metadata(canadaVersion)
	t.UseNonStandardStacks = r.bool("UseNonStandardStacks")
	t.SpecialFeatureExpressConsent = r.set("SpecialFeatureExpressConsent", specialFeatures)
	t.PurposesExpressConsent = r.set("PurposesExpressConsent", purposes)
	t.PurposesImpliedConsent = r.set("PurposesImpliedConsent", purposes)
	err := r.inEitherCoding(func(r *bitReader, c coding) {
		t.VendorExpressConsent = c.vendors(r, "VendorExpressConsent")
		t.VendorImpliedConsent = c.vendors(r, "VendorImpliedConsent")
		t.PublisherRestrictions = c.restrictions(r, "PubRestrictions")
	})
	return &t, err
}

// coding is how a Canadian section writes vendors.
type coding struct {
	vendors      func(r *bitReader, field string) Vendors
	restrictions func(r *bitReader, field string) []PublisherRestriction
}

// inEitherCoding reads what is left of a segment. Its ranges are in Fibonacci coding, as the specification has it; but until 2026
// IAB's own libraries wrote those of the European string, and a text does not say in which of the two it is written. So it is
// read as the first, unless that ends in what a writer would not have written and the second does not.
func (r *bitReader) inEitherCoding(read func(*bitReader, coding)) error {
	specified := coding{(*bitReader).optimizedVendors, (*bitReader).optimizedRestrictions}
	first, second := *r, *r
	read(&first, specified)
	if first.tidy() {
		return nil
	}
	read(&second, coding{(*bitReader).vendors, (*bitReader).restrictions})
	if second.tidy() || first.err != nil && second.err == nil {
		return nil
	}
	read(r, specified)
	return r.err
}

// tidy says whether what has been read is what a writer writes: each set of vendors ends with the one that is said to be the
// highest, and nothing follows but padding.
func (r *bitReader) tidy() bool {
	return r.err == nil && !r.loose && r.left() < 24 && r.int("padding", r.left()) == 0
}

func (t *TCFCanada) addSegment(text string) error {
	var name string
	var err error
	switch kind := segmentType(text); {
	case kind == segmentDisclosed && t.DisclosedVendors == nil:
		name = "DisclosedVendors"
		t.DisclosedVendors, err = parseCanadaDisclosed(text)
	case kind == segmentPublisher && t.Publisher == nil:
		name = "PublisherPurposes"
		t.Publisher, err = parsePublisher(text)
	case kind == segmentDisclosed || kind == segmentPublisher:
		return errSegmentRepeat
	default:
		return errCanadaSegmentType
	}
	if err != nil {
		return fmt.Errorf("%s segment: %w", name, err)
	}
	return nil
}

var errCanadaSegmentType = errors.New("a segment after the first must be of type 1 or 3")

func parseCanadaDisclosed(text string) (*Vendors, error) {
	r := newBitReader(text)
	r.int("SubsectionType", segmentTypeBits)
	var disclosed Vendors
	err := r.inEitherCoding(func(r *bitReader, c coding) { disclosed = c.vendors(r, "DisclosedVendors") })
	return &disclosed, err
}

// optimizedVendors reads a set as the libraries of the Global Privacy Platform write it: the highest id, and bits or ranges in
// Fibonacci coding.
func (r *bitReader) optimizedVendors(field string) Vendors {
	highest := r.int(field, vendorIDBits)
	if !r.bool(field) {
		return r.vendorBits(field, highest)
	}
	set := Vendors{ranges: r.fibonacciRanges(field)}
	r.loose = r.loose || !set.Has(highest)
	return set
}

// optimizedRestrictions reads restrictions of which each has vendors as optimizedVendors reads them.
func (r *bitReader) optimizedRestrictions(field string) []PublisherRestriction {
	const shortest = purposeBits + restrictionBits + vendorIDBits + 1
	count := r.int(field, countBits)
	if count == 0 || !r.need(field, count*shortest) {
		return nil
	}
	list := make([]PublisherRestriction, 0, count)
	for range count {
		one := r.restriction(field)
		one.Vendors = r.optimizedVendors(field)
		if r.err != nil {
			return nil
		}
		list = append(list, one)
	}
	return list
}

// fibonacciRanges reads how many ranges there are, and these, each as its distance from the one before, and its length where it
// is more than one number. So they are in order.
func (r *bitReader) fibonacciRanges(field string) []vendorRange {
	const shortest = 1 + 2
	count := r.int(field, countBits)
	if !r.need(field, count*shortest) {
		return nil
	}
	ranges := make([]vendorRange, 0, count)
	last := 0
	for range count {
		isRange := r.bool(field)
		first := last + r.fibonacci(field, maxVendor)
		last = first
		if isRange {
			last += r.fibonacci(field, maxVendor)
		}
		if last > maxVendor {
			r.fail("%s must be numbers up to %d", field, maxVendor)
		}
		if r.err != nil {
			return nil
		}
		ranges = append(ranges, vendorRange{uint16(first), uint16(last)})
	}
	return ranges
}
