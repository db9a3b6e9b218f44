package shop_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/sources/shop"
)

var update = flag.Bool("update", false, "write the golden files anew")

// noon is when every test takes place.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// fixture returns a document, which is written after the vendor's documentation, with parts of it replaced by others.
func fixture(t testing.TB, name string, replacements ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replacements); i += 2 {
		if !bytes.Contains(text, []byte(replacements[i])) {
			t.Fatalf("%s does not hold %s", name, replacements[i])
		}
		text = bytes.Replace(text, []byte(replacements[i]), []byte(replacements[i+1]), 1)
	}
	return text
}

// headers say what a webhook of each type is about.
var topicHeaders = map[sources.Type]string{sources.Shopify: "X-Shopify-Topic", sources.WooCommerce: "X-WC-Webhook-Topic"}

func read(kind sources.Type, topic string, settings sources.Settings, body []byte) (shop.Report, error) {
	header := http.Header{}
	if name := topicHeaders[kind]; name != "" {
		header.Set(name, topic)
	}
	return shop.Read(&sources.Source{Name: "shop", Type: kind, Settings: settings}, header, body)
}

// intents are the settings of a source that takes payments for orders.
var intents = sources.Settings{Stripe: &sources.StripeSettings{Purchases: sources.PaymentIntents}}

func TestEachDocumentBecomesAnEnvelope(t *testing.T) {
	for _, c := range []struct {
		fixture, topic string
		kind           sources.Type
		settings       sources.Settings
	}{
		{"shopify-order", "orders/paid", sources.Shopify, sources.Settings{}},
		{"shopify-refund", "refunds/create", sources.Shopify, sources.Settings{}},
		{"woocommerce-order", "order.created", sources.WooCommerce, sources.Settings{}},
		{"stripe-session", "", sources.Stripe, sources.Settings{}},
		{"stripe-intent", "", sources.Stripe, intents},
		{"stripe-refund", "", sources.Stripe, sources.Settings{}},
	} {
		t.Run(c.fixture, func(t *testing.T) {
			report, err := read(c.kind, c.topic, c.settings, fixture(t, c.fixture))
			if err != nil || len(report.Events) != 1 || report.Ignored != "" {
				t.Fatalf("got %+v, %v, want one event", report, err)
			}
			encoded, err := report.Events[0].Envelope()
			if err != nil {
				t.Fatal(err)
			}
			var indented bytes.Buffer
			if err := json.Indent(&indented, append(encoded, '\n'), "", "  "); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", c.fixture+".envelope.json")
			if *update {
				if err := os.WriteFile(golden, indented.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), indented.String()); diff != "" {
				t.Errorf("envelope (-want +got):\n%s", diff)
			}
		})
	}
}

// told says what of a report counts: a line for each event.
func told(t testing.TB, report shop.Report) []string {
	t.Helper()
	lines := []string{}
	if report.Erasure != "" {
		lines = append(lines, "erasure "+report.Erasure)
		if report.Subject != nil {
			lines = append(lines, fmt.Sprint("of ", report.Subject))
		}
	}
	if report.Ignored != "" {
		lines = append(lines, "ignored")
	}
	for _, event := range report.Events {
		encoded, err := event.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		var members struct {
			EventID string `json:"event_id"`
			Test    any
			Data    struct {
				Value    any
				Currency any
				OrderID  string `json:"order_id"`
			}
		}
		decoder := json.NewDecoder(bytes.NewReader(encoded))
		decoder.UseNumber()
		if err := decoder.Decode(&members); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(members.EventID, " ", members.Data.Value, " ", strings.ToUpper(fmt.Sprint(members.Data.Currency)), " since ", event.At.UTC().Format("15:04:05"))
		if members.Test == true {
			line += " test"
		}
		if !strings.HasPrefix(members.EventID, "purchase-"+members.Data.OrderID) && !strings.HasPrefix(members.EventID, "refund-"+members.Data.OrderID+"-") {
			t.Errorf("event %s is of order %s", members.EventID, members.Data.OrderID)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestWhatAShopReports(t *testing.T) {
	const (
		order, given    = "820982911946154508", "890088186047892319"
		shopifyPurchase = "purchase-" + order + " 129.90 CHF since "
		shopifyRefund   = "refund-" + order + "-" + given + " 49.95 CHF since 11:59:30"
		refundOf49      = `{"id": ` + given + `, "created_at": "2026-11-20T06:59:30-05:00", "transactions": [{"kind": "refund", "status": "success", "amount": "49.95", "currency": "CHF"}]}`
		wooPurchase     = "purchase-727 79.80 EUR since 11:59:00"
		ignored         = "ignored"
	)
	noSettings := sources.Settings{}
	for name, c := range map[string]struct {
		kind         sources.Type
		topic        string
		settings     sources.Settings
		fixture      string
		replacements []string
		want         []string
	}{
		"Shopify: a paid order, in the currency of the buyer":    {sources.Shopify, "orders/paid", noSettings, "shopify-order", nil, []string{shopifyPurchase + "11:59:00"}},
		"Shopify: an order that is paid when it is made":         {sources.Shopify, "orders/create", noSettings, "shopify-order", nil, []string{shopifyPurchase + "11:59:00"}},
		"Shopify: an order that is not paid when it is made":     {sources.Shopify, "orders/create", noSettings, "shopify-order", []string{`"paid"`, `"pending"`}, []string{ignored}},
		"Shopify: an order whose money is only reserved":         {sources.Shopify, "orders/create", noSettings, "shopify-order", []string{`"paid"`, `"authorized"`}, []string{ignored}},
		"Shopify: an order that changes is as old as itself":     {sources.Shopify, "orders/updated", noSettings, "shopify-order", nil, []string{shopifyPurchase + "11:58:00"}},
		"Shopify: an order that was edited":                      {sources.Shopify, "orders/edited", noSettings, "shopify-order", nil, []string{ignored}},
		"Shopify: an order that was cancelled before it is paid": {sources.Shopify, "orders/cancelled", noSettings, "shopify-order", []string{`"paid"`, `"voided"`}, []string{ignored}},
		"Shopify: a cancelled order whose money was given back": {
			sources.Shopify, "orders/cancelled", noSettings, "shopify-order", []string{`"paid"`, `"refunded"`, `"refunds": []`, `"refunds": [` + refundOf49 + `]`},
			[]string{shopifyPurchase + "11:58:00", shopifyRefund},
		},
		"Shopify: a test order":                         {sources.Shopify, "orders/paid", noSettings, "shopify-order", []string{`"test": false`, `"test": true`}, []string{shopifyPurchase + "11:59:00 test"}},
		"Shopify: an order without the buyer's money":   {sources.Shopify, "orders/paid", noSettings, "shopify-order", []string{`"total_price_set"`, `"x"`}, []string{"purchase-" + order + " 142.89 USD since 11:59:00"}},
		"Shopify: a partial refund, by two ways of pay": {sources.Shopify, "refunds/create", noSettings, "shopify-refund", nil, []string{shopifyRefund}},
		"Shopify: a refund of a test order":             {sources.Shopify, "refunds/create", noSettings, "shopify-refund", []string{`"test": false`, `"test": true`}, []string{shopifyRefund + " test"}},
		"Shopify: goods put back without money":         {sources.Shopify, "refunds/create", noSettings, "shopify-refund", []string{`"kind": "refund"`, `"kind": "void"`, `"kind": "refund"`, `"kind": "void"`}, []string{ignored}},
		"Shopify: a request to erase a customer":        {sources.Shopify, "customers/redact", noSettings, "shopify-order", nil, []string{"erasure customers/redact", "of map[email:jane.doe@example.com user_id:115310627314723954]"}},
		"Shopify: to erase a customer without anything": {sources.Shopify, "customers/redact", noSettings, "shopify-order", []string{`"customer"`, `"nobody"`}, []string{"erasure customers/redact"}},
		"Shopify: a request for a customer's data":      {sources.Shopify, "customers/data_request", noSettings, "shopify-order", nil, []string{"erasure customers/data_request"}},
		"Shopify: a request to erase a shop":            {sources.Shopify, "shop/redact", noSettings, "shopify-order", nil, []string{"erasure shop/redact"}},
		"Shopify: another topic":                        {sources.Shopify, "products/update", noSettings, "shopify-order", nil, []string{ignored}},

		"Shopify: a refund whose money is on its way": {sources.Shopify, "refunds/create", noSettings, "shopify-refund", []string{`"status": "success", "amount": "9.95"`, `"status": "pending", "amount": "9.95"`}, []string{ignored}},
		"Shopify: a refund that the bank has not taken": {
			sources.Shopify, "refunds/create", noSettings, "shopify-refund", []string{`"status": "success", "amount": "9.95"`, `"status": "error", "amount": "9.95"`},
			[]string{"refund-" + order + "-" + given + " 40 CHF since 11:59:30"},
		},
		"Shopify: a refund of a test order by a second way of pay": {
			sources.Shopify, "refunds/create", noSettings, "shopify-refund", []string{`"9.95", "currency": "CHF", "test": false`, `"9.95", "currency": "CHF", "test": true`}, []string{shopifyRefund + " test"},
		},
		"Shopify: a test order with a refund that does not say so": {
			sources.Shopify, "orders/updated", noSettings, "shopify-order", []string{`"test": false`, `"test": true`, `"refunds": []`, `"refunds": [` + refundOf49 + `]`},
			[]string{shopifyPurchase + "11:58:00 test", shopifyRefund + " test"},
		},
		"Shopify: an order with a refund that is a test": {
			sources.Shopify, "orders/updated", noSettings, "shopify-order", []string{`"refunds": []`, `"refunds": [` + strings.Replace(refundOf49, `"kind"`, `"test": true, "kind"`, 1) + `]`},
			[]string{shopifyPurchase + "11:58:00", shopifyRefund + " test"},
		},
		"Shopify: a refund in two currencies": {
			sources.Shopify, "refunds/create", noSettings, "shopify-refund", []string{`"9.95", "currency": "CHF"`, `"9.95", "currency": "usd"`},
			[]string{"refund-" + order + "-" + given + "-CHF 40 CHF since 11:59:30", "refund-" + order + "-" + given + "-USD 9.95 USD since 11:59:30"},
		},

		"WooCommerce: a paid order":                {sources.WooCommerce, "order.created", noSettings, "woocommerce-order", nil, []string{wooPurchase}},
		"WooCommerce: a completed order":           {sources.WooCommerce, "order.updated", noSettings, "woocommerce-order", []string{`"processing"`, `"completed"`}, []string{wooPurchase}},
		"WooCommerce: an order that waits":         {sources.WooCommerce, "order.created", noSettings, "woocommerce-order", []string{`"processing"`, `"on-hold"`}, []string{ignored}},
		"WooCommerce: an order that was cancelled": {sources.WooCommerce, "order.updated", noSettings, "woocommerce-order", []string{`"processing"`, `"cancelled"`}, []string{ignored}},
		"WooCommerce: a cancelled order whose money was given back": {
			sources.WooCommerce, "order.updated", noSettings, "woocommerce-order",
			[]string{`"processing"`, `"cancelled"`, `"refunds": []`, `"refunds": [{"id": 730, "reason": "", "total": "-79.80"}]`},
			[]string{"refund-727-730 79.80 EUR since 11:59:00"},
		},
		"WooCommerce: cash on delivery, which is as old as the order": {
			sources.WooCommerce, "order.created", noSettings, "woocommerce-order", []string{`"2026-11-20T11:59:00"`, `null`}, []string{"purchase-727 79.80 EUR since 11:58:00"},
		},
		"WooCommerce: two partial refunds, which a webhook does not date": {
			sources.WooCommerce, "order.updated", noSettings, "woocommerce-order",
			[]string{`"refunds": []`, `"refunds": [{"id": 730, "reason": "", "total": "-10.00"}, {"id": 731, "reason": "late", "total": "-4.90"}]`},
			[]string{wooPurchase, "refund-727-730 10.00 EUR since 11:59:00", "refund-727-731 4.90 EUR since 11:59:00"},
		},
		"WooCommerce: an order refunded in full": {
			sources.WooCommerce, "order.updated", noSettings, "woocommerce-order",
			[]string{`"processing"`, `"refunded"`, `"refunds": []`, `"refunds": [{"id": 730, "reason": "", "total": "-79.80"}]`},
			[]string{wooPurchase, "refund-727-730 79.80 EUR since 11:59:00"},
		},
		"WooCommerce: an order that was deleted": {sources.WooCommerce, "order.deleted", noSettings, "woocommerce-order", nil, []string{ignored}},

		"Stripe: a session that is paid":                  {sources.Stripe, "", noSettings, "stripe-session", nil, []string{"purchase-pi_3QIntent 129.9 EUR since 11:59:00"}},
		"Stripe: a session whose order has an id":         {sources.Stripe, "", noSettings, "stripe-session", []string{`"metadata": {`, `"metadata": {"order_id": "A-1", `}, []string{"purchase-A-1 129.9 EUR since 11:59:00"}},
		"Stripe: a session without a payment":             {sources.Stripe, "", noSettings, "stripe-session", []string{`"pi_3QIntent"`, "null", `"paid"`, `"no_payment_required"`, "12990", "0"}, []string{"purchase-cs_live_a1b2c3 0 EUR since 11:59:00"}},
		"Stripe: a session whose money is yet to come":    {sources.Stripe, "", noSettings, "stripe-session", []string{`"paid"`, `"unpaid"`}, []string{ignored}},
		"Stripe: a session whose money came later":        {sources.Stripe, "", noSettings, "stripe-session", []string{"session.completed", "session.async_payment_succeeded"}, []string{"purchase-pi_3QIntent 129.9 EUR since 11:59:00"}},
		"Stripe: a session in test mode":                  {sources.Stripe, "", noSettings, "stripe-session", []string{`"livemode": true`, `"livemode": false`}, []string{"purchase-pi_3QIntent 129.9 EUR since 11:59:00 test"}},
		"Stripe: the payment of a session":                {sources.Stripe, "", noSettings, "stripe-intent", nil, []string{ignored}},
		"Stripe: a payment, where payments make orders":   {sources.Stripe, "", intents, "stripe-intent", nil, []string{"purchase-A-10482 129.9 EUR since 11:59:00"}},
		"Stripe: the session of a payment":                {sources.Stripe, "", intents, "stripe-session", nil, []string{ignored}},
		"Stripe: a currency without decimals":             {sources.Stripe, "", noSettings, "stripe-session", []string{`"eur"`, `"jpy"`}, []string{"purchase-pi_3QIntent 12990 JPY since 11:59:00"}},
		"Stripe: a currency with three decimals":          {sources.Stripe, "", noSettings, "stripe-session", []string{`"eur"`, `"kwd"`}, []string{"purchase-pi_3QIntent 12.99 KWD since 11:59:00"}},
		"Stripe: one that Stripe takes for one with two":  {sources.Stripe, "", noSettings, "stripe-session", []string{`"eur"`, `"isk"`}, []string{"purchase-pi_3QIntent 129.9 ISK since 11:59:00"}},
		"Stripe: another one of these":                    {sources.Stripe, "", noSettings, "stripe-session", []string{`"eur"`, `"ugx"`}, []string{"purchase-pi_3QIntent 129.9 UGX since 11:59:00"}},
		"Stripe: one that Stripe takes for one without":   {sources.Stripe, "", noSettings, "stripe-session", []string{`"eur"`, `"mga"`}, []string{"purchase-pi_3QIntent 12990 MGA since 11:59:00"}},
		"Stripe: a partial refund is what was not before": {sources.Stripe, "", noSettings, "stripe-refund", nil, []string{"refund-pi_3QIntent-ch_3QCharge-3000 20 EUR since 11:59:30"}},
		"Stripe: the first refund":                        {sources.Stripe, "", noSettings, "stripe-refund", []string{`"amount_refunded": 1000`, `"amount_refunded": 0`}, []string{"refund-pi_3QIntent-ch_3QCharge-3000 30 EUR since 11:59:30"}},
		"Stripe: a refund of yen":                         {sources.Stripe, "", noSettings, "stripe-refund", []string{`"eur"`, `"jpy"`}, []string{"refund-pi_3QIntent-ch_3QCharge-3000 2000 JPY since 11:59:30"}},
		"Stripe: a refund of an order with an id":         {sources.Stripe, "", intents, "stripe-refund", []string{`"metadata": {}`, `"metadata": {"order_id": "A-10482"}`}, []string{"refund-A-10482-ch_3QCharge-3000 20 EUR since 11:59:30"}},
		"Stripe: a refund in test mode":                   {sources.Stripe, "", noSettings, "stripe-refund", []string{`"livemode": true`, `"livemode": false`}, []string{"refund-pi_3QIntent-ch_3QCharge-3000 20 EUR since 11:59:30 test"}},
		"Stripe: the other charge of an order, refunded alike": {
			sources.Stripe, "", noSettings, "stripe-refund", []string{"ch_3QCharge", "ch_3QSecond", `"metadata": {}`, `"metadata": {"order_id": "A-10482"}`},
			[]string{"refund-A-10482-ch_3QSecond-3000 20 EUR since 11:59:30"},
		},
		"Stripe: another type of event": {sources.Stripe, "", noSettings, "stripe-refund", []string{"charge.refunded", "customer.created"}, []string{ignored}},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := read(c.kind, c.topic, c.settings, fixture(t, c.fixture, c.replacements...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, told(t, report)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStripesOrderIsThatOfTheMetadataIfItIsAnID(t *testing.T) {
	const payment = "pi_3QIntent"
	for name, c := range map[string]struct{ metadata, want string }{
		"an id":                            {`"1001"`, "1001"},
		"a number":                         {`1001`, "1001"},
		"space around it":                  {`" 1001 "`, "1001"},
		"a line feed at its end":           {`"1001\n"`, "1001"},
		"what cannot be seen around it":    {`"\u200b1001\u00a0"`, "1001"},
		"nothing":                          {`""`, payment},
		"space":                            {`" "`, payment},
		"undefined":                        {`"undefined"`, payment},
		"null":                             {`"null"`, payment},
		"zero":                             {`"0"`, payment},
		"guest":                            {`"guest"`, payment},
		"none":                             {`"none"`, payment},
		"an object":                        {`"[object Object]"`, payment},
		"a control character within":       {`"10\n01"`, payment},
		"the longest":                      {`"` + strings.Repeat("ä", 200) + `"`, strings.Repeat("ä", 200)},
		"one character more":               {`"` + strings.Repeat("ä", 201) + `"`, payment},
		"as long as Stripe takes anything": {`"` + strings.Repeat("1", 500) + `"`, payment},
	} {
		t.Run(name, func(t *testing.T) {
			for fixtureName, replacement := range map[string]string{"stripe-session": `"metadata": {"order_id": ` + c.metadata + `, `, "stripe-refund": `"metadata": {"order_id": ` + c.metadata} {
				want := []string{"purchase-" + c.want + " 129.9 EUR since 11:59:00"}
				if fixtureName == "stripe-refund" {
					want = []string{"refund-" + c.want + "-ch_3QCharge-3000 20 EUR since 11:59:30"}
				}
				report, err := read(sources.Stripe, "", sources.Settings{}, fixture(t, fixtureName, `"metadata": {`, replacement))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, told(t, report)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", fixtureName, diff)
				}
			}
		})
	}
}

func TestWhatIsNoDocumentIsRefused(t *testing.T) {
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "{", "a list": "[]", "null": "null", "two objects": "{} {}",
		"an order without an id": `{"financial_status": "paid"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if report, err := read(sources.Shopify, "orders/paid", sources.Settings{}, []byte(body)); err == nil {
				t.Errorf("got %+v, want an error", report)
			}
		})
	}
}

func TestOnlyWhatTheShopHasSignedIsVerified(t *testing.T) {
	const secret, next = "whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH", "whsec_another"
	body := []byte(`{"id": 1}`)
	stripe := func(payload []byte, secret string, at time.Time) http.Header {
		signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: payload, Secret: secret, Timestamp: at})
		return http.Header{"Stripe-Signature": {signed.Header}}
	}
	// What sha256sum and base64 make of the body and the secret: openssl dgst -sha256 -hmac SECRET -binary | base64.
	const byOpenSSL = "DvUfeIF1LePMVxw3LA0zrR51/8udTFw8xLD+/Bk2Csw="
	shopify := func(signature string) http.Header { return http.Header{"X-Shopify-Hmac-Sha256": {signature}} }
	wooCommerce := func(signature string) http.Header { return http.Header{"X-Wc-Webhook-Signature": {signature}} }
	other := stripe(body, next, noon).Get("Stripe-Signature")
	for name, c := range map[string]struct {
		kind    sources.Type
		header  http.Header
		body    []byte
		secrets []string
		want    bool
	}{
		"Shopify":                             {sources.Shopify, shopify(byOpenSSL), body, []string{secret}, true},
		"Shopify, while the secret changes":   {sources.Shopify, shopify(byOpenSSL), body, []string{next, secret}, true},
		"Shopify, another secret":             {sources.Shopify, shopify(byOpenSSL), body, []string{next}, false},
		"Shopify, another body":               {sources.Shopify, shopify(byOpenSSL), []byte(`{"id": 2}`), []string{secret}, false},
		"Shopify, no signature":               {sources.Shopify, http.Header{}, body, []string{secret}, false},
		"Shopify, no secret":                  {sources.Shopify, shopify(byOpenSSL), body, nil, false},
		"Shopify, in another field":           {sources.Shopify, wooCommerce(byOpenSSL), body, []string{secret}, false},
		"WooCommerce":                         {sources.WooCommerce, wooCommerce(byOpenSSL), body, []string{secret}, true},
		"WooCommerce, no base64":              {sources.WooCommerce, wooCommerce("%"), body, []string{secret}, false},
		"WooCommerce, a part of it":           {sources.WooCommerce, wooCommerce(byOpenSSL[:20]), body, []string{secret}, false},
		"Stripe":                              {sources.Stripe, stripe(body, secret, noon), body, []string{secret}, true},
		"Stripe, one of two signatures":       {sources.Stripe, http.Header{"Stripe-Signature": {other + "," + strings.SplitN(stripe(body, secret, noon).Get("Stripe-Signature"), ",", 2)[1]}}, body, []string{secret}, true},
		"Stripe, another secret":              {sources.Stripe, stripe(body, next, noon), body, []string{secret}, false},
		"Stripe, another body":                {sources.Stripe, stripe(body, secret, noon), []byte(`{}`), []string{secret}, false},
		"Stripe, within the tolerance":        {sources.Stripe, stripe(body, secret, noon.Add(-5*time.Minute)), body, []string{secret}, true},
		"Stripe, replayed later":              {sources.Stripe, stripe(body, secret, noon.Add(-5*time.Minute-time.Second)), body, []string{secret}, false},
		"Stripe, of a time to come":           {sources.Stripe, stripe(body, secret, noon.Add(6*time.Minute)), body, []string{secret}, false},
		"Stripe, replayed under another time": {sources.Stripe, http.Header{"Stripe-Signature": {strings.Replace(stripe(body, secret, noon.Add(-time.Hour)).Get("Stripe-Signature"), fmt.Sprint(noon.Add(-time.Hour).Unix()), fmt.Sprint(noon.Unix()), 1)}}, body, []string{secret}, false},
		"Stripe, by another scheme than v1":   {sources.Stripe, http.Header{"Stripe-Signature": {strings.Replace(stripe(body, secret, noon).Get("Stripe-Signature"), "v1=", "v0=", 1)}}, body, []string{secret}, false},
		"Stripe, without a time":              {sources.Stripe, http.Header{"Stripe-Signature": {"v1=00"}}, body, []string{secret}, false},
		"Stripe, as Shopify signs":            {sources.Stripe, shopify(byOpenSSL), body, []string{secret}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shop.Verify(c.kind, c.header, c.body, c.secrets, noon); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

func TestAPingIsWooCommercesFormAlone(t *testing.T) {
	for body, want := range map[string]bool{
		"webhook_id=42": true, "webhook_id=": false, "webhook_id=4x": false, "webhook_id=4&a=b": false, `{"webhook_id": 42}`: false, "": false,
	} {
		if got := shop.IsPing(sources.WooCommerce, []byte(body)); got != want {
			t.Errorf("%q is a ping: %t, want %t", body, got, want)
		}
		if shop.IsPing(sources.Shopify, []byte(body)) {
			t.Errorf("%q is a ping of Shopify's", body)
		}
	}
}

// FuzzRead reads any document of any type: what it makes of it are purchases and refunds with ids of their order.
func FuzzRead(f *testing.F) {
	for i, name := range []string{"shopify-order", "shopify-refund", "woocommerce-order", "stripe-session", "stripe-intent", "stripe-refund"} {
		f.Add(uint8(i), []string{"orders/paid", "refunds/create", "order.updated", "", "", ""}[i], fixture(f, name))
	}
	f.Add(uint8(0), "orders/paid", []byte(`{"id": 1e999, "financial_status": "paid", "refunds": [{"id": [], "transactions": [7]}], "line_items": {"0": 1}}`))
	kinds := sources.Types()
	f.Fuzz(func(t *testing.T, kind uint8, topic string, body []byte) {
		report, err := read(kinds[int(kind)%len(kinds)], topic, sources.Settings{}, body)
		if err != nil {
			return
		}
		if len(report.Events) == 0 && report.Ignored == "" && report.Erasure == "" {
			t.Error("nothing is said")
		}
		told(t, report)
	})
}
