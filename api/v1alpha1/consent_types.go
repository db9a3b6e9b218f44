package v1alpha1

import "github.com/weir-dev/weir/collector/platforms"

// Consent says by what rules visitors' decisions are kept. What each type of platform does without them is documented with
// it.
type Consent struct {
	// What becomes of an event whose visitor has said nothing of a purpose that a platform requires. Send: the platform
	// gets it. Withhold: it does not. Default: Send. It is not filled in. Where the operator demands Withhold of all
	// Properties, that holds whatever stands here.
	// +optional
	WhenAbsent platforms.WhenAbsent `json:"whenAbsent,omitempty"`

	// The purposes that names mean which consent.categories of events have, such as C0004: [ad_storage, ad_user_data,
	// ad_personalization], in place of what well-known names mean by themselves; none for a name that means nothing here.
	// Names are 1 to 100 characters without control characters, and their case counts.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule=`self.all(name, name.matches(r'^[^\p{Cc}]{1,100}$'))`,message="must map from names of 1 to 100 characters without control characters"
	Categories map[string]Purposes `json:"categories,omitempty"`

	// The platforms that have a rule of their own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Platforms []PlatformConsent `json:"platforms,omitempty"`
}

// Purposes are what visitors decide on.
//
// +listType=set
// +kubebuilder:validation:MaxItems=5
type Purposes []platforms.Purpose

// PlatformConsent is a platform's own rule.
type PlatformConsent struct {
	// The platform, by its name in spec.platforms.
	// +required
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	// The purposes of which a denial withholds an event from the platform. An empty list: none. Default: what its type
	// requires. It is not filled in.
	// +optional
	Requires *Purposes `json:"requires,omitempty"`

	// As spec.consent.whenAbsent, for this platform. Default: what holds for all.
	// +optional
	WhenAbsent platforms.WhenAbsent `json:"whenAbsent,omitempty"`
}
