package ingest_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/consent/consenttest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// kept says whose identifiers a stored event has, and whether it is nobody's.
type kept struct {
	ClientID, UserID, SessionID string
	Anonymous                   bool
}

func TestWhoDeniesAnalyticsLeavesNoIdentifierThatNobodyNeeds(t *testing.T) {
	all, none := kept{"c-1", "u-1", "s-1", false}, kept{Anonymous: true}
	// What of them an advertising platform tells people by.
	forAds := kept{ClientID: "c-1", UserID: "u-1", Anonymous: true}
	meta := platforms.Platform{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}}
	purchases := meta
	purchases.Events = []string{"purchase"}
	ga4 := platforms.Platform{Name: "ga4", Type: platforms.TypeGA4, Settings: platforms.Settings{GA4: &platforms.GA4{MeasurementID: "G-1"}}}
	analytics := platforms.Platform{Name: "google", Type: platforms.TypeGoogle, Settings: platforms.Settings{
		Google: &platforms.Google{Product: platforms.GoogleAnalytics, AccountID: "1", MeasurementID: "G-1"},
	}}
	crm := platforms.Platform{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example/"}}}
	noStorage := consenttest.TCF{Purposes: []int{3, 4, 7}}.String()
	for sentence, test := range map[string]struct {
		platforms []platforms.Platform
		rules     config.Consent
		members   string
		want      kept
	}{
		"nothing said":                                {members: `{}`, want: all},
		"granted":                                     {members: `{"analytics_storage":"granted"}`, want: all},
		"denied":                                      {members: `{"analytics_storage":"denied"}`, want: none},
		"denied by a category":                        {members: `{"analytics_storage":"granted","categories":{"statistics":false}}`, want: none},
		"denied by a category of the shop's":          {rules: config.Consent{Categories: map[string][]platforms.Purpose{"counting": {platforms.AnalyticsStorage}}}, members: `{"categories":{"counting":false}}`, want: none},
		"denied by a TCF string":                      {members: fmt.Sprintf(`{"tcf":%q}`, noStorage), want: none},
		"granted by a TCF string":                     {members: fmt.Sprintf(`{"tcf":%q}`, consenttest.TCF{Purposes: []int{1}}.String()), want: all},
		"denied by a GPP string":                      {members: fmt.Sprintf(`{"gpp":%q}`, consenttest.GPP(map[int]string{2: noStorage})), want: none},
		"by a section of GPP that does not apply":     {members: fmt.Sprintf(`{"gpp":%q,"gpp_sid":[7]}`, consenttest.GPP(map[int]string{2: noStorage, 7: consenttest.States{}.National()})), want: all},
		"by a section of GPP where none applies":      {members: fmt.Sprintf(`{"gpp":%q,"gpp_sid":[-1]}`, consenttest.GPP(map[int]string{2: noStorage})), want: all},
		"by a section of GPP that is not known yet":   {members: fmt.Sprintf(`{"gpp":%q,"gpp_sid":[0]}`, consenttest.GPP(map[int]string{2: noStorage})), want: none},
		"an American opt-out is of other things":      {members: `{"us_privacy":"1YYN","limited_data_use":true}`, want: all},
		"a string that cannot be read":                {members: `{"tcf":"CPc-"}`, want: none},
		"a webhook needs none":                        {platforms: []platforms.Platform{crm}, members: `{"analytics_storage":"denied"}`, want: none},
		"a platform of statistics is refused as well": {platforms: []platforms.Platform{ga4}, members: `{"analytics_storage":"denied"}`, want: none},
		"a permitted advertising platform needs two":  {platforms: []platforms.Platform{crm, meta}, members: `{"analytics_storage":"denied"}`, want: forAds},
		"one that is not permitted gets none":         {platforms: []platforms.Platform{meta}, members: `{"analytics_storage":"denied","ad_user_data":"denied"}`, want: none},
		"one that needs more than was said gets none": {
			platforms: []platforms.Platform{meta}, rules: config.Consent{WhenAbsent: platforms.Withhold}, members: `{"analytics_storage":"denied"}`, want: none,
		},
		"one that does not get the event gets none": {platforms: []platforms.Platform{purchases}, members: `{"analytics_storage":"denied"}`, want: none},
		"a platform of statistics that demands nothing needs all": {
			platforms: []platforms.Platform{ga4}, rules: config.Consent{Platforms: []config.PlatformConsent{{Name: "ga4", Requires: []platforms.Purpose{}}}},
			members: `{"analytics_storage":"denied"}`, want: kept{"c-1", "u-1", "s-1", true},
		},
		"one that is of statistics by its settings needs all as well": {
			platforms: []platforms.Platform{analytics}, rules: config.Consent{Platforms: []config.PlatformConsent{{Name: "google", Requires: []platforms.Purpose{}}}},
			members: `{"analytics_storage":"denied"}`, want: kept{"c-1", "u-1", "s-1", true},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			tenant, stored := inMemory()
			tenant.Property.Platforms, tenant.Property.Consent, tenant.Property.JoinIdentities = test.platforms, test.rules, true
			s := newSite(t, tenant)
			body := `{"event":"lead","client_id":"c-1","user_id":"u-1","session_id":"s-1","user":{"email":"ada@example.com"},"consent":` + test.members + `}`
			if got := s.send(t, request{body: []byte(body)}); got.status != 202 {
				t.Fatalf("answered %d %s", got.status, got.body)
			}
			e := stored.stored(t)[0]
			if diff := cmp.Diff(test.want, kept{e.ClientID, e.UserID, e.SessionID, e.Anonymous}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if e.User.Get(event.EmailLower).IsZero() {
				t.Error("the hash that platforms match by is gone")
			}
			if joins := len(stored.additions[0].Identifiers) > 0; joins == test.want.Anonymous {
				t.Errorf("Redis is told whose the event is: %v", joins)
			}
		})
	}
}

func TestATestWhoseVisitorDeniesAnalyticsKeepsNoIdentifiers(t *testing.T) {
	tenant, stored := inMemory()
	tenant.Property.Platforms = []platforms.Platform{{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}}}
	s := newSite(t, tenant)
	if got := s.send(t, request{body: []byte(`{"event":"lead","test":true,"client_id":"c-1","consent":{"analytics_storage":"denied"}}`)}); got.status != 202 {
		t.Fatalf("answered %d %s", got.status, got.body)
	}
	if e := stored.stored(t)[0]; e.ClientID != "" || !e.Anonymous {
		t.Errorf("got client id %q, anonymous %v", e.ClientID, e.Anonymous)
	}
}
