package consent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/iab"
)

// european are the purposes that a string of IAB Europe's framework decides.
var european = ads | Of(AnalyticsStorage)

// tcfPurposes are those of the framework's purposes by their numbers that a purpose rests on, as Google maps them to its
// consent mode. Statistics rest on the first alone, which is of what a device keeps: a site whose vendors measure no content
// asks nobody for the eighth.
var tcfPurposes = [...]struct {
	number   int
	purposes Purposes
}{
	{1, Of(AdStorage, AdUserData)}, // store and access information on a device
	{3, Of(AdPersonalization)},     // create profiles for personalised advertising
	{4, Of(AdPersonalization)},     // use them
	{7, Of(AdUserData)},            // measure advertising performance
}

// readTCF reads a string of IAB Europe's framework.
func (s *Statement) readTCF(text string) {
	read, err := iab.ParseTCF(text)
	if err != nil {
		s.unreadable |= european
		return
	}
	s.tcf = append(s.tcf, &read)
}

// addTCF adds what a string of the framework says where a vendor pursues the purposes. It decides on each of them, save that
// one which did not have to ask for purpose 1 says nothing of that.
func addTCF(d *Decisions, tcf *iab.TCF, v *Vendor) {
	for _, p := range tcfPurposes {
		basis := iab.Consent
		if slices.Contains(v.LegitimateInterest, p.number) {
			basis = iab.LegitimateInterest
		}
		if p.number != 1 || !tcf.PurposeOneTreatment {
			d.add(p.purposes, decided(tcf.Permits(p.number, v.ID, basis, slices.Contains(v.Flexible, p.number))))
		}
	}
	if !tcf.PurposeOneTreatment { // the customer's own statistics, whoever the vendor is
		d.add(Of(AnalyticsStorage), decided(tcf.Permits(1, 0, iab.Consent, false)))
	}
}

// readUSPrivacy reads a US Privacy string.
func (s *Statement) readUSPrivacy(text string) {
	read, err := iab.ParseUSPrivacy(text)
	if err != nil {
		s.unreadable |= Of(Sale)
		return
	}
	s.said.add(Of(Sale), optOut(read.OptOutSale))
}

// optOut is the decision on what somebody may opt out of.
func optOut(answer iab.Answer) event.Decision {
	switch answer {
	case iab.OptedOut:
		return event.Denied
	case iab.DidNotOptOut:
		return event.Granted
	}
	return event.Unstated
}

// The sections of the Global Privacy Platform that are told apart here. Those of the United States are the others.
const (
	sectionEurope    = 2
	sectionCanada    = 5
	sectionUSPrivacy = 6
)

// readGPP reads those sections of a string of the Global Privacy Platform that apply to the visitor.
func (s *Statement) readGPP(text, applicable string) {
	if nothingApplies(applicable) {
		return
	}
	read, err := iab.ParseGPP(text)
	if err != nil {
		s.unreadable |= decidedBy(applicable)
		return
	}
	if !slices.ContainsFunc(read.Sections, func(id int) bool { return applies(applicable, id) }) {
		applicable = "" // no section that is there was named, so nobody can tell which was meant
	}
	if read.TCFEU != nil && applies(applicable, sectionEurope) {
		s.tcf = append(s.tcf, read.TCFEU)
	}
	if read.TCFCanada != nil && applies(applicable, sectionCanada) {
		s.addCanada(read.TCFCanada)
	}
	if read.USPrivacy != "" && applies(applicable, sectionUSPrivacy) {
		s.readUSPrivacy(read.USPrivacy)
	}
	for i := range read.US {
		if section := &read.US[i]; applies(applicable, section.ID) {
			s.addState(section)
		}
	}
}

// addCanada adds what a section of IAB Canada's framework says, which knows of no storage.
func (s *Statement) addCanada(section *iab.TCFCanada) {
	for _, p := range tcfPurposes {
		if p.number != 1 {
			s.said.add(p.purposes, decided(section.PurposesExpressConsent.Has(p.number) || section.PurposesImpliedConsent.Has(p.number)))
		}
	}
}

// addState adds what a section of the United States or of one of them says. A browser's Global Privacy Control is an opt-out.
func (s *Statement) addState(section *iab.USSection) {
	for _, answer := range [...]iab.Answer{section.SaleOptOut, section.SharingOptOut, section.TargetedAdvertisingOptOut} {
		s.said.add(Of(Sale), optOut(answer))
	}
	if section.GPC {
		s.said.add(Of(Sale), event.Denied)
	}
}

// What stands among the applicable sections and is none: the platform that manages consent does not know them yet, or says that
// there is none.
const (
	undetermined = "0"
	noSection    = "-1"
)

// nothingApplies says whether no section of a string applies, by what is said of the applicable ones: numbers with commas.
func nothingApplies(applicable string) bool {
	for number := range strings.SplitSeq(applicable, ",") {
		if number != noSection {
			return false
		}
	}
	return true
}

// applies says whether a section is among the applicable ones; all are where none are named, or nobody knows them yet.
func applies(applicable string, section int) bool {
	if applicable == "" {
		return true
	}
	for number := range strings.SplitSeq(applicable, ",") {
		if number == strconv.Itoa(section) || number == undetermined {
			return true
		}
	}
	return false
}

// decidedBy are the purposes that the applicable sections can decide.
func decidedBy(applicable string) Purposes {
	var all Purposes
	for number := range strings.SplitSeq(applicable, ",") {
		switch number {
		case "", undetermined:
			all |= european | Of(Sale)
		case noSection:
		case strconv.Itoa(sectionEurope):
			all |= european
		case strconv.Itoa(sectionCanada):
			all |= Of(AdUserData, AdPersonalization)
		default:
			all |= Of(Sale)
		}
	}
	return all
}
