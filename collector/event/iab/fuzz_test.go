package iab_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/event/iab"
)

// checkError fails where an error repeats the string.
func checkError(t *testing.T, text string, err error) {
	t.Helper()
	if err != nil && len(text) > 12 && strings.Contains(err.Error(), text) {
		t.Errorf("the error repeats the string: %v", err)
	}
}

// FuzzParseTCF checks that what a string permits it has consent or interest for, and that nothing else panics or costs much.
func FuzzParseTCF(f *testing.F) {
	f.Add("CQSbk4AQSbk4ANwAAAENAwCgAAAAAAAAAAYgACPAAAAA.IDKQA4AAgAKAGQAygAAA.YAAAAAAAAAAA", 2, 2)
	f.Add(europe, 1, 0)
	f.Add(core{
		consents: []int{1, 2}, interests: []int{2}, vendors: bitfield(70, 3, 70), liVendors: rangeField(90, [2]int{5, 9}, [2]int{90, 90}),
		restrictions: []string{restriction(2, 1, [2]int{3, 3}), restriction(3, 0, [2]int{1, 70})},
	}.text()+".IAAA.QAAA", 2, 70)
	f.Add("C", 24, 65535)
	f.Fuzz(func(t *testing.T, text string, purpose, vendor int) {
		read, err := iab.ParseTCF(text)
		checkError(t, text, err)
		consent := read.PurposeConsents.Has(purpose) && (vendor == 0 || read.VendorConsents.Has(vendor))
		interest := read.PurposeLegitimateInterests.Has(purpose) && (vendor == 0 || read.VendorLegitimateInterests.Has(vendor))
		for _, basis := range []iab.Basis{iab.Consent, iab.LegitimateInterest} {
			firm, flexible := read.Permits(purpose, vendor, basis, false), read.Permits(purpose, vendor, basis, true)
			if err != nil && (firm || flexible) {
				t.Errorf("a string that is refused permits %d to %d", purpose, vendor)
			}
			if firm && (!flexible || basis == iab.Consent && !consent || basis == iab.LegitimateInterest && !interest) {
				t.Errorf("purpose %d is permitted to %d on basis %d", purpose, vendor, basis)
			}
			if flexible && !consent && !interest {
				t.Errorf("purpose %d is permitted to the flexible %d", purpose, vendor)
			}
		}
		for i, one := range read.PublisherRestrictions {
			if one.Purpose < 1 || one.Purpose > 63 || one.Type < 0 || one.Type > 2 {
				t.Errorf("restriction %d is %+v", i, one)
			}
			if vendor > 0 && one.Type == iab.NotAllowed && one.Vendors.Has(vendor) && read.Permits(one.Purpose, vendor, iab.Consent, true) {
				t.Errorf("purpose %d is permitted to %d, and forbidden", one.Purpose, vendor)
			}
		}
	})
}

// FuzzParseGPP checks that a string has what its header says.
func FuzzParseGPP(f *testing.F) {
	for _, text := range []string{
		"DBAA", "DBABM~" + europe, "DBACNY~" + europe + "~1YNN", "DBABLA~CAAAVVVVVVRA.YA", "DBABLA~BVVVAAAAAAA",
		"DBABjw~BPSG_8APSG_8AAyACAENGdCgf_gfgAfgfgBhADVqxGAD0AILVgAA.fHHHA4444ao~1YNN",
		single(id25, text(number(25, 6)+number(1, 6))+"."+text(number(1, 6)+flags(18))+".AAAA"),
		"DB" + text(number(1, 12)+"1"+"11"+fibonacci(65534)) + "~1YNN",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := iab.ParseGPP(text)
		checkError(t, text, err)
		if err != nil {
			return
		}
		if len(read.Sections) != strings.Count(text, "~") || !slices.IsSorted(read.Sections) {
			t.Errorf("%q has sections %v", text, read.Sections)
		}
		has := func(id int) bool { return slices.Contains(read.Sections, id) }
		if has(2) != (read.TCFEU != nil) || has(5) != (read.TCFCanada != nil) || has(6) != (read.USPrivacy != "") {
			t.Errorf("%q is read as %+v", text, read)
		}
		for _, section := range read.US {
			answers := append(slices.Clone(section.SensitiveDataProcessing), section.KnownChildSensitiveDataConsents...)
			answers = append(answers, section.SaleOptOut, section.SharingOptOut, section.TargetedAdvertisingOptOut, section.PersonalDataConsents)
			if !has(section.ID) || slices.Max(answers) > 2 || slices.Min(answers) < 0 {
				t.Errorf("%q has section %+v", text, section)
			}
		}
	})
}

// FuzzParseUSPrivacy checks that what is read says what was written.
func FuzzParseUSPrivacy(f *testing.F) {
	for _, text := range []string{"1YNN", "1---", "1YYY", "1Y-", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := iab.ParseUSPrivacy(text)
		if err != nil {
			return
		}
		const letters = "-YN"
		written := "1" + string([]byte{letters[read.Notice], letters[read.OptOutSale], letters[read.LSPACovered]})
		if written != text {
			t.Errorf("%q is read as %+v", text, read)
		}
	})
}
