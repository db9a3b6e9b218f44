package iab

import (
	"errors"
	"fmt"
	"strings"
)

// usField reads one field of a section.
type usField func(*bitReader, *USSection)

// usLayout is how a section is written: its core, and what may follow that after a dot.
type usLayout struct {
	core []usField
	// after is the only field of the segment after the core; nil where there is none.
	after usField
	// headed says that a header with the section's id and version may stand before the core. The specifications of such sections
	// want one, but IAB's libraries write none. The core begins with the version of the agreement, which is lower than any id.
	headed bool
}

// Fields that several sections have, in the names of the specifications.
var (
	sharingNotice             = usAnswer("SharingNotice", func(s *USSection) *Answer { return &s.SharingNotice })
	processingNotice          = usAnswer("ProcessingNotice", func(s *USSection) *Answer { return &s.ProcessingNotice })
	saleOptOutNotice          = usAnswer("SaleOptOutNotice", func(s *USSection) *Answer { return &s.SaleOptOutNotice })
	sharingOptOutNotice       = usAnswer("SharingOptOutNotice", func(s *USSection) *Answer { return &s.SharingOptOutNotice })
	advertisingOptOutNotice   = usAnswer("TargetedAdvertisingOptOutNotice", func(s *USSection) *Answer { return &s.TargetedAdvertisingOptOutNotice })
	sensitiveDataOptOutNotice = usAnswer("SensitiveDataProcessingOptOutNotice", func(s *USSection) *Answer { return &s.SensitiveDataProcessingOptOutNotice })
	sensitiveDataLimitNotice  = usAnswer("SensitiveDataLimitUseNotice", func(s *USSection) *Answer { return &s.SensitiveDataLimitUseNotice })
	saleOptOut                = usAnswer("SaleOptOut", func(s *USSection) *Answer { return &s.SaleOptOut })
	sharingOptOut             = usAnswer("SharingOptOut", func(s *USSection) *Answer { return &s.SharingOptOut })
	advertisingOptOut         = usAnswer("TargetedAdvertisingOptOut", func(s *USSection) *Answer { return &s.TargetedAdvertisingOptOut })
	personalDataConsents      = usAnswer("PersonalDataConsents", func(s *USSection) *Answer { return &s.PersonalDataConsents })
	additionalDataConsent     = usAnswer("AdditionalDataProcessingConsent", func(s *USSection) *Answer { return &s.AdditionalDataProcessingConsent })
	mspaCoveredTransaction    = usAnswer("MspaCoveredTransaction", func(s *USSection) *Answer { return &s.MspaCoveredTransaction })
	mspaOptOutOptionMode      = usAnswer("MspaOptOutOptionMode", func(s *USSection) *Answer { return &s.MspaOptOutOptionMode })
	mspaServiceProviderMode   = usAnswer("MspaServiceProviderMode", func(s *USSection) *Answer { return &s.MspaServiceProviderMode })
)

// usLayouts are the layouts by the sections' ids.
var usLayouts = map[int]usLayout{
	sectionUSNational: {core: national(16, 3), after: gpc},
	8: {core: []usField{
		usVersion(1), saleOptOutNotice, sharingOptOutNotice, sensitiveDataLimitNotice, saleOptOut, sharingOptOut,
		sensitiveData(9), knownChildren(2), personalDataConsents, mspaCoveredTransaction, mspaOptOutOptionMode, mspaServiceProviderMode,
	}, after: gpc},
	9:  {core: state(sharingNotice, 8, 1)},
	10: {core: state(sharingNotice, 7, 1), after: gpc},
	11: {core: []usField{
		usVersion(1), sharingNotice, saleOptOutNotice, advertisingOptOutNotice, sensitiveDataOptOutNotice, saleOptOut, advertisingOptOut,
		sensitiveData(8), knownChildren(1), mspaCoveredTransaction, mspaOptOutOptionMode, mspaServiceProviderMode,
	}},
	12: {core: state(sharingNotice, 8, 3), after: gpc},
	13: {core: state(processingNotice, 8, 3, additionalDataConsent)},
	14: {core: state(sharingNotice, 8, 3, additionalDataConsent), after: gpc},
	15: {core: state(processingNotice, 11, 3, additionalDataConsent), after: gpc},
	16: {core: state(processingNotice, 8, 1, additionalDataConsent), after: gpc},
	17: {core: state(processingNotice, 9, 5, additionalDataConsent), after: gpc},
	18: {core: []usField{
		usVersion(1), processingNotice, saleOptOutNotice, advertisingOptOutNotice, sensitiveDataOptOutNotice, saleOptOut, advertisingOptOut,
		sensitiveData(8), knownChildren(1), mspaCoveredTransaction, mspaOptOutOptionMode, mspaServiceProviderMode,
	}, after: gpc},
	19: {core: state(processingNotice, 8, 1, additionalDataConsent), after: gpc},
	20: {core: state(processingNotice, 8, 3, additionalDataConsent), after: gpc},
	21: {core: state(processingNotice, 10, 5, additionalDataConsent), after: gpc},
	22: {core: state(processingNotice, 8, 1, additionalDataConsent), after: gpc},
	23: {core: state(processingNotice, 8, 1, additionalDataConsent), after: gpc},
	24: {core: laterState(additionalDataConsent), after: gpc, headed: true},
	25: {core: laterState(knownChildren(1), additionalDataConsent), after: sensitiveData(8), headed: true},
	26: {core: laterState(knownChildren(1), additionalDataConsent), after: sensitiveData(8), headed: true},
	27: {core: laterState(knownChildren(1), additionalDataConsent), after: sensitiveData(8), headed: true},
}

// olderNational is the core of the national section before 2025. IAB's libraries have written both cores as version 1, so that
// only their lengths tell them apart.
var olderNational = national(12, 2)

// olderNationalBits is the length of the older core, with padding; the later one has 70 bits without.
const olderNationalBits = 66

// isOlderNational tells a core of the national section before 2025.
func isOlderNational(r bitReader) bool { return r.end <= olderNationalBits && r.int("Version", 6) == 1 }

// national is the core of the national section, with some kinds of sensitive data and age groups of children.
func national(kinds, ages int) []usField {
	return []usField{
		usVersion(2), sharingNotice, saleOptOutNotice, sharingOptOutNotice, advertisingOptOutNotice, sensitiveDataOptOutNotice,
		sensitiveDataLimitNotice, saleOptOut, sharingOptOut, advertisingOptOut, sensitiveData(kinds), knownChildren(ages),
		personalDataConsents, mspaCoveredTransaction, mspaOptOutOptionMode, mspaServiceProviderMode,
	}
}

// state is the core that most states have, with some kinds of sensitive data and age groups of children.
func state(notice usField, kinds, ages int, consents ...usField) []usField {
	core := []usField{
		usVersion(1), notice, saleOptOutNotice, advertisingOptOutNotice, saleOptOut, advertisingOptOut, sensitiveData(kinds), knownChildren(ages),
	}
	core = append(core, consents...)
	return append(core, mspaCoveredTransaction, mspaOptOutOptionMode, mspaServiceProviderMode)
}

// laterState is the core of the states from Maryland on.
func laterState(consents ...usField) []usField {
	return append([]usField{
		mspaVersion, mspaCoveredTransaction, mspaMode, processingNotice, saleOptOutNotice, advertisingOptOutNotice, saleOptOut, advertisingOptOut,
	}, consents...)
}

// usAnswer reads an answer.
func usAnswer(name string, field func(*USSection) *Answer) usField {
	return func(r *bitReader, s *USSection) { *field(s) = r.answer(name) }
}

// answer reads two bits, of which three values have a meaning.
func (r *bitReader) answer(field string) Answer {
	answer := Answer(r.int(field, 2))
	if answer > 2 {
		r.fail("%s must be 0, 1 or 2", field)
	}
	return answer
}

// answers reads a list of them.
func (r *bitReader) answers(field string, count int) []Answer {
	list := make([]Answer, count)
	for i := range list {
		list[i] = r.answer(field)
	}
	return list
}

func sensitiveData(kinds int) usField {
	return func(r *bitReader, s *USSection) {
		s.SensitiveDataProcessing = r.answers("SensitiveDataProcessing", kinds)
	}
}

func knownChildren(ages int) usField {
	return func(r *bitReader, s *USSection) {
		s.KnownChildSensitiveDataConsents = r.answers("KnownChildSensitiveDataConsents", ages)
	}
}

// usVersion reads the version of the section, 1 to newest.
func usVersion(newest int) usField {
	return func(r *bitReader, s *USSection) {
		if s.Version = r.int("Version", 6); s.Version < 1 || s.Version > newest {
			r.fail("Version must be at least 1 and at most %d", newest)
		}
	}
}

func mspaVersion(r *bitReader, s *USSection) { s.MspaVersion = r.int("MspaVersion", 6) }

// mspaMode reads one field for what others have two for.
func mspaMode(r *bitReader, s *USSection) {
	switch r.answer("MspaMode") {
	case 1:
		s.MspaOptOutOptionMode, s.MspaServiceProviderMode = Yes, No
	case 2:
		s.MspaOptOutOptionMode, s.MspaServiceProviderMode = No, Yes
	}
}

// gpc reads the segment of Global Privacy Control.
func gpc(r *bitReader, s *USSection) {
	if r.int("SubsectionType", 2) != 1 {
		r.fail("SubsectionType must be 1")
	}
	s.GPC = r.bool("Gpc")
}

var errUSSegments = errors.New("it must have no more segments than its layout")

// parse reads a section of this layout.
func (l usLayout) parse(id int, text string) (USSection, error) {
	s := USSection{ID: id}
	core, after, more := strings.Cut(text, ".")
	r := newBitReader(core)
	if l.headed {
		s.Version = 1
		if header := r; header.int("SectionID", 6) == id {
			if usVersion(1)(&header, &s); header.err != nil {
				return USSection{}, fmt.Errorf("section header: %w", header.err)
			}
			core, after, more = strings.Cut(after, ".")
			r = newBitReader(core)
		}
	}
	fields := l.core
	if id == sectionUSNational && isOlderNational(r) {
		fields = olderNational
	}
	for _, field := range fields {
		field(&r, &s)
	}
	if r.err != nil {
		return USSection{}, fmt.Errorf("core segment: %w", r.err)
	}
	if !more {
		return s, nil
	}
	if l.after == nil || strings.Contains(after, ".") {
		return USSection{}, errUSSegments
	}
	r = newBitReader(after)
	l.after(&r, &s)
	if r.err != nil {
		return USSection{}, fmt.Errorf("segment after the core: %w", r.err)
	}
	return s, nil
}
