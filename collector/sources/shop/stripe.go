package shop

import (
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
	"github.com/weir-dev/weir/collector/sources"
)

// stripeTolerance is how far a signature's time may be from ours: what is older may be a replay.
const stripeTolerance = 5 * time.Minute

// verifyStripe reads "t=SECONDS,v1=HEX,…"; there is a v1 for each secret of the endpoint while one is rotated.
func verifyStripe(header http.Header, body []byte, secret string, now time.Time) bool {
	var seconds string
	var signatures [][]byte
	for part := range strings.SplitSeq(header.Get("Stripe-Signature"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			seconds = value
		case "v1":
			if signature, err := hex.DecodeString(value); err == nil {
				signatures = append(signatures, signature)
			}
		}
	}
	signed, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || now.Sub(time.Unix(signed, 0)).Abs() > stripeTolerance {
		return false
	}
	want := sign(secret, []byte(seconds), []byte("."), body)
	return slices.ContainsFunc(signatures, func(signature []byte) bool { return hmac.Equal(signature, want) })
}

const stripeRefunded = "charge.refunded"

// stripePurchases are the types of events that make purchases, by which of Stripe's objects an order is.
var stripePurchases = map[sources.StripePurchases][]string{
	sources.CheckoutSessions: {"checkout.session.completed", "checkout.session.async_payment_succeeded"},
	sources.PaymentIntents:   {"payment_intent.succeeded"},
}

// stripeTypes are the types of events that are anything to a source.
func stripeTypes(source *sources.Source) []string {
	purchases := sources.CheckoutSessions
	if source.Stripe != nil && source.Stripe.Purchases != "" {
		purchases = source.Stripe.Purchases
	}
	return append(slices.Clone(stripePurchases[purchases]), stripeRefunded)
}

// readStripe reads an event of Stripe's. A payment's id, or the order's id that the shop has given it, goes through
// session, payment and charge alike.
func readStripe(source *sources.Source, topic string, document any) (Report, error) {
	if !slices.Contains(stripeTypes(source), topic) {
		return ignored("Events of this type make none of ours for this source."), nil
	}
	object := at(document, "data.object")
	order := stripeOrder(object)
	when := date(document, rule{from: "created", as: unix})
	root := map[string]any{"event": document, "object": object, "test": at(document, "livemode") == false}
	stripeAmounts(root, object)
	var made Event
	var err error
	switch {
	case topic == stripeRefunded:
		refunded, was := whole(at(object, "amount_refunded")), whole(at(document, "data.previous_attributes.amount_refunded"))
		root["value"] = minorUnits(refunded-was, text(at(object, "currency")))
		// The charge does not tell the refund's id any more, but how much has been refunded with it. An order may have
		// several charges.
		made, err = refund(stripeRefund, root, order, text(at(object, "id"))+"-"+strconv.FormatInt(refunded, 10), when)
	case topic == "payment_intent.succeeded":
		made, err = purchase(stripeIntent, root, order, when)
	case !slices.Contains([]string{"paid", "no_payment_required"}, text(at(object, "payment_status"))) || at(object, "amount_total") == nil:
		return ignored("The session is not paid yet."), nil
	default:
		made, err = purchase(stripeSession, root, order, when)
	}
	if err != nil {
		return Report{}, err
	}
	return Report{Events: []Event{made}}, nil
}

// maxStripeOrder is how many characters an order's id may have for those of its events, with the charge's in it, to be
// none too many: 255. Metadata may have 500.
const maxStripeOrder = 200

// stripeOrder returns the order's id that the shop has written to the metadata of an object, the payment's where that is
// none: what a program writes for an id that it does not have would make one order of all.
func stripeOrder(object any) string {
	own := personal.WithoutNobody(personal.Trim(text(at(object, "metadata.order_id"))))
	if own != "" && utf8.RuneCountInString(own) <= maxStripeOrder && !strings.ContainsFunc(own, unicode.IsControl) {
		return own
	}
	return text(at(object, "payment_intent|id"))
}

// stripeAmounts puts the amounts of an object beside it, in units of its currency.
func stripeAmounts(root map[string]any, object any) {
	currency := text(at(object, "currency"))
	for name, path := range map[string]string{
		"value": "amount_total|amount_received", "tax": "total_details.amount_tax",
		"shipping": "total_details.amount_shipping", "discount": "total_details.amount_discount",
	} {
		if found := at(object, path); found != nil {
			root[name] = minorUnits(whole(found), currency)
		}
	}
}

// whole reads an integer; what is none, or beyond any amount, is one that no amount may be.
func whole(value any) int64 {
	number, isNumber := value.(json.Number)
	if value == nil {
		return 0
	}
	n, err := number.Int64()
	if !isNumber || err != nil || n > math.MaxInt64/2 || n < 0 {
		return math.MaxInt64 / 2
	}
	return n
}

// stripeUnits are where Stripe's amounts are in other parts of a currency than ISO 4217's minor unit: because they once
// had other ones, or because nobody pays in them.
var stripeUnits = map[string]event.Amount{"ISK": 100, "UGX": 100, "MGA": 10000}

// minorUnits returns an amount in the unit of its currency.
func minorUnits(n int64, currency string) any {
	currency = strings.ToUpper(currency)
	unit, other := stripeUnits[currency]
	if !other {
		unit = event.MinorUnit(currency)
	}
	if n > int64(event.MaxAmount)/int64(unit) {
		return json.Number(strconv.FormatInt(n, 10)) // beyond any amount, as Validate says
	}
	return json.Number((event.Amount(n) * unit).String())
}

var stripeEvent = join(attributes("object.metadata"), []rule{
	{"timestamp", "event.created", unix},
	{"test", "test", nil},
	{"user_id", "object.metadata.user_id", id},
	{"data.value", "value", nil},
	{"data.currency", "object.currency", nil},
})

// stripePerson are the members of a person, whose details stand below one path and name and address below another.
func stripePerson(details string) []rule {
	below := func(paths ...string) string {
		var all []string
		for _, path := range paths {
			for parent := range strings.SplitSeq(details, "|") {
				all = append(all, "object."+parent+"."+path)
			}
		}
		return strings.Join(all, "|")
	}
	return []rule{
		{"user.email", below("email") + "|object.receipt_email|object.customer_email", nil},
		{"user.phone", below("phone"), phone},
		{"user.first_name", below("name"), firstName},
		{"user.last_name", below("name"), lastName},
		{"user.street", below("address.line1"), nil},
		{"user.city", below("address.city"), nil},
		{"user.state", below("address.state"), nil},
		{"user.zip", below("address.postal_code"), nil},
		{"user.country", below("address.country"), nil},
	}
}

var (
	stripeSession = join(stripeEvent, stripePerson("customer_details"), []rule{
		{"data.tax", "tax", nil},
		{"data.shipping", "shipping", nil},
		{"data.discount", "discount", nil},
		{"context.language", "object.locale", nil},
	})
	stripeIntent = join(stripeEvent, stripePerson("latest_charge.billing_details|charges.data.0.billing_details|shipping"))
	stripeRefund = join(stripeEvent, stripePerson("billing_details|shipping"))
)
