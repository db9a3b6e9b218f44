package consent_test

import (
	"testing"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/consent/consenttest"
	"github.com/weir-dev/weir/collector/event"
)

// Whatever strings say, nothing that is denied without them is granted by them, and reading them for statistics alone finds
// what reading all finds.
func FuzzStrings(f *testing.F) {
	tcf := consenttest.TCF{Purposes: all, Vendors: []int{755}, Restrictions: []consenttest.Restriction{{Purpose: 3, Vendors: []int{755}}}}.String()
	f.Add(tcf, consenttest.GPP(map[int]string{2: tcf, 6: "1YYN", 7: consenttest.States{Sale: 1, GPC: true}.National()}), "2,7", "1YNN", false, byte(0))
	f.Add("CPc-", "DBAA~x", "", "1---", true, byte(0x1b))
	f.Add("", consenttest.GPP(map[int]string{2: tcf}), "0,-1", "", false, byte(0))
	f.Add("", consenttest.GPP(map[int]string{2: tcf}), "-1", "", false, byte(0))
	f.Add("", "", "65535", "", false, byte(0xff))
	f.Fuzz(func(t *testing.T, tcf, gpp, sections, privacy string, limited bool, own byte) {
		decide := func(n int) event.Decision { return event.Decision((own >> (2 * n) & 3) % 3) }
		plain := event.Consent{
			AdStorage: decide(0), AdUserData: decide(1), AdPersonalization: decide(2), AnalyticsStorage: decide(3), LimitedDataUse: limited,
		}
		whole := plain
		whole.TCF, whole.GPP, whole.GPPSections, whole.USPrivacy = tcf, gpp, sections, privacy
		before, after := consent.Read(&plain, nil), consent.Read(&whole, nil)
		for _, vendor := range []consent.Vendor{{}, {ID: 755, LegitimateInterest: []int{7}, Flexible: []int{7}}} {
			without, with := before.Decisions(&vendor), after.Decisions(&vendor)
			for p, said := range without {
				if said == event.Denied && with[p] != event.Denied {
					t.Errorf("%s was denied, and is %d with strings", consent.Purpose(p), with[p])
				}
			}
		}
		decisions := after.Decisions(new(consent.Vendor))
		if got := consent.DeniesAnalytics(&whole, nil); got != (decisions[consent.AnalyticsStorage] == event.Denied) {
			t.Errorf("analytics are denied: %v, and by all that was said %d", got, decisions[consent.AnalyticsStorage])
		}
	})
}
