package segment

import (
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// Rename says what an event is called here that Segment's e-commerce specification has a name for.
type Rename struct {
	// From is the name in the specification, To the one in Weir.
	From, To string
	// Product says that the event's own properties are those of the one product that it is about.
	Product bool
}

// Renames are the names of track calls that are translated; all others stay as they are. Neither case matters nor whether
// words are parted by spaces or by underscores. The second half are names of the specification's first version.
var Renames = []Rename{
	{From: "Products Searched", To: "search"},
	{From: "Product List Viewed", To: "view_item_list"},
	{From: "Product Clicked", To: "select_item", Product: true},
	{From: "Product Viewed", To: "view_content", Product: true},
	{From: "Product Added", To: event.AddToCart, Product: true},
	{From: "Product Removed", To: "remove_from_cart", Product: true},
	{From: "Product Added to Wishlist", To: "add_to_wishlist", Product: true},
	{From: "Cart Viewed", To: "view_cart"},
	{From: "Checkout Started", To: "begin_checkout"},
	{From: "Payment Info Entered", To: "add_payment_info"},
	{From: "Order Completed", To: event.Purchase},
	{From: "Order Refunded", To: event.Refund},
	{From: "Promotion Viewed", To: "view_promotion"},
	{From: "Promotion Clicked", To: "select_promotion"},
	{From: "Product Shared", To: "share", Product: true},
	{From: "Cart Shared", To: "share"},
	{From: "Signed Up", To: "sign_up"},
	{From: "Signed In", To: "login"},

	{From: "Viewed Product Category", To: "view_item_list"},
	{From: "Viewed Product", To: "view_content", Product: true},
	{From: "Added Product", To: event.AddToCart, Product: true},
	{From: "Removed Product", To: "remove_from_cart", Product: true},
	{From: "Completed Order", To: event.Purchase},
	{From: "Refunded Order", To: event.Refund},
}

// Names of what the other calls are.
const (
	pageEvent   = event.Pageview
	screenEvent = "screen_view"
)

// accepts says which JSON values a row takes. What it does not take is looked for in the row's next place, and a property
// that no row takes is one of the customer's own.
type accepts uint8

const (
	texts accepts = 1 << iota
	numbers
	lists
	objects
	others // true, false
)

// Row says where a member of an envelope is read from.
type Row struct {
	// To is the member.
	To string
	// From are the places in a message, the first that has a value which can be read wins. Behind "*" any member is looked into.
	From []string
	// aside is a row of no member: what it reads goes into another's, or is told by one.
	aside bool
	// always is the member's value where it is read from no place, "" for none.
	always string
	// takes is what the row takes as the value, and quoted that it makes texts of numbers.
	takes  accepts
	quoted bool
	// edit brings the value's text into the form that the envelope wants, "" for none; nil leaves it.
	edit func(raw string) string
}

// rowsOf lists the rows of a call, in the order of the envelope's members: members of one object stand together.
func rowsOf(c call) []Row {
	rows := []Row{
		{To: "client_id", From: []string{"anonymousId"}, takes: texts | numbers | lists | objects | others},
		{To: "user_id", From: []string{"userId"}, takes: texts | numbers | lists | objects | others},
		{To: "session_id", From: []string{"context.sessionId", "properties.session_id"}, takes: texts | numbers},
	}
	rows = append(rows, personRows...)
	rows = append(rows, dataRows(c)...)
	rows = append(rows, contextRows(c)...)
	if c == page { // which the page's address says already
		rows = append(rows, Row{To: "context.page_path", From: []string{"properties.path"}, takes: texts, aside: true})
	}
	return rows
}

// pageSearch is the row of a page's query, which belongs to its address.
const pageSearch = "context.page_search"

// traits are the places of a member of the person's traits, under each of its names.
func traits(names ...string) []string {
	var places []string
	for _, object := range []string{"context.traits.", "traits."} {
		for _, name := range names {
			places = append(places, object+name)
		}
	}
	return places
}

// told are the places of something that tells of a person in the traits, else in the properties of the event.
func told(names ...string) []string {
	places := traits(names...)
	for _, name := range names {
		places = append(places, "properties."+name)
	}
	return places
}

// address are the places of a member of a person's address.
func address(names ...string) []string {
	var places []string
	for _, name := range names {
		places = append(places, traits("address."+name)...)
	}
	for _, object := range addresses {
		for _, name := range names {
			places = append(places, "properties."+object+"."+name)
		}
	}
	return places
}

// addresses are properties that tell where a person lives: they are never among the customer's own.
var addresses = []string{"address", "billing_address", "shipping_address"}

// personRows are the same for all calls.
var personRows = []Row{
	{To: "user.email", From: told("email"), takes: texts, edit: addressOrHash},
	{To: "user.phone", From: told("phone"), takes: texts, edit: internationalNumber},
	{To: "user.first_name", From: told("firstName", "first_name"), takes: texts},
	{To: "user.last_name", From: told("lastName", "last_name"), takes: texts},
	{To: "user.street", From: address("street"), takes: texts},
	{To: "user.city", From: address("city"), takes: texts},
	{To: "user.state", From: address("state"), takes: texts},
	{To: "user.zip", From: address("postalCode", "postal_code", "zip"), takes: texts | numbers},
	{To: "user.country", From: address("country"), takes: texts},
	{To: "user.date_of_birth", From: told("birthday"), takes: texts, edit: dayOf},
	{To: "user.gender", From: told("gender"), takes: texts},
}

func dataRows(c call) []Row {
	value := []string{"properties.value", "properties.revenue", "properties.total"}
	if c == paid {
		value = []string{"properties.total", "properties.revenue", "properties.value"}
	}
	rows := []Row{
		{To: "data.value", From: value, takes: texts | numbers | others | lists | objects},
		{To: "data.currency", From: []string{"properties.currency"}, takes: texts | numbers | others | lists | objects},
		{To: "data.order_id", From: []string{"properties.order_id", "properties.orderId"}, takes: texts | numbers},
		{To: "data.content_id", From: []string{"properties.product_id", "properties.sku"}, takes: texts | numbers},
		{To: "data.contents", From: []string{"properties.products"}, takes: lists},
		{To: "data.tax", From: []string{"properties.tax"}, takes: texts | numbers},
		{To: "data.shipping", From: []string{"properties.shipping"}, takes: texts | numbers},
		{To: "data.discount", From: []string{"properties.discount"}, takes: texts | numbers},
		{To: "data.coupon", From: []string{"properties.coupon"}, takes: texts | numbers, quoted: true},
		{To: "data.search_term", From: []string{"properties.query"}, takes: texts | numbers, quoted: true},
		{To: "data.list_id", From: []string{"properties.list_id"}, takes: texts | numbers},
		{To: "data.list_name", From: []string{"properties.list_name"}, takes: texts | numbers, quoted: true},
	}
	switch c {
	case product:
		rows = append(rows, Row{To: "data.content_name", From: []string{"properties.name"}, takes: texts})
	case page, screen:
		rows = append(rows, Row{To: "data.content_name", From: []string{"name", "properties.name"}, takes: texts})
	}
	return rows
}

// productMembers are what of a product's properties the item of an event about it has, and under which name. A product in a
// list is an item with all that it has.
var productMembers = map[string]string{
	"product_id": "id", "sku": "sku", "name": "name", "category": "category", "brand": "brand", "variant": "variant",
	"price": "price", "quantity": "quantity",
}

func contextRows(c call) []Row {
	url := []string{"context.page.url"}
	title := []string{"context.page.title"}
	referrer := []string{"context.page.referrer", "context.referrer.url"}
	search := []string{"context.page.search"}
	if c == page {
		for name, places := range map[string]*[]string{"url": &url, "title": &title, "referrer": &referrer, "search": &search} {
			*places = append([]string{"properties." + name}, *places...)
		}
	}
	rows := []Row{
		{To: pageSearch, From: search, takes: texts, aside: true},
		{To: "context.page_url", From: url, takes: texts},
		{To: "context.referrer", From: referrer, takes: texts},
		{To: "context.ip", From: []string{"context.ip"}, takes: texts},
		{To: "context.user_agent", From: []string{"context.userAgent"}, takes: texts},
		{To: "context.utm_source", From: []string{"context.campaign.source"}, takes: texts},
		{To: "context.utm_medium", From: []string{"context.campaign.medium"}, takes: texts},
		{To: "context.utm_campaign", From: []string{"context.campaign.name"}, takes: texts},
		{To: "context.utm_term", From: []string{"context.campaign.term"}, takes: texts},
		{To: "context.utm_content", From: []string{"context.campaign.content"}, takes: texts},
		{To: "context.page_title", From: title, takes: texts},
		{To: "context.language", From: []string{"context.locale"}, takes: texts},
		{To: "context.action_source", From: []string{"channel"}, takes: texts, edit: sourceOf},
	}
	if c == screen {
		rows[len(rows)-1] = Row{To: "context.action_source", always: `"app"`}
	}
	for _, id := range event.ClickIDNames {
		from := []string{"properties." + id, "context." + id, "integrations.*." + id}
		if id == "sc_click_id" {
			from = append(from, "integrations.Snap Conversions Api.click_id")
		}
		rows = append(rows, Row{To: clickIDs + id, From: from, takes: texts})
	}
	return rows
}

// clickIDs begins the members of an envelope's click ids.
const clickIDs = "context.click_ids."

// internationalNumber leaves of a phone number the plus sign and the digits, and nothing of one that does not say its
// country: nobody could tell whose it is.
func internationalNumber(raw string) string {
	if !strings.HasPrefix(raw, `"+`) {
		return ""
	}
	number := []byte(`"+`)
	for _, c := range []byte(raw[2 : len(raw)-1]) {
		switch {
		case c >= '0' && c <= '9':
			number = append(number, c)
		case strings.IndexByte(" -.()/", c) < 0:
			return ""
		}
	}
	if digits := number[len(`"+`):]; len(digits) < shortestNumber || len(digits) > longestNumber || digits[0] == '0' {
		return ""
	}
	return string(append(number, '"'))
}

// How many digits a number of E.164 has.
const shortestNumber, longestNumber = 7, 15

// addressOrHash leaves nothing of a text that cannot be an e-mail address nor the hash of one, such as "n/a".
func addressOrHash(raw string) string {
	if _, isHash := event.ParseHash(strings.TrimSpace(raw[1 : len(raw)-1])); !isHash && !strings.ContainsAny(raw, `@\`) {
		return ""
	}
	return raw
}

// dayOf leaves of a time the day.
func dayOf(raw string) string {
	if day, _, isTime := strings.Cut(raw, "T"); isTime && len(day) == len(`"2006-01-02`) {
		return day + `"`
	}
	return raw
}

// sourceOf is where an event happens whose channel is that of apps.
func sourceOf(raw string) string {
	if raw == `"mobile"` {
		return `"app"`
	}
	return ""
}
