// Package sources says, once for the Property, the operator and the pods, what a shop system is that reports its orders
// to the collector: the keys of its Secrets, and what has to be known to read its orders back. How a shop's webhooks are
// verified and read is the business of package shop.
//
// The markers are read by controller-gen: the settings are the Property's own. What the pods check again is the traits',
// and a test holds the two against each other.
package sources

import (
	"maps"
	"net/url"
	"slices"
)

// Type discriminates sources.
//
// +kubebuilder:validation:Enum=Shopify;Stripe;WooCommerce
type Type string

// The types.
const (
	Shopify     Type = "Shopify"
	Stripe      Type = "Stripe"
	WooCommerce Type = "WooCommerce"
)

// table has a row for every type.
var table = map[Type]Traits{
	Shopify:     {APICredentials: []string{"accessToken"}, HasURL: true},
	Stripe:      {APICredentials: []string{"restrictedKey"}, APIURL: "https://api.stripe.com"},
	WooCommerce: {APICredentials: []string{"consumerKey", "consumerSecret"}, HasURL: true},
}

// SigningSecret is the key, of the Secret that every source has, whose value signs its webhooks: one secret, or several
// with white space between them while the shop is moved from one to the next.
const SigningSecret = "signingSecret"

// Traits is what is known of a type without speaking to it.
type Traits struct {
	// APICredentials are the keys of the Secret with which the shop's orders are read.
	APICredentials []string
	// HasURL says that each shop has an API of its own, at the source's URL.
	HasURL bool
	// APIURL is where the API of all is; "" where HasURL.
	APIURL string
}

// Settings are what of a source is not secret.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:XValidation:rule="!has(self.apiSecretRef) || self.type == 'Stripe' || has(self.url)",fieldPath=".url",message="must be set beside apiSecretRef, such as https://example.myshopify.com or https://shop.example.com",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.url) || self.type != 'Stripe'",fieldPath=".url",message="must be absent for a source of type Stripe",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.stripe) || self.type == 'Stripe'",fieldPath=".stripe",message="must be absent unless type is Stripe",reason=FieldValueForbidden
type Settings struct {
	// Where the shop's own API is: https://example.myshopify.com for Shopify, the site's address for WooCommerce. Needed
	// where apiSecretRef is set.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != ''",message="must be an https URL with a host, such as https://shop.example.com"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must hold no user name or password: they belong in the Secret that apiSecretRef names"
	URL string `json:"url,omitempty"`

	// What of Stripe's events is an order.
	// +optional
	Stripe *StripeSettings `json:"stripe,omitempty"`
}

// StripeSettings configure a source of type Stripe.
type StripeSettings struct {
	// Which of Stripe's events make purchases: one order has both. CheckoutSessions: those of Checkout and of Payment
	// Links. PaymentIntents: those of payment forms of one's own, and of invoices. Default: CheckoutSessions.
	// +optional
	Purchases StripePurchases `json:"purchases,omitempty"`
}

// StripePurchases is which of Stripe's objects an order is.
//
// +kubebuilder:validation:Enum=CheckoutSessions;PaymentIntents
type StripePurchases string

// The values of [StripePurchases]; absent is CheckoutSessions.
const (
	CheckoutSessions StripePurchases = "CheckoutSessions"
	PaymentIntents   StripePurchases = "PaymentIntents"
)

// Source is one shop that reports its orders, as the pods know it. It holds no secret.
type Source struct {
	// Name is the last part of the path that the shop's webhooks are sent to.
	Name string `json:"name"`
	Type Type   `json:"type"`
	// ReadsOrders says that there are credentials for the shop's API: what was missed is fetched there.
	ReadsOrders bool `json:"readsOrders,omitempty"`

	Settings `json:",inline"`
}

// Traits returns the type's traits and whether the type is known.
func (t Type) Traits() (Traits, bool) {
	traits, ok := table[t]
	return traits, ok
}

// Types returns all types, sorted.
func Types() []Type { return slices.Sorted(maps.Keys(table)) }

// APIBase is the URL below which the shop's API is, "" where nobody has said.
func (s *Source) APIBase() string {
	traits := table[s.Type]
	if s.URL != "" {
		return s.URL
	}
	return traits.APIURL
}

// Check calls wrong for each member that does not belong to the source's type, which is known, or is not what it takes:
// with its path below the source and what would be right.
func (s *Source) Check(wrong func(member, rule string)) {
	traits := table[s.Type]
	base, err := url.Parse(s.URL)
	switch {
	case s.URL != "" && (err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Hostname() == "" || base.User != nil):
		wrong("url", "must be an https URL with a host, such as https://shop.example.com")
	case s.URL == "" && traits.HasURL && s.ReadsOrders:
		wrong("url", "must be set where orders are read")
	}
	switch {
	case s.Stripe == nil:
	case s.Type != Stripe:
		wrong("stripe", "must be absent unless type is Stripe")
	case !slices.Contains([]StripePurchases{"", CheckoutSessions, PaymentIntents}, s.Stripe.Purchases):
		wrong("stripe.purchases", "must be one of CheckoutSessions, PaymentIntents, or absent")
	}
}
