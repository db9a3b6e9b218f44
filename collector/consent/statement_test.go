package consent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/consent/consenttest"
	"github.com/weir-dev/weir/collector/event"
)

// set writes decisions down in the order of the purposes: + granted, - denied, . unsaid.
func set(d consent.Decisions) string {
	text := ""
	for _, said := range d {
		text += map[event.Decision]string{event.Unstated: ".", event.Granted: "+", event.Denied: "-"}[said]
	}
	return text
}

// all are the purposes that European consent is asked for.
var all = []int{1, 2, 3, 4, 7, 8, 9, 10}

// The wanted decisions are those on ad_storage, ad_user_data, ad_personalization, analytics_storage and sale.
func TestEveryFormEndsInOneSetOfPurposes(t *testing.T) {
	google := consent.Vendor{ID: 755, LegitimateInterest: []int{7}, Flexible: []int{7}}
	for sentence, test := range map[string]struct {
		said       event.Consent
		categories consent.Categories
		vendor     consent.Vendor
		want       string
	}{
		"nothing":                        {want: "....."},
		"the members are the purposes":   {said: event.Consent{AdStorage: event.Granted, AdUserData: event.Denied, AdPersonalization: event.Granted, AnalyticsStorage: event.Denied}, want: "+-+-."},
		"limited data use is an opt-out": {said: event.Consent{LimitedDataUse: true}, want: "....-"},

		"a category of OneTrust":                         {said: event.Consent{Categories: map[string]bool{"C0004": true, "C0002": false}}, want: "+++-."},
		"a well-known category in other letters":         {said: event.Consent{Categories: map[string]bool{"Marketing": false, "STATISTICS": true}}, want: "---+."},
		"a category of Segment's own":                    {said: event.Consent{Categories: map[string]bool{"Advertising": true, "Analytics": false, "DataSharing": false}}, want: "+++--"},
		"an unknown category says nothing":               {said: event.Consent{Categories: map[string]bool{"preferences": false, "C0001": true}}, want: "....."},
		"a category of the customer's":                   {said: event.Consent{Categories: map[string]bool{"partners": false}}, categories: consent.Categories{"partners": consent.Of(consent.AdUserData, consent.Sale)}, want: ".-..-"},
		"a customer's meaning replaces the well-known":   {said: event.Consent{Categories: map[string]bool{"marketing": false}}, categories: consent.Categories{"marketing": 0}, want: "....."},
		"one denied category goes before a granted one":  {said: event.Consent{Categories: map[string]bool{"C0004": true, "C0005": false}}, want: "---.."},
		"a denied category goes before a granted member": {said: event.Consent{AdUserData: event.Granted, Categories: map[string]bool{"advertising": false}}, want: "---.."},

		"US Privacy, opted out":       {said: event.Consent{USPrivacy: "1YYN"}, want: "....-"},
		"US Privacy, not opted out":   {said: event.Consent{USPrivacy: "1YNN"}, want: "....+"},
		"US Privacy, not applicable":  {said: event.Consent{USPrivacy: "1---"}, want: "....."},
		"US Privacy, unreadable":      {said: event.Consent{USPrivacy: "2YNN"}, want: "....-"},
		"one opt-out goes before all": {said: event.Consent{USPrivacy: "1YNN", LimitedDataUse: true}, want: "....-"},

		"TCF, all purposes":                         {said: event.Consent{TCF: consenttest.TCF{Purposes: all}.String()}, want: "++++."},
		"TCF, none":                                 {said: event.Consent{TCF: consenttest.TCF{}.String()}, want: "----."},
		"TCF, without the first purpose":            {said: event.Consent{TCF: consenttest.TCF{Purposes: []int{3, 4, 7}}.String()}, want: "--+-."},
		"TCF, without personal advertising":         {said: event.Consent{TCF: consenttest.TCF{Purposes: []int{1, 3, 7}}.String()}, want: "++-+."},
		"TCF, without measuring advertising":        {said: event.Consent{TCF: consenttest.TCF{Purposes: []int{1, 3, 4}}.String()}, want: "+-++."},
		"TCF, legitimate interest is not for all":   {said: event.Consent{TCF: consenttest.TCF{Purposes: []int{1, 3, 4}, Interests: []int{7}}.String()}, want: "+-++."},
		"TCF, the first purpose was not asked for":  {said: event.Consent{TCF: consenttest.TCF{Purposes: []int{3, 4, 7}, Unasked: true}.String()}, want: ".++.."},
		"TCF, a string for several services":        {said: event.Consent{TCF: consenttest.TCF{Purposes: all, Shared: true}.String()}, want: "----."},
		"TCF, unreadable":                           {said: event.Consent{TCF: "CPc-"}, want: "----."},
		"TCF, denied though a member grants it":     {said: event.Consent{AdUserData: event.Granted, TCF: consenttest.TCF{Purposes: []int{1}}.String()}, want: "+--+."},
		"TCF, granted though a member denies it":    {said: event.Consent{AdUserData: event.Denied, TCF: consenttest.TCF{Purposes: all}.String()}, want: "+-++."},
		"TCF, a vendor who is not allowed":          {said: event.Consent{TCF: consenttest.TCF{Purposes: all}.String()}, vendor: google, want: "---+."},
		"TCF, a vendor who is allowed by consent":   {said: event.Consent{TCF: consenttest.TCF{Purposes: all, Vendors: []int{755}, Interests: []int{7}, InterestVendors: []int{755}}.String()}, vendor: google, want: "++++."},
		"TCF, a vendor who was shown":               {said: event.Consent{TCF: consenttest.TCF{Purposes: all, Vendors: []int{755}, Interests: []int{7}, InterestVendors: []int{755}, Disclosed: []int{7, 755}}.String()}, vendor: google, want: "++++."},
		"TCF, a vendor who was not shown":           {said: event.Consent{TCF: consenttest.TCF{Purposes: all, Vendors: []int{755}, Interests: []int{7}, InterestVendors: []int{755}, Disclosed: []int{7}}.String()}, vendor: google, want: "---+."},
		"TCF, no vendor, whoever was shown":         {said: event.Consent{TCF: consenttest.TCF{Purposes: all, Disclosed: []int{7}}.String()}, want: "++++."},
		"TCF, a vendor without legitimate interest": {said: event.Consent{TCF: consenttest.TCF{Purposes: all, Vendors: []int{755}}.String()}, vendor: google, want: "+-++."},
		"TCF, the publisher demands consent for it": {said: event.Consent{TCF: consenttest.TCF{Purposes: all, Vendors: []int{755}, Restrictions: []consenttest.Restriction{{Purpose: 7, Type: 1, Vendors: []int{755}}}}.String()}, vendor: google, want: "++++."},
		"TCF, the publisher forbids it":             {said: event.Consent{TCF: consenttest.TCF{Purposes: all, Vendors: []int{755}, Interests: []int{7}, InterestVendors: []int{755}, Restrictions: []consenttest.Restriction{{Purpose: 3, Type: 0, Vendors: []int{755}}}}.String()}, vendor: google, want: "++-+."},
		"TCF, a restriction of another vendor":      {said: event.Consent{TCF: consenttest.TCF{Purposes: all, Restrictions: []consenttest.Restriction{{Purpose: 3, Type: 0, Vendors: []int{755}}}}.String()}, want: "++++."},
		"TCF in GPP":                                {said: event.Consent{GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{Purposes: []int{1}}.String()})}, want: "+--+."},
		"TCF in GPP, where it does not apply":       {said: event.Consent{GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{}.String(), 7: consenttest.States{}.National()}), GPPSections: "7"}, want: "....."},
		"TCF twice, the denial holds":               {said: event.Consent{TCF: consenttest.TCF{Purposes: all}.String(), GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{}.String()})}, want: "----."},
		"GPP, opted out of sale":                    {said: event.Consent{GPP: consenttest.GPP(map[int]string{7: consenttest.States{Sale: 1, Sharing: 2, Advertising: 2}.National()})}, want: "....-"},
		"GPP, opted out of sharing":                 {said: event.Consent{GPP: consenttest.GPP(map[int]string{7: consenttest.States{Sale: 2, Sharing: 1, Advertising: 2}.National()})}, want: "....-"},
		"GPP, opted out of targeted advertising":    {said: event.Consent{GPP: consenttest.GPP(map[int]string{7: consenttest.States{Sale: 2, Sharing: 2, Advertising: 1}.National()})}, want: "....-"},
		"GPP, opted out of nothing":                 {said: event.Consent{GPP: consenttest.GPP(map[int]string{7: consenttest.States{Sale: 2, Sharing: 2, Advertising: 2}.National()})}, want: "....+"},
		"GPP, by the browser's signal":              {said: event.Consent{GPP: consenttest.GPP(map[int]string{7: consenttest.States{Sale: 2, Sharing: 2, Advertising: 2, GPC: true}.National()})}, want: "....-"},
		"GPP, nothing asked":                        {said: event.Consent{GPP: consenttest.GPP(map[int]string{7: consenttest.States{}.National()})}, want: "....."},
		"GPP, US Privacy in it":                     {said: event.Consent{GPP: consenttest.GPP(map[int]string{6: "1YYN"})}, want: "....-"},
		"GPP, of several sections one that applies": {said: event.Consent{GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{}.String(), 6: "1YNN"}), GPPSections: "6"}, want: "....+"},
		"GPP, sections that it does not have":       {said: event.Consent{GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{}.String()}), GPPSections: "7,8"}, want: "----."},
		"GPP, sections of which it has one":         {said: event.Consent{GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{}.String(), 6: "1YYN"}), GPPSections: "6,8"}, want: "....-"},
		"GPP, sections that nobody knows yet":       {said: event.Consent{GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{}.String(), 6: "1YYN"}), GPPSections: "0"}, want: "-----"},
		"GPP, one section and one nobody knows":     {said: event.Consent{GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{}.String(), 6: "1YYN"}), GPPSections: "6,0"}, want: "-----"},
		"GPP, no section applies":                   {said: event.Consent{GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{}.String(), 6: "1YYN"}), GPPSections: "-1"}, want: "....."},
		"GPP, no section applies, and one does":     {said: event.Consent{GPP: consenttest.GPP(map[int]string{2: consenttest.TCF{}.String(), 6: "1YYN"}), GPPSections: "-1,6"}, want: "....-"},
		"GPP, unreadable, sections nobody knows":    {said: event.Consent{GPP: "DBAA~x", GPPSections: "0"}, want: "-----"},
		"GPP, unreadable, no section applies":       {said: event.Consent{GPP: "DBAA~x", GPPSections: "-1"}, want: "....."},
		"GPP, unreadable, none and an American one": {said: event.Consent{GPP: "DBAA~x", GPPSections: "-1,7"}, want: "....-"},
		"GPP, unreadable":                           {said: event.Consent{GPP: "DBAA~x"}, want: "-----"},
		"GPP, unreadable, of an American":           {said: event.Consent{GPP: "DBAA~x", GPPSections: "7,8"}, want: "....-"},
		"GPP, unreadable, of a European":            {said: event.Consent{GPP: "DBAA~x", GPPSections: "2"}, want: "----."},
		"GPP, unreadable, of a Canadian":            {said: event.Consent{GPP: "DBAA~x", GPPSections: "5"}, want: ".--.."},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := consent.Read(&test.said, test.categories)
			if got := set(s.Decisions(&test.vendor)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			own := s.Decisions(new(consent.Vendor))
			if got, want := consent.DeniesAnalytics(&test.said, test.categories), own[consent.AnalyticsStorage] == event.Denied; got != want {
				t.Errorf("analytics are denied: got %v, want %v", got, want)
			}
		})
	}
}

func TestPurposesHaveTheNamesThatSendersWrite(t *testing.T) {
	var got []string
	for p := consent.AdStorage; p <= consent.Sale; p++ {
		got = append(got, p.String())
		if parsed, ok := consent.ParsePurpose(p.String()); !ok || parsed != p {
			t.Errorf("%s is read as %s, %v", p, parsed, ok)
		}
	}
	if diff := cmp.Diff([]string{"ad_storage", "ad_user_data", "ad_personalization", "analytics_storage", "sale"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p, ok := consent.ParsePurpose("sales"); ok {
		t.Errorf("sales is read as %s", p)
	}
}
