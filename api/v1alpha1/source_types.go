package v1alpha1

import "github.com/weir-dev/weir/collector/sources"

// Source is a shop system that reports its orders and refunds to the collector.
type Source struct {
	// The last part of the path that the shop's webhooks are sent to: /sources/, an API key, and this name.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and '-', with no '-' at either end, such as shop"
	Name string `json:"name"`

	// The shop system, by whose rules webhooks are verified and read.
	// +required
	Type sources.Type `json:"type"`

	sources.Settings `json:",inline"`

	// The Secret whose key signingSecret signs the shop's webhooks; several of these with spaces between them while the
	// shop is moved from one to the next. The collector's pods alone have it.
	// +required
	SecretRef SecretReference `json:"secretRef"`

	// The Secret with which the shop's orders are read: what was missed while events could not be stored is fetched, and a
	// webhook that WooCommerce has disabled is switched on again. Its keys are accessToken for Shopify, consumerKey and
	// consumerSecret for WooCommerce, restrictedKey for Stripe. The deliverer's pods alone have it. Default: nothing is
	// fetched.
	// +optional
	APISecretRef *SecretReference `json:"apiSecretRef,omitempty"`
}
