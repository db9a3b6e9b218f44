package iab_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event/iab"
)

// europe is the European section of the specification's examples.
const europe = "CPXxRfAPXxRfAAfKABENB-CgAAAAAAAAAAYgAAAAAAAA"

func TestParseGPPReadsTheSectionsThatAreThere(t *testing.T) {
	tests := map[string]struct {
		text              string
		want              []int
		europe, canada    bool
		usPrivacy         string
		american          []int
		americanGPC       bool
		americanSaleIsOut bool
	}{
		"the specification's first example":          {text: "DBABM~" + europe, want: []int{2}, europe: true},
		"its second example":                         {text: "DBACNY~" + europe + "~1YNN", want: []int{2, 6}, europe: true, usPrivacy: "1YNN"},
		"no section":                                 {text: "DBAA"},
		"its header for sections 5 and 6, one range": {text: "DBABjw~BPSG_8APSG_8AAAAAAENAACAAAAAAAAAAAAAAAAAAA.YAAAAAAAAAA~1YNN", want: []int{5, 6}, canada: true, usPrivacy: "1YNN"},
		"a header that is padded further":            {text: "DBACNYAA~" + europe + "~1---", want: []int{2, 6}, europe: true, usPrivacy: "1---"},
		"the national section":                       {text: "DBABLA~CAAAVVVVVVRA.YA", want: []int{7}, american: []int{7}, americanGPC: true},
		"the national section of version 1":          {text: "DBABLA~BVVVAAAAAAA", want: []int{7}, american: []int{7}, americanSaleIsOut: true},
		"sections without a layout, old and later": {
			text: "DB" + text(number(3, 12)+"0"+"11"+"0"+"00011"+"0"+"10000011") + "~BOld~1YNN~Later", want: []int{1, 6, 28}, usPrivacy: "1YNN",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := iab.ParseGPP(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			var american []int
			for _, section := range got.US {
				american = append(american, section.ID)
				if section.GPC != tt.americanGPC || (section.SaleOptOut == iab.OptedOut) != tt.americanSaleIsOut {
					t.Errorf("section %d is read as %+v", section.ID, section)
				}
			}
			if diff := cmp.Diff(tt.want, got.Sections); diff != "" {
				t.Errorf("sections (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.american, american); diff != "" {
				t.Errorf("American sections (-want +got):\n%s", diff)
			}
			if got.USPrivacy != tt.usPrivacy || (got.TCFEU != nil) != tt.europe || (got.TCFCanada != nil) != tt.canada {
				t.Errorf("read as %+v", got)
			}
		})
	}
}

// single is a GPP string of one section, whose id is in Fibonacci coding.
func single(id, section string) string { return "DB" + text(number(1, 12)+"0"+id) + "~" + section }

// The codes of some ids.
const (
	id2  = "011"
	id5  = "00011"
	id6  = "10011"
	id7  = "01011"
	id8  = "000011"
	id9  = "100011"
	id24 = "00100011"
	id25 = "10100011"
	id28 = "01010011"
)

func TestParseGPPReadsAmericanSections(t *testing.T) {
	answers := func(values ...int) (bits string) {
		for _, value := range values {
			bits += number(value, 2)
		}
		return bits
	}
	california := number(1, 6) + answers(1, 2, 1, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 2, 1, 1, 2, 1)
	indiana := number(1, 6) + answers(1, 2, 1, 2, 0, 1, 2, 1, 2)
	wantIndiana := iab.USSection{
		ID: 25, Version: 1, MspaVersion: 1, MspaCoveredTransaction: iab.Yes, MspaOptOutOptionMode: iab.No, MspaServiceProviderMode: iab.Yes,
		ProcessingNotice: iab.Yes, SaleOptOutNotice: iab.No, SaleOptOut: iab.OptedOut, TargetedAdvertisingOptOut: iab.DidNotOptOut,
		KnownChildSensitiveDataConsents: []iab.Answer{iab.NoConsent}, AdditionalDataProcessingConsent: iab.ConsentGiven,
	}
	withSensitive := wantIndiana
	withSensitive.SensitiveDataProcessing = []iab.Answer{1, 2, 0, 1, 2, 0, 1, 2}
	tests := map[string]struct {
		id, section string
		want        iab.USSection
	}{
		"California": {id8, text(california) + "." + text("011"), iab.USSection{
			ID: 8, Version: 1, SaleOptOutNotice: iab.Yes, SharingOptOutNotice: iab.No, SensitiveDataLimitUseNotice: iab.Yes,
			SaleOptOut: iab.OptedOut, SharingOptOut: iab.DidNotOptOut, SensitiveDataProcessing: []iab.Answer{0, 1, 2, 0, 1, 2, 0, 1, 2},
			KnownChildSensitiveDataConsents: []iab.Answer{iab.NoConsent, iab.ConsentGiven}, PersonalDataConsents: iab.NoConsent,
			MspaCoveredTransaction: iab.Yes, MspaOptOutOptionMode: iab.No, MspaServiceProviderMode: iab.Yes, GPC: true,
		}},
		"Indiana, as IAB's libraries write it":                            {id25, text(indiana), wantIndiana},
		"Indiana, with the header that its specification wants":           {id25, text(number(25, 6)+number(1, 6)+number(1, 12)) + "." + text(indiana), wantIndiana},
		"Indiana with sensitive data":                                     {id25, text(indiana) + "." + text(answers(1, 2, 0, 1, 2, 0, 1, 2)), withSensitive},
		"Indiana with the header of its specification and sensitive data": {id25, text(number(25, 6)+number(1, 6)+number(2, 12)) + "." + text(indiana) + "." + text(answers(1, 2, 0, 1, 2, 0, 1, 2)), withSensitive},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := iab.ParseGPP(single(tt.id, tt.section))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]iab.USSection{tt.want}, got.US); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// IAB's libraries have written version 1 for two layouts of the national section.
func TestParseGPPTellsTheNationalSectionsApart(t *testing.T) {
	tests := map[string]struct {
		bits                      string
		wantKinds, wantAges, want int
	}{
		"version 1 of 60 bits":         {number(1, 6) + strings.Repeat("01", 27), 12, 2, 1},
		"version 1 of 60 bits, padded": {number(1, 6) + strings.Repeat("01", 27) + "000000", 12, 2, 1},
		"version 1 of 70 bits":         {number(1, 6) + strings.Repeat("01", 32), 16, 3, 1},
		"version 2 of 70 bits":         {number(2, 6) + strings.Repeat("01", 32), 16, 3, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := iab.ParseGPP(single(id7, text(tt.bits)))
			if err != nil {
				t.Fatal(err)
			}
			section := got.US[0]
			if section.Version != tt.want || len(section.SensitiveDataProcessing) != tt.wantKinds || len(section.KnownChildSensitiveDataConsents) != tt.wantAges {
				t.Errorf("read as %+v", section)
			}
			if section.SaleOptOut != iab.OptedOut || section.PersonalDataConsents != iab.NoConsent || section.MspaServiceProviderMode != iab.Yes {
				t.Errorf("read as %+v", section)
			}
		})
	}
}

// canada is the beginning of a Canadian core, up to the vendors.
var canada = number(1, 6) + number(16_409_952_000, 36) + number(16_409_952_000, 36) + number(50, 12) + number(2, 12) + number(0, 6) +
	number(4, 6) + number(13, 6) + number(413, 12) + number(2, 6) + "1" + flags(12, 1) + flags(24, 2, 3) + flags(24, 4)

func TestParseGPPReadsCanadianVendorsInBothCodings(t *testing.T) {
	// Vendors 12, 24 to 26 in Fibonacci coding are 12, then 12 further and a length of 2.
	fibonacci := number(26, 16) + "1" + number(2, 12) + "0" + "101011" + "1" + "101011" + "011"
	tests := map[string]struct {
		bits                 string
		wantExpress          []int
		wantImplied          []int
		wantRestrictedVendor []int
	}{
		"as the specification has them": {
			canada + fibonacci + bitfield(9, 9) + number(1, 12) + number(3, 6) + number(1, 2) + fibonacci,
			[]int{12, 24, 25, 26}, []int{9}, []int{12, 24, 25, 26},
		},
		"as they were written before 2026": {
			canada + rangeField(26, [2]int{12, 12}, [2]int{24, 26}) + bitfield(9, 9) + number(1, 12) + restriction(3, 1, [2]int{12, 12}, [2]int{24, 26}),
			[]int{12, 24, 25, 26}, []int{9}, []int{12, 24, 25, 26},
		},
		"as bits, which both write alike":     {canada + bitfield(26, 12, 26) + bitfield(0) + number(0, 12), []int{12, 26}, nil, nil},
		"as bits whose last ones are not set": {canada + bitfield(90, 12, 26) + bitfield(60) + number(0, 12), []int{12, 26}, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			read, err := iab.ParseGPP(single(id5, text(tt.bits)))
			if err != nil {
				t.Fatal(err)
			}
			var restricted []int
			for _, one := range read.TCFCanada.PublisherRestrictions {
				restricted = among(one.Vendors, 11, 12, 13, 23, 24, 25, 26, 27)
			}
			found := [][]int{
				among(read.TCFCanada.VendorExpressConsent, 11, 12, 13, 23, 24, 25, 26, 27), among(read.TCFCanada.VendorImpliedConsent, 8, 9, 10), restricted,
			}
			if diff := cmp.Diff([][]int{tt.wantExpress, tt.wantImplied, tt.wantRestrictedVendor}, found); diff != "" {
				t.Errorf("vendors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseGPPRefusesWhatIsNoGPPString(t *testing.T) {
	california := text(number(1, 6) + flags(40))
	header := func(count int, bits string) string { return "DB" + text(number(count, 12)+bits) }
	tests := map[string]struct {
		text, want string
	}{
		"nothing":                               {"", "header: it must begin with DB, which is Type 3 and Version 1"},
		"a TC string":                           {europe, "header: it must begin with DB, which is Type 3 and Version 1"},
		"another version":                       {"DCABM~" + europe, "header: it must begin with DB, which is Type 3 and Version 1"},
		"a header without ids":                  {"DB", "header: it ends before Sections does"},
		"a header that is no base64url":         {"DBAB=~" + europe, "header: it must be base64url without padding"},
		"fewer ids than the header says":        {header(4095, "") + "~" + europe, "header: it ends before Sections does"},
		"an id that never ends":                 {"DB" + text(number(1, 12)+strings.Repeat("0", 99)) + "~" + europe, "header: Sections must be numbers up to 65535"},
		"an id above 65,535":                    {header(1, "0"+strings.Repeat("01", 12)+"1") + "~" + europe, "header: Sections must be numbers up to 65535"},
		"ids that add up to more":               {header(2, "0"+strings.Repeat("0", 22)+"11"+"0"+strings.Repeat("0", 22)+"11") + "~a~b", "header: Sections must be numbers up to 65535"},
		"a section too many":                    {single(id6, "1YNN") + "~1YNN", "header: Sections must be as many as there are"},
		"a section too few":                     {header(2, "0"+id6+"0"+id2) + "~1YNN", "header: Sections must be as many as there are"},
		"no section":                            {header(1, "0"+id6), "header: Sections must be as many as there are"},
		"a range of more than there are":        {header(1, "1"+id2+strings.Repeat("0", 20)+"11") + "~" + europe, "header: Sections must be as many as there are"},
		"an empty section":                      {single(id6, ""), "section 6 must not be empty"},
		"an empty section that has no layout":   {single(id28, ""), "section 28 must not be empty"},
		"a European section of another version": {single(id2, "B"+europe[1:]), "section 2: core segment: Version must be 2"},
		"a Canadian one of another version":     {single(id5, europe), "section 5: core segment: Version must be 1"},
		"a Canadian one that is cut":            {single(id5, text(canada)), "section 5: core segment: it ends before VendorExpressConsent does"},
		"a Canadian segment twice":              {single(id5, text(canada+bitfield(0)+bitfield(0)+number(0, 12))+".IAAA.IAAA"), "section 5: each type of segment must be there once at most"},
		"a Canadian segment of type 2":          {single(id5, text(canada+bitfield(0)+bitfield(0)+number(0, 12))+".QAAA"), "section 5: a segment after the first must be of type 1 or 3"},
		"a Canadian segment that is cut":        {single(id5, text(canada+bitfield(0)+bitfield(0)+number(0, 12))+".IAA"), "section 5: DisclosedVendors segment: it ends before DisclosedVendors does"},
		"a US Privacy section of other letters": {single(id6, "1yNN"), "section 6: US Privacy string: it must be 1 and three of Y, N and -"},
		"a California section that is cut":      {single(id8, california[:7]), "section 8: core segment: it ends before MspaOptOutOptionMode does"},
		"a California section of version 2":     {single(id8, "C"+california[1:]), "section 8: core segment: Version must be at least 1 and at most 1"},
		"an answer of 3":                        {single(id8, "BwAAAAAA"), "section 8: core segment: SaleOptOutNotice must be 0, 1 or 2"},
		"a segment of GPC of another type":      {single(id8, california+"."+text("001")), "section 8: segment after the core: SubsectionType must be 1"},
		"a segment of GPC that is cut":          {single(id8, california+"."), "section 8: segment after the core: it ends before SubsectionType does"},
		"two segments of GPC":                   {single(id8, california+".YA.YA"), "section 8: it must have no more segments than its layout"},
		"a segment that Virginia does not have": {single(id9, text(number(1, 6)+flags(34))+".YA"), "section 9: it must have no more segments than its layout"},
		"a national section of version 2 that is as short as version 1": {
			single(id7, text(number(2, 6)+flags(60))), "section 7: core segment: it ends before MspaOptOutOptionMode does",
		},
		"a header of Maryland of another version": {
			single(id24, text(number(24, 6)+number(2, 6))+"."+text(flags(22))), "section 24: section header: Version must be at least 1 and at most 1",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := iab.ParseGPP(tt.text)
			if err == nil || err.Error() != "GPP string: "+tt.want {
				t.Errorf("ParseGPP(%q) = %v, want %q", tt.text, err, tt.want)
			}
			if diff := cmp.Diff(iab.GPP{}, got); diff != "" {
				t.Errorf("something is read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseUSPrivacy(t *testing.T) {
	tests := map[string]struct {
		text string
		want iab.USPrivacy
		ok   bool
	}{
		"told, not opted out, not covered": {"1YNN", iab.USPrivacy{Version: 1, Notice: iab.Yes, OptOutSale: iab.DidNotOptOut, LSPACovered: iab.No}, true},
		"told, opted out, covered":         {"1YYY", iab.USPrivacy{Version: 1, Notice: iab.Yes, OptOutSale: iab.OptedOut, LSPACovered: iab.Yes}, true},
		"not applicable":                   {"1---", iab.USPrivacy{Version: 1}, true},
		"nothing":                          {"", iab.USPrivacy{}, false},
		"another version":                  {"2YNN", iab.USPrivacy{}, false},
		"too short":                        {"1YN", iab.USPrivacy{}, false},
		"too long":                         {"1YNN-", iab.USPrivacy{}, false},
		"small letters":                    {"1ynn", iab.USPrivacy{}, false},
		"a letter of two bytes":            {"1Yé", iab.USPrivacy{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := iab.ParseUSPrivacy(tt.text)
			if got != tt.want || (err == nil) != tt.ok {
				t.Errorf("ParseUSPrivacy(%q) = %+v, %v", tt.text, got, err)
			}
			if err != nil && err.Error() != "US Privacy string: it must be 1 and three of Y, N and -" {
				t.Error(err)
			}
		})
	}
}
