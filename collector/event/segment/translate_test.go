package segment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/segment"
)

// noon is when everything arrives.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// written is what an outline holds, as JSON.
func written(values []outline.Value) string {
	var b strings.Builder
	top := outline.At(values)
	write(&b, &top)
	return b.String()
}

func write(b *strings.Builder, n *outline.Node) {
	opened := n.Raw == "{}" || n.Raw == "[]" || n.Kind() == jsontext.KindBeginArray && len(n.Inner) > 0
	if !opened {
		b.WriteString(n.Raw)
		return
	}
	b.WriteByte(n.Raw[0])
	for i := 0; i < len(n.Inner); i += 1 + n.Inner[i].Below {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.Raw[0] == '{' {
			b.WriteString(outline.Quote(n.Inner[i].Name) + ":")
		}
		member := outline.At(n.Inner[i:])
		write(b, &member)
	}
	b.WriteByte(n.Raw[0] + 2) // "}" and "]" stand two behind "{" and "["
}

// translate reads the one message of a batch.
func translate(t testing.TB, message, ofBatch string) (string, time.Time, event.Errors) {
	t.Helper()
	request, err := segment.Decode(fmt.Appendf(nil, `{"batch":[%s]%s}`, message, ofBatch), segment.Batch)
	if err != nil {
		t.Fatal(err)
	}
	var translator segment.Translator
	translation, errs := translator.Translate(request, 0, noon)
	switch {
	case len(errs) > 0:
		return "", time.Time{}, translator.Told(errs)
	case translation.Ignored:
		return "ignored", time.Time{}, nil
	}
	return written(translation.Outline), translation.OccurredAt, nil
}

func TestWhatIsReadFromWhere(t *testing.T) {
	for name, test := range map[string]struct{ message, ofBatch, want string }{
		"a custom event keeps its name and its properties": {
			`{"type":"track","event":"Quiz Finished","messageId":"m","anonymousId":"a","userId":7,"properties":{"score":7,"tags":["a",1],"name":"Spring","none":null}}`, "",
			`{"event":"Quiz Finished","event_id":"m","client_id":"a","user_id":7,"properties":{"score":7,"tags":["a",1],"name":"Spring"}}`,
		},
		"an order's value is its total": {
			`{"type":"track","event":"Order Completed","properties":{"revenue":40,"total":49.9,"value":1,"currency":"EUR","order_id":"o","tax":"3.10","shipping":2,"discount":1,"coupon":"NEW","affiliation":"web"}}`, "",
			`{"event":"purchase","data":{"value":49.9,"currency":"EUR","order_id":"o","tax":"3.10","shipping":2,"discount":1,"coupon":"NEW"},"properties":{"revenue":40,"value":1,"affiliation":"web"}}`,
		},
		"an order without a total has its revenue for a value, and no currency is made up": {
			`{"type":"track","event":"order_completed","properties":{"revenue":40}}`, "",
			`{"event":"purchase","data":{"value":40},"properties":{}}`,
		},
		"an order whose name ends with what cannot be seen": {
			"{\"type\":\"track\",\"event\":\"Order Completed\u200b\",\"properties\":{\"total\":1}}", "",
			`{"event":"purchase","data":{"value":1},"properties":{}}`,
		},
		"an order whose name begins with it, escaped": {
			`{"type":"track","event":"\ufeff order_completed\u200b\n","properties":{"total":1}}`, "",
			`{"event":"purchase","data":{"value":1},"properties":{}}`,
		},
		"a refund": {
			`{"type":"track","event":"Order Refunded","properties":{"order_id":"o","total":5,"currency":"EUR"}}`, "",
			`{"event":"refund","data":{"value":5,"currency":"EUR","order_id":"o"},"properties":{}}`,
		},
		"products are contents with all that they have": {
			`{"type":"track","event":"Checkout Started","properties":{"products":[{"product_id":"p","sku":"s","name":"Shoe","price":10,"quantity":2,"color":"red"},{"sku":"only"},7]}}`, "",
			`{"event":"begin_checkout","data":{"contents":[{"id":"p","sku":"s","name":"Shoe","price":10,"quantity":2,"color":"red"},{"sku":"only"},7]},"properties":{}}`,
		},
		"an event about one product has it as its item": {
			`{"type":"track","event":"Product Added","properties":{"cart_id":"c","product_id":"p","sku":"s","category":"Games","name":"Go","brand":"B","variant":"v","price":18.99,"quantity":1,"currency":"USD","position":3}}`, "",
			`{"event":"add_to_cart","data":{"currency":"USD","content_id":"p","contents":[{"id":"p","sku":"s","category":"Games","name":"Go","brand":"B","variant":"v","price":18.99,"quantity":1}],"content_name":"Go"},"properties":{"cart_id":"c","position":3}}`,
		},
		"a search": {
			`{"type":"track","event":"Products Searched","properties":{"query":"blue shoes"}}`, "",
			`{"event":"search","data":{"search_term":"blue shoes"},"properties":{}}`,
		},
		"a page": {
			`{"type":"page","name":"Home","category":"Shop","properties":{"name":"Home","category":"Shop","url":"https://shop.example/","path":"/","referrer":"https://ref.example/","search":"?a=1","title":"Welcome","plan":"x"},"context":{"page":{"url":"https://other.example/"}}}`, "",
			`{"event":"pageview","data":{"content_name":"Home"},"context":{"page_url":"https://shop.example/?a=1","referrer":"https://ref.example/","page_title":"Welcome"},"properties":{"category":"Shop","plan":"x"}}`,
		},
		"a page that is told by the context alone": {
			`{"type":"page","context":{"page":{"url":"https://shop.example/?b=2","search":"?b=2","title":"T","referrer":"https://r.example/"}}}`, "",
			`{"event":"pageview","context":{"page_url":"https://shop.example/?b=2","referrer":"https://r.example/","page_title":"T"},"properties":{}}`,
		},
		"a screen is of an app": {
			`{"type":"screen","name":"Cart","properties":{"items":2}}`, "",
			`{"event":"screen_view","data":{"content_name":"Cart"},"context":{"action_source":"app"},"properties":{"items":2}}`,
		},
		"a person is read from the traits, then from the properties": {
			`{"type":"track","event":"x","context":{"traits":{"email":"jane@example.com","lastName":"Roe","address":{"city":"Bern","postalCode":3000,"country":"CH","street":"Way 1","state":"BE"},"birthday":"1990-01-02T00:00:00Z","gender":"f","plan":"pro"}},"traits":{"email":"no@example.com","first_name":"Jane"},"properties":{"email":"no@example.com","phone":"+1 (415) 555-0123","address":{"city":"Basel","x":"y"},"a":1}}`, "",
			`{"event":"x","user":{"email":"jane@example.com","phone":"+14155550123","first_name":"Jane","last_name":"Roe","street":"Way 1","city":"Bern","state":"BE","zip":3000,"country":"CH","date_of_birth":"1990-01-02","gender":"f"},"properties":{"a":1}}`,
		},
		"a phone number without its country is nobody's": {
			`{"type":"track","event":"x","properties":{"phone":"(415) 555-0123"}}`, "",
			`{"event":"x","properties":{}}`,
		},
		"the visitor's surroundings": {
			`{"type":"track","event":"x","context":{"ip":"203.0.113.7","userAgent":"UA","locale":"de-CH","sessionId":17,"campaign":{"name":"n","source":"s","medium":"m","term":"t","content":"c"},"library":{"name":"l"},"timezone":"Europe/Zurich"}}`, "",
			`{"event":"x","session_id":17,"context":{"ip":"203.0.113.7","user_agent":"UA","utm_source":"s","utm_medium":"m","utm_campaign":"n","utm_term":"t","utm_content":"c","language":"de-CH"}}`,
		},
		"click ids of properties, context and integrations": {
			`{"type":"track","event":"x","properties":{"fbp":"fb.1","gclid":"g"},"context":{"fbc":"fb.2"},"integrations":{"All":true,"TikTok Conversions":{"ttp":"t"},"Snap Conversions Api":{"click_id":"s"}}}`, "",
			`{"event":"x","context":{"click_ids":{"gclid":"g","fbp":"fb.1","fbc":"fb.2","ttp":"t","sc_click_id":"s"}},"properties":{}}`,
		},
		"decisions on consent, of which a denial wins": {
			`{"type":"track","event":"x","context":{"consent":{"categoryPreferences":{"ads":false,"stats":true}},"consentManagement":{"provider":"custom","allowedConsentIds":["ads","fn"],"deniedConsentIds":["stats"]}}}`, "",
			`{"event":"x","consent":[{"categories":{"ads":false,"stats":true}},{"categories":{"ads":true,"fn":true}},{"categories":{"stats":false}}]}`,
		},
		"what the batch says for all, where the message says nothing": {
			`{"type":"track","event":"x","context":{"ip":"203.0.113.7"}}`, `,"context":{"ip":"203.0.113.8","userAgent":"UA","consent":{"categoryPreferences":{"ads":false}}}`,
			`{"event":"x","context":{"ip":"203.0.113.7","user_agent":"UA"},"consent":[{"categories":{"ads":false}}]}`,
		},
		"consent of the message and of the batch": {
			`{"type":"track","event":"x","context":{"consent":{"categoryPreferences":{"Analytics":true}}}}`, `,"context":{"consentManagement":{"deniedConsentIds":["Advertising"]}}`,
			`{"event":"x","consent":[{"categories":{"Analytics":true}},{"categories":{"Advertising":false}}]}`,
		},
		"consent of the batch, where the message's says nothing": {
			`{"type":"track","event":"x","context":{"consent":{}}}`, `,"context":{"consent":{"categoryPreferences":{"Advertising":false}}}`,
			`{"event":"x","consent":[{"categories":{"Advertising":false}}]}`,
		},
		"consent in an envelope's own members": {
			`{"type":"track","event":"x","context":{"consent":{"ad_storage":"denied","tcf":"CPc-","gpp_sid":[2,7],"categories":{"ads":false},"other":1,"us_privacy":null,"categoryPreferences":{"ads":true}}}}`, "",
			`{"event":"x","consent":[{"ad_storage":"denied","tcf":"CPc-","gpp_sid":[2,7],"categories":{"ads":false}},{"categories":{"ads":true}}]}`,
		},
		"objects among the properties are told by their paths, lists of them as text": {
			`{"type":"track","event":"x","properties":{"a":{"b":1,"c":{"d":"e"}},"l":[{"x":1}],"n":[1,null],"a.b":2}}`, "",
			`{"event":"x","properties":{"a.b":1,"a.c.d":"e","l":"[{\"x\":1}]","n":"[1,null]"}}`,
		},
		"an id that is a number is one":       {`{"type":"track","event":"x","messageId":12}`, "", `{"event":"x","event_id":"12"}`},
		"an id of any length is one":          {`{"type":"track","event":"x","messageId":"` + strings.Repeat("x", 300) + `"}`, "", `{"event":"x","event_id":"0d4e2ca9e9cbced7a7a5380eb29e1a3783b9b6d0db72de36a1051038e1c1fbc7"}`},
		"identify is no event":                {`{"type":"identify","userId":"u","traits":{"email":"jane@example.com"}}`, "", "ignored"},
		"group is no event":                   {`{"type":"group","groupId":"g"}`, "", "ignored"},
		"alias is no event":                   {`{"type":"alias","previousId":"g"}`, "", "ignored"},
		"an event without a name has no name": {`{"type":"track"}`, "", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, errs := translate(t, test.message, test.ofBatch)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhichNamesAreAnOrders holds that case and underscores make no difference to a name that is translated, and all else does.
func TestWhichNamesAreAnOrders(t *testing.T) {
	for name, want := range map[string]string{
		"Order Completed": "purchase", "order_completed": "purchase", "ORDER_Completed": "purchase", "Completed Order": "purchase",
		" order completed\u200b\ufeff": "purchase", "purchase": "purchase", "order refunded": "refund",
		"Order  Completed": "Order  Completed", "OrderCompleted": "OrderCompleted", "Order-Completed": "Order-Completed",
		"Order\u200bCompleted": "Order\u200bCompleted", "Order\u00a0Completed": "Order\u00a0Completed", "Ｏrder Completed": "Ｏrder Completed",
		"Order Completed!": "Order Completed!", "Purchase": "Purchase", "PURCHASE": "PURCHASE",
	} {
		got, _, errs := translate(t, `{"type":"track","event":`+outline.Quote(name)+`}`, "")
		if !strings.HasPrefix(got, `{"event":`+outline.Quote(want)) {
			t.Errorf("%q is %s %v, want %q", name, got, errs, want)
		}
	}
}

func TestWhenSomethingHappened(t *testing.T) {
	at := func(text string) string { return `{"type":"track","event":"x","timestamp":"` + text + `"` }
	for name, test := range map[string]struct {
		message, ofBatch string
		want             time.Time
	}{
		"now, where nothing is said":                                  {`{"type":"track","event":"x"}`, "", time.Time{}},
		"as it is said":                                               {at("2026-11-20T11:59:00.5Z") + "}", "", noon.Add(-59500 * time.Millisecond)},
		"by the receiver's clock":                                     {at("2026-11-20T13:00:00Z") + "}", `,"sentAt":"2026-11-20T13:00:05Z"`, noon.Add(-5 * time.Second)},
		"by the receiver's clock, of one that is slow":                {at("2020-01-01T00:00:00Z") + "}", `,"sentAt":"2020-01-01T00:01:00Z"`, noon.Add(-time.Minute)},
		"by when the message itself was sent":                         {at("2026-11-20T13:00:00Z") + `,"sentAt":"2026-11-20T13:00:09+00:00"}`, `,"sentAt":"2026-11-20T13:00:05Z"`, noon.Add(-9 * time.Second)},
		"where RudderStack's clients say it":                          {`{"type":"track","event":"x","originalTimestamp":"2026-11-20T11:00:00Z"}`, "", noon.Add(-time.Hour)},
		"years ago":                                                   {at("2019-11-20T12:00:00Z") + "}", "", noon.AddDate(-7, 0, 0)},
		"never in the future":                                         {at("2026-11-21T12:00:00Z") + "}", "", noon},
		"not at a time that programs have for none":                   {at("0001-01-01T00:00:00Z") + "}", `,"sentAt":"2026-11-20T13:00:05Z"`, time.Time{}},
		"as it is said, where sentAt is years ahead, and it is not":   {at("2026-11-20T11:59:00Z") + "}", `,"sentAt":"2099-01-01T00:00:00Z"`, noon.Add(-time.Minute)},
		"as it is said, where sentAt is weeks ahead, and it is not":   {at("2026-11-20T11:59:00Z") + "}", `,"sentAt":"2026-12-24T00:00:00Z"`, noon.Add(-time.Minute)},
		"as it is said, where it was sent days before it happened":    {at("2026-11-18T12:00:00Z") + "}", `,"sentAt":"1970-01-01T00:00:00Z"`, noon.AddDate(0, 0, -2)},
		"by the receiver's clock, of one that is years ahead":         {at("2099-01-01T00:00:00Z") + "}", `,"sentAt":"2099-01-01T00:00:05Z"`, noon.Add(-5 * time.Second)},
		"by the receiver's clock, of one that begins at none":         {at("1969-12-31T23:59:00Z") + "}", `,"sentAt":"1970-01-01T00:00:00Z"`, noon.Add(-time.Minute)},
		"now, where what is said and when it was sent lie ages ahead": {at("2199-01-01T00:00:00Z") + "}", `,"sentAt":"2999-01-01T00:00:00Z"`, noon},
		"as it is said, where sentAt says nothing":                    {at("2026-11-20T11:59:00Z") + "}", `,"sentAt":"yesterday"`, noon.Add(-time.Minute)},
		"as it is said, where sentAt is no text at all":               {at("2026-11-20T11:59:00Z") + "}", `,"sentAt":{}`, noon.Add(-time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, errs := translate(t, test.message, test.ofBatch)
			if len(errs) > 0 || !got.Equal(test.want) {
				t.Errorf("got %v, %v, want %v", got, errs, test.want)
			}
		})
	}
}

func TestWhatIsNoMessage(t *testing.T) {
	for name, test := range map[string]struct{ message, want string }{
		"a number":                 {`7`, "The batch[0] field must be an object."},
		"what is too large":        {`{"type":"track","event":"` + strings.Repeat("x", 32<<10) + `"}`, "The batch[0] field must not be larger than 32768 bytes."},
		"a member twice":           {`{"type":"track","type":"page"}`, "The batch[0] field must be valid JSON: UTF-8, without halves of surrogate pairs, with each member once, and not nested deeper than 100 levels."},
		"half of a surrogate pair": {`{"type":"track","event":"\ud83d"}`, "The batch[0] field must be valid JSON: UTF-8, without halves of surrogate pairs, with each member once, and not nested deeper than 100 levels."},
		"what is nested too deep": {`{"type":"track","event":"x","properties":{"a":` + strings.Repeat("[", 97) + strings.Repeat("]", 97) + `}}`,
			"The batch[0] field must be valid JSON: UTF-8, without halves of surrogate pairs, with each member once, and not nested deeper than 100 levels."},
		"no type":                      {`{"event":"x"}`, "The batch[0].type field is required."},
		"a type that is no text":       {`{"type":1}`, "The batch[0].type field must be a string."},
		"another type":                 {`{"type":"delete"}`, "The batch[0].type field must be track, page, screen, identify, group or alias."},
		"properties that are a list":   {`{"type":"track","properties":[1]}`, "The batch[0].properties field must be an object."},
		"a context that is a text":     {`{"type":"page","context":"x"}`, "The batch[0].context field must be an object."},
		"a time that is none":          {`{"type":"track","event":"x","timestamp":"yesterday"}`, "The batch[0].timestamp field format is invalid."},
		"a time that is a number":      {`{"type":"track","event":"x","timestamp":1700000000}`, "The batch[0].timestamp field must be a string."},
		"a time before there were any": {`{"type":"track","event":"x","originalTimestamp":"1969-12-31T23:59:59Z"}`, "The batch[0].originalTimestamp field must be a date after or equal to 1970-01-01T00:00:00Z."},
		"consent that is a text":       {`{"type":"track","event":"x","context":{"consent":"all"}}`, "The batch[0].context.consent field must be an object."},
		"consent by a list":            {`{"type":"track","event":"x","context":{"consent":{"categoryPreferences":["ads"]}}}`, "The batch[0].context.consent.categoryPreferences field must be an object."},
		"denials that are no list":     {`{"type":"track","event":"x","context":{"consentManagement":{"deniedConsentIds":"ads"}}}`, "The batch[0].context.consentManagement.deniedConsentIds field must be a list of texts."},
		"management that is a list":    {`{"type":"track","event":"x","context":{"consentManagement":[]}}`, "The batch[0].context.consentManagement field must be an object."},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, errs := translate(t, test.message, "")
			if len(errs) != 1 || errs[0].Message != test.want {
				t.Errorf("got %q, %v, want %s", got, errs, test.want)
			}
		})
	}
}

func TestABatchWhoseConsentCannotBeReadIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ ofBatch, want string }{
		"a text":                   {`"consent":"all"`, "The context.consent field must be an object."},
		"preferences by a list":    {`"consent":{"categoryPreferences":["ads"]}`, "The context.consent.categoryPreferences field must be an object."},
		"denials that are no list": {`"consentManagement":{"deniedConsentIds":"ads"}`, "The context.consentManagement.deniedConsentIds field must be a list of texts."},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, errs := translate(t, `{"type":"track","event":"x","context":{"consent":{"categoryPreferences":{"ads":true}}}}`, `,"context":{`+test.ofBatch+`}`)
			if len(errs) != 1 || errs[0].Message != test.want {
				t.Errorf("got %q, %v, want %s", got, errs, test.want)
			}
		})
	}
}
