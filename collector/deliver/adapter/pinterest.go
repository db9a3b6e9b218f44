package adapter

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const pinterestBaseURL = "https://api.pinterest.com"

// pinterestAdapter sends events to Pinterest's API for Conversions.
type pinterestAdapter struct{ url, token string }

func openPinterest(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	target := baseURL(cfg, pinterestBaseURL) + "/" + apiVersion(cfg) + "/ad_accounts/" + url.PathEscape(cfg.Pinterest.AdAccountID) + "/events"
	if cfg.Pinterest.Test {
		target += "?test=true"
	}
	return &pinterestAdapter{url: target, token: credentials["conversionToken"]}, nil
}

// pinterestNames are Pinterest's standard events; all others are "custom".
var pinterestNames = newStandardNames(map[string]string{
	"pageview":         "page_visit",
	"view_content":     "view_content",
	"search":           "search",
	"add_to_cart":      "add_to_cart",
	"begin_checkout":   "initiate_checkout",
	"add_payment_info": "add_payment_info",
	"purchase":         "checkout",
	"lead":             "lead",
	"sign_up":          "signup",
	"subscribe":        "subscribe",
	"view_category":    "view_category",
	"view_item_list":   "view_category",
	"add_to_wishlist":  "add_to_wishlist",
})

// pinterestKnown are all names that Pinterest takes.
var pinterestKnown = setOf(
	"add_payment_info", "add_to_cart", "add_to_wishlist", "app_install", "checkout", "custom", "initiate_checkout", "lead", "page_visit",
	"search", "signup", "subscribe", "view_category", "view_content", "watch_video",
)

// pinterestEvent has Pinterest's types: amounts are text, identifiers lists. A member that Pinterest does not
// know would have the request refused.
type pinterestEvent struct {
	EventName      string               `json:"event_name"`
	ActionSource   string               `json:"action_source"`
	EventTime      int64                `json:"event_time"`
	EventID        string               `json:"event_id"`
	EventSourceURL string               `json:"event_source_url,omitzero"`
	UserData       pinterestUserData    `json:"user_data"`
	CustomData     *pinterestCustomData `json:"custom_data,omitzero"`
	Language       string               `json:"language,omitzero"`
	// OptOut says that the visitor has opted out, OptOutType of what.
	OptOut bool `json:"opt_out,omitzero"`
}

type pinterestUserData struct {
	personData
	ClickID string `json:"click_id,omitzero"`
}

// identifies says whether Pinterest takes an event with these data: a phone number or a click is not enough.
func (u *pinterestUserData) identifies() bool {
	return len(u.Email) > 0 || (u.ClientIPAddress != "" && u.ClientUserAgent != "")
}

type pinterestCustomData struct {
	Value       string             `json:"value,omitzero"`
	Currency    string             `json:"currency,omitzero"`
	OrderID     string             `json:"order_id,omitzero"`
	ContentName string             `json:"content_name,omitzero"`
	ContentIDs  []string           `json:"content_ids,omitempty"`
	Contents    []pinterestContent `json:"contents,omitempty"`
	NumItems    int64              `json:"num_items,omitzero"`
	Search      string             `json:"search_string,omitzero"`
	OptOutType  string             `json:"opt_out_type,omitzero"`
}

// pinterestLimited asks Pinterest to process an event for its customer alone: limited data processing.
const pinterestLimited = "LDP"

type pinterestContent struct {
	ID           string `json:"id,omitzero"`
	ItemName     string `json:"item_name,omitzero"`
	ItemCategory string `json:"item_category,omitzero"`
	ItemBrand    string `json:"item_brand,omitzero"`
	ItemPrice    string `json:"item_price,omitzero"`
	Quantity     int64  `json:"quantity"`
}

func (a *pinterestAdapter) Map(e *Event) (Payload, Verdict) {
	name, reason := pinterestNames.of(e, "custom")
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	user := pinterestUserData{
		personData: personOf(e, event.FirstNameLower, event.LastNameLower),
		ClickID:    e.Context.ClickIDs["epik"],
	}
	if !user.identifies() {
		return Payload{}, Skip("no_identifier")
	}
	return bodyPayload(pinterestEvent{
		EventName: name, ActionSource: pinterestSource(&e.Context), EventTime: e.Time().Unix(), EventID: e.DedupID(),
		EventSourceURL: e.Context.PageURL, UserData: user, CustomData: pinterestCustom(e), Language: twoLetters(e.Context.Language),
		OptOut: e.limited.Has(consent.Sale),
	})
}

// pinterestSource is where the event happened, in Pinterest's words: "web" where it has none, nor for an app of which it is not
// known whose it is.
func pinterestSource(c *event.Context) string {
	switch c.ActionSource {
	case event.ByPhoneCall, event.InPhysicalStore:
		return "offline"
	case event.InApp:
		switch {
		case strings.Contains(c.UserAgent, "Android"):
			return "app_android"
		case strings.Contains(c.UserAgent, "iPhone"), strings.Contains(c.UserAgent, "iPad"), strings.Contains(c.UserAgent, "iOS"):
			return "app_ios"
		}
	}
	return "web"
}

// twoLetters is a language's code of ISO 639-1, "" for one that has none there.
func twoLetters(language string) string {
	code, _, _ := strings.Cut(language, "-")
	if len(code) != len("de") {
		return ""
	}
	return code
}

func pinterestCustom(e *Event) *pinterestCustomData {
	goods := goodsOf(e, takes{named: true})
	custom := pinterestCustomData{
		Value: amountText(goods.Value), Currency: goods.Currency, OrderID: e.OrderID, ContentName: e.ContentName,
		Search: e.SearchTerm,
	}
	if e.limited.Has(consent.Sale) {
		custom.OptOutType = pinterestLimited
	}
	for _, item := range goods.Items {
		custom.Contents = append(custom.Contents, pinterestContent{
			ID: item.ID, ItemName: item.Name, ItemCategory: item.Category, ItemBrand: item.Brand, ItemPrice: amountText(item.Price),
			Quantity: item.Quantity,
		})
		if item.ID != "" {
			custom.ContentIDs = append(custom.ContentIDs, item.ID)
		}
		custom.NumItems += item.Quantity
	}
	if len(custom.ContentIDs) == 0 && e.ContentID != "" {
		custom.ContentIDs = []string{e.ContentID}
	}
	if custom.Value == "" && custom.Currency == "" && custom.OrderID == "" && custom.ContentName == "" &&
		custom.Search == "" && custom.ContentIDs == nil && custom.Contents == nil && custom.OptOutType == "" {
		return nil
	}
	return &custom
}

func (a *pinterestAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Authorization", "Bearer "+a.token)
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies(`{"data":[`, batch, []byte("]}"))}
}

// pinterestAnswer is what of an answer has a meaning for us. Where not all events were taken, the verdicts on
// each stand in the details of the error.
type pinterestAnswer struct {
	Code    int                `json:"code"`
	Events  []pinterestVerdict `json:"events"`
	Details struct {
		Events []pinterestVerdict `json:"events"`
	} `json:"details"`
}

type pinterestVerdict struct {
	Status string `json:"status"`
}

// Codes of Pinterest's errors.
const (
	pinterestUnauthorised = 2
	pinterestThrottled    = 8
	pinterestForbidden    = 29
)

// Classify goes by the verdict on each event, wherever the answer has one for each.
func (a *pinterestAdapter) Classify(r Response, n int) []Verdict {
	var answer pinterestAnswer
	err := json.Unmarshal(r.Body, &answer)
	rows := answer.Events
	if len(rows) == 0 {
		rows = answer.Details.Events
	}
	success := r.Status >= 200 && r.Status < 300
	switch {
	case err == nil && answer.Code == pinterestUnauthorised:
		return forAll(n, Verdict{Class: Auth, Reason: "unauthorized"})
	case err == nil && len(rows) == n && (success || r.Status == http.StatusUnprocessableEntity):
		return classifyPinterestRows(rows)
	case success:
		// A success that does not say what has become of each event is none; a repeat is told by its event_id.
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	case isHTML(r) && r.Status >= 400:
		return forAll(n, Verdict{Class: Retry, Reason: "http_" + strconv.Itoa(r.Status)})
	case err == nil && r.Status >= 400 && r.Status < 500:
		return forAll(n, classifyPinterestCode(r, n, answer.Code))
	default:
		return forAll(n, classifyStatus(r, n))
	}
}

func classifyPinterestRows(rows []pinterestVerdict) []Verdict {
	verdicts := make([]Verdict, len(rows))
	for i, row := range rows {
		switch row.Status {
		case "processed":
			verdicts[i] = Verdict{Class: Delivered}
		case "failed":
			verdicts[i] = Verdict{Class: Permanent, Reason: "refused"}
		default:
			verdicts[i] = Verdict{Class: Retry, Reason: "answer_unreadable"}
		}
	}
	return verdicts
}

func classifyPinterestCode(r Response, n, code int) Verdict {
	switch code {
	case pinterestUnauthorised:
		return Verdict{Class: Auth, Reason: "unauthorized"}
	case pinterestThrottled:
		after, _ := retryAfter(r.Header, r.At)
		return Verdict{Class: Throttle, Reason: "throttled", After: after}
	case pinterestForbidden:
		return Verdict{Class: Config, Reason: "code_29"}
	default:
		return classifyStatus(r, n)
	}
}
