package v1alpha1

// Exclude says whose events are stored, but neither counted nor delivered: those of bots, and as internal those that one
// of the lists names. It is decided when an event arrives.
type Exclude struct {
	// Ranges of addresses that context.ip may be in, such as the office's: 203.0.113.0/24, 2001:db8::/32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	CIDRs []CIDR `json:"cidrs,omitempty"`

	// Hosts that context.page_url may have, such as staging.shop.example; *.shop.example is every host below that one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	Hosts []Host `json:"hosts,omitempty"`

	// The client_id of people such as testers, as it is sent: 1 to 255 characters.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	ClientIDs []ClientID `json:"clientIDs,omitempty"`

	// Whether programs that say so by context.user_agent are left out: crawlers, monitors, previews.
	// +optional
	// +kubebuilder:default=true
	Bots *bool `json:"bots,omitempty"`
}

// CIDR is a range of addresses.
//
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="self.matches('^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])([.](25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){3}/(3[0-2]|[12]?[0-9])|[0-9a-fA-F]{0,4}:[0-9a-fA-F:]*/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))$')",message="must be a range such as 203.0.113.0/24 or 2001:db8::/32; a single address ends with /32 or /128"
type CIDR string

// Host is a host, or every host below one.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?([.][a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*$')",message="must be a host in lower case, without scheme, port and path, such as staging.shop.example, or *.shop.example for every host below"
type Host string

// ClientID is a visitor, as senders know them.
//
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\s\p{Z}\p{Cc}]([^\p{Cc}]*[^\s\p{Z}\p{Cc}])?$')`,message="must be 1 to 255 characters without control characters or space around them"
type ClientID string

// Suppression is what becomes of the events of somebody who was erased for all time to come.
//
// +kubebuilder:validation:Enum=Anonymize;Refuse
type Suppression string

// The ways of suppression.
const (
	SuppressionAnonymize Suppression = "Anonymize"
	SuppressionRefuse    Suppression = "Refuse"
)
