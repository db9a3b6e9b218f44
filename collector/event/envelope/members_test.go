package envelope_test

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
)

func TestEveryMemberIsKept(t *testing.T) {
	amount := func(text string) *event.Amount {
		a, err := event.ParseAmount(text)
		if err != nil {
			t.Fatal(err)
		}
		return &a
	}
	e := accept(t, `{"event":"add_to_cart","event_id":"1","client_id":"c-1","user_id":4711,"session_id":1700000000,"engagement_time_msec":"1500",
		"user":{"country":"che"},
		"data":{"tax":"1.90","shipping":4.9,"discount":0,"coupon":"SPRING","search_term":"cups","list_id":7,"list_name":"Spring",
			"contents":[{"id":"a","brand":"Acme","variant":42,"category":"C","category2":"C2","category5":"C5","discount":"0.5","quantity":1.5}]},
		"properties":{"plan":"gold","seats":5,"trial":false,"tags":["a",1,true],"none":null},
		"context":{"page_title":"Cups","language":"de_CH.UTF-8","action_source":"physical_store",
			"click_ids":{"gbraid":"GB","wbraid":"WB","oppref":"OP","sccid":"SC"}},
		"consent":{"ad_user_data":"granted","ad_storage":"denied","analytics_storage":"granted","tcf":"CPc-.YA","gpp":"DBAA~1YNN","gpp_sid":[2,6],
			"us_privacy":"1ynn","limited_data_use":true,"categories":{"Marketing":false,"statistics":true,"later":null}}}`, nil)
	want := event.Event{
		ID: "1", DeliveryID: acceptance.DeliveryID, Platforms: acceptance.Platforms, Name: "add_to_cart", ClientID: "c-1", UserID: "4711",
		SessionID: "1700000000", EngagementTime: 1500 * time.Millisecond, Country: "CH",
		Tax: amount("1.9"), Shipping: amount("4.9"), Discount: amount("0"), Coupon: "SPRING", SearchTerm: "cups", ListID: "7", ListName: "Spring",
		Contents: []event.Item{{ID: "a", Brand: "Acme", Variant: "42", Category: "C", Categories: [4]string{0: "C2", 3: "C5"},
			Discount: amount("0.5"), Quantity: amount("1.5")}},
		Properties: []byte(`{"plan":"gold","seats":5,"trial":false,"tags":["a",1,true]}`),
		Context: event.Context{PageTitle: "Cups", Language: "de-CH", ActionSource: event.InPhysicalStore,
			ClickIDs: map[string]string{"gbraid": "GB", "wbraid": "WB", "oppref": "OP", "sc_click_id": "SC"}},
		Consent: event.Consent{AdUserData: event.Granted, AdStorage: event.Denied, AnalyticsStorage: event.Granted, TCF: "CPc-.YA", GPP: "DBAA~1YNN",
			GPPSections: "2,6", USPrivacy: "1YNN", LimitedDataUse: true, Categories: map[string]bool{"Marketing": false, "statistics": true}},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestMembersThatCannotBe(t *testing.T) {
	list := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	object := func(n int) string {
		members := make([]string, n)
		for i := range members {
			members[i] = `"p` + strings.Repeat("x", i) + `":1`
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	const noScalar = " field must be a string, a number, a boolean or a list of these."
	tests := map[string]errorTest{
		"a user id that is an object":             {with(`"user_id":{}`), []string{"user_id: The user_id field must be a string."}},
		"a session id with a line feed":           {with(`"session_id":"a\n"`), []string{"session_id: The session_id field format is invalid."}},
		"half a millisecond of engagement":        {with(`"engagement_time_msec":1.5`), []string{"engagement_time_msec: The engagement_time_msec field must be an integer."}},
		"an engagement below zero":                {with(`"engagement_time_msec":-1`), []string{"engagement_time_msec: The engagement_time_msec field must be at least 0."}},
		"an engagement of more than a day":        {with(`"engagement_time_msec":86400001`), []string{"engagement_time_msec: The engagement_time_msec field must not be greater than 86400000."}},
		"six e-mail addresses":                    {with(`"user":{"email":` + list(6, `"a@b.example"`) + `}`), []string{"user.email: The user.email field must not have more than 5 items."}},
		"a bad address among good ones":           {with(`"user":{"email":["a@b.example","x"]}`), []string{"user.email.1: The user.email.1 field must be a valid email address."}},
		"a bad number among good ones":            {with(`"user":{"phone":["+4915112345678","0151"]}`), []string{"user.phone.1: The user.phone.1 field format is invalid."}},
		"a property that is named after a number": {with(`"properties":{"+14155550123":[[1]]}`), []string{"properties: The properties field format is invalid."}},
		"a property that is named in words":       {with(`"properties":{"Jane Doe":{}}`), []string{"properties: The properties field format is invalid."}},
		"a property that is named as programs do": {with(`"properties":{"size.eu":{}}`), []string{"properties.size.eu: The properties.size.eu field must be a string, a number, a boolean or a list of these."}},
		"a purpose that is named after a number":  {with(`"consent":{"categories":{"call 4155550123":5}}`), []string{"consent.categories: The consent.categories field must be true or false for each name."}},
		"a purpose that is named after a person":  {with(`"consent":{"categories":{"Jane Doe":5}}`), []string{"consent.categories: The consent.categories field must be true or false for each name."}},
		"a purpose that is named as programs do":  {with(`"consent":{"categories":{"C0004:ads":5}}`), []string{"consent.categories: The consent.categories field must be true or false for each name."}},
		"a date of birth that there was not":      {with(`"user":{"date_of_birth":"1990-02-30"}`), []string{"user.date_of_birth: The user.date_of_birth field must be a date of the form YYYY-MM-DD."}},
		"a gender that is a sentence":             {with(`"user":{"gender":"do not ask"}`), []string{"user.gender: The selected user.gender is invalid."}},
		"a country by its name":                   {with(`"user":{"country":"Schweiz"}`), []string{"user.country: The selected user.country is invalid."}},
		"a country that there is not":             {with(`"user":{"country":"XX"}`), []string{"user.country: The selected user.country is invalid."}},
		"a continent":                             {with(`"user":{"country":"150"}`), []string{"user.country: The selected user.country is invalid."}},
		"a tax below zero":                        {with(`"data":{"tax":-1}`), []string{"data.tax: The data.tax field must be at least 0."}},
		"properties that are a list":              {with(`"properties":[]`), []string{"properties: The properties field must be an object."}},
		"51 properties":                           {with(`"properties":` + object(51)), []string{"properties: The properties field must not have more than 50 items."}},
		"50 properties":                           {with(`"properties":` + object(50)), nil},
		"properties of more than 8 KiB":           {with(`"properties":{"a":` + repeat(8192) + `}`), []string{"properties: The properties field must not be greater than 8192 bytes."}},
		"a property that is an object":            {with(`"properties":{"a":{"b":1}}`), []string{"properties.a: The properties.a" + noScalar}},
		"a list in a property's list":             {with(`"properties":{"a":[[1]]}`), []string{"properties.a: The properties.a" + noScalar}},
		"a null in a property's list":             {with(`"properties":{"a":[null]}`), []string{"properties.a: The properties.a" + noScalar}},
		"a property's list of 101":                {with(`"properties":{"a":` + list(101, "1") + `}`), []string{"properties.a: The properties.a field must not have more than 100 items."}},
		"a property without a name":               {with(`"properties":{"":1}`), []string{"properties: The properties field format is invalid."}},
		"an action source that is none":           {with(`"context":{"action_source":"tv"}`), []string{"context.action_source: The selected context.action_source is invalid."}},
		"a language that is none":                 {with(`"context":{"language":"?"}`), []string{"context.language: The context.language field format is invalid."}},
		"what a browser accepts":                  {with(`"context":{"language":"en-US,en;q=0.9"}`), nil},
		"a TCF string with a blank":               {with(`"consent":{"tcf":"a b"}`), nil},
		"a TCF string that is a number": {with(`"consent":{"tcf":7,"gpp":{},"us_privacy":[]}`), []string{
			"consent.tcf: The consent.tcf field must be a string.",
			"consent.gpp: The consent.gpp field must be a string.",
			"consent.us_privacy: The consent.us_privacy field must be a string.",
		}},
		"consent strings that are too long": {with(`"consent":{"tcf":"` + strings.Repeat("é", 8193) + `","gpp":"` + strings.Repeat("A", 8193) + `","gpp_sid":"` + strings.Repeat("7", 256) + `","us_privacy":"` + strings.Repeat("1", 256) + `"}`), []string{
			"consent.tcf: The consent.tcf field must not be greater than 8192 characters.",
			"consent.gpp: The consent.gpp field must not be greater than 8192 characters.",
			"consent.gpp_sid: The consent.gpp_sid field must not be greater than 255 characters.",
			"consent.us_privacy: The consent.us_privacy field must not be greater than 255 characters.",
		}},
		"sections that are no numbers":      {with(`"consent":{"gpp_sid":["a"]}`), []string{"consent.gpp_sid: The consent.gpp_sid field must be a string or a list of numbers."}},
		"sections that are an object":       {with(`"consent":{"gpp_sid":{}}`), []string{"consent.gpp_sid: The consent.gpp_sid field must be a string or a list of numbers."}},
		"sections as a text":                {with(`"consent":{"gpp_sid":"7_8"}`), nil},
		"a privacy string of another kind":  {with(`"consent":{"us_privacy":"yes"}`), nil},
		"limited data use as a word":        {with(`"consent":{"limited_data_use":"yes"}`), []string{"consent.limited_data_use: The consent.limited_data_use field must be true or false."}},
		"a category that is a word":         {with(`"consent":{"categories":{"a":"yes"}}`), []string{"consent.categories: The consent.categories field must be true or false for each name."}},
		"an item's brand that is an object": {with(`"data":{"contents":[{"brand":{"name":"Acme"},"discount":"10 %","category9":"x"}]}`), nil},
	}
	runErrors(t, tests)
}

// A person has many addresses; each of their hashes stands by itself.
func TestFurtherContactsAreKept(t *testing.T) {
	of := func(text string) event.Hash { return sha256.Sum256([]byte(text)) }
	e := accept(t, `{"event":"lead","user":{"email":["A@b.example","`+of("c@d.example").String()+`",""],"phone":["+4915112345678","+14155550123"]}}`, nil)
	if got, want := e.User.Get(event.EmailLower), of("a@b.example"); got != want {
		t.Errorf("the first address is %s, want %s", got, want)
	}
	want := []event.Hashes{{event.EmailLower: of("c@d.example"), event.PhoneDigits: of("14155550123"), event.PhoneE164: of("+14155550123")}}
	if diff := cmp.Diff(want, e.MoreContacts); diff != "" {
		t.Errorf("the others (-want +got):\n%s", diff)
	}
}

// Whatever a member is for, what tells of the person does not reach the stream in it.
func TestNoMemberKeepsWhatTellsOfThePerson(t *testing.T) {
	person := map[string]any{"email": []string{"jane@intranet", "doe@shop.example"}, "phone": []string{"+4915112345678", "+14155550123"},
		"first_name": "Janette", "last_name": "Doeringer", "street": "Lindengasse 5", "date_of_birth": "1990-02-13", "city": "Winterthur", "zip": "CH-8400"}
	// Each text stands as a whole in every member that takes one, and the names in a sentence where those are looked for.
	contacts := []string{"jane@intranet", "doe@shop.example", "someone@else.example", "0151 12345678", "1 (415) 555-0123"}
	names := []string{"Janette", "doeringer", "LINDENGASSE 5", "1990-02-13", "19900213"}
	members := map[string]struct {
		set   func(text string) map[string]any
		names bool
	}{
		"user_id":    {func(text string) map[string]any { return map[string]any{"user_id": text} }, false},
		"session_id": {func(text string) map[string]any { return map[string]any{"session_id": text} }, false},
		"page_title": {func(text string) map[string]any {
			return map[string]any{"context": map[string]any{"page_title": "of " + text}}
		}, true},
		"properties": {func(text string) map[string]any {
			return map[string]any{"properties": map[string]any{"a": "to " + text, "b": []any{1, text}}}
		}, true},
		"an address in parts in a property": {func(text string) map[string]any {
			return map[string]any{"properties": map[string]any{"a": []any{strings.ReplaceAll(text, "@", "@\n"), strings.ReplaceAll(text, "@", `\\t@`)}}}
		}, true},
		"a name of a property": {func(text string) map[string]any { return map[string]any{"properties": map[string]any{text: 1}} }, true},
		"a category of consent": {func(text string) map[string]any {
			return map[string]any{"consent": map[string]any{"categories": map[string]any{text: true}}}
		}, false},
		"a click id": {func(text string) map[string]any {
			return map[string]any{"context": map[string]any{"click_ids": map[string]any{"gbraid": text, "oppref": text, "sccid": text}}}
		}, false},
	}
	for _, name := range []string{"coupon", "search_term", "list_id", "list_name"} {
		members[name] = struct {
			set   func(text string) map[string]any
			names bool
		}{func(text string) map[string]any { return map[string]any{"data": map[string]any{name: text}} }, false}
	}
	for _, name := range []string{"brand", "variant", "category2", "category5"} {
		members["an item's "+name] = struct {
			set   func(text string) map[string]any
			names bool
		}{func(text string) map[string]any {
			return map[string]any{"data": map[string]any{"contents": []any{map[string]any{name: text}}}}
		}, false}
	}
	for name, member := range members {
		t.Run(name, func(t *testing.T) {
			texts := contacts
			if member.names {
				texts = slices.Concat(names, contacts)
			}
			for _, text := range texts {
				body := member.set(text)
				body["event"], body["user"] = "add_to_cart", person
				raw, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				e := accept(t, string(raw), nil)
				for _, told := range []string{text, strings.ReplaceAll(text, "@", `@\n`), strings.ReplaceAll(text, "@", `\\t@`)} {
					if entry := strings.ToLower(string(wire.Encode(&e))); strings.Contains(entry, strings.ToLower(told)) {
						t.Errorf("of %s %q is stored", name, told)
					}
				}
			}
		})
	}
}

// Nothing of a person that was not sent as something else is in what is stored.
func TestThePersonItselfIsHashesAlone(t *testing.T) {
	e := accept(t, `{"event":"lead","user":{"first_name":"Janette","last_name":"Doeringer","street":"Lindengasse 5","city":"Winterthur","state":"Zuerich",
		"zip":"CH-8400","country":"ch","date_of_birth":"1990-02-13","gender":"female"}}`, nil)
	entry := strings.ToLower(string(wire.Encode(&e)))
	for _, text := range []string{"janette", "doeringer", "lindengasse", "winterthur", "zuerich", "8400", "1990", "female"} {
		if strings.Contains(entry, text) {
			t.Errorf("%q is stored", text)
		}
	}
	if e.Country != "CH" {
		t.Errorf("the country is %q, want CH", e.Country)
	}
}

func TestACountryMayBeHashed(t *testing.T) {
	hash := sha256.Sum256([]byte("de"))
	if got := accept(t, `{"event":"lead","user":{"country":"`+event.Hash(hash).String()+`"}}`, nil).Country; got != "DE" {
		t.Errorf("got %q, want DE", got)
	}
}

func TestConsentThatCannotBeReadIsKeptAsSuch(t *testing.T) {
	for sentence, test := range map[string]struct {
		members string
		want    event.Consent
	}{
		"white space around is none of it":           {`{"tcf":" CPc-\n","gpp":"\tDBAA","gpp_sid":" 2, 7 ","us_privacy":" 1ynn\u00a0"}`, event.Consent{TCF: "CPc-", GPP: "DBAA", GPPSections: "2,7", USPrivacy: "1YNN"}},
		"white space alone is nothing":               {`{"tcf":" ","gpp":"\n","gpp_sid":" ","us_privacy":"\t"}`, event.Consent{}},
		"another text is one that nobody can read":   {`{"tcf":"a b","gpp":"Jane Doe, 4 Main St","us_privacy":"yes"}`, event.Consent{TCF: "-", GPP: "-", USPrivacy: "-"}},
		"other characters, control characters too":   {`{"tcf":"CPc\u0000","gpp":"DBAA=","us_privacy":"2YNN"}`, event.Consent{TCF: "-", GPP: "-", USPrivacy: "-"}},
		"what is of its characters is kept":          {`{"tcf":"CPc-","gpp":"DBAA~x"}`, event.Consent{TCF: "CPc-", GPP: "DBAA~x"}},
		"sections of which nobody knows yet":         {`{"gpp":"DBAA","gpp_sid":[0]}`, event.Consent{GPP: "DBAA", GPPSections: "0"}},
		"no section applies":                         {`{"gpp":"DBAA","gpp_sid":[-1]}`, event.Consent{GPP: "DBAA", GPPSections: "-1"}},
		"no section applies, as a text":              {`{"gpp":"DBAA","gpp_sid":"-1"}`, event.Consent{GPP: "DBAA", GPPSections: "-1"}},
		"no section applies, as a number":            {`{"gpp":"DBAA","gpp_sid":-1}`, event.Consent{GPP: "DBAA", GPPSections: "-1"}},
		"sections that are none are of all":          {`{"gpp":"DBAA","gpp_sid":"Jane"}`, event.Consent{GPP: "DBAA", GPPSections: "0"}},
		"a number that is no section's is of all":    {`{"gpp":"DBAA","gpp_sid":[7,-2]}`, event.Consent{GPP: "DBAA", GPPSections: "0"}},
		"a number that is too high is of all":        {`{"gpp":"DBAA","gpp_sid":[70000]}`, event.Consent{GPP: "DBAA", GPPSections: "0"}},
		"separators alone are of none in particular": {`{"gpp":"DBAA","gpp_sid":"_"}`, event.Consent{GPP: "DBAA"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := accept(t, `{"event":"lead","consent":`+test.members+`}`, nil)
			if diff := cmp.Diff(test.want, e.Consent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConsentStringsKeepNoNumberOfThePerson(t *testing.T) {
	e := accept(t, `{"event":"lead","user":{"phone":"+4915112345678"},"consent":{"tcf":"015112345678","gpp":"1511-234-5678"}}`, nil)
	if e.Consent.TCF != "-" || e.Consent.GPP != "-" { // which denies, as something was said
		t.Errorf("got %q and %q, want neither, but that something was said", e.Consent.TCF, e.Consent.GPP)
	}
	const tcf = "CQcvJYAQcvJYAAKA1AENCGFsAP_gAEPgAAwIK1wCAAAAAAAA"
	if e := accept(t, `{"event":"lead","user":{"phone":"+4915112345678"},"consent":{"tcf":"`+tcf+`"}}`, nil); e.Consent.TCF != tcf {
		t.Errorf("got %q, want the string as it was", e.Consent.TCF)
	}
}
