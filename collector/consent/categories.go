package consent

import (
	"strings"

	"github.com/weir-dev/weir/collector/platforms"
)

// Categories says which purposes the names mean that a customer, or what manages consent for them, has for what visitors
// decide on. A name that is not among them means what [known] says, in any case of its letters, or nothing.
type Categories map[string]Purposes

// NewCategories returns those of a Property.
func NewCategories(own map[string][]platforms.Purpose) Categories {
	categories := make(Categories, len(own))
	for name, purposes := range own {
		categories[name] = named(purposes)
	}
	return categories
}

// known are names that mean the same wherever they are used: those of OneTrust, Cookiebot, CookieYes, the WP Consent API
// and Segment's own examples, and the purposes' own.
var known = map[string]Purposes{
	"ad_storage":         Of(AdStorage),
	"ad_user_data":       Of(AdUserData),
	"ad_personalization": Of(AdPersonalization),
	"analytics_storage":  Of(AnalyticsStorage),
	"sale":               Of(Sale),

	"c0002":       Of(AnalyticsStorage), // OneTrust: performance
	"analytics":   Of(AnalyticsStorage),
	"performance": Of(AnalyticsStorage),
	"statistics":  Of(AnalyticsStorage),

	"c0004":         ads, // OneTrust: targeting
	"c0005":         ads, // OneTrust: social media
	"advertisement": ads,
	"advertising":   ads,
	"marketing":     ads,
	"social_media":  ads,
	"targeting":     ads,

	"data_sharing": Of(Sale),
	"datasharing":  Of(Sale),
	"sale_of_data": Of(Sale),
	"saleofdata":   Of(Sale),
}

// Of returns the purposes that a name means.
func (c Categories) Of(name string) Purposes {
	if purposes, own := c[name]; own {
		return purposes
	}
	return known[strings.ToLower(name)]
}
