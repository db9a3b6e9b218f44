package iab_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event/iab"
)

// among are those of the vendors that are in a set.
func among(set iab.Vendors, vendors ...int) []int {
	var found []int
	for _, id := range vendors {
		if set.Has(id) {
			found = append(found, id)
		}
	}
	return found
}

func TestParseTCFReadsTheStringOfTheSpecification(t *testing.T) {
	// The specification has the string; what it says is as IAB's library reads it.
	got, err := iab.ParseTCF("CQSbk4AQSbk4ANwAAAENAwCgAAAAAAAAAAYgACPAAAAA.IDKQA4AAgAKAGQAygAAA.YAAAAAAAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2025, time.June, 3, 0, 0, 0, 0, time.UTC)
	want := iab.Metadata{
		Created: day, LastUpdated: day, CMPID: 880, ConsentLanguage: "EN", VendorListVersion: 48, PolicyVersion: 2,
	}
	if diff := cmp.Diff(want, got.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if !got.IsServiceSpecific || got.UseNonStandardTexts || got.PurposeOneTreatment || got.PublisherCountry != "DE" {
		t.Errorf("read as %+v", got)
	}
	if got.DisclosedVendors == nil || got.AllowedVendors != nil || got.Publisher == nil {
		t.Fatalf("segments read as %+v", got)
	}
	if found := among(got.VendorConsents, 1, 2, 3, 4, 5); !cmp.Equal(found, []int{1, 2, 3, 4}) {
		t.Errorf("vendors with consent: %v", found)
	}
	if found := among(*got.DisclosedVendors, 1, 2, 3, 4, 5, 6, 99, 100, 101, 404); !cmp.Equal(found, []int{1, 2, 3, 4, 5, 100, 404}) {
		t.Errorf("disclosed vendors: %v", found)
	}
}

func TestParseTCFReadsVendorsHoweverTheyAreWritten(t *testing.T) {
	tests := map[string]struct {
		section string
		want    []int
	}{
		"no vendors":                            {bitfield(0), nil},
		"bits":                                  {bitfield(300, 1, 64, 65, 299), []int{1, 64, 65, 299}},
		"bits up to the last":                   {bitfield(300, 300), []int{300}},
		"no ranges":                             {rangeField(0), nil},
		"single vendors":                        {rangeField(299, [2]int{64, 64}, [2]int{299, 299}), []int{64, 299}},
		"ranges":                                {rangeField(65, [2]int{1, 2}, [2]int{64, 65}), []int{1, 2, 64, 65}},
		"ranges in no order":                    {rangeField(65, [2]int{64, 65}, [2]int{1, 2}), []int{1, 2, 64, 65}},
		"ranges that overlap":                   {rangeField(65, [2]int{63, 66}, [2]int{1, 64}, [2]int{2, 2}), []int{1, 2, 3, 63, 64, 65, 66}},
		"a range within another one":            {rangeField(300, [2]int{1, 299}, [2]int{2, 2}, [2]int{300, 300}), []int{1, 2, 3, 63, 64, 65, 66, 299, 300}},
		"all vendors":                           {rangeField(65535, [2]int{1, 65535}), []int{1, 2, 3, 63, 64, 65, 66, 299, 300, 301, 65535}},
		"ranges above what is said to be most":  {rangeField(2, [2]int{1, 3}), []int{1, 2, 3}},
		"the highest vendor, as a single range": {rangeField(65535, [2]int{65535, 65535}), []int{65535}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			read, err := iab.ParseTCF(core{vendors: tt.section, liVendors: bitfield(2, 2)}.text())
			if err != nil {
				t.Fatal(err)
			}
			found := among(read.VendorConsents, -1, 0, 1, 2, 3, 63, 64, 65, 66, 299, 300, 301, 65535, 65536, 1<<32+1)
			if diff := cmp.Diff(tt.want, found); diff != "" {
				t.Errorf("vendors (-want +got):\n%s", diff)
			}
			if got := among(read.VendorLegitimateInterests, 1, 2, 3); !cmp.Equal(got, []int{2}) {
				t.Errorf("the next section is read as %v", got)
			}
		})
	}
}

func TestParseTCFReadsThePublishersOwnPurposes(t *testing.T) {
	segment := "011" + flags(24, 1, 24) + flags(24, 2) + number(63, 6) + flags(63, 1, 32, 33, 63) + flags(63, 2, 62)
	read, err := iab.ParseTCF(core{}.text() + "." + text(segment))
	if err != nil {
		t.Fatal(err)
	}
	set := func(ids ...int) (set iab.IDs) {
		for _, id := range ids {
			set |= 1 << (id - 1)
		}
		return set
	}
	want := &iab.PublisherTC{
		PurposeConsents: set(1, 24), PurposeLegitimateInterests: set(2), CustomPurposes: 63,
		CustomPurposeConsents: set(1, 32, 33, 63), CustomPurposeLegitimateInterests: set(2, 62),
	}
	if diff := cmp.Diff(want, read.Publisher); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseTCFRefusesWhatIsNoTCString(t *testing.T) {
	valid := core{}.text()
	disclosed, publisher := text("001"+bitfield(3, 3)), text("011"+flags(54))
	tests := map[string]struct {
		text, want string
	}{
		"nothing":                  {"", "core segment: it ends before Version does"},
		"one letter":               {"C", "core segment: it ends before Created does"},
		"padding":                  {valid + "=", "core segment: it must be base64url without padding"},
		"the other base64":         {"C+" + valid[2:], "core segment: it must be base64url without padding"},
		"a line break":             {valid[:8] + "\n" + valid[8:], "core segment: it must be base64url without padding"},
		"letters beyond ASCII":     {"Cé" + valid[3:], "core segment: it must be base64url without padding"},
		"version 1":                {core{version: 1}.text(), "core segment: Version must be 2"},
		"version 3":                {core{version: 3}.text(), "core segment: Version must be 2"},
		"another segment first":    {disclosed + "." + valid, "core segment: Version must be 2"},
		"a language of no letters": {text(core{}.bits()[:108] + "011010" + core{}.bits()[114:]), "core segment: ConsentLanguage must be two letters from A to Z"},
		"fewer bits than vendors":  {text(core{vendors: bitfield(9)}.bits()[:230]), "core segment: it ends before VendorConsent does"},
		"fewer ranges than said": {
			text(strings.TrimSuffix(core{liVendors: number(9, 16) + "1" + number(4095, 12)}.bits(), number(0, 12)) + number(0, 50)),
			"core segment: it ends before VendorLegitimateInterest does",
		},
		"vendor 0":                          {core{vendors: rangeField(9, [2]int{0, 0})}.text(), "core segment: VendorConsent must be ranges of vendors from 1 on, the lower one first"},
		"a range that goes down":            {core{vendors: rangeField(9, [2]int{9, 8})}.text(), "core segment: VendorConsent must be ranges of vendors from 1 on, the lower one first"},
		"fewer restrictions than said":      {core{restrictionsAreCount: 4095}.text(), "core segment: it ends before PubRestrictions does"},
		"no word on restrictions":           {text(strings.TrimSuffix(core{}.bits(), number(0, 12))), "core segment: it ends before PubRestrictions does"},
		"a restriction of purpose 0":        {core{restrictions: []string{restriction(0, 1)}}.text(), "core segment: PubRestrictions must have purposes from 1 on and types up to 2"},
		"a restriction of type 3":           {core{restrictions: []string{restriction(2, 3)}}.text(), "core segment: PubRestrictions must have purposes from 1 on and types up to 2"},
		"a restriction of vendor 0":         {core{restrictions: []string{restriction(2, 1, [2]int{0, 7})}}.text(), "core segment: PubRestrictions must be ranges of vendors from 1 on, the lower one first"},
		"an empty segment":                  {valid + ".", "a segment after the first must be of type 1, 2 or 3"},
		"two cores":                         {valid + "." + valid, "a segment after the first must be of type 1, 2 or 3"},
		"a segment of type 4":               {valid + "." + text("100000"), "a segment after the first must be of type 1, 2 or 3"},
		"a segment that is no base64url":    {valid + ".=", "a segment after the first must be of type 1, 2 or 3"},
		"disclosed vendors twice":           {valid + "." + disclosed + "." + publisher + "." + disclosed, "each type of segment must be there once at most"},
		"the publisher's purposes twice":    {valid + "." + publisher + "." + publisher, "each type of segment must be there once at most"},
		"disclosed vendors that are cut":    {valid + "." + disclosed[:2], "DisclosedVendors segment: it ends before DisclosedVendors does"},
		"allowed vendors that are cut":      {valid + "." + text("010"), "AllowedVendors segment: it ends before AllowedVendors does"},
		"custom purposes that are cut":      {valid + "." + text("011"+flags(48)+number(63, 6)+flags(99)), "PublisherTC segment: it ends before CustomPurposesLITransparency does"},
		"a string of the Privacy Platform":  {"DBABM~" + valid, "core segment: it must be base64url without padding"},
		"a string with white space before":  {" " + valid, "core segment: it must be base64url without padding"},
		"a country of a letter and a digit": {text(core{}.bits()[:207] + "111111" + core{}.bits()[213:]), "core segment: PublisherCC must be two letters from A to Z"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := iab.ParseTCF(tt.text)
			if err == nil || err.Error() != "TC string: "+tt.want {
				t.Errorf("ParseTCF(%q) = %v, want %q", tt.text, err, tt.want)
			}
			if !got.Created.IsZero() || got.Publisher != nil {
				t.Errorf("something is read: %+v", got)
			}
		})
	}
}

// A string that is cut off anywhere is refused, rather than read as one that allows less, or more.
func TestParseTCFRefusesWhatIsCutOff(t *testing.T) {
	whole := core{
		consents: []int{1, 2}, vendors: bitfield(70, 3, 70), liVendors: rangeField(90, [2]int{5, 9}, [2]int{90, 90}),
		restrictions: []string{restriction(2, 1, [2]int{3, 3}), restriction(3, 0, [2]int{1, 70})},
	}.text()
	for length := range whole {
		if _, err := iab.ParseTCF(whole[:length]); err == nil {
			t.Errorf("the first %d letters are read", length)
		}
	}
	if _, err := iab.ParseTCF(whole); err != nil {
		t.Error(err)
	}
}
