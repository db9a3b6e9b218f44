package shop

import (
	"net/http"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/sources"
)

func verifyWooCommerce(header http.Header, body []byte, secret string, _ time.Time) bool {
	return signedBase64(header, "X-Wc-Webhook-Signature", body, secret)
}

// wooCommerceTopics are those whose document is an order.
var wooCommerceTopics = []string{"order.created", "order.updated", topicChanged}

// wooCommercePaid are the states of an order whose money has come.
var wooCommercePaid = []string{"processing", "completed", "refunded"}

// readWooCommerce reads an order with its refunds. A refund's own date is there where the order was read back from the
// shop; a webhook does not tell it, so there a refund is as old as the payment.
func readWooCommerce(_ *sources.Source, topic string, document any) (Report, error) {
	if !slices.Contains(wooCommerceTopics, topic) {
		return ignored("Webhooks of this topic make no event."), nil
	}
	order := text(at(document, "id"))
	paid := date(document, rule{from: "date_paid_gmt", as: utc}, rule{from: "date_created_gmt", as: utc})
	report := ignored("The order is not paid yet, or not any more.")
	if slices.Contains(wooCommercePaid, text(at(document, "status"))) {
		bought, err := purchase(wooCommercePurchase, map[string]any{"order": document}, order, paid)
		if err != nil {
			return Report{}, err
		}
		report = Report{Events: []Event{bought}}
	}
	refunds, _ := at(document, "refunds").([]any)
	for _, given := range refunds {
		when := date(given, rule{from: "date_created_gmt", as: utc})
		if when.IsZero() {
			when = paid
		}
		made, err := refund(wooCommerceRefund, map[string]any{"order": document, "refund": given}, order, text(at(given, "id")), when)
		if err != nil {
			return Report{}, err
		}
		report.Events, report.Ignored = append(report.Events, made), ""
	}
	return report, nil
}

var wooCommerceUser = []rule{
	{"user_id", "order.customer_id", id},
	{"user.email", "order.billing.email", nil},
	{"user.phone", "order.billing.phone|order.shipping.phone", phone},
	{"user.first_name", "order.billing.first_name|order.shipping.first_name", nil},
	{"user.last_name", "order.billing.last_name|order.shipping.last_name", nil},
	{"user.street", "order.billing.address_1|order.shipping.address_1", nil},
	{"user.city", "order.billing.city|order.shipping.city", nil},
	{"user.state", "order.billing.state|order.shipping.state", nil},
	{"user.zip", "order.billing.postcode|order.shipping.postcode", nil},
	{"user.country", "order.billing.country|order.shipping.country", nil},
	{"context.action_source", "order.created_via", named(map[string]string{"checkout": "web", "store-api": "web"})},
	{"data.currency", "order.currency", nil},
}

var wooCommercePurchase = join(wooCommerceUser, attributes("order.meta_data"), []rule{
	{"timestamp", "order.date_paid_gmt|order.date_created_gmt", utc},
	{"data.value", "order.total", nil},
	{"data.tax", "order.total_tax", nil},
	{"data.shipping", "order.shipping_total", nil},
	{"data.discount", "order.discount_total", nil},
	{"data.coupon", "order.coupon_lines.0.code", nil},
	{"data.contents", "order.line_items", each([]rule{
		{"id", "sku|product_id", id},
		{"name", "name", nil},
		{"quantity", "quantity", nil},
		{"price", "price", nil},
	})},
	{"context.ip", "order.customer_ip_address", nil},
	{"context.user_agent", "order.customer_user_agent", nil},
})

var wooCommerceRefund = join(wooCommerceUser, []rule{
	{"timestamp", "refund.date_created_gmt|order.date_modified_gmt", utc},
	{"data.value", "refund.amount|refund.total", magnitude},
})
