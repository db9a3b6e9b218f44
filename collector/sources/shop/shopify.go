package shop

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/sources"
)

func verifyShopify(header http.Header, body []byte, secret string, _ time.Time) bool {
	return signedBase64(header, "X-Shopify-Hmac-Sha256", body, secret)
}

// shopifyErasures are the topics that every app of Shopify's has to answer.
var shopifyErasures = []string{"customers/data_request", shopifyRedact, "shop/redact"}

// shopifyRedact asks that a customer be erased.
const shopifyRedact = "customers/redact"

// shopifySubject names a customer as [shopifyUser] does.
var shopifySubject = []rule{
	{"user_id", "customer.id", id},
	{"email", "customer.email", nil},
	{"phone", "customer.phone", phone},
}

// shopifyJustPaid are the topics that are told once, at the time at which an order was changed last: an order may be paid
// weeks after it was made.
var shopifyJustPaid = []string{"orders/paid", "orders/create"}

// shopifyTopics are those whose document is an order.
var shopifyTopics = []string{"orders/paid", "orders/create", "orders/updated", "orders/cancelled", topicChanged}

// shopifyPaid are the states of an order whose money has come.
var shopifyPaid = []string{"paid", "partially_refunded", "refunded"}

// readShopify reads an order, with its refunds, or a refund by itself.
func readShopify(_ *sources.Source, topic string, document any) (Report, error) {
	switch {
	case slices.Contains(shopifyErasures, topic):
		report := Report{Erasure: topic}
		if topic == shopifyRedact {
			report.Subject = subject(shopifySubject, document)
		}
		return report, nil
	case topic == "refunds/create":
		order := map[string]any{"id": at(document, "order_id")}
		return shopifyRefunds(order, []any{document})
	case !slices.Contains(shopifyTopics, topic):
		return ignored("Webhooks of this topic make no event."), nil
	case !slices.Contains(shopifyPaid, text(at(document, "financial_status"))):
		return ignored("The order is not paid yet."), nil
	}
	when := date(document, rule{from: "processed_at"}, rule{from: "created_at"})
	if slices.Contains(shopifyJustPaid, topic) {
		when = date(document, rule{from: "updated_at"}, rule{from: "created_at"})
	}
	bought, err := purchase(shopifyPurchase, map[string]any{"order": document}, text(at(document, "id")), when)
	if err != nil {
		return Report{}, err
	}
	refunds, _ := at(document, "refunds").([]any)
	report, err := shopifyRefunds(document, refunds)
	report.Ignored = ""
	report.Events = append([]Event{bought}, report.Events...)
	return report, err
}

// shopifyRefunds reads refunds of an order. One that gives no money back, as where goods are only put back on stock, is
// no event, and neither is one whose money is still on its way: the order tells of it again when it has come or failed.
func shopifyRefunds(order any, refunds []any) (Report, error) {
	report := ignored("No money was given back, or it is on its way.")
	for _, given := range refunds {
		sums := shopifyRefunded(order, given)
		for _, sum := range sums {
			document := map[string]any{"order": order, "refund": given, "value": sum.value, "currency": sum.currency, "test": shopifyTest(order, given)}
			id := text(at(given, "id"))
			if len(sums) > 1 && id != "" {
				id += "-" + sum.currency
			} else {
				document["lines"] = at(given, "refund_line_items") // which no currency of several has a part of
			}
			made, err := refund(shopifyRefund, document, text(at(order, "id")), id,
				date(given, rule{from: "processed_at"}, rule{from: "created_at"}))
			if err != nil {
				return Report{}, err
			}
			report.Events, report.Ignored = append(report.Events, made), ""
		}
	}
	return report, nil
}

// shopifyOnItsWay are the states of a transaction that is neither done nor failed.
var shopifyOnItsWay = []string{"pending", "awaiting_response"}

// shopifySum is what is given back in one currency.
type shopifySum struct {
	currency, value string
	sum             event.Amount
}

// shopifyRefunded adds up what a refund gives back, by currency; nothing as long as a part of it is on its way.
func shopifyRefunded(order, given any) []shopifySum {
	transactions, _ := at(given, "transactions").([]any)
	var sums []shopifySum
	for _, transaction := range transactions {
		status := text(at(transaction, "status"))
		switch {
		case text(at(transaction, "kind")) != "refund":
			continue
		case slices.Contains(shopifyOnItsWay, status):
			return nil
		case status != "success":
			continue
		}
		currency := strings.ToUpper(text(at(transaction, "currency")))
		if currency == "" {
			currency = strings.ToUpper(text(at(order, "presentment_currency|currency")))
		}
		i := slices.IndexFunc(sums, func(sum shopifySum) bool { return sum.currency == currency })
		if i < 0 {
			i = len(sums)
			sums = append(sums, shopifySum{currency: currency})
		}
		amount, err := event.ParseAmount(text(at(transaction, "amount")))
		if err != nil || amount > event.MaxAmount-max(sums[i].sum, 0) {
			sums[i].value = "?" // which Validate refuses, in its words
			continue
		}
		sums[i].sum += amount
	}
	for i := range sums {
		if sums[i].value == "" && sums[i].sum > 0 {
			sums[i].value = sums[i].sum.String()
		}
	}
	return slices.DeleteFunc(sums, func(sum shopifySum) bool { return sum.value == "" })
}

// shopifyTest says whether an order is a test, or money of a refund is. A refund that comes by itself knows nothing of its
// order.
func shopifyTest(order, given any) bool {
	transactions, _ := at(given, "transactions").([]any)
	return at(order, "test") == true || slices.ContainsFunc(transactions, func(transaction any) bool { return at(transaction, "test") == true })
}

var shopifyUser = []rule{
	{"user_id", "order.customer.id", id},
	{"user.email", "order.email|order.contact_email|order.customer.email", nil},
	{"user.phone", "order.phone|order.billing_address.phone|order.customer.phone|order.shipping_address.phone", phone},
	{"user.first_name", "order.customer.first_name|order.billing_address.first_name|order.shipping_address.first_name", nil},
	{"user.last_name", "order.customer.last_name|order.billing_address.last_name|order.shipping_address.last_name", nil},
	{"user.street", "order.billing_address.address1|order.shipping_address.address1", nil},
	{"user.city", "order.billing_address.city|order.shipping_address.city", nil},
	{"user.state", "order.billing_address.province_code|order.shipping_address.province_code", nil},
	{"user.zip", "order.billing_address.zip|order.shipping_address.zip", nil},
	{"user.country", "order.billing_address.country_code|order.shipping_address.country_code", nil},
	{"context.action_source", "order.source_name", named(map[string]string{"web": "web", "pos": "physical_store", "iphone": "physical_store", "android": "physical_store"})},
}

// shopifyPurchase takes money as the buyer has paid it, where Shopify says that: refunds are in that currency as well.
var shopifyPurchase = join(shopifyUser, attributes("order.note_attributes"), []rule{
	{"timestamp", "order.processed_at|order.created_at", nil},
	{"test", "order.test", nil},
	{"data.value", "order.total_price_set.presentment_money.amount|order.total_price", nil},
	{"data.currency", "order.total_price_set.presentment_money.currency_code|order.currency", nil},
	{"data.tax", "order.total_tax_set.presentment_money.amount|order.total_tax", nil},
	{"data.shipping", "order.total_shipping_price_set.presentment_money.amount", nil},
	{"data.discount", "order.total_discounts_set.presentment_money.amount|order.total_discounts", nil},
	{"data.coupon", "order.discount_codes.0.code", nil},
	{"data.contents", "order.line_items", each([]rule{
		{"id", "sku|variant_id|product_id", id},
		{"name", "title|name", nil},
		{"variant", "variant_title", nil},
		{"brand", "vendor", nil},
		{"quantity", "quantity", nil},
		{"price", "price_set.presentment_money.amount|price", nil},
	})},
	{"context.ip", "order.browser_ip|order.client_details.browser_ip", nil},
	{"context.user_agent", "order.client_details.user_agent", nil},
	{"context.language", "order.customer_locale", nil},
})

var shopifyRefund = join(shopifyUser, []rule{
	{"timestamp", "refund.processed_at|refund.created_at", nil},
	{"test", "test", nil},
	{"data.value", "value", nil},
	{"data.currency", "currency", nil},
	{"data.contents", "lines", each([]rule{
		{"id", "line_item.sku|line_item.variant_id|line_item.product_id", id},
		{"name", "line_item.title", nil},
		{"quantity", "quantity", nil},
		{"price", "line_item.price_set.presentment_money.amount|line_item.price", nil},
	})},
})
