package adapter

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const (
	ga4BaseURL   = "https://www.google-analytics.com"
	ga4BaseURLEU = "https://region1.google-analytics.com"
)

// ga4Adapter sends events to Google Analytics 4 by the Measurement Protocol. A request speaks of one client, so
// it carries one event.
type ga4Adapter struct{ url string }

func openGA4(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	base := ga4BaseURL
	if cfg.GA4.Region == platforms.RegionEU {
		base = ga4BaseURLEU
	}
	query := url.Values{"measurement_id": {cfg.GA4.MeasurementID}, "api_secret": {credentials["apiSecret"]}}
	return &ga4Adapter{url: baseURL(cfg, base) + "/mp/collect?" + query.Encode()}, nil
}

// ga4Names are GA4's recommended events. Other names are sent as custom events, in the characters that GA4 allows.
var ga4Names = newStandardNames(map[string]string{
	"pageview":         "page_view",
	"view_content":     "view_item",
	"search":           "search",
	"add_to_cart":      "add_to_cart",
	"begin_checkout":   "begin_checkout",
	"add_payment_info": "add_payment_info",
	"purchase":         "purchase",
	"refund":           "refund",
	"lead":             "generate_lead",
	"sign_up":          "sign_up",
}, "ecommerce_purchase")

type ga4Body struct {
	ClientID        string      `json:"client_id"`
	TimestampMicros int64       `json:"timestamp_micros"`
	Consent         *ga4Consent `json:"consent,omitzero"`
	Events          [1]ga4Event `json:"events"`
}

type ga4Consent struct {
	AdUserData        string `json:"ad_user_data,omitzero"`
	AdPersonalization string `json:"ad_personalization,omitzero"`
}

type ga4Event struct {
	Name   string    `json:"name"`
	Params ga4Params `json:"params"`
}

type ga4Params struct {
	TransactionID string        `json:"transaction_id,omitzero"`
	Value         *event.Amount `json:"value,omitzero"`
	Currency      string        `json:"currency,omitzero"`
	PageLocation  string        `json:"page_location,omitzero"`
	PageReferrer  string        `json:"page_referrer,omitzero"`
	Items         []ga4Item     `json:"items,omitempty"`
}

type ga4Item struct {
	ID       string        `json:"item_id,omitzero"`
	Name     string        `json:"item_name,omitzero"`
	Category string        `json:"item_category,omitzero"`
	Price    *event.Amount `json:"price,omitzero"`
	Quantity int64         `json:"quantity"`
}

func (a *ga4Adapter) Map(e *Event) (Payload, Verdict) {
	name, reason := ga4Name(e.Name)
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
	goods := goodsOf(e)
	params := ga4Params{
		Value:         goods.Value,
		Currency:      goods.Currency,
		TransactionID: ga4Text(transaction, ga4ParamLength),
		PageLocation:  ga4Text(e.Context.PageURL, ga4PageLength),
		PageReferrer:  ga4Text(e.Context.Referrer, ga4ReferrerLength),
		Items:         ga4Items(e, goods.Items),
	}
	return bodyPayload(ga4Body{
		ClientID:        client,
		TimestampMicros: e.Time().UnixMicro(),
		Consent:         ga4ConsentOf(e.Consent),
		Events:          [1]ga4Event{{Name: name, Params: params}},
	})
}

// The lengths that GA4 allows, in characters; what is longer is cut off by GA4 itself or refused with its event.
const (
	ga4NameLength     = 40
	ga4ParamLength    = 100
	ga4ReferrerLength = 420
	ga4PageLength     = 1000
	ga4MostItems      = 200
)

var (
	ga4NotName = regexp.MustCompile(`[^A-Za-z0-9_]+`)
	ga4Cookie  = regexp.MustCompile(`^GA[0-9]+\.[0-9]+\.([0-9]+\.[0-9]+)$`)
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
func ga4Name(name string) (mapped, reason string) {
	custom := strings.TrimLeft(ga4NotName.ReplaceAllString(name, "_"), "_0123456789")
	custom = strings.TrimRight(custom[:min(len(custom), ga4NameLength)], "_")
	mapped, reason = ga4Names.of(name, custom)
	switch {
	case reason != "":
		return "", reason
	case mapped == "":
		return "", "no_mapping"
	case ga4Reserved[mapped], slices.ContainsFunc(ga4ReservedPrefixes, func(p string) bool { return strings.HasPrefix(mapped, p) }):
		return "", "name_reserved"
	}
	return mapped, ""
}

// ga4ClientID returns the two numbers of the _ga cookie where the caller passed the whole cookie on, else what
// it passed.
func ga4ClientID(id string) string {
	if tail := ga4Cookie.FindStringSubmatch(id); tail != nil {
		return tail[1]
	}
	return id
}

func ga4ConsentOf(c event.Consent) *ga4Consent {
	if c.AdUserData == event.Unstated && c.AdPersonalization == event.Unstated {
		return nil
	}
	words := [...]string{event.Unstated: "", event.Granted: "GRANTED", event.Denied: "DENIED"}
	return &ga4Consent{AdUserData: words[c.AdUserData], AdPersonalization: words[c.AdPersonalization]}
}

// ga4Items returns the contents that have an id or a name, else the event's own content.
func ga4Items(e *Event, pieces []piece) []ga4Item {
	var items []ga4Item
	for _, item := range pieces {
		if item.ID == "" && item.Name == "" {
			continue // GA4 needs one of the two
		}
		items = append(items, ga4Item{
			ID:       ga4Text(item.ID, ga4ParamLength),
			Name:     ga4Text(item.Name, ga4ParamLength),
			Category: ga4Text(item.Category, ga4ParamLength),
			Price:    item.Price,
			Quantity: item.Quantity,
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
// nothing to say in the body.
func (a *ga4Adapter) Classify(r Response, n int) []Verdict {
	return forAll(n, classifyStatus(r, n))
}
