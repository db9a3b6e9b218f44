package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
)

func TestConsentOfABatchAndOfItsMessagesIsRead(t *testing.T) {
	denied, both := map[string]bool{"Advertising": false}, map[string]bool{"Advertising": false, "Analytics": true}
	for sentence, test := range map[string]struct {
		message, batch string
		want           event.Consent
	}{
		"the batch's list, where the message has none":             {`{}`, `{"consentManagement":{"deniedConsentIds":["Advertising"]}}`, event.Consent{Categories: denied}},
		"the batch's list, and a consent that is empty":            {`{"consent":{}}`, `{"consentManagement":{"deniedConsentIds":["Advertising"]}}`, event.Consent{Categories: denied}},
		"the batch's list, and another preference":                 {`{"consent":{"categoryPreferences":{"Analytics":true}}}`, `{"consentManagement":{"deniedConsentIds":["Advertising"]}}`, event.Consent{Categories: both}},
		"the batch's preference, and a list":                       {`{"consentManagement":{"allowedConsentIds":["Analytics"]}}`, `{"consent":{"categoryPreferences":{"Advertising":false}}}`, event.Consent{Categories: both}},
		"the batch's denial, and the message's permission":         {`{"consent":{"categoryPreferences":{"Advertising":true}}}`, `{"consent":{"categoryPreferences":{"Advertising":false}}}`, event.Consent{Categories: denied}},
		"the message's denial, and the batch's permission":         {`{"consent":{"categoryPreferences":{"Advertising":false}}}`, `{"consentManagement":{"allowedConsentIds":["Advertising"]}}`, event.Consent{Categories: denied}},
		"denied and allowed in lists":                              {`{"consentManagement":{"allowedConsentIds":["Advertising"],"deniedConsentIds":["Advertising"]}}`, `{}`, event.Consent{Categories: denied}},
		"an envelope's members, of which a denial holds":           {`{"consent":{"ad_storage":"granted","ad_user_data":"denied"}}`, `{"consent":{"ad_storage":"denied","ad_user_data":"granted","limited_data_use":true}}`, event.Consent{AdStorage: event.Denied, AdUserData: event.Denied, LimitedDataUse: true}},
		"categories by an envelope's name and by Segment's":        {`{"consent":{"categories":{"Advertising":true,"Analytics":true},"categoryPreferences":{"Advertising":false}}}`, `{}`, event.Consent{Categories: both}},
		"a string of one of both":                                  {`{"consent":{"us_privacy":"1YNN"}}`, `{"consent":{"tcf":"CPc-","gpp":"DBAA","gpp_sid":[2,7]}}`, event.Consent{TCF: "CPc-", GPP: "DBAA", GPPSections: "2,7", USPrivacy: "1YNN"}},
		"the same string twice":                                    {`{"consent":{"tcf":"CPc-","gpp":"DBAA","gpp_sid":[2]}}`, `{"consent":{"tcf":"CPc-","gpp":"DBAA","gpp_sid":[2]}}`, event.Consent{TCF: "CPc-", GPP: "DBAA", GPPSections: "2"}},
		"strings that differ cannot be read":                       {`{"consent":{"tcf":"CPa-","us_privacy":"1YNN"}}`, `{"consent":{"tcf":"CPb-","us_privacy":"1YYN"}}`, event.Consent{TCF: "-", USPrivacy: "-"}},
		"of one string for whom several sections apply, all":       {`{"consent":{"gpp":"DBAA","gpp_sid":[2]}}`, `{"consent":{"gpp":"DBAA","gpp_sid":[7]}}`, event.Consent{GPP: "DBAA"}},
		"sections belong to the string that they stand with":       {`{"consent":{"gpp_sid":[2]}}`, `{"consent":{"gpp":"DBAA","gpp_sid":[7]}}`, event.Consent{GPP: "DBAA", GPPSections: "7"}},
		"sections that stand with none, where the string has none": {`{"consent":{"gpp":"DBAA"}}`, `{"consent":{"gpp_sid":[7]}}`, event.Consent{GPP: "DBAA"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			tenant, kept := inMemory()
			s := newSite(t, tenant)
			body := fmt.Appendf(nil, `{"batch":[{"type":"track","event":"lead","context":%s}],"context":%s}`, test.message, test.batch)
			if got := s.send(t, request{path: "/v1/batch", header: writeKey(shopKey), body: body}); got.status != http.StatusOK {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			stored := kept.stored(t)
			if len(stored) != 1 {
				t.Fatalf("%d events are stored, want 1", len(stored))
			}
			if diff := cmp.Diff(test.want, stored[0].Consent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConsentThatCannotBeReadIsRefusedByWhereItStands(t *testing.T) {
	many := strings.Repeat(`"x",`, 99) + `"x"`
	tooMany := strings.Repeat(`"x",`, 100) + `"x"`
	var distinct []string
	for i := range 51 {
		distinct = append(distinct, fmt.Sprintf(`"c%d"`, i))
	}
	half := func(from, to int) string { return strings.Join(distinct[from:to], ",") }
	for sentence, test := range map[string]struct{ message, batch, want string }{
		"a member of the message's":       {`{"consent":{"ad_storage":true}}`, `{}`, "The batch[0].context.consent.ad_storage field must be a string."},
		"a member of the batch's":         {`{"consent":{"ad_storage":"granted"}}`, `{"consent":{"limited_data_use":"no"}}`, "The context.consent.limited_data_use field must be true or false."},
		"a batch's consent that is none":  {`{"consent":{"ad_storage":"granted"}}`, `{"consent":[1]}`, "The context.consent field must be an object."},
		"a list that is too long":         {`{"consentManagement":{"deniedConsentIds":[` + tooMany + `]}}`, `{}`, "The batch[0].context.consentManagement.deniedConsentIds field must be a list of texts."},
		"a list of a category many times": {`{"consentManagement":{"deniedConsentIds":[` + many + `]}}`, `{}`, ""},
		"a list of many categories":       {`{"consentManagement":{"allowedConsentIds":[` + half(0, 51) + `]}}`, `{}`, "The batch[0].context.consentManagement.allowedConsentIds field must not have more than 50 items."},
		"a decision that is a word":       {`{"consent":{"categoryPreferences":{"Jane Doe":"yes"}}}`, `{}`, "The batch[0].context.consent.categoryPreferences field must be true or false for each name."},
		"a decision of the batch's":       {`{}`, `{"consent":{"categories":{"Jane Doe":"yes"}}}`, "The context.consent.categories field must be true or false for each name."},
		"a decision on a purpose":         {`{}`, `{"consent":{"ad_storage":"yes"}}`, "The context.consent.ad_storage field must be granted or denied."},
		"a category without a name":       {`{}`, `{"consentManagement":{"deniedConsentIds":["a\u0001"]}}`, "The context.consentManagement.deniedConsentIds field must have names of 1 to 100 bytes without control characters."},
		"many categories in all":          {`{"consentManagement":{"allowedConsentIds":[` + half(0, 26) + `]}}`, `{"consentManagement":{"allowedConsentIds":[` + half(26, 51) + `]}}`, "The batch[0].context.consent field must not have more than 50 items."},
	} {
		t.Run(sentence, func(t *testing.T) {
			tenant, kept := inMemory()
			refused := new(refusals)
			tenant.Rejections = refused
			s := newSite(t, tenant)
			body := fmt.Appendf(nil, `{"batch":[{"type":"track","event":"lead","context":%s}],"context":%s}`, test.message, test.batch)
			s.send(t, request{path: "/v1/batch", header: writeKey(shopKey), body: body})
			if test.want == "" {
				if n := len(kept.stored(t)); n != 1 {
					t.Errorf("%d events are stored, want 1", n)
				}
				return
			}
			if len(refused.list) != 1 || !strings.Contains(string(refused.list[0].Answer), `{"message":"`+test.want+`"`) {
				t.Errorf("rejected %v, want one by %s", refused.list, test.want)
			}
		})
	}
}
