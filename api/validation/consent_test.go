package validation_test

import "testing"

func TestByWhatRulesDecisionsAreKept(t *testing.T) {
	const meta = "platforms: [{name: meta, type: Meta, meta: {pixelID: '1'}, credentialsSecretRef: {name: s}}]\n"
	const (
		badPurpose  = `must be one of "ad_storage", "ad_user_data", "ad_personalization", "analytics_storage", "sale"`
		badWhen     = `must be one of "Send", "Withhold"`
		noPlatform  = "must name platforms of spec.platforms"
		badCategory = "must map from names of 1 to 100 characters without control characters"
	)
	testRules(t, map[string]rule{
		"everything is accepted": {spec: meta + `consent:
  whenAbsent: Withhold
  categories: {C0004: [ad_storage, ad_user_data, ad_personalization], "Werbung & Partner": [sale], C0003: []}
  platforms: [{name: meta, requires: [ad_user_data, sale], whenAbsent: Send}]`},
		"nothing is accepted":                    {spec: "consent: {}"},
		"a platform that requires nothing":       {spec: meta + "consent: {platforms: [{name: meta, requires: []}]}"},
		"another word for what is absent":        {spec: "consent: {whenAbsent: Drop}", want: []string{"spec.consent.whenAbsent: " + badWhen}},
		"another word for one platform":          {spec: meta + "consent: {platforms: [{name: meta, whenAbsent: send}]}", want: []string{"spec.consent.platforms[0].whenAbsent: " + badWhen}},
		"a purpose that there is not":            {spec: meta + "consent: {platforms: [{name: meta, requires: [ads]}]}", want: []string{"spec.consent.platforms[0].requires[0]: " + badPurpose}},
		"a category's purpose that there is not": {spec: "consent: {categories: {a: [marketing]}}", want: []string{"spec.consent.categories.a[0]: " + badPurpose}},
		"a purpose twice":                        {spec: meta + "consent: {platforms: [{name: meta, requires: [sale, sale]}]}", want: []string{"spec.consent.platforms[0].requires[1]: repeats an earlier item; must be unique"}},
		"a category without a name":              {spec: "consent: {categories: {'': [sale]}}", want: []string{"spec.consent.categories: " + badCategory}},
		"a platform that the Property has not":   {spec: meta + "consent: {platforms: [{name: meta}, {name: tiktok}]}", want: []string{"spec.consent.platforms: " + noPlatform}},
		"a platform where the Property has none": {spec: "consent: {platforms: [{name: meta}]}", want: []string{"spec.consent.platforms: " + noPlatform}},
		"two rules for a platform":               {spec: meta + "consent: {platforms: [{name: meta}, {name: meta}]}", want: []string{"spec.consent.platforms[1]: repeats an earlier item; must be unique"}},
		"a rule of no platform":                  {spec: "consent: {platforms: [{requires: [sale]}]}", want: []string{"spec.consent.platforms[0].name: is required"}},
	})
}
