package envelope

import (
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
)

// How many there may be.
const (
	maxContents      = 100
	maxContacts      = 5
	maxProperties    = 50
	maxPropertyItems = 100
	maxSections      = 16
	maxPurposes      = 50
)

// itemShape keeps everything that an item has.
var itemShape = outline.Shape{Unknown: &unopened}

// propertiesShape opens lists, of which each element is judged.
var propertiesShape = outline.Shape{Unknown: &outline.Member{MaxElements: maxPropertyItems}}

var clickIDsShape = func() outline.Shape {
	shape := outline.Shape{Known: []outline.Member{{Name: event.SnapClickID}}}
	for _, name := range event.ClickIDNames {
		shape.Known = append(shape.Known, outline.Member{Name: name})
	}
	return shape
}()

// envelopeShape holds the members of an envelope that mean something to Weir.
var envelopeShape = outline.Shape{Known: append([]outline.Member{
	{Name: "event"}, {Name: "event_id"}, {Name: "client_id"}, {Name: "user_id"}, {Name: "session_id"},
	{Name: "engagement_time_msec"}, {Name: "timestamp"}, {Name: "test"},
	{Name: "user", Object: &outline.Shape{Known: []outline.Member{
		{Name: "email", MaxElements: maxContacts}, {Name: "phone", MaxElements: maxContacts}, {Name: "first_name"}, {Name: "last_name"},
		{Name: "street"}, {Name: "city"}, {Name: "state"}, {Name: "zip"}, {Name: "country"}, {Name: "date_of_birth"}, {Name: "gender"},
	}}},
	{Name: "data", Object: &outline.Shape{Known: append([]outline.Member{
		{Name: "tax"}, {Name: "shipping"}, {Name: "discount"}, {Name: "coupon"}, {Name: "search_term"}, {Name: "list_id"}, {Name: "list_name"},
	}, commerceMembers...)}},
	{Name: "properties", Object: &propertiesShape},
	{Name: "context", Object: &outline.Shape{Known: []outline.Member{
		{Name: "page_url"}, {Name: "referrer"}, {Name: "ip"}, {Name: "user_agent"},
		{Name: "utm_source"}, {Name: "utm_medium"}, {Name: "utm_campaign"}, {Name: "utm_term"}, {Name: "utm_content"},
		{Name: "page_title"}, {Name: "language"}, {Name: "action_source"},
		{Name: "click_ids", Object: &clickIDsShape},
	}}},
	{Name: "consent", Object: &outline.Shape{Known: []outline.Member{
		{Name: "ad_user_data"}, {Name: "ad_personalization"}, {Name: "ad_storage"}, {Name: "analytics_storage"},
		{Name: "tcf"}, {Name: "gpp"}, {Name: "gpp_sid", MaxElements: maxSections}, {Name: "us_privacy"}, {Name: "limited_data_use"},
		{Name: "categories", Object: &outline.Shape{Unknown: &unopened}},
	}}},
}, commerceMembers...)}

// commerceMembers stand in data or, in the older flat form, at the top level.
var commerceMembers = []outline.Member{
	{Name: "value"}, {Name: "currency"}, {Name: "order_id"}, {Name: "content_id"}, {Name: "content_name"},
	{Name: "contents", Elements: &itemShape, MaxElements: maxContents},
}

// unopened is a value that nothing is known of.
var unopened outline.Member
