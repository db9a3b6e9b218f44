package judges_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/event/iab"
)

// consentString is a string that a script has made. Of kinds that every reader has to read alike the first is what the library
// writes itself.
type consentString[T any] struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Read is what the library reads; nil where it refuses the string.
	Read *T `json:"read"`
}

// plan says which strings a script makes: the same ones in each run.
var plan = []byte(`{"seed": 20261124, "count": 2400}`)

// alike are the kinds of strings that no two readers may read differently.
var alike = []string{"", "bit by bit"}

// compareConsent has a script make strings, has Weir read them too, and holds the kinds of strings of which it makes something else
// against the page's rows for the library.
func compareConsent[T any](t *testing.T, library, script string, parse func(text string, read *T) (string, error)) {
	t.Helper()
	var found []string
	agreed := 0
	for _, one := range judge[[]consentString[T]](t, script, plan) {
		diff, err := parse(one.Text, one.Read)
		if err != nil && len(one.Text) > 8 && strings.Contains(err.Error(), one.Text) {
			t.Errorf("the error repeats the string: %v", err)
		}
		var difference string
		switch {
		case err == nil && one.Read == nil:
			difference = "the library refuses it"
		case err != nil && one.Read != nil:
			difference = "Weir refuses it"
		case err == nil && diff != "":
			difference = "they read different choices"
		default:
			agreed++
			continue
		}
		if slices.Contains(alike, one.Kind) {
			t.Fatalf("%s: %s: %v (-theirs +ours):\n%s", one.Text, difference, err, diff)
		}
		found = append(found, fmt.Sprintf("%s | %s | %s", library, one.Kind, difference))
	}
	slices.Sort(found)
	rows := slices.DeleteFunc(listed(t, "Consent strings: IAB's own libraries", 3), func(row string) bool { return !strings.HasPrefix(row, library) })
	if diff := cmp.Diff(rows, slices.Compact(found)); diff != "" {
		t.Errorf("where they differ (-page +found):\n%s", diff)
	}
	if agreed < 3000 {
		t.Errorf("they agree on %d strings only", agreed)
	}
}

// run is from its first to its last vendor.
type run [2]int

// tcfRead is what a TC string says, in lists.
type tcfRead struct {
	MetadataRead
	IsServiceSpecific, UseNonStandardTexts, PurposeOneTreatment bool
	PublisherCountry                                            string
	CustomPurposes                                              int
	IDs                                                         map[string][]int
	Vendors                                                     map[string][]run
	// Restrictions are the vendors by purpose and type.
	Restrictions map[string][]run
}

// MetadataRead is [iab.Metadata] with the times as milliseconds.
type MetadataRead struct {
	Created, LastUpdated             int64
	CMPID, CMPVersion, ConsentScreen int
	ConsentLanguage                  string
	VendorListVersion, PolicyVersion int
}

// A TC string means to Weir what it means to IAB's own library, but for what the page lists.
func TestTCStringsAreReadAsIABsLibraryReadsThem(t *testing.T) {
	compareConsent(t, "`@iabtcf/core`", "tcf.mjs", func(text string, theirs *tcfRead) (string, error) {
		read, err := iab.ParseTCF(text)
		if err != nil || theirs == nil {
			return "", err
		}
		highest := 0
		for _, sets := range []map[string][]run{theirs.Vendors, theirs.Restrictions} {
			for _, runs := range sets {
				for _, one := range runs {
					highest = max(highest, one[1])
				}
			}
		}
		return cmp.Diff(*theirs, listsOf(&read, min(highest+500, 65535)), cmpopts.EquateEmpty()), nil
	})
}

// listsOf is what is read, with the vendors up to the highest.
func listsOf(t *iab.TCF, highest int) tcfRead {
	var disclosed, allowed iab.Vendors
	var publisher iab.PublisherTC
	if t.DisclosedVendors != nil {
		disclosed = *t.DisclosedVendors
	}
	if t.AllowedVendors != nil {
		allowed = *t.AllowedVendors
	}
	if t.Publisher != nil {
		publisher = *t.Publisher
	}
	lists := tcfRead{
		MetadataRead: MetadataRead{
			t.Created.UnixMilli(), t.LastUpdated.UnixMilli(), t.CMPID, t.CMPVersion, t.ConsentScreen, t.ConsentLanguage, t.VendorListVersion, t.PolicyVersion,
		},
		IsServiceSpecific: t.IsServiceSpecific, UseNonStandardTexts: t.UseNonStandardTexts, PurposeOneTreatment: t.PurposeOneTreatment,
		PublisherCountry: t.PublisherCountry, CustomPurposes: publisher.CustomPurposes,
		IDs: map[string][]int{
			"SpecialFeatureOptIns":         idsOf(t.SpecialFeatureOptIns),
			"PurposeConsents":              idsOf(t.PurposeConsents),
			"PurposeLegitimateInterests":   idsOf(t.PurposeLegitimateInterests),
			"PublisherConsents":            idsOf(publisher.PurposeConsents),
			"PublisherLegitimateInterests": idsOf(publisher.PurposeLegitimateInterests),
			"CustomConsents":               idsOf(publisher.CustomPurposeConsents),
			"CustomLegitimateInterests":    idsOf(publisher.CustomPurposeLegitimateInterests),
		},
		Vendors: map[string][]run{
			"VendorConsents":            runsOf(highest, t.VendorConsents),
			"VendorLegitimateInterests": runsOf(highest, t.VendorLegitimateInterests),
			"DisclosedVendors":          runsOf(highest, disclosed),
			"AllowedVendors":            runsOf(highest, allowed),
		},
		Restrictions: map[string][]run{},
	}
	restricted := map[string][]iab.Vendors{}
	for _, one := range t.PublisherRestrictions {
		key := fmt.Sprintf("%d %d", one.Purpose, one.Type)
		restricted[key] = append(restricted[key], one.Vendors)
	}
	for key, sets := range restricted {
		if runs := runsOf(highest, sets...); len(runs) > 0 { // the library has none without vendors
			lists.Restrictions[key] = runs
		}
	}
	return lists
}

func idsOf(set iab.IDs) []int {
	var ids []int
	for id := range 70 {
		if set.Has(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// runsOf are the vendors that are in any of the sets, up to the highest.
func runsOf(highest int, sets ...iab.Vendors) []run {
	var runs []run
	for id := range highest + 1 {
		if !slices.ContainsFunc(sets, func(set iab.Vendors) bool { return set.Has(id) }) {
			continue
		}
		if len(runs) > 0 && runs[len(runs)-1][1]+1 == id {
			runs[len(runs)-1][1] = id
		} else {
			runs = append(runs, run{id, id})
		}
	}
	return runs
}

// gppSections are the library's names for the sections that it knows, by their ids.
var gppSections = map[int]string{
	2: "tcfeuv2", 5: "tcfcav1", 6: "uspv1", 7: "usnat", 8: "usca", 9: "usva", 10: "usco", 11: "usut", 12: "usct", 13: "usfl", 14: "usmt", 15: "usor",
	16: "ustx", 17: "usde", 18: "usia", 19: "usne", 20: "usnh", 21: "usnj", 22: "ustn", 23: "usmn", 24: "usmd", 25: "usin", 26: "usky", 27: "usri",
}

// gppRead are the fields of sections, by the library's names for both.
type gppRead map[string]map[string]any

// A string of the Global Privacy Platform means to Weir what it means to IAB's own library, but for what the page lists.
func TestGPPStringsAreReadAsIABsLibraryReadsThem(t *testing.T) {
	compareConsent(t, "`@iabgpp/cmpapi`", "gpp.mjs", func(text string, theirs *gppRead) (string, error) {
		read, err := iab.ParseGPP(text)
		if err != nil || theirs == nil {
			return "", err
		}
		ours := gppRead{}
		for _, id := range read.Sections {
			if name, known := gppSections[id]; known {
				ours[name] = map[string]any{}
			}
		}
		if read.TCFEU != nil {
			ours["tcfeuv2"] = european(read.TCFEU)
		}
		if read.TCFCanada != nil {
			ours["tcfcav1"] = canadian(read.TCFCanada)
		}
		if read.USPrivacy != "" {
			ours["uspv1"] = usPrivacy(t, read.USPrivacy)
		}
		for _, section := range read.US {
			ours[gppSections[section.ID]] = american(section, (*theirs)[gppSections[section.ID]])
		}
		for _, fields := range *theirs {
			maps.DeleteFunc(fields, func(name string, _ any) bool { return strings.HasSuffix(name, "SegmentType") })
		}
		return cmp.Diff(*theirs, plain(t, ours)), nil
	})
}

// plain is what JSON makes of a value.
func plain(t *testing.T, sections gppRead) gppRead {
	t.Helper()
	text, err := json.Marshal(sections)
	if err != nil {
		t.Fatal(err)
	}
	var read gppRead
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func metadataFields(m iab.Metadata, version int, policy string) map[string]any {
	return map[string]any{
		"Version": version, "Created": m.Created.UnixMilli(), "LastUpdated": m.LastUpdated.UnixMilli(), "CmpId": m.CMPID, "CmpVersion": m.CMPVersion,
		"ConsentScreen": m.ConsentScreen, "ConsentLanguage": m.ConsentLanguage, "VendorListVersion": m.VendorListVersion, policy: m.PolicyVersion,
	}
}

// flagsOf has a flag for each of the first ids.
func flagsOf(set iab.IDs, count int) []bool {
	list := make([]bool, count)
	for i := range list {
		list[i] = set.Has(i + 1)
	}
	return list
}

// gppHighest is above all vendors of the script's strings.
const gppHighest = 1600

func vendorRuns(set *iab.Vendors) []run {
	if set == nil {
		return []run{}
	}
	return append([]run{}, runsOf(gppHighest, *set)...)
}

func restrictionFields(list []iab.PublisherRestriction) []map[string]any {
	fields := []map[string]any{}
	for _, one := range list {
		fields = append(fields, map[string]any{"key": one.Purpose, "type": int(one.Type), "ids": vendorRuns(&one.Vendors)})
	}
	return fields
}

func european(t *iab.TCF) map[string]any {
	fields := metadataFields(t.Metadata, 2, "PolicyVersion")
	publisher := iab.PublisherTC{}
	if t.Publisher != nil {
		publisher = *t.Publisher
	}
	maps.Copy(fields, map[string]any{
		"IsServiceSpecific": t.IsServiceSpecific, "UseNonStandardStacks": t.UseNonStandardTexts, "SpecialFeatureOptins": flagsOf(t.SpecialFeatureOptIns, 12),
		"PurposeConsents": flagsOf(t.PurposeConsents, 24), "PurposeLegitimateInterests": flagsOf(t.PurposeLegitimateInterests, 24),
		"PurposeOneTreatment": t.PurposeOneTreatment, "PublisherCountryCode": t.PublisherCountry,
		"VendorConsents": vendorRuns(&t.VendorConsents), "VendorLegitimateInterests": vendorRuns(&t.VendorLegitimateInterests),
		"PublisherRestrictions": restrictionFields(t.PublisherRestrictions),
		"VendorsDisclosed":      vendorRuns(t.DisclosedVendors), "VendorsAllowed": vendorRuns(t.AllowedVendors),
		"PublisherConsents": flagsOf(publisher.PurposeConsents, 24), "PublisherLegitimateInterests": flagsOf(publisher.PurposeLegitimateInterests, 24),
		"NumCustomPurposes": publisher.CustomPurposes, "PublisherCustomConsents": flagsOf(publisher.CustomPurposeConsents, publisher.CustomPurposes),
		"PublisherCustomLegitimateInterests": flagsOf(publisher.CustomPurposeLegitimateInterests, publisher.CustomPurposes),
	})
	return fields
}

func canadian(t *iab.TCFCanada) map[string]any {
	fields := metadataFields(t.Metadata, 1, "TcfPolicyVersion")
	publisher := iab.PublisherTC{}
	if t.Publisher != nil {
		publisher = *t.Publisher
	}
	maps.Copy(fields, map[string]any{
		"UseNonStandardStacks": t.UseNonStandardStacks, "SpecialFeatureExpressConsent": flagsOf(t.SpecialFeatureExpressConsent, 12),
		"PurposesExpressConsent": flagsOf(t.PurposesExpressConsent, 24), "PurposesImpliedConsent": flagsOf(t.PurposesImpliedConsent, 24),
		"VendorExpressConsent": vendorRuns(&t.VendorExpressConsent), "VendorImpliedConsent": vendorRuns(&t.VendorImpliedConsent),
		"PubRestrictions": restrictionFields(t.PublisherRestrictions), "DisclosedVendors": vendorRuns(t.DisclosedVendors),
		"PubPurposesExpressConsent": flagsOf(publisher.PurposeConsents, 24), "PubPurposesImpliedConsent": flagsOf(publisher.PurposeLegitimateInterests, 24),
		"NumCustomPurposes": publisher.CustomPurposes, "CustomPurposesExpressConsent": flagsOf(publisher.CustomPurposeConsents, publisher.CustomPurposes),
		"CustomPurposesImpliedConsent": flagsOf(publisher.CustomPurposeLegitimateInterests, publisher.CustomPurposes),
	})
	return fields
}

func usPrivacy(t *testing.T, text string) map[string]any {
	t.Helper()
	read, err := iab.ParseUSPrivacy(text)
	if err != nil {
		t.Fatal(err)
	}
	letters := map[iab.Answer]string{iab.NotApplicable: "-", iab.Yes: "Y", iab.No: "N"}
	return map[string]any{
		"Version": read.Version, "Notice": letters[read.Notice], "OptOutSale": letters[read.OptOutSale], "LspaCovered": letters[read.LSPACovered],
	}
}

// american are the fields of a section that the library has, too: it has a number where the section has one answer, and a list
// where it has several.
func american(section iab.USSection, theirs map[string]any) map[string]any {
	renamed := map[string]string{"Gpc": "GPC", "SensitiveDataOptOutNotice": "SensitiveDataProcessingOptOutNotice"}
	value, fields := reflect.ValueOf(section), map[string]any{}
	for name, their := range theirs {
		if name == "MspaMode" {
			modes := map[[2]iab.Answer]int{{iab.Yes, iab.No}: 1, {iab.No, iab.Yes}: 2}
			fields[name] = modes[[2]iab.Answer{section.MspaOptOutOptionMode, section.MspaServiceProviderMode}]
			continue
		}
		field := value.FieldByName(name)
		if own, ok := renamed[name]; ok {
			field = value.FieldByName(own)
		}
		if !field.IsValid() {
			continue
		}
		fields[name] = field.Interface()
		if list, ok := reflect.TypeAssert[[]iab.Answer](field); ok {
			_, several := their.([]any)
			switch {
			case !several && len(list) == 1:
				fields[name] = list[0]
			case several && list == nil: // the segment is not there
				fields[name] = make([]iab.Answer, len(their.([]any)))
			}
		}
	}
	return fields
}
