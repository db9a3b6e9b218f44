package adapter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// segmentBaseURLs by where the workspace's data resides.
var segmentBaseURLs = map[platforms.Region]string{
	"":                 "https://api.segment.io",
	platforms.RegionUS: "https://api.segment.io",
	platforms.RegionEU: "https://events.eu1.segmentapis.com",
}

// segmentAdapter sends events to Segment's HTTP Tracking API, or to another server that speaks it.
type segmentAdapter struct{ url, authorization string }

func openSegment(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	target, err := hostedURL(cfg, "segment", cfg.Segment.Host, segmentBaseURLs, cfg.Segment.Region)
	if err != nil {
		return nil, err
	}
	return &segmentAdapter{
		url:           target + "/v1/batch",
		authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials["writeKey"]+":")),
	}, nil
}

// segmentName is what an event is called in Segment's specifications.
type segmentName struct {
	// name is that of a track call, "" where the event is another call.
	name, call string
	// product says that the one product that the event is about stands in its own properties; several is its name where there
	// are several.
	product bool
	several string
}

const (
	segmentTrack  = "track"
	segmentPage   = "page"
	segmentScreen = "screen"
)

// segmentNames are the events that Segment's specifications have; all others are track calls by their own name.
var segmentNames = map[string]segmentName{
	event.Pageview:     {call: segmentPage},
	"screen_view":      {call: segmentScreen},
	"search":           {name: "Products Searched"},
	"view_category":    {name: "Product List Viewed"},
	"view_item_list":   {name: "Product List Viewed"},
	"select_item":      {name: "Product Clicked", product: true},
	"view_content":     {name: "Product Viewed", product: true},
	event.AddToCart:    {name: "Product Added", product: true},
	"remove_from_cart": {name: "Product Removed", product: true},
	"add_to_wishlist":  {name: "Product Added to Wishlist", product: true},
	"view_cart":        {name: "Cart Viewed"},
	"begin_checkout":   {name: "Checkout Started"},
	"add_payment_info": {name: "Payment Info Entered"},
	event.Purchase:     {name: "Order Completed"},
	event.Refund:       {name: "Order Refunded"},
	"view_promotion":   {name: "Promotion Viewed"},
	"select_promotion": {name: "Promotion Clicked"},
	"share":            {name: "Product Shared", product: true, several: "Cart Shared"},
	"sign_up":          {name: "Signed Up"},
	"login":            {name: "Signed In"},
}

// segmentKept are the keys of the names that no event of another name may have: also those of the specification's first version.
var segmentKept = func() map[string]bool {
	kept := map[string]bool{}
	for _, known := range segmentNames {
		kept[nameKey(known.name)], kept[nameKey(known.several)] = true, true
	}
	for _, older := range []string{
		"Viewed Product Category", "Viewed Product", "Added Product", "Removed Product", "Completed Order", "Refunded Order",
	} {
		kept[nameKey(older)] = true
	}
	delete(kept, "")
	return kept
}()

// segmentCall is the call that an event is, or the reason why it is not sent.
func segmentCall(e *Event) (call segmentName, reason string) {
	call, known := segmentNames[e.Name]
	switch {
	case e.as != "":
		call = segmentName{name: e.as, product: call.product}
	case !known && segmentKept[nameKey(e.Name)]:
		return segmentName{}, "name_reserved"
	case !known:
		call.name = e.Name
	case call.several != "" && len(e.Contents) > 1:
		call = segmentName{name: call.several}
	}
	if call.call == "" {
		call.call = segmentTrack
	}
	return call, ""
}

// segmentMessage is a message of Segment's.
type segmentMessage struct {
	Type        string  `json:"type"`
	Event       string  `json:"event,omitzero"`
	Name        string  `json:"name,omitzero"`
	MessageID   string  `json:"messageId"`
	AnonymousID string  `json:"anonymousId,omitzero"`
	UserID      string  `json:"userId,omitzero"`
	Timestamp   string  `json:"timestamp"`
	Channel     string  `json:"channel,omitzero"`
	Properties  members `json:"properties"`
	Context     members `json:"context"`
}

const (
	// segmentLargest is how large a message may be, in bytes.
	segmentLargest = 32 << 10
	// segmentLongestID is how many characters a message's id may have.
	segmentLongestID = 99
)

func (a *segmentAdapter) Map(e *Event) (Payload, Verdict) {
	call, reason := segmentCall(e)
	switch {
	case reason != "":
		return Payload{}, Skip(reason)
	case e.UserID == "" && e.ClientID == "":
		return Payload{}, Skip("no_identifier")
	}
	message := segmentMessage{
		Type: call.call, Event: call.name, MessageID: segmentMessageID(e.DedupID()), AnonymousID: e.ClientID, UserID: e.UserID,
		Timestamp: e.Time().UTC().Format(timestampFormat), Channel: "server",
		Properties: segmentProperties(e, call), Context: segmentContext(e),
	}
	if e.Context.ActionSource == event.InApp {
		message.Channel = "mobile"
	}
	if call.call != segmentTrack {
		message.Name = e.ContentName
	}
	payload, verdict := bodyPayload(message)
	if len(payload.Body) > segmentLargest {
		return Payload{}, Verdict{Class: Permanent, Reason: "too_large"}
	}
	return payload, verdict
}

// segmentMessageID is what Segment tells a repeat by: the event's id, or its hash where it is too long.
func segmentMessageID(id string) string {
	if utf8.RuneCountInString(id) <= segmentLongestID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// segmentProperties are an event's data by the names of Segment's e-commerce specification, and what else there is of it.
func segmentProperties(e *Event, call segmentName) members {
	p := members{}
	segmentMoney(&p, e)
	p.text("order_id", e.OrderID)
	p.text("coupon", e.Coupon)
	p.text("query", e.SearchTerm)
	p.text("list_id", e.ListID)
	p.text("list_name", e.ListName)
	var item *event.Item // the one that the event is about
	switch {
	case call.product && len(e.Contents) == 1:
		item = &e.Contents[0]
		segmentProduct(&p, item, "item_discount")
	case len(e.Contents) > 0:
		products := make([]members, len(e.Contents))
		for i := range e.Contents {
			segmentProduct(&products[i], &e.Contents[i], "discount")
			products[i].own(e.Contents[i].Extra, func(string) bool { return false })
		}
		p = append(p, member{"products", products})
	}
	switch {
	case item == nil || item.ID == "":
		p.text("product_id", e.ContentID)
	case e.ContentID != item.ID:
		p.text("content_id", e.ContentID)
	}
	if call.product {
		p.textOnce("name", e.ContentName)
	} else if call.call == segmentTrack {
		p.text("content_name", e.ContentName)
	}
	if call.call == segmentPage {
		segmentPageOf(&p, &e.Context)
	}
	for _, id := range event.ClickIDNames {
		p.text(id, e.Context.ClickIDs[id])
	}
	p.engagement(e)
	if e.Context.ActionSource != event.InApp { // which the channel says
		p.text("action_source", e.Context.ActionSource.String())
	}
	if item != nil {
		p.own(item.Extra, func(name string) bool { return segmentOwn[name] && !segmentOfItems[name] })
	}
	p.own(e.Properties, func(name string) bool {
		return segmentOwn[name] || call.call != segmentTrack && segmentOfPages[name] || call.product && segmentOfProducts[name]
	})
	return p
}

// segmentMoney adds the money. Of an order the total is all that was paid, and the revenue what is left of it without tax and
// shipping.
func segmentMoney(p *members, e *Event) {
	if e.Name == event.Purchase || e.Name == event.Refund {
		p.amount("total", e.Value)
		if e.Value != nil {
			revenue := *e.Value
			for _, part := range []*event.Amount{e.Tax, e.Shipping} {
				if part != nil {
					revenue -= *part
				}
			}
			p.amount("revenue", &revenue)
		}
	} else {
		p.amount("value", e.Value)
	}
	p.text("currency", e.Currency)
	p.amount("tax", e.Tax)
	p.amount("shipping", e.Shipping)
	p.amount("discount", e.Discount)
}

// segmentProduct adds a product. The name of its discount is another where the event has one of its own beside it.
func segmentProduct(p *members, item *event.Item, discount string) {
	p.text("product_id", item.ID)
	p.text("name", item.Name)
	p.text("brand", item.Brand)
	p.text("category", item.Category)
	for i, category := range item.Categories {
		p.text("category"+strconv.Itoa(i+2), category)
	}
	p.text("variant", item.Variant)
	p.amount("price", item.Price)
	p.amount(discount, item.Discount)
	p.amount("quantity", item.Quantity)
}

// textOnce appends a text unless it is empty or the member is there.
func (m *members) textOnce(name, text string) {
	if !m.has(name) {
		m.text(name, text)
	}
}

// segmentPageOf adds the page that a visitor was on.
func segmentPageOf(p *members, c *event.Context) {
	p.text("url", c.PageURL)
	if page, err := url.Parse(c.PageURL); err == nil && c.PageURL != "" {
		p.text("path", page.EscapedPath())
		if page.RawQuery != "" {
			p.text("search", "?"+page.RawQuery)
		}
	}
	p.text("title", c.PageTitle)
	p.text("referrer", c.Referrer)
}

// segmentOwn are the properties that have a meaning for Segment or whom it sends events on to, set or not: none of the customer's
// may stand in for one.
var segmentOwn = setOf(slices.Concat([]string{
	"total", "revenue", "value", "currency", "tax", "shipping", "discount", "order_id", "orderId", "coupon", "query", "list_id", "list_name",
	"products", "product_id", "content_id", "sku", "session_id", "content_name", "engagement_time_msec", "action_source",
	"gender",
}, event.ClickIDNames[:])...)

// segmentOfItems are those of them that an item may have as well, and that tell of the item there.
var segmentOfItems = setOf("product_id", "sku", "coupon", "gender")

// segmentOfProducts are further such properties of events about one product.
var segmentOfProducts = setOf(
	"name", "brand", "category", "category2", "category3", "category4", "category5", "variant", "price", "quantity", "item_discount",
)

// segmentOfPages are further such properties of pages and screens.
var segmentOfPages = setOf("name", "url", "path", "search", "title", "referrer")

// segmentContext is where a visitor was and came from, and what they have decided.
func segmentContext(e *Event) members {
	c := &e.Context
	m := members{{"library", members{{"name", "weir"}}}}
	m.text("ip", publicIP(c.IP))
	m.text("userAgent", c.UserAgent)
	m.text("locale", c.Language)
	m.text("sessionId", e.SessionID)
	var page, campaign members
	segmentPageOf(&page, c)
	m.object("page", page)
	campaign.text("source", c.UTMSource)
	campaign.text("medium", c.UTMMedium)
	campaign.text("name", c.UTMCampaign)
	campaign.text("term", c.UTMTerm)
	campaign.text("content", c.UTMContent)
	m.object("campaign", campaign)
	m.object("consent", segmentConsent(&e.Consent))
	return m
}

// object appends an object unless it is empty.
func (m *members) object(name string, object members) {
	if len(object) > 0 {
		*m = append(*m, member{name, object})
	}
}

// segmentDecisions are the words for decisions.
var segmentDecisions = [...]string{event.Unstated: "", event.Granted: "granted", event.Denied: "denied"}

// segmentConsent is what the visitor has decided: by category as Segment has it, and in all other forms as the collect API has
// them, since whoever gets the event from there has to know.
func segmentConsent(c *event.Consent) members {
	var m members
	if len(c.Categories) > 0 {
		var preferences members
		for _, category := range slices.Sorted(maps.Keys(c.Categories)) {
			preferences = append(preferences, member{category, c.Categories[category]})
		}
		m.object("categoryPreferences", preferences)
	}
	m.text("ad_user_data", segmentDecisions[c.AdUserData])
	m.text("ad_personalization", segmentDecisions[c.AdPersonalization])
	m.text("ad_storage", segmentDecisions[c.AdStorage])
	m.text("analytics_storage", segmentDecisions[c.AnalyticsStorage])
	m.text("tcf", c.TCF)
	m.text("gpp", c.GPP)
	if c.GPPSections != "" {
		m = append(m, member{"gpp_sid", jsontext.Value("[" + c.GPPSections + "]")})
	}
	m.text("us_privacy", c.USPrivacy)
	if c.LimitedDataUse {
		m = append(m, member{"limited_data_use", true})
	}
	return m
}

func (a *segmentAdapter) Build(batch []Payload, now time.Time) Request {
	header := jsonHeader()
	header.Set("Authorization", a.authorization)
	// sentAt tells how wrong the sender's clock is: ours is right, and the events' times stay as they are.
	tail := []byte(`],"sentAt":"` + now.UTC().Format(timestampFormat) + `"}`)
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies(`{"batch":[`, batch, tail)}
}

// Classify goes by the status: Segment answers success to events that it does not take, and other servers have other words for it.
func (a *segmentAdapter) Classify(r Response, n int) []Verdict {
	return classifyBare(r, n)
}
