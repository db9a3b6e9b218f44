package envelope_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
)

// jane is the person of these tests.
var jane = map[string]any{"email": "Jane.Doe@intranet", "phone": "+4915112345678", "first_name": "Jane"}

// acceptJane accepts a pageview of jane's with further members.
func acceptJane(t *testing.T, members map[string]any) event.Event {
	t.Helper()
	members["event"], members["user"] = "pageview", jane
	body, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return accept(t, string(body), nil)
}

func TestURLsAreClearedOfThePerson(t *testing.T) {
	tests := map[string]struct {
		url, want string
	}{
		"a URL without a person stays as it is":     {"https://Shop.example.com:8443/a%20b/?q=%C3%A9&x=1+2&&y#frag", "https://Shop.example.com:8443/a%20b/?q=%C3%A9&x=1+2&&y#frag"},
		"an e-mail in a parameter":                  {"https://a.example/?a=1&email=joe@example.com&b=2", "https://a.example/?a=1&b=2"},
		"an encoded e-mail":                         {"https://a.example/?a=1&m=joe%40example.com", "https://a.example/?a=1"},
		"a doubly encoded e-mail":                   {"https://a.example/?m=joe%2540example.com", "https://a.example/"},
		"an e-mail in a URL in a parameter":         {"https://a.example/?to=https%3A%2F%2Fb.example%2F%3Fm%3Djoe%2540example.com&a=1", "https://a.example/?a=1"},
		"an e-mail as a parameter's name":           {"https://a.example/?joe@example.com&a=1", "https://a.example/?a=1"},
		"this person's e-mail that looks like none": {"https://a.example/?m=JANE.doe%40Intranet", "https://a.example/"},
		"this person's phone number":                {"https://a.example/?tel=%2B49+151+12345678&a=1", "https://a.example/?a=1"},
		"this person's national phone number":       {"https://a.example/?tel=0151-123.456-78&a=1", "https://a.example/?a=1"},
		"this person's phone number with its trunk": {"https://a.example/?tel=0049+(0)151/12345678&a=1", "https://a.example/?a=1"},
		"another number stays":                      {"https://a.example/?order=15112345679&n=345678", "https://a.example/?order=15112345679&n=345678"},
		"this person's first name as a value":       {"https://a.example/?name=JANE&a=1", "https://a.example/?a=1"},
		"this person's first name, encoded":         {"https://a.example/?name=+%4aane+&a=1", "https://a.example/?a=1"},
		"the first name as a part of a value stays": {"https://a.example/?q=jane+eyre", "https://a.example/?q=jane+eyre"},
		"a campaign that is called like the person": {"https://a.example/?utm_campaign=jane", "https://a.example/?utm_campaign=jane"},
		"a campaign that is an e-mail":              {"https://a.example/?utm_campaign=joe@example.com", "https://a.example/"},
		"user and password":                         {"https://joe:pw@a.example/x", "https://a.example/x"},
		"an e-mail as the user":                     {"https://joe%40example.com:pw@a.example?x=1", "https://a.example?x=1"},
		"an encoded e-mail as the host":             {"https://joe%40example.com/x", "https:///x"},
		"an e-mail in the path":                     {"https://a.example/unsubscribe/joe%40example.com/now", "https://a.example/unsubscribe//now"},
		"a handle in the path stays":                {"https://a.example/@joe.example/", "https://a.example/@joe.example/"},
		"an e-mail as the fragment":                 {"https://a.example/#joe@example.com", "https://a.example/"},
		"an e-mail in the fragment's parameters":    {"https://a.example/#a=1&m=joe@example.com", "https://a.example/#a=1"},
		"a mail link":                               {"mailto:joe@example.com", ""},
		"a malformed URL with an e-mail":            {"http://[::1/%zz?m=joe%40example.com%&b=%", "http://[::1/%zz?b=%"},
		"half an escape at the end":                 {"https://a.example/?a=%4", "https://a.example/?a=%4"},
		"no URL at all":                             {"(not set)", "(not set)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := acceptJane(t, map[string]any{"context": map[string]any{"page_url": tt.url, "referrer": tt.url}})
			if got := e.Context.PageURL; got != tt.want {
				t.Errorf("page_url %q is kept as %q, want %q", tt.url, got, tt.want)
			}
			if got := e.Context.Referrer; got != tt.want {
				t.Errorf("referrer %q is kept as %q, want %q", tt.url, got, tt.want)
			}
		})
	}
}

func TestCampaignAndClickIDsAreReadFromThePage(t *testing.T) {
	long := strings.Repeat("x", 600)
	tests := map[string]struct {
		context map[string]any
		want    event.Context
	}{
		"all of them": {
			map[string]any{"page_url": "https://a.example/?utm_source=goo+gle&utm_medium=cpc&utm_campaign=%C3%A9t%C3%A9&utm_term=t&utm_content=c&gclid=G&fbclid=F&ScCid=S&ttclid="},
			event.Context{UTMSource: "goo gle", UTMMedium: "cpc", UTMCampaign: "été", UTMTerm: "t", UTMContent: "c",
				ClickIDs: map[string]string{"gclid": "G", "fbclid": "F", "sc_click_id": "S"}},
		},
		"what the caller states wins": {
			map[string]any{"page_url": "https://a.example/?utm_source=page&utm_medium=page&gclid=page&msclkid=page",
				"utm_source": "own", "click_ids": map[string]any{"gclid": "own"}},
			event.Context{UTMSource: "own", UTMMedium: "page", ClickIDs: map[string]string{"gclid": "own", "msclkid": "page"}},
		},
		"the first of several counts":         {map[string]any{"page_url": "?utm_source=a&utm_source=b"}, event.Context{UTMSource: "a"}},
		"the fragment is not read":            {map[string]any{"page_url": "/#?utm_source=a"}, event.Context{}},
		"a text that is too long is cut":      {map[string]any{"page_url": "?utm_source=" + long}, event.Context{UTMSource: long[:255]}},
		"a click id that is too long is none": {map[string]any{"page_url": "?gclid=" + long}, event.Context{}},
		"bytes that are no UTF-8":             {map[string]any{"page_url": "?utm_source=%ff%fe"}, event.Context{UTMSource: "\ufffd"}},
		"e-mails are not kept": {
			map[string]any{"page_url": "?utm_source=joe%40example.com&gclid=joe@example.com", "utm_medium": "joe@example.com",
				"utm_term": "015112345678", "click_ids": map[string]any{"fbc": "joe@example.com"}, "user_agent": "bot (joe@example.com)"},
			event.Context{},
		},
		"a campaign that is called like the person is kept": {map[string]any{"utm_campaign": "jane"}, event.Context{UTMCampaign: "jane"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := acceptJane(t, map[string]any{"context": tt.context}).Context
			got.PageURL = ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContentsAreClearedOfThePerson(t *testing.T) {
	tests := map[string]struct {
		item, want string
	}{
		"what tells of nobody stays":          {`{"color":"red","dims":{"w":1.0},"tags":["a"]}`, `{"color":"red","dims":{"w":1.0},"tags":["a"]}`},
		"an e-mail":                           {`{"to":"joe@example.com","a":1}`, `{"a":1}`},
		"an e-mail behind escapes":            {`{"to":"joe\u0040example\u002ecom","a":1}`, `{"a":1}`},
		"an e-mail further in":                {`{"gift":{"to":[{"mail":"joe@example.com"}]},"a":1}`, `{"a":1}`},
		"an e-mail in a URL":                  {`{"url":"https://a.example/?m=joe%2540example.com","a":1}`, `{"a":1}`},
		"an e-mail as a name":                 {`{"joe@example.com":1,"a":1}`, `{"a":1}`},
		"this person's e-mail":                {`{"to":"to jane.doe@intranet","a":1}`, `{"a":1}`},
		"this person's phone number":          {`{"tel":"call 0151 12345678!","a":1}`, `{"a":1}`},
		"this person's phone as a number":     {`{"tel":4915112345678,"a":1}`, `{"a":1}`},
		"this person's first name":            {`{"engraving":"For JANE, with love","a":1}`, `{"a":1}`},
		"this person's first name on a line":  {`{"engraving":"For\njane","a":1}`, `{"a":1}`},
		"the first name within a longer word": {`{"b":"Janeiro"}`, `{"b":"Janeiro"}`},
		"nothing is left":                     {`{"to":"joe@example.com"}`, ``},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := acceptJane(t, map[string]any{"data": map[string]any{"contents": []any{json.RawMessage(tt.item)}}})
			if got := string(e.Contents[0].Extra); got != tt.want {
				t.Errorf("of the item %s is kept %s, want %s", tt.item, got, tt.want)
			}
		})
	}
}

func TestNamesOfThingsAreClearedOfContacts(t *testing.T) {
	e := acceptJane(t, map[string]any{"data": map[string]any{
		"content_name": "Voucher for joe@example.com",
		"contents":     []any{map[string]any{"name": "Call 015112345678", "category": "Jane Austen"}},
	}})
	if got := e.ContentName + e.Contents[0].Name; got != "" {
		t.Errorf("of names with contacts in them is kept %q, want nothing", got)
	}
	if got, want := e.Contents[0].Category, "Jane Austen"; got != want {
		t.Errorf("a category with the first name in it is kept as %q, want %q", got, want)
	}
}
