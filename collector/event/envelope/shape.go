package envelope

import "github.com/weir-dev/weir/collector/event"

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
var itemShape = objectShape{unknown: &unopened}

// propertiesShape opens lists, of which each element is judged.
var propertiesShape = objectShape{unknown: &knownMember{maxElements: maxPropertyItems}}

var clickIDsShape = func() objectShape {
	shape := objectShape{known: []knownMember{{name: snapClickID}}}
	for _, name := range event.ClickIDNames {
		shape.known = append(shape.known, knownMember{name: name})
	}
	return shape
}()

// envelopeShape holds the members of an envelope that mean something to Weir.
var envelopeShape = objectShape{known: append([]knownMember{
	{name: "event"}, {name: "event_id"}, {name: "client_id"}, {name: "user_id"}, {name: "session_id"},
	{name: "engagement_time_msec"}, {name: "timestamp"}, {name: "test"},
	{name: "user", object: &objectShape{known: []knownMember{
		{name: "email", maxElements: maxContacts}, {name: "phone", maxElements: maxContacts}, {name: "first_name"}, {name: "last_name"},
		{name: "street"}, {name: "city"}, {name: "state"}, {name: "zip"}, {name: "country"}, {name: "date_of_birth"}, {name: "gender"},
	}}},
	{name: "data", object: &objectShape{known: append([]knownMember{
		{name: "tax"}, {name: "shipping"}, {name: "discount"}, {name: "coupon"}, {name: "search_term"}, {name: "list_id"}, {name: "list_name"},
	}, commerceMembers...)}},
	{name: "properties", object: &propertiesShape},
	{name: "context", object: &objectShape{known: []knownMember{
		{name: "page_url"}, {name: "referrer"}, {name: "ip"}, {name: "user_agent"},
		{name: "utm_source"}, {name: "utm_medium"}, {name: "utm_campaign"}, {name: "utm_term"}, {name: "utm_content"},
		{name: "page_title"}, {name: "language"}, {name: "action_source"},
		{name: "click_ids", object: &clickIDsShape},
	}}},
	{name: "consent", object: &objectShape{known: []knownMember{
		{name: "ad_user_data"}, {name: "ad_personalization"}, {name: "ad_storage"}, {name: "analytics_storage"},
		{name: "tcf"}, {name: "gpp"}, {name: "gpp_sid", maxElements: maxSections}, {name: "us_privacy"}, {name: "limited_data_use"},
		{name: "categories", object: &objectShape{unknown: &unopened}},
	}}},
}, commerceMembers...)}

// commerceMembers stand in data or, in the older flat form, at the top level.
var commerceMembers = []knownMember{
	{name: "value"}, {name: "currency"}, {name: "order_id"}, {name: "content_id"}, {name: "content_name"},
	{name: "contents", elements: &itemShape, maxElements: maxContents},
}
