package envelope

import "github.com/weir-dev/weir/collector/event"

// maxContents is how many items an event may have.
const maxContents = 100

// itemShape keeps everything that an item has.
var itemShape = objectShape{keepUnknown: true}

var clickIDsShape = func() objectShape {
	var shape objectShape
	for _, name := range event.ClickIDNames {
		shape.known = append(shape.known, knownMember{name: name})
	}
	return shape
}()

// envelopeShape holds the members of an envelope that mean something to Weir.
var envelopeShape = objectShape{known: append([]knownMember{
	{name: "event"}, {name: "event_id"}, {name: "client_id"}, {name: "timestamp"},
	{name: "user", object: &objectShape{known: []knownMember{{name: "email"}, {name: "phone"}, {name: "first_name"}}}},
	{name: "data", object: &objectShape{known: commerceMembers}},
	{name: "context", object: &objectShape{known: []knownMember{
		{name: "page_url"}, {name: "referrer"}, {name: "ip"}, {name: "user_agent"},
		{name: "utm_source"}, {name: "utm_medium"}, {name: "utm_campaign"}, {name: "utm_term"}, {name: "utm_content"},
		{name: "click_ids", object: &clickIDsShape},
	}}},
	{name: "consent", object: &objectShape{known: []knownMember{{name: "ad_user_data"}, {name: "ad_personalization"}}}},
}, commerceMembers...)}

// commerceMembers stand in data or, in the older flat form, at the top level.
var commerceMembers = []knownMember{
	{name: "value"}, {name: "currency"}, {name: "order_id"}, {name: "content_id"}, {name: "content_name"},
	{name: "contents", elements: &itemShape, maxElements: maxContents},
}
