package envelope_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// errorsOf returns what is wrong with an envelope, as "field: message".
func errorsOf(t *testing.T, body string) []string {
	t.Helper()
	sent, err := decode([]byte(body))
	if err != nil {
		t.Fatalf("Decode(%s): %v", body, err)
	}
	valid, errs := sent.Validate(now, map[string]string{"order_done": "purchase"})
	if (valid == nil) != (len(errs) > 0) {
		t.Errorf("Validate(%s) returns %v and %d errors, want one of them", body, valid, len(errs))
	}
	var got []string
	for _, fieldErr := range errs {
		got = append(got, fieldErr.Field+": "+fieldErr.Message)
	}
	return got
}

func runErrors(t *testing.T, tests map[string]errorTest) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, errorsOf(t, tt.body)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.body, diff)
			}
		})
	}
}

type errorTest struct {
	body string
	want []string
}

// with returns a pageview with further members.
func with(members string) string { return `{"event":"pageview",` + members + `}` }

// repeat returns a JSON string of n characters that take two bytes each.
func repeat(n int) string { return `"` + strings.Repeat("é", n) + `"` }

func TestTheEventAndItsIds(t *testing.T) {
	tests := map[string]errorTest{
		"a name is all that is required": {`{"event":"pageview"}`, nil},
		"an empty object lacks the name": {`{}`, []string{"event: The event field is required."}},
		"a null name is missing":         {`{"event":null}`, []string{"event: The event field is required."}},
		"an empty name is missing":       {`{"event":""}`, []string{"event: The event field is required."}},
		"a name of blanks is missing":    {`{"event":" \t\ufeff"}`, []string{"event: The event field is required."}},
		"a numeric name is no string":    {`{"event":1}`, []string{"event: The event field must be a string."}},
		"a name may have 100 characters": {`{"event":` + repeat(100) + `}`, nil},
		"a name may not have 101 characters": {`{"event":` + repeat(101) + `}`,
			[]string{"event: The event field must not be greater than 100 characters."}},
		"a name with a control character":                      {`{"event":"page\u0000view"}`, []string{"event: The event field format is invalid."}},
		"a name padded with line ends":                         {`{"event":"\npageview\r\n"}`, nil},
		"names are case-sensitive, so Purchase needs no value": {`{"event":"Purchase"}`, nil},

		"unknown members are no error":              {with(`"foo":{"bar":[1,{"baz":null}]}`), nil},
		"null and empty members are missing":        {with(`"event_id":null,"client_id":"","user":null,"data":"","context":null,"consent":"","timestamp":""`), nil},
		"ids of 255 characters":                     {with(`"event_id":` + repeat(255) + `,"client_id":` + repeat(255)), nil},
		"a numeric event_id is no string":           {with(`"event_id":1`), []string{"event_id: The event_id field must be a string."}},
		"an event_id with a NUL":                    {with(`"event_id":"a\u0000"`), []string{"event_id: The event_id field format is invalid."}},
		"a numeric client_id is taken":              {with(`"client_id":12345678901234567890`), nil},
		"a client_id with a line feed behind it":    {with(`"client_id":"c-1\n"`), []string{"client_id: The client_id field format is invalid."}},
		"a client_id with space around it is taken": {with(`"client_id":" c-1 "`), nil},
		"a test that is a text":                     {with(`"test":"yes"`), []string{"test: The test field must be true or false."}},
		"a test that is a number":                   {with(`"test":1`), []string{"test: The test field must be true or false."}},
		"a client_id that is true":                  {with(`"client_id":true`), []string{"client_id: The client_id field must be a string."}},
		"an event_id of 256 characters":             {with(`"event_id":` + repeat(256)), []string{"event_id: The event_id field must not be greater than 255 characters."}},
		"a client_id of 256 characters":             {with(`"client_id":` + repeat(256)), []string{"client_id: The client_id field must not be greater than 255 characters."}},
		"an aliased name has the alias's law":       {`{"event":" order_done "}`, []string{"data.value: The data.value field is required.", "data.currency: The data.currency field is required."}},
	}
	runErrors(t, tests)
}

func TestTheUser(t *testing.T) {
	const (
		badEmail = "user.email: The user.email field must be a valid email address."
		badPhone = "user.phone: The user.phone field format is invalid."
		hash     = "B4C9A289323B21A01C3E940F150EB9B8C542587F1ABFD8F0E1CC1FFC5E475514"
	)
	email := func(s string) string { return with(`"user":{"email":"` + s + `"}`) }
	phone := func(s string) string { return with(`"user":{"phone":"` + s + `"}`) }
	tests := map[string]errorTest{
		"an empty user":              {with(`"user":{}`), nil},
		"a user that is a list":      {with(`"user":[]`), []string{"user: The user field must be an object."}},
		"a user that is a string":    {with(`"user":"jane"`), []string{"user: The user field must be an object."}},
		"an e-mail address":          {email("jane.doe+x@example.co.uk"), nil},
		"a padded e-mail address":    {email(`\ufeff jane@example.com \u200b`), nil},
		"an international address":   {email("jäne@exämple.de"), nil},
		"a hashed e-mail address":    {email(hash), nil},
		"an e-mail of blanks":        {email("  "), nil},
		"an e-mail without a domain": {email("jane@"), []string{badEmail}},
		"an e-mail without an at":    {email("jane.example.com"), []string{badEmail}},
		"an e-mail with two ats":     {email("jane@doe@example.com"), []string{badEmail}},
		"an e-mail with a blank":     {email("jane doe@example.com"), []string{badEmail}},
		"an e-mail with a name":      {email("Jane <jane@example.com>"), []string{badEmail}},
		"an e-mail with a comment":   {email("jane@example.com (Jane)"), []string{badEmail}},
		"an e-mail in brackets":      {email("<jane@example.com>"), []string{badEmail}},
		"two e-mails":                {email("jane@example.com,joe@example.com"), []string{badEmail}},
		"63 hexadecimal digits":      {email(hash[1:]), []string{badEmail}},
		"a numeric e-mail":           {with(`"user":{"email":1}`), []string{"user.email: The user.email field must be a string."}},
		"an e-mail of 256 characters": {email(strings.Repeat("a", 244) + "@example.com"),
			[]string{"user.email: The user.email field must not be greater than 255 characters."}},

		"a phone number":                    {phone("+4915112345678"), nil},
		"the shortest phone number":         {phone("+1234567"), nil},
		"the longest phone number":          {phone("+123456789012345"), nil},
		"a hashed phone number":             {phone(hash), nil},
		"a phone number of 6 digits":        {phone("+123456"), []string{badPhone}},
		"a phone number of 16 digits":       {phone("+1234567890123456"), []string{badPhone}},
		"a national phone number":           {phone("015112345678"), []string{badPhone}},
		"a phone number without its plus":   {phone("4915112345678"), []string{badPhone}},
		"a phone number that starts with 0": {phone("+0915112345678"), []string{badPhone}},
		"a phone number with blanks":        {phone("+49 151 12345678"), []string{badPhone}},
		"phone numbers are not trimmed":     {phone("+4915112345678 "), []string{badPhone}},
		"a phone number in Arabic digits":   {phone("+٤٩١٥١١٢٣٤"), []string{badPhone}},
		"a numeric phone number":            {with(`"user":{"phone":4915112345678}`), []string{"user.phone: The user.phone field must be a string."}},

		"a numeric first name": {with(`"user":{"first_name":1}`), []string{"user.first_name: The user.first_name field must be a string."}},
		"a first name of 256 characters": {with(`"user":{"first_name":` + repeat(256) + `}`),
			[]string{"user.first_name: The user.first_name field must not be greater than 255 characters."}},
	}
	runErrors(t, tests)
}

func TestMoney(t *testing.T) {
	const (
		noNumber  = "data.value: The data.value field must be a number."
		negative  = "data.value: The data.value field must be at least 0."
		tooGreat  = "data.value: The data.value field must not be greater than 99999999999.9999."
		needValue = "data.value: The data.value field is required."
		needCurr  = "data.currency: The data.currency field is required."
		unlisted  = "data.currency: The selected data.currency is invalid."
	)
	value := func(s string) string { return with(`"data":{"value":` + s + `}`) }
	currency := func(s string) string { return with(`"data":{"currency":` + s + `}`) }
	tests := map[string]errorTest{
		"a purchase with value and currency":   {`{"event":"purchase","data":{"value":0,"currency":"eur"}}`, nil},
		"a purchase without data":              {`{"event":"purchase"}`, []string{needValue, needCurr}},
		"a refund without data":                {`{"event":"refund","data":{}}`, []string{needValue, needCurr}},
		"a purchase with null and empty money": {`{"event":"purchase","data":{"value":null,"currency":""}}`, []string{needValue, needCurr}},
		"a purchase without a currency":        {`{"event":"purchase","data":{"value":1}}`, []string{needCurr}},
		"a purchase whose data is no object":   {`{"event":"purchase","data":[]}`, []string{"data: The data field must be an object."}},
		"a purchase with money at the top":     {`{"event":"purchase","value":1,"currency":"EUR"}`, []string{needValue, needCurr}},
		"a purchase with its currency at the top": {
			`{"event":"purchase","currency":"EUR","data":{"value":1}}`, []string{needCurr}},
		"bad money at the top beside complete data": {
			`{"event":"purchase","value":"x","currency":7,"data":{"value":1,"currency":"EUR"}}`, nil},

		"a number":                                {value(`12.5`), nil},
		"a number with an exponent":               {value(`1.25e1`), nil},
		"a decimal string":                        {value(`"12.50"`), nil},
		"minus zero":                              {value(`-0.0`), nil},
		"the greatest value":                      {value(`99999999999.9999`), nil},
		"a value below zero":                      {value(`-1`), []string{negative}},
		"a string below zero":                     {value(`"-12.50"`), []string{negative}},
		"a value below zero that rounds to it":    {value(`-1e-9`), []string{negative}},
		"a value far below zero":                  {value(`-1e99`), []string{negative}},
		"a value too great":                       {value(`100000000000`), []string{tooGreat}},
		"a value that rounds up to one too great": {value(`99999999999.99995`), []string{tooGreat}},
		"a value beyond any float":                {value(`1e999999999999`), []string{tooGreat}},
		"a decimal comma":                         {value(`"12,50"`), []string{noNumber}},
		"a thousands separator":                   {value(`"1,000"`), []string{noNumber}},
		"true":                                    {value(`true`), []string{noNumber}},
		"a hexadecimal string":                    {value(`"0x1A"`), []string{noNumber}},
		"infinity":                                {value(`"INF"`), []string{noNumber}},
		"an exponent in a string":                 {value(`"1e3"`), []string{noNumber}},
		"a padded string":                         {value(`" 12"`), []string{noNumber}},
		"a plus sign":                             {value(`"+12"`), []string{noNumber}},
		"no digit before the point":               {value(`".5"`), []string{noNumber}},
		"no digit behind the point":               {value(`"5."`), []string{noNumber}},
		"a list":                                  {value(`[12]`), []string{noNumber}},

		"a currency in lower case":         {currency(`"usd"`), nil},
		"a young currency":                 {currency(`"XCG"`), nil},
		"a currency that there is not":     {currency(`"ABC"`), []string{unlisted}},
		"the code for no currency":         {currency(`"XXX"`), []string{unlisted}},
		"a letter that only upper-cases":   {currency(`"ıdr"`), []string{unlisted}},
		"three characters that are blanks": {currency(`"   "`), []string{unlisted}},
		"a currency's sign":                {currency(`"€"`), []string{"data.currency: The data.currency field must be 3 characters."}},
		"a currency's name":                {currency(`"euro"`), []string{"data.currency: The data.currency field must be 3 characters."}},
		"a numeric currency":               {currency(`978`), []string{"data.currency: The data.currency field must be a string."}},
		"a currency of 300 characters":     {currency(repeat(300)), []string{"data.currency: The data.currency field must be 3 characters."}},

		"money at the top of another event":          {with(`"value":1,"currency":"EUR"`), nil},
		"bad money at the top of another event":      {with(`"value":"x","currency":"ABC"`), []string{"value: The value field must be a number.", "currency: The selected currency is invalid."}},
		"bad flat money behind data's own is unread": {with(`"value":"x","data":{"value":1}`), nil},
	}
	runErrors(t, tests)
}

func TestCommerce(t *testing.T) {
	contents := func(s string) string { return with(`"data":{"contents":` + s + `}`) }
	items := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(`{"id":1},`, n), ",") + "]" }
	tests := map[string]errorTest{
		"data that is a string":     {with(`"data":"x"`), []string{"data: The data field must be an object."}},
		"numbers are taken as ids":  {with(`"data":{"order_id":10482,"content_id":7}`), nil},
		"an order_id that is false": {with(`"data":{"order_id":false}`), []string{"data.order_id: The data.order_id field must be a string."}},
		"an order_id with a tab":    {with(`"data":{"order_id":"1\t2"}`), []string{"data.order_id: The data.order_id field format is invalid."}},
		"a numeric content_name":    {with(`"data":{"content_name":1}`), []string{"data.content_name: The data.content_name field must be a string."}},
		"texts of 256 characters": {with(fmt.Sprintf(`"data":{"order_id":%[1]s,"content_id":%[1]s,"content_name":%[1]s}`, repeat(256))), []string{
			"data.order_id: The data.order_id field must not be greater than 255 characters.",
			"data.content_id: The data.content_id field must not be greater than 255 characters.",
			"data.content_name: The data.content_name field must not be greater than 255 characters.",
		}},
		"a bad order_id in the flat form": {with(`"order_id":{}`), []string{"order_id: The order_id field must be a string."}},

		"no contents":                 {contents(`[]`), nil},
		"full contents":               {contents(`[{"id":"a","quantity":2,"price":"1.50","name":"A","category":"C"},{"content_id":7},{"sku":"x","brand":{"a":1}}]`), nil},
		"a price below zero":          {contents(`[{"id":"coupon","price":-5}]`), nil},
		"contents that are an object": {contents(`{"id":1}`), []string{"data.contents: The data.contents field must be an array."}},
		"100 contents":                {contents(items(100)), nil},
		"101 contents":                {contents(items(101)), []string{"data.contents: The data.contents field must not have more than 100 items."}},
		"contents that are strings": {contents(`["a",{"id":"b"},null]`), []string{
			"data.contents.0: The data.contents.0 field must be an object.",
			"data.contents.2: The data.contents.2 field must be an object.",
		}},
		"every field of an item": {contents(`[{},{"sku":true,"name":1,"category":[],"quantity":-1,"price":"x"}]`), []string{
			"data.contents.1.sku: The data.contents.1.sku field must be a string.",
			"data.contents.1.name: The data.contents.1.name field must be a string.",
			"data.contents.1.category: The data.contents.1.category field must be a string.",
			"data.contents.1.quantity: The data.contents.1.quantity field must be at least 0.",
			"data.contents.1.price: The data.contents.1.price field must be a number.",
		}},
		"a price far below zero":              {contents(`[{"price":-1e12}]`), []string{"data.contents.0.price: The data.contents.0.price field must be at least -99999999999.9999."}},
		"a bad item in the flat form":         {with(`"contents":[{"id":[]}]`), []string{"contents.0.id: The contents.0.id field must be a string."}},
		"what an unused id holds is not read": {contents(`[{"id":"a","sku":[1]}]`), nil},
	}
	runErrors(t, tests)
}

func TestContextConsentAndTimestamp(t *testing.T) {
	context := func(s string) string { return with(`"context":{` + s + `}`) }
	timestamp := func(s string) string { return with(`"timestamp":"` + s + `"`) }
	tests := map[string]errorTest{
		"a full context":           {context(`"page_url":"https://a.example/","referrer":"x","ip":"2001:db8::1","user_agent":"UA","utm_source":"s","click_ids":{"gclid":"g","other":1}`), nil},
		"a context that is a list": {with(`"context":[]`), []string{"context: The context field must be an object."}},
		"a malformed URL is taken": {context(`"page_url":"http://[::1:%zz","referrer":"://"`), nil},
		"bad members of a context": {context(`"page_url":1,"referrer":{},"ip":"1.2.3","user_agent":[],"utm_source":1,"utm_medium":true,"utm_campaign":2,"utm_term":3,"utm_content":4,"click_ids":{"gclid":1,"twclid":2}`), []string{
			"context.page_url: The context.page_url field must be a string.",
			"context.referrer: The context.referrer field must be a string.",
			"context.ip: The context.ip field format is invalid.",
			"context.user_agent: The context.user_agent field must be a string.",
			"context.utm_source: The context.utm_source field must be a string.",
			"context.utm_medium: The context.utm_medium field must be a string.",
			"context.utm_campaign: The context.utm_campaign field must be a string.",
			"context.utm_term: The context.utm_term field must be a string.",
			"context.utm_content: The context.utm_content field must be a string.",
			"context.click_ids.gclid: The context.click_ids.gclid field must be a string.",
			"context.click_ids.twclid: The context.click_ids.twclid field must be a string.",
		}},
		"texts that are too long": {context(fmt.Sprintf(`"page_url":%s,"referrer":%[1]s,"user_agent":%s,"utm_source":%s,"click_ids":{"fbc":%s}`, repeat(2049), repeat(1025), repeat(256), repeat(513))), []string{
			"context.page_url: The context.page_url field must not be greater than 2048 characters.",
			"context.referrer: The context.referrer field must not be greater than 2048 characters.",
			"context.user_agent: The context.user_agent field must not be greater than 1024 characters.",
			"context.utm_source: The context.utm_source field must not be greater than 255 characters.",
			"context.click_ids.fbc: The context.click_ids.fbc field must not be greater than 512 characters.",
		}},
		"click ids that are a list":  {context(`"click_ids":[]`), []string{"context.click_ids: The context.click_ids field must be an object."}},
		"an address with a zone":     {context(`"ip":"fe80::1%eth0"`), []string{"context.ip: The context.ip field format is invalid."}},
		"an address with a port":     {context(`"ip":"203.0.113.7:80"`), []string{"context.ip: The context.ip field format is invalid."}},
		"consent":                    {with(`"consent":{"ad_user_data":"granted","ad_personalization":"denied"}`), nil},
		"a consent that is a string": {with(`"consent":"granted"`), []string{"consent: The consent field must be an object."}},
		"bad decisions": {with(`"consent":{"ad_user_data":"yes","ad_personalization":true}`), []string{
			"consent.ad_user_data: The consent.ad_user_data field must be granted or denied.",
			"consent.ad_personalization: The consent.ad_personalization field must be a string.",
		}},

		"a timestamp in UTC":             {timestamp("2026-11-20T11:59:00Z"), nil},
		"a timestamp with an offset":     {timestamp("2026-11-20T12:59:00.123456+01:00"), nil},
		"an offset without a colon":      {timestamp("2026-11-20T12:59:00+0100"), nil},
		"a timestamp without seconds":    {timestamp("2026-11-20T11:59Z"), nil},
		"a timestamp exactly 7 days old": {timestamp("2026-11-13T12:00:00Z"), nil},
		"a timestamp 1 minute ahead":     {timestamp("2026-11-20T12:01:00Z"), nil},
		"a timestamp more than 7 days old": {timestamp("2026-11-13T11:59:59.999Z"), []string{
			"timestamp: The timestamp field must be a date after or equal to 2026-11-13T12:00:00Z."}},
		"a timestamp more than 1 minute ahead": {timestamp("2026-11-20T12:01:00.001Z"), []string{
			"timestamp: The timestamp field must be a date before or equal to 2026-11-20T12:01:00Z."}},
		"a timestamp without an offset": {timestamp("2026-11-20T11:59:00"), []string{"timestamp: The timestamp field format is invalid."}},
		"a date alone":                  {timestamp("2026-11-20"), []string{"timestamp: The timestamp field format is invalid."}},
		"a day that there is not":       {timestamp("2026-11-31T11:59:00Z"), []string{"timestamp: The timestamp field format is invalid."}},
		"a Unix timestamp":              {with(`"timestamp":1795176000`), []string{"timestamp: The timestamp field must be a string."}},
	}
	runErrors(t, tests)
}

func TestErrorsComeInTheDocumentedOrder(t *testing.T) {
	body := `{"timestamp":1,"consent":1,"context":1,"data":{"contents":1,"content_name":1,"content_id":[],"order_id":[],` +
		`"currency":1,"value":[]},"user":{"first_name":1,"phone":1,"email":1},"client_id":[],"event_id":1,"event":1}`
	var got []string
	for _, fieldErr := range errorsOf(t, body) {
		field, _, _ := strings.Cut(fieldErr, ":")
		got = append(got, field)
	}
	want := []string{
		"event", "event_id", "client_id", "user.email", "user.phone", "user.first_name", "data.value", "data.currency",
		"data.order_id", "data.content_id", "data.content_name", "data.contents", "context", "consent", "timestamp",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of errors (-want +got):\n%s", diff)
	}
}

func TestErrorsNeverRepeatAValue(t *testing.T) {
	body := `{"event":"s3cret\u0001","event_id":"s3cret\u0001","client_id":["s3cret"],"user":{"email":"s3cret@","phone":"s3cret",` +
		`"first_name":["s3cret"]},"data":{"value":"s3cret","currency":"s3cret","order_id":"s3cret\u0001","contents":[{"id":["s3cret"]}]},` +
		`"context":{"ip":"s3cret"},"consent":{"ad_user_data":"s3cret"},"timestamp":"s3cret"}`
	errs := errorsOf(t, body)
	if len(errs) != 13 {
		t.Errorf("got %d errors, want 13: %q", len(errs), errs)
	}
	if text := strings.Join(errs, "\n"); strings.Contains(text, "s3cret") {
		t.Errorf("an error repeats what was sent:\n%s", text)
	}
}
