package consent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/consent/consenttest"
	"github.com/weir-dev/weir/collector/event"
)

func TestARuleSendsLimitsOrWithholds(t *testing.T) {
	ads := consent.Of(consent.AdStorage, consent.AdUserData, consent.AdPersonalization)
	advertising := consent.Rule{Requires: ads, Limits: consent.Of(consent.Sale)}
	strict := consent.Rule{Requires: ads, Limits: consent.Of(consent.Sale), WithholdUnsaid: true}
	analytics := consent.Rule{
		Requires: consent.Of(consent.AnalyticsStorage), Limits: ads | consent.Of(consent.Sale),
		Vendor: consent.Vendor{ID: 755, LegitimateInterest: []int{7}, Flexible: []int{7}},
	}
	strictAnalytics := analytics
	strictAnalytics.WithholdUnsaid = true
	granted := event.Consent{AdStorage: event.Granted, AdUserData: event.Granted, AdPersonalization: event.Granted, AnalyticsStorage: event.Granted}
	deniedAds := event.Consent{AdUserData: event.Denied, AdPersonalization: event.Denied}
	optedOut := event.Consent{USPrivacy: "1YYN"}
	for sentence, test := range map[string]struct {
		rule consent.Rule
		said event.Consent
		want consent.Outcome
	}{
		"no rule withholds nothing":                      {consent.Rule{}, deniedAds, consent.Outcome{}},
		"nothing said, nothing withheld":                 {advertising, event.Consent{}, consent.Outcome{}},
		"nothing said, and that is not enough":           {strict, event.Consent{}, consent.Outcome{Withheld: "consent_absent"}},
		"all granted":                                    {strict, granted, consent.Outcome{Granted: ads | consent.Of(consent.AnalyticsStorage)}},
		"one thing unsaid is not enough":                 {strict, event.Consent{AdUserData: event.Granted, AdPersonalization: event.Granted}, consent.Outcome{Withheld: "consent_absent"}},
		"the first denied purpose is the reason":         {advertising, deniedAds, consent.Outcome{Withheld: "consent_ad_user_data"}},
		"a denial goes before what is unsaid":            {strict, event.Consent{AdPersonalization: event.Denied}, consent.Outcome{Withheld: "consent_ad_personalization"}},
		"storage counts":                                 {advertising, event.Consent{AdStorage: event.Denied}, consent.Outcome{Withheld: "consent_ad_storage"}},
		"other purposes than the required do not":        {advertising, event.Consent{AnalyticsStorage: event.Denied}, consent.Outcome{}},
		"an American opt-out limits":                     {advertising, optedOut, consent.Outcome{Limited: consent.Of(consent.Sale)}},
		"no American opt-out does not, whatever is said": {strict, granted, consent.Outcome{Granted: ads | consent.Of(consent.AnalyticsStorage)}},
		"a denial withholds though an opt-out limits":    {advertising, event.Consent{AdUserData: event.Denied, LimitedDataUse: true}, consent.Outcome{Withheld: "consent_ad_user_data"}},
		"where sale is required an opt-out withholds":    {consent.Rule{Requires: consent.Of(consent.Sale), Limits: consent.Of(consent.Sale)}, optedOut, consent.Outcome{Withheld: "consent_sale"}},
		"an opt-out that nobody asked for is none":       {consent.Rule{Requires: ads | consent.Of(consent.Sale), WithholdUnsaid: true}, granted, consent.Outcome{Granted: ads | consent.Of(consent.AnalyticsStorage)}},
		"unless that is demanded":                        {consent.Rule{Requires: ads | consent.Of(consent.Sale), WithholdUnsaid: true, WithholdUnsaidSale: true}, granted, consent.Outcome{Withheld: "consent_absent"}},
		"who has a milder form is told":                  {analytics, deniedAds, consent.Outcome{Limited: consent.Of(consent.AdUserData, consent.AdPersonalization)}},
		"and of what is unsaid where that counts":        {strictAnalytics, event.Consent{AnalyticsStorage: event.Granted}, consent.Outcome{Limited: ads, Granted: consent.Of(consent.AnalyticsStorage)}},
		"statistics denied":                              {analytics, event.Consent{AnalyticsStorage: event.Denied}, consent.Outcome{Withheld: "consent_analytics_storage"}},
		"a string that cannot be read":                   {advertising, event.Consent{TCF: "CPc-"}, consent.Outcome{Withheld: "consent_unreadable"}},
		"a member says more than an unreadable string":   {advertising, event.Consent{TCF: "CPc-", AdStorage: event.Denied}, consent.Outcome{Withheld: "consent_ad_storage"}},
		"a string denies the purpose to all":             {advertising, event.Consent{TCF: consenttest.TCF{Purposes: []int{1, 7}}.String()}, consent.Outcome{Withheld: "consent_ad_personalization"}},
		"a string denies it to the vendor alone": {
			consent.Rule{Requires: consent.Of(consent.AdUserData), Vendor: consent.Vendor{ID: 9}},
			event.Consent{TCF: consenttest.TCF{Purposes: []int{1, 3, 4, 7}, Vendors: []int{8}}.String()}, consent.Outcome{Withheld: "consent_vendor"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.rule.Judge(&test.said)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatisticsAreDeniedWithoutReadingStringsThatCannotSayIt(t *testing.T) {
	said := event.Consent{AdUserData: event.Granted, USPrivacy: "1YYN", GPP: "DBAA~not a string", GPPSections: "-1"}
	if got := testing.AllocsPerRun(100, func() {
		if consent.DeniesAnalytics(&said, nil) {
			t.Error("they are denied")
		}
	}); got != 0 {
		t.Errorf("it takes %v allocations", got)
	}
}
