package iab

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// tcfVersion is the version of the encoding of TC strings that is read. Versions 2.0 to 2.3 of the framework have it.
const tcfVersion = 2

// The types of segments, which stand in the first three bits of each but the core's.
const (
	segmentTypeBits   = 3
	segmentDisclosed  = 1
	segmentAllowed    = 2
	segmentPublisher  = 3
	letterSegmentType = 6 - segmentTypeBits // how far a segment's first letter is shifted to tell its type
)

// TCF is what a TC string of version 2 says: with what user interface and when a user was asked, and what the choice was. Its
// sets share the memory of the string's decoded bits.
type TCF struct {
	Metadata
	// IsServiceSpecific is false for a string that holds for other services too. Such strings are invalid since September 2021,
	// and [TCF.Permits] lets them permit nothing.
	IsServiceSpecific bool
	// UseNonStandardTexts says that the user was shown other texts than the framework's. Its earlier name is
	// UseNonStandardStacks.
	UseNonStandardTexts bool
	// SpecialFeatureOptIns are the special features that the user opted in to, such as 1, precise geolocation.
	SpecialFeatureOptIns IDs
	// PurposeConsents are the purposes, 1 to 24, that the user consented to.
	PurposeConsents IDs
	// PurposeLegitimateInterests are the purposes of which the user was told that they are based on legitimate interest, and to
	// which there was no objection.
	PurposeLegitimateInterests IDs
	// PurposeOneTreatment says that the user was not asked for purpose 1, as the law of PublisherCountry may allow.
	PurposeOneTreatment bool
	// PublisherCountry is the country whose law applies to the publisher, by ISO 3166-1 alpha-2 in capitals. It is AA where a
	// publisher says none.
	PublisherCountry string
	// VendorConsents are the vendors that the user consented to.
	VendorConsents Vendors
	// VendorLegitimateInterests are the vendors of whose legitimate interest the user was told and did not object to it.
	VendorLegitimateInterests Vendors
	// PublisherRestrictions are what the publisher demands of vendors.
	PublisherRestrictions []PublisherRestriction
	// DisclosedVendors are the vendors that the user was shown; nil where the string does not say, as before version 2.3.
	DisclosedVendors *Vendors
	// AllowedVendors are those that a publisher lets use consent that was given elsewhere, which strings said until 2021; nil
	// where the string does not say.
	AllowedVendors *Vendors
	// Publisher is what the user allowed the publisher itself; nil where the string does not say.
	Publisher *PublisherTC
}

// Metadata is what a TC string says of itself.
type Metadata struct {
	// Created and LastUpdated are in UTC, to a tenth of a second; since 2021 both are the day of the last change.
	Created, LastUpdated time.Time
	// CMPID is the consent management platform's number in IAB's list, CMPVersion its own version.
	CMPID, CMPVersion int
	// ConsentScreen is the platform's number of the screen on which the user chose.
	ConsentScreen int
	// ConsentLanguage is that of the screen, by ISO 639-1 in capitals.
	ConsentLanguage string
	// VendorListVersion is that of the Global Vendor List that was in force, PolicyVersion that of the framework's policies: 2 and
	// 3 for version 2.0 and 2.1 of the framework, 4 for 2.2, 5 for 2.3.
	VendorListVersion, PolicyVersion int
}

// PublisherTC is what a user allowed the publisher itself, rather than vendors.
type PublisherTC struct {
	// PurposeConsents and PurposeLegitimateInterests are of the framework's purposes, 1 to 24.
	PurposeConsents, PurposeLegitimateInterests IDs
	// CustomPurposes is how many purposes of its own the publisher has, at most 63; they are numbered from 1.
	CustomPurposes int
	// CustomPurposeConsents and CustomPurposeLegitimateInterests are of these.
	CustomPurposeConsents, CustomPurposeLegitimateInterests IDs
}

// ParseTCF reads a consent string of IAB Europe's Transparency & Consent Framework, version 2.0 to 2.3: a core segment, and after
// it, in any order and separated by dots, at most one each of the segments of disclosed vendors, of allowed vendors, and of the
// publisher's own purposes. Bits that follow a segment's last field are padding, and ignored. The error names the segment and the
// field, and never repeats the string.
func ParseTCF(text string) (TCF, error) {
	t, err := parseTCF(text)
	if err != nil {
		return TCF{}, fmt.Errorf("TC string: %w", err)
	}
	return t, nil
}

func parseTCF(text string) (TCF, error) {
	core, rest, more := strings.Cut(text, ".")
	t, err := parseTCFCore(core)
	if err != nil {
		return TCF{}, fmt.Errorf("core segment: %w", err)
	}
	for more {
		var segment string
		segment, rest, more = strings.Cut(rest, ".")
		if err := t.addSegment(segment); err != nil {
			return TCF{}, err
		}
	}
	return t, nil
}

func parseTCFCore(text string) (TCF, error) {
	r := newBitReader(text)
	var t TCF
	t.Metadata = r.metadata(tcfVersion)
	t.IsServiceSpecific = r.bool("IsServiceSpecific")
	t.UseNonStandardTexts = r.bool("UseNonStandardTexts")
	t.SpecialFeatureOptIns = r.set("SpecialFeatureOptIns", specialFeatures)
	t.PurposeConsents = r.set("PurposesConsent", purposes)
	t.PurposeLegitimateInterests = r.set("PurposesLITransparency", purposes)
	t.PurposeOneTreatment = r.bool("PurposeOneTreatment")
	t.PublisherCountry = r.letters("PublisherCC")
	t.VendorConsents = r.vendors("VendorConsent")
	t.VendorLegitimateInterests = r.vendors("VendorLegitimateInterest")
	t.PublisherRestrictions = r.restrictions("PubRestrictions")
	return t, r.err
}

// How many special features and purposes a string has bits for.
const (
	specialFeatures = 12
	purposes        = 24
)

// metadata reads the fields with which a core segment begins, the version among them.
func (r *bitReader) metadata(version int) Metadata {
	if r.int("Version", 6) != version {
		r.fail("Version must be %d", version)
	}
	return Metadata{
		Created:           r.time("Created"),
		LastUpdated:       r.time("LastUpdated"),
		CMPID:             r.int("CmpId", 12),
		CMPVersion:        r.int("CmpVersion", 12),
		ConsentScreen:     r.int("ConsentScreen", 6),
		ConsentLanguage:   r.letters("ConsentLanguage"),
		VendorListVersion: r.int("VendorListVersion", 12),
		PolicyVersion:     r.int("TcfPolicyVersion", 6),
	}
}

// time reads tenths of a second since 1970.
func (r *bitReader) time(field string) time.Time {
	return time.UnixMilli(int64(r.int(field, 36)) * 100).UTC()
}

// segmentType is the type of a segment that is not the core's, by its first letter; 0 where it has none.
func segmentType(text string) int {
	if text == "" {
		return 0
	}
	return int(sextets[text[0]] >> letterSegmentType)
}

// The errors of segments that are unknown, or are there twice.
var (
	errSegmentType   = errors.New("a segment after the first must be of type 1, 2 or 3")
	errSegmentRepeat = errors.New("each type of segment must be there once at most")
)

func (t *TCF) addSegment(text string) error {
	var name string
	var err error
	switch kind := segmentType(text); {
	case kind == segmentDisclosed && t.DisclosedVendors == nil:
		name = "DisclosedVendors"
		t.DisclosedVendors, err = parseVendorsSegment(name, text)
	case kind == segmentAllowed && t.AllowedVendors == nil:
		name = "AllowedVendors"
		t.AllowedVendors, err = parseVendorsSegment(name, text)
	case kind == segmentPublisher && t.Publisher == nil:
		name = "PublisherTC"
		t.Publisher, err = parsePublisher(text)
	case kind >= segmentDisclosed && kind <= segmentPublisher:
		return errSegmentRepeat
	default:
		return errSegmentType
	}
	if err != nil {
		return fmt.Errorf("%s segment: %w", name, err)
	}
	return nil
}

func parseVendorsSegment(field, text string) (*Vendors, error) {
	r := newBitReader(text)
	r.int("SegmentType", segmentTypeBits)
	vendors := r.vendors(field)
	return &vendors, r.err
}

// parsePublisher reads a segment of the publisher's purposes. Canada's has the same form.
func parsePublisher(text string) (*PublisherTC, error) {
	r := newBitReader(text)
	r.int("SegmentType", segmentTypeBits)
	var p PublisherTC
	p.PurposeConsents = r.set("PubPurposesConsent", purposes)
	p.PurposeLegitimateInterests = r.set("PubPurposesLITransparency", purposes)
	p.CustomPurposes = r.int("NumCustomPurposes", 6)
	p.CustomPurposeConsents = r.set("CustomPurposesConsent", p.CustomPurposes)
	p.CustomPurposeLegitimateInterests = r.set("CustomPurposesLITransparency", p.CustomPurposes)
	return &p, r.err
}
