package adapter

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const (
	ga4BaseURL   = "https://www.google-analytics.com"
	ga4BaseURLEU = "https://region1.google-analytics.com"
)

// ga4Adapter sends events to Google Analytics 4 by the Measurement Protocol. A request speaks of one client, so
// it carries one event.
type ga4Adapter struct {
	url string
	// debug marks the events for DebugView.
	debug bool
}

func openGA4(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	base := ga4BaseURL
	if cfg.GA4.Region == platforms.RegionEU {
		base = ga4BaseURLEU
	}
	query := url.Values{"measurement_id": {cfg.GA4.MeasurementID}, "api_secret": {credentials["apiSecret"]}}
	return &ga4Adapter{url: baseURL(cfg, base) + "/mp/collect?" + query.Encode(), debug: cfg.GA4.DebugMode}, nil
}

// ga4Names are GA4's recommended events. Other names are sent as custom events, in the characters that GA4 allows.
var ga4Names = newStandardNames(map[string]string{
	"pageview":          "page_view",
	"view_content":      "view_item",
	"search":            "search",
	"add_to_cart":       "add_to_cart",
	"begin_checkout":    "begin_checkout",
	"add_payment_info":  "add_payment_info",
	"purchase":          "purchase",
	"refund":            "refund",
	"lead":              "generate_lead",
	"sign_up":           "sign_up",
	"view_category":     "view_item_list",
	"view_item_list":    "view_item_list",
	"select_item":       "select_item",
	"view_promotion":    "view_promotion",
	"select_promotion":  "select_promotion",
	"view_cart":         "view_cart",
	"remove_from_cart":  "remove_from_cart",
	"add_to_wishlist":   "add_to_wishlist",
	"add_shipping_info": "add_shipping_info",
	"login":             "login",
	"share":             "share",
}, "ecommerce_purchase")

type ga4Body struct {
	ClientID        string       `json:"client_id"`
	UserID          string       `json:"user_id,omitzero"`
	TimestampMicros int64        `json:"timestamp_micros"`
	UserData        *ga4UserData `json:"user_data,omitzero"`
	Consent         *ga4Consent  `json:"consent,omitzero"`
	IPOverride      string       `json:"ip_override,omitzero"`
	UserAgent       string       `json:"user_agent,omitzero"`
	Device          *ga4Device   `json:"device,omitzero"`
	Events          [1]ga4Event  `json:"events"`
}

type ga4UserData struct {
	Email []string `json:"sha256_email_address,omitempty"`
	Phone []string `json:"sha256_phone_number,omitempty"`
}

type ga4Consent struct {
	AdUserData        string `json:"ad_user_data,omitzero"`
	AdPersonalization string `json:"ad_personalization,omitzero"`
}

type ga4Device struct {
	Language string `json:"language"`
}

type ga4Event struct {
	Name   string  `json:"name"`
	Params members `json:"params"`
}

type ga4Item struct {
	ID        string        `json:"item_id,omitzero"`
	Name      string        `json:"item_name,omitzero"`
	Brand     string        `json:"item_brand,omitzero"`
	Variant   string        `json:"item_variant,omitzero"`
	Category  string        `json:"item_category,omitzero"`
	Category2 string        `json:"item_category2,omitzero"`
	Category3 string        `json:"item_category3,omitzero"`
	Category4 string        `json:"item_category4,omitzero"`
	Category5 string        `json:"item_category5,omitzero"`
	Price     *event.Amount `json:"price,omitzero"`
	Discount  *event.Amount `json:"discount,omitzero"`
	Quantity  int64         `json:"quantity"`
}

func (a *ga4Adapter) Map(e *Event) (Payload, Verdict) {
	name, reason := ga4Name(e)
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	client := ga4ClientID(e.ClientID)
	if client == "" {
		// An invented one would be a new visitor for each event.
		return Payload{}, Skip("no_client_id")
	}
	transaction := e.OrderID
	switch {
	case e.Name == event.Refund && transaction == "":
		// A refund is of a purchase; GA4 finds it by the order's id.
		return Payload{}, Skip("no_order_id")
	case e.Name == event.Purchase && transaction == "":
		// GA4 tells a repeated purchase by this alone.
		transaction = e.DedupID()
	}
	body := ga4Body{
		ClientID:        client,
		UserID:          e.UserID,
		TimestampMicros: e.Time().UnixMicro(),
		UserData:        ga4UserDataOf(e),
		Consent:         ga4ConsentOf(e),
		IPOverride:      publicIP(e.Context.IP),
		UserAgent:       e.Context.UserAgent,
		Events:          [1]ga4Event{{Name: name, Params: a.params(e, transaction)}},
	}
	if e.Context.Language != "" && body.UserAgent == "" {
		// Where there is a device, Google does not look at the user agent, which tells more.
		body.Device = &ga4Device{Language: e.Context.Language}
	}
	return bodyPayload(body)
}

// params are the event's parameters: Google's own, then the customer's as far as there is room.
func (a *ga4Adapter) params(e *Event, transaction string) members {
	goods := goodsOf(e, takes{named: true, costs: true})
	var p members
	p.text("transaction_id", ga4Text(transaction, ga4ParamLength))
	p.amount("value", goods.Value)
	p.text("currency", goods.Currency)
	p.amount("tax", goods.Tax)
	p.amount("shipping", goods.Shipping)
	p.text("coupon", ga4Text(e.Coupon, ga4ParamLength))
	p.text("session_id", ga4SessionID(e.SessionID))
	p.engagement(e)
	p.text("page_location", ga4Text(e.Context.PageURL, ga4PageLength))
	p.text("page_referrer", ga4Text(e.Context.Referrer, ga4ReferrerLength))
	p.text("page_title", ga4Text(e.Context.PageTitle, ga4TitleLength))
	p.text("search_term", ga4Text(e.SearchTerm, ga4ParamLength))
	p.text("item_list_id", ga4Text(e.ListID, ga4ParamLength))
	p.text("item_list_name", ga4Text(e.ListName, ga4ParamLength))
	if items := ga4Items(e, goods.Items); len(items) > 0 {
		p = append(p, member{"items", items})
	}
	if a.debug {
		p = append(p, member{"debug_mode", true})
	}
	for name, value := range propertiesOf(e) {
		if len(p) < ga4MostParams {
			p = ga4Own(p, ga4Custom(name), value)
		}
	}
	return p
}

// ga4MostParams is how many parameters an event may have.
const ga4MostParams = 25

// ga4OwnParams are the names that parameters of Google's have here, set or not: none of the customer's may stand in for one.
var ga4OwnParams = setOf(
	"transaction_id", "value", "currency", "tax", "shipping", "coupon", "session_id", "engagement_time_msec", "page_location", "page_referrer",
	"page_title", "search_term", "item_list_id", "item_list_name", "items", "debug_mode",
)

// ga4Own appends a member of the customer's own if GA4 can take it. Numbers stay numbers; all else becomes text, lists with
// commas between their elements.
func ga4Own(p members, name string, value jsontext.Value) members {
	if name == "" || p.has(name) || ga4OwnParams[name] || ga4Keeps(name) {
		return p
	}
	if value.Kind() == '0' {
		return append(p, member{name, value})
	}
	p.text(name, ga4Text(plainText(value), ga4ParamLength))
	return p
}

// The lengths that GA4 allows, in characters; what is longer is cut off by GA4 itself or refused with its event.
const (
	ga4NameLength     = 40
	ga4ParamLength    = 100
	ga4TitleLength    = 300
	ga4ReferrerLength = 420
	ga4PageLength     = 1000
	ga4MostItems      = 200
)

var (
	ga4NotName = regexp.MustCompile(`[^A-Za-z0-9_]+`)
	ga4Cookie  = regexp.MustCompile(`^GA[0-9]+\.[0-9]+\.([0-9]+\.[0-9]+)$`)
	// ga4Session finds the session's number, alone or in the cookie of a data stream.
	ga4Session = regexp.MustCompile(`^(?:(?:GS1\.[0-9]+\.|GS2\.[0-9]+\.s)([0-9]+)[.$].*|([0-9]+))$`)
	// ga4Reserved are the names of events that Google's own libraries send: what the pages of the Measurement Protocol, of the
	// naming rules and of the automatically collected events list for web and app.
	ga4Reserved = setOf(
		"ad_activeview", "ad_click", "ad_exposure", "ad_impression", "ad_query", "ad_reward", "adunit_exposure",
		"app_background", "app_clear_data", "app_exception", "app_install", "app_remove", "app_store_refund",
		"app_store_subscription_cancel", "app_store_subscription_convert", "app_store_subscription_renew", "app_uninstall",
		"app_update", "app_upgrade", "click", "dynamic_link_app_open", "dynamic_link_app_update", "dynamic_link_first_open",
		"error", "fiam_action", "fiam_dismiss", "fiam_impression", "file_download", "first_open", "first_visit", "form_start",
		"form_submit", "in_app_purchase", "notification_dismiss", "notification_foreground", "notification_open",
		"notification_receive", "notification_send", "os_update", "screen_view", "scroll", "session_start",
		"session_start_with_rollout", "user_engagement", "video_complete", "video_progress", "video_start", "view_complete",
		"view_search_results",
	)
	ga4ReservedPrefixes = []string{"firebase_", "ga_", "google_", "gtag_", "query_id"}
)

// ga4Name returns the name under which GA4 gets an event, or the reason why it cannot have one.
func ga4Name(e *Event) (mapped, reason string) {
	mapped, reason = ga4Names.of(e, ga4Custom(e.Name))
	switch {
	case reason != "":
		return "", reason
	case mapped == "":
		return "", "no_mapping"
	case ga4Reserved[mapped], ga4Keeps(mapped), len(e.taken) > 0 && e.as == "" && e.taken[nameKey(mapped)]:
		return "", "name_reserved"
	}
	return mapped, ""
}

// ga4Custom brings a name into the characters and the length that GA4 allows; "" where nothing is left.
func ga4Custom(name string) string {
	custom := strings.TrimLeft(ga4NotName.ReplaceAllString(name, "_"), "_0123456789")
	return strings.TrimRight(custom[:min(len(custom), ga4NameLength)], "_")
}

// ga4Keeps says whether a name begins as only Google's own do.
func ga4Keeps(name string) bool {
	return slices.ContainsFunc(ga4ReservedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// ga4ClientID returns the two numbers of the _ga cookie where the caller passed the whole cookie on, else what
// it passed.
func ga4ClientID(id string) string {
	if tail := ga4Cookie.FindStringSubmatch(id); tail != nil {
		return tail[1]
	}
	return id
}

// ga4SessionID returns the number of the session, "" where the caller counts visits in another way: GA4 takes numbers alone.
func ga4SessionID(id string) string {
	if number := ga4Session.FindStringSubmatch(id); number != nil {
		return number[1] + number[2] // of which one is empty
	}
	return ""
}

// ga4MostContacts is how many hashes of a kind GA4 takes.
const ga4MostContacts = 3

// ga4UserDataOf returns the person's hashes, nil where Google takes none: it does with a user_id alone. What the visitor does
// not want advertisers to have is not sent at all.
func ga4UserDataOf(e *Event) *ga4UserData {
	if e.UserID == "" || ga4ConsentTo(e, consent.AdUserData) == ga4Denied {
		return nil
	}
	data := ga4UserData{Email: e.contacts(event.EmailGoogle, ga4MostContacts), Phone: e.contacts(event.PhoneE164, ga4MostContacts)}
	if data.Email == nil && data.Phone == nil {
		return nil
	}
	return &data
}

// Google's words for decisions.
const (
	ga4Granted = "GRANTED"
	ga4Denied  = "DENIED"
)

// ga4ConsentOf tells Google of the two purposes that it asks for, nil where nothing was said of either.
func ga4ConsentOf(e *Event) *ga4Consent {
	c := ga4Consent{AdUserData: ga4ConsentTo(e, consent.AdUserData), AdPersonalization: ga4ConsentTo(e, consent.AdPersonalization)}
	if c == (ga4Consent{}) {
		return nil
	}
	return &c
}

// ga4ConsentTo is Google's word for the decision on a purpose. Google has no field for what devices keep for advertising, nor
// for American opt-outs: who denied one of these has denied both of the others.
func ga4ConsentTo(e *Event, p consent.Purpose) string {
	switch {
	case e.limited.Any(p, consent.AdStorage, consent.Sale):
		return ga4Denied
	case e.granted.Has(p):
		return ga4Granted
	}
	return ""
}

// ga4Items returns the contents that have an id or a name, else the event's own content.
func ga4Items(e *Event, pieces []piece) []ga4Item {
	var items []ga4Item
	for _, item := range pieces {
		items = append(items, ga4Item{
			ID:        ga4Text(item.ID, ga4ParamLength),
			Name:      ga4Text(item.Name, ga4ParamLength),
			Brand:     ga4Text(item.Brand, ga4ParamLength),
			Variant:   ga4Text(item.Variant, ga4ParamLength),
			Category:  ga4Text(item.Category, ga4ParamLength),
			Category2: ga4Text(item.Categories[0], ga4ParamLength),
			Category3: ga4Text(item.Categories[1], ga4ParamLength),
			Category4: ga4Text(item.Categories[2], ga4ParamLength),
			Category5: ga4Text(item.Categories[3], ga4ParamLength),
			Price:     item.Price,
			Discount:  item.Discount,
			Quantity:  item.Quantity,
		})
	}
	if len(items) == 0 && (e.ContentID != "" || e.ContentName != "") {
		items = []ga4Item{{ID: ga4Text(e.ContentID, ga4ParamLength), Name: ga4Text(e.ContentName, ga4ParamLength), Quantity: 1}}
	}
	return items[:min(len(items), ga4MostItems)]
}

// ga4Text cuts a text to so many characters.
func ga4Text(text string, length int) string {
	if len(text) <= length {
		return text
	}
	runes := []rune(text)
	return string(runes[:min(len(runes), length)])
}

func (a *ga4Adapter) Build(batch []Payload, _ time.Time) Request {
	return Request{Method: http.MethodPost, URL: a.url, Header: jsonHeader(), Body: batch[0].Body}
}

// Classify goes by the status: GA4 answers 2xx to all that it can read, whatever it then does with it, and has
// nothing to say in the body. A web page is of what stands before it.
func (a *ga4Adapter) Classify(r Response, n int) []Verdict {
	verdict := classifyStatus(r, n)
	if isHTML(r) {
		switch verdict.Class {
		case Delivered:
			verdict = Verdict{Class: Retry, Reason: "answer_unreadable"}
		case Isolate, Permanent:
			verdict = Verdict{Class: Retry, Reason: "http_" + strconv.Itoa(r.Status)}
		}
	}
	return forAll(n, verdict)
}
