package platforms

// Purpose is what visitors decide on, by the name that senders and the Property have for it. The domain has what each means.
//
// +kubebuilder:validation:Enum=ad_storage;ad_user_data;ad_personalization;analytics_storage;sale
type Purpose string

// The purposes: the four of Google's consent mode, and what laws of American states let people opt out of.
const (
	AdStorage         Purpose = "ad_storage"
	AdUserData        Purpose = "ad_user_data"
	AdPersonalization Purpose = "ad_personalization"
	AnalyticsStorage  Purpose = "analytics_storage"
	Sale              Purpose = "sale"
)

// Purposes returns all of them.
func Purposes() []Purpose {
	return []Purpose{AdStorage, AdUserData, AdPersonalization, AnalyticsStorage, Sale}
}

// WhenAbsent says what becomes of an event whose visitor has said nothing of a purpose that the platform needs.
//
// +kubebuilder:validation:Enum=Send;Withhold
type WhenAbsent string

// The values of a [WhenAbsent]; "" is Send.
const (
	Send     WhenAbsent = "Send"
	Withhold WhenAbsent = "Withhold"
)

// Consent is what a type makes of visitors' decisions. Each type's page in docs/reference/platforms has the reasons.
type Consent struct {
	// Requires are the purposes of which a denial withholds an event.
	Requires []Purpose
	// Limits are those of which a denial is passed on: the platform gets the event in a milder form.
	Limits []Purpose
	// TCF is what the platform has declared in IAB Europe's framework.
	TCF TCF
	// Identifiers are those that it cannot do without or tells people by.
	Identifiers Identifiers
}

// ConsentRule is what one platform of a Property makes of visitors' decisions.
type ConsentRule struct {
	// Consent is the type's, with what the Property requires in place of what the type does.
	Consent
	// Own says that Requires is the Property's.
	Own        bool
	WhenAbsent WhenAbsent
	// Categories are the purposes that senders' names for what visitors decide on mean, beside the well-known ones.
	Categories map[string][]Purpose
}

// TCF is an entry of the Global Vendor List, as far as it matters for purposes 1, 3, 4 and 7.
type TCF struct {
	// Vendor is the number of the entry; 0 where the platform has none, so that what counts are the purposes alone.
	Vendor int
	// LegitimateInterest are the purposes whose legal basis is not consent, Flexible those whose basis a publisher may change.
	LegitimateInterest, Flexible []int
}

// Identifiers are what of an event tells the visitor again.
type Identifiers struct{ ClientID, UserID, SessionID bool }

// advertising is what types have in common whose business is advertising: they match people by what devices keep, get
// personal data and show personal advertisements, and each is a purpose of its own. None of them is in the Global Vendor
// List in the role of who receives these events. Of the opt-outs of American states they want to be told.
var advertising = Consent{
	Requires:    []Purpose{AdStorage, AdUserData, AdPersonalization},
	Limits:      []Purpose{Sale},
	Identifiers: Identifiers{ClientID: true, UserID: true},
}
