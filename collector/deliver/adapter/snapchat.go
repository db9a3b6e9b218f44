package adapter

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const snapchatBaseURL = "https://tr.snapchat.com"

// snapchatAdapter sends events to Snapchat's Conversions API, which takes its token in the address alone.
type snapchatAdapter struct{ url string }

func openSnapchat(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	target := baseURL(cfg, snapchatBaseURL) + "/" + apiVersion(cfg) + "/" + url.PathEscape(cfg.Snapchat.PixelID) + "/events"
	if cfg.Snapchat.Test {
		target += "/validate"
	}
	return &snapchatAdapter{url: target + "?" + url.Values{"access_token": {credentials["accessToken"]}}.Encode()}, nil
}

// snapchatPurchase is Snapchat's name for a purchase, which it does not take without value and currency.
const snapchatPurchase = "PURCHASE"

// snapchatNames are those of Snapchat's events that are something on a website. Snapchat refuses names that it does not know, and
// has no name for all others: its five custom events are the owner's to give out.
var snapchatNames = newStandardNames(map[string]string{
	"pageview":         "PAGE_VIEW",
	"view_content":     "VIEW_CONTENT",
	"view_category":    "LIST_VIEW",
	"view_item_list":   "LIST_VIEW",
	"search":           "SEARCH",
	"add_to_cart":      "ADD_CART",
	"add_to_wishlist":  "ADD_TO_WISHLIST",
	"begin_checkout":   "START_CHECKOUT",
	"add_payment_info": "ADD_BILLING",
	"purchase":         snapchatPurchase,
	"sign_up":          "SIGN_UP",
	"login":            "LOGIN",
	"subscribe":        "SUBSCRIBE",
	"start_trial":      "START_TRIAL",
	"schedule":         "RESERVE",
	"share":            "SHARE",
})

// snapchatKnown are all names that Snapchat takes.
var snapchatKnown = setOf(
	"ACHIEVEMENT_UNLOCKED", "ADD_BILLING", "ADD_CART", "ADD_TO_WISHLIST", "AD_CLICK", "AD_VIEW", "APP_INSTALL", "APP_OPEN", "COMPLETE_TUTORIAL",
	"CUSTOM_EVENT_1", "CUSTOM_EVENT_2", "CUSTOM_EVENT_3", "CUSTOM_EVENT_4", "CUSTOM_EVENT_5", "INVITE", "LEVEL_COMPLETE", "LIST_VIEW", "LOGIN",
	"PAGE_VIEW", "PURCHASE", "RATE", "RESERVE", "SAVE", "SEARCH", "SHARE", "SIGN_UP", "SPENT_CREDITS", "START_CHECKOUT", "START_TRIAL",
	"SUBSCRIBE", "VIEW_CONTENT",
)

type snapchatEvent struct {
	EventName      string              `json:"event_name"`
	EventTime      int64               `json:"event_time"`
	EventID        string              `json:"event_id"`
	ActionSource   string              `json:"action_source"`
	EventSourceURL string              `json:"event_source_url,omitzero"`
	UserData       snapchatUserData    `json:"user_data"`
	CustomData     *snapchatCustomData `json:"custom_data,omitzero"`
	// DataProcessing asks Snapchat to process the event for its customer alone.
	DataProcessing []string `json:"data_processing_options,omitempty"`
}

// snapchatLimited is limited data use.
var snapchatLimited = []string{"LDU"}

type snapchatUserData struct {
	personData
	ClickID string `json:"sc_click_id,omitzero"`
}

// identifies says whether Snapchat takes an event with these data. A device's advertising id would do too, which events do not have.
func (u *snapchatUserData) identifies() bool {
	return len(u.Email) > 0 || len(u.Phone) > 0 || (u.ClientIPAddress != "" && u.ClientUserAgent != "")
}

type snapchatCustomData struct {
	Value      *event.Amount     `json:"value,omitzero"`
	Currency   string            `json:"currency,omitzero"`
	OrderID    string            `json:"order_id,omitzero"`
	ContentIDs []string          `json:"content_ids,omitempty"`
	Contents   []snapchatContent `json:"contents,omitempty"`
	NumItems   int64             `json:"num_items,omitzero"`
	Search     string            `json:"search_string,omitzero"`
}

// snapchatContent has Snapchat's types: the numbers are text.
type snapchatContent struct {
	ID        string `json:"id"`
	Quantity  string `json:"quantity"`
	ItemPrice string `json:"item_price,omitzero"`
	Brand     string `json:"brand,omitzero"`
}

func (a *snapchatAdapter) Map(e *Event) (Payload, Verdict) {
	name, reason := snapchatNames.of(e, "")
	if reason == "" && (name == "" || e.Context.ActionSource == event.InApp) {
		// What happens in an app is taken under the app's id alone, with data of the device that events do not have.
		reason = "no_mapping"
	}
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	user := snapchatUser(e)
	if !user.identifies() {
		return Payload{}, Skip("no_identifier")
	}
	goods := goodsOf(e, takes{}) // Snapchat tells an item by its id
	// Snapchat refuses each of these, and with it the batch.
	switch {
	case goods.Currency != "" && !snapchatCurrencies[goods.Currency]:
		return Payload{}, Skip("currency_unsupported")
	case name == snapchatPurchase && goods.Value == nil:
		return Payload{}, Skip("no_value")
	}
	out := snapchatEvent{
		EventName: name, EventTime: e.Time().Unix(), EventID: e.DedupID(), ActionSource: snapchatSource(&e.Context),
		UserData: user, CustomData: snapchatCustom(e, goods),
	}
	if out.ActionSource == snapchatWeb {
		out.EventSourceURL = e.Context.PageURL
	}
	if e.limited.Has(consent.Sale) {
		out.DataProcessing = snapchatLimited
	}
	return bodyPayload(out)
}

const snapchatWeb = "WEB"

// snapchatSource is where the event happened, in Snapchat's words. It takes no event of the web without the page's address: without
// one it is what Snapchat calls offline, whatever it was.
func snapchatSource(c *event.Context) string {
	switch c.ActionSource {
	case event.OnWebsite, event.NoActionSource:
		if c.PageURL != "" {
			return snapchatWeb
		}
	}
	return "OFFLINE"
}

func snapchatUser(e *Event) snapchatUserData {
	user := snapchatUserData{
		personData: personOf(e, event.FirstNameMeta, event.LastNameMeta),
		ClickID:    e.Context.ClickIDs["sc_click_id"],
	}
	user.DateOfBirth = nil // Snapchat has none
	user.withoutOtherGenders(e)
	return user
}

// snapchatCurrencies are those that Snapchat's own integrations know.
var snapchatCurrencies = setOf(
	"AED", "ALL", "AUD", "BGN", "BHD", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "DZD", "EGP", "EUR", "GBP",
	"GHS", "GIP", "HKD", "HRK", "HUF", "IDR", "ILS", "INR", "IQD", "ISK", "JOD", "JPY", "KES", "KRW", "KWD", "KZT", "LBP",
	"MAD", "MXN", "MYR", "NGN", "NOK", "NZD", "OMR", "PEN", "PHP", "PKR", "PLN", "QAR", "RON", "RUB", "SAR", "SEK", "SGD",
	"THB", "TRY", "TWD", "TZS", "UAH", "USD", "VND", "XOF", "ZAR",
)

func snapchatCustom(e *Event, goods goods) *snapchatCustomData {
	custom := snapchatCustomData{Value: goods.Value, Currency: goods.Currency, OrderID: e.OrderID, Search: e.SearchTerm}
	for _, item := range goods.Items {
		custom.Contents = append(custom.Contents, snapchatContent{
			ID: item.ID, Quantity: strconv.FormatInt(item.Quantity, 10), ItemPrice: amountText(item.Price), Brand: item.Brand,
		})
		custom.ContentIDs = append(custom.ContentIDs, item.ID)
		custom.NumItems += item.Quantity
	}
	if len(custom.ContentIDs) == 0 && e.ContentID != "" {
		custom.ContentIDs = []string{e.ContentID}
	}
	if custom.Value == nil && custom.Currency == "" && custom.OrderID == "" && custom.Search == "" && custom.ContentIDs == nil {
		return nil
	}
	return &custom
}

func (a *snapchatAdapter) Build(batch []Payload, _ time.Time) Request {
	return Request{Method: http.MethodPost, URL: a.url, Header: jsonHeader(), Body: joinBodies(`{"data":[`, batch, []byte("]}"))}
}

// Classify goes by the status in the body, as a refusal may stand in a success. Where an answer names an event it names one of those
// that are wrong, by a number that Snapchat does not explain, and says nothing of the others: so each is sent again alone.
func (a *snapchatAdapter) Classify(r Response, n int) []Verdict {
	var answer struct {
		Status string `json:"status"`
	}
	success := r.Status >= 200 && r.Status < 300
	switch err := json.Unmarshal(r.Body, &answer); {
	case success && err == nil && answer.Status == "VALID":
		return forAll(n, Verdict{Class: Delivered})
	case success && err == nil && answer.Status == "INVALID":
		return forAll(n, refused(n, "refused"))
	case success:
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	default:
		return forAll(n, classifyError(r, n))
	}
}
