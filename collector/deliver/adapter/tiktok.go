package adapter

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const tiktokBaseURL = "https://business-api.tiktok.com"

// tiktokAdapter sends events to TikTok's Events API 2.0.
type tiktokAdapter struct {
	url, token string
	// head opens the body, up to the list of events.
	head string
}

func openTikTok(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	head, err := json.Marshal(struct {
		EventSource   string `json:"event_source"`
		EventSourceID string `json:"event_source_id"`
		TestEventCode string `json:"test_event_code,omitzero"`
	}{"web", cfg.TikTok.EventSourceID, cfg.TikTok.TestEventCode})
	if err != nil {
		return nil, err
	}
	return &tiktokAdapter{
		url:   baseURL(cfg, tiktokBaseURL) + "/open_api/" + apiVersion(cfg) + "/event/track/",
		token: credentials["accessToken"],
		head:  string(head[:len(head)-1]) + `,"data":[`,
	}, nil
}

// tiktokNames are TikTok's standard events, with those that they were called before or that also are of orders. Another name
// is sent as it is, as a custom event.
var tiktokNames = newStandardNames(map[string]string{
	"pageview":           "Pageview",
	"view_content":       "ViewContent",
	"search":             "Search",
	"add_to_cart":        "AddToCart",
	"begin_checkout":     "InitiateCheckout",
	"add_payment_info":   "AddPaymentInfo",
	"purchase":           "Purchase",
	"lead":               "Lead",
	"sign_up":            "CompleteRegistration",
	"subscribe":          "Subscribe",
	"add_to_wishlist":    "AddToWishlist",
	"start_trial":        "StartTrial",
	"contact":            "Contact",
	"schedule":           "Schedule",
	"find_location":      "FindLocation",
	"submit_application": "SubmitApplication",
	"customize_product":  "CustomizeProduct",
	"download":           "Download",
}, "CompletePayment", "PlaceAnOrder", "SubmitForm")

type tiktokEvent struct {
	Event      string            `json:"event"`
	EventTime  int64             `json:"event_time"`
	EventID    string            `json:"event_id"`
	User       tiktokUser        `json:"user"`
	Properties *tiktokProperties `json:"properties,omitzero"`
	Page       *tiktokPage       `json:"page,omitzero"`
	// LimitedDataUse asks TikTok to process the event for its customer alone.
	LimitedDataUse bool `json:"limited_data_use,omitzero"`
}

type tiktokUser struct {
	Email      []string `json:"email,omitempty"`
	Phone      []string `json:"phone,omitempty"`
	FirstName  string   `json:"first_name,omitzero"`
	LastName   string   `json:"last_name,omitzero"`
	ZipCode    string   `json:"zip_code,omitzero"`
	Country    string   `json:"country,omitzero"`
	ExternalID []string `json:"external_id,omitempty"`
	TTCLID     string   `json:"ttclid,omitzero"`
	TTP        string   `json:"ttp,omitzero"`
	IP         string   `json:"ip,omitzero"`
	UserAgent  string   `json:"user_agent,omitzero"`
	Locale     string   `json:"locale,omitzero"`
}

// identifies says whether TikTok can match an event with these data to anybody.
func (u *tiktokUser) identifies() bool {
	return len(u.Email) > 0 || len(u.Phone) > 0 || len(u.ExternalID) > 0 || u.TTCLID != "" || u.TTP != "" || (u.IP != "" && u.UserAgent != "")
}

type tiktokProperties struct {
	Value       *event.Amount   `json:"value,omitzero"`
	Currency    string          `json:"currency,omitzero"`
	OrderID     string          `json:"order_id,omitzero"`
	ContentType string          `json:"content_type,omitzero"`
	Contents    []tiktokContent `json:"contents,omitempty"`
	NumItems    int64           `json:"num_items,omitzero"`
	Query       string          `json:"query,omitzero"`
}

type tiktokContent struct {
	ContentID       string        `json:"content_id"`
	ContentName     string        `json:"content_name,omitzero"`
	ContentCategory string        `json:"content_category,omitzero"`
	Brand           string        `json:"brand,omitzero"`
	Price           *event.Amount `json:"price,omitzero"`
	Quantity        int64         `json:"quantity"`
}

type tiktokPage struct {
	URL      string `json:"url,omitzero"`
	Referrer string `json:"referrer,omitzero"`
}

func (a *tiktokAdapter) Map(e *Event) (Payload, Verdict) {
	name, reason := tiktokNames.of(e, e.Name)
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	user := tiktokUser{
		Email:      e.contacts(event.EmailLower, anyNumber),
		Phone:      e.contacts(event.PhoneE164, anyNumber),
		FirstName:  e.User.Get(event.FirstNameLower).String(),
		LastName:   e.User.Get(event.LastNameLower).String(),
		ZipCode:    e.User.Get(event.Zip).String(),
		Country:    strings.ToLower(e.Country),
		ExternalID: e.externalIDs(),
		TTCLID:     e.Context.ClickIDs["ttclid"],
		TTP:        e.Context.ClickIDs["ttp"],
		IP:         publicIP(e.Context.IP),
		UserAgent:  e.Context.UserAgent,
		Locale:     e.Context.Language,
	}
	if !user.identifies() {
		return Payload{}, Skip("no_identifier")
	}
	goods := goodsOf(e, takes{}) // TikTok needs an item's id
	// TikTok refuses other currencies, and with them the batch.
	if goods.Currency != "" && !tiktokCurrencies[goods.Currency] {
		return Payload{}, Skip("currency_unsupported")
	}
	out := tiktokEvent{
		Event: name, EventTime: e.Time().Unix(), EventID: e.DedupID(), User: user, Properties: tiktokPropertiesOf(e, goods),
		LimitedDataUse: e.limited.Has(consent.Sale),
	}
	if e.Context.PageURL != "" || e.Context.Referrer != "" {
		out.Page = &tiktokPage{URL: e.Context.PageURL, Referrer: e.Context.Referrer}
	}
	return bodyPayload(out)
}

// tiktokCurrencies are those that TikTok's own libraries know.
var tiktokCurrencies = setOf(
	"AED", "ARS", "AUD", "BDT", "BGN", "BHD", "BIF", "BOB", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CRC", "CZK", "DKK",
	"DZD", "EGP", "EUR", "GBP", "GTQ", "HKD", "HNL", "HUF", "IDR", "ILS", "INR", "IQD", "ISK", "JOD", "JPY", "KES", "KHR",
	"KRW", "KWD", "KZT", "LBP", "MAD", "MOP", "MXN", "MYR", "NGN", "NIO", "NOK", "NZD", "OMR", "PEN", "PHP", "PKR", "PLN",
	"PYG", "QAR", "RON", "RUB", "SAR", "SEK", "SGD", "THB", "TRY", "TWD", "TZS", "UAH", "USD", "VES", "VND", "ZAR",
)

func tiktokPropertiesOf(e *Event, goods goods) *tiktokProperties {
	properties := tiktokProperties{Value: goods.Value, Currency: goods.Currency, OrderID: e.OrderID, Query: e.SearchTerm}
	for _, item := range goods.Items {
		properties.Contents = append(properties.Contents, tiktokContent{
			ContentID: item.ID, ContentName: item.Name, ContentCategory: item.Category, Brand: item.Brand,
			Price: item.Price, Quantity: item.Quantity,
		})
		properties.NumItems += item.Quantity
	}
	if len(properties.Contents) == 0 && e.ContentID != "" {
		properties.Contents = []tiktokContent{{ContentID: e.ContentID, ContentName: e.ContentName, Quantity: 1}}
	}
	if len(properties.Contents) > 0 {
		properties.ContentType = "product"
	}
	if properties.Value == nil && properties.Currency == "" && properties.OrderID == "" && properties.Query == "" &&
		properties.Contents == nil {
		return nil
	}
	return &properties
}

func (a *tiktokAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Access-Token", a.token)
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies(a.head, batch, []byte("]}"))}
}

// Classify goes by the code in the body: TikTok answers its own errors with HTTP 200.
func (a *tiktokAdapter) Classify(r Response, n int) []Verdict {
	var answer struct {
		Code *int           `json:"code"`
		Data jsontext.Value `json:"data"`
	}
	err := json.Unmarshal(r.Body, &answer)
	switch {
	case err == nil && answer.Code != nil && *answer.Code == tiktokPartial:
		return classifyTikTokPartial(answer.Data, n)
	case err == nil && answer.Code != nil && (*answer.Code != tiktokOK || r.Status >= 300):
		return forAll(n, classifyTikTokCode(r, n, *answer.Code))
	case r.Status < 200 || r.Status >= 300:
		return forAll(n, classifyError(r, n))
	case err != nil || answer.Code == nil:
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	default:
		return forAll(n, Verdict{Class: Delivered})
	}
}

// Codes of TikTok's API.
const (
	tiktokOK           = 0
	tiktokPartial      = 20001
	tiktokNoPermission = 40001
	tiktokInvalid      = 40002
	tiktokTooMany      = 40100
	tiktokBadToken     = 40105
)

func classifyTikTokCode(r Response, n, code int) Verdict {
	reason := "code_" + strconv.Itoa(code)
	switch {
	case code == tiktokTooMany:
		after, _ := retryAfter(r.Header, r.At)
		return Verdict{Class: Throttle, Reason: "throttled", After: after}
	case code == tiktokBadToken, code == 40102, code == 40104: // refused, expired, missing
		return Verdict{Class: Auth, Reason: "unauthorized"}
	case code == tiktokNoPermission:
		return Verdict{Class: Config, Reason: reason}
	case code >= tiktokInvalid && code < 50000:
		return refused(n, reason)
	case code >= 50000 && code < 60000:
		return Verdict{Class: Retry, Reason: reason}
	}
	verdict := classifyStatus(r, n)
	if verdict.Class == Delivered { // a code that is none of these in a 200
		return refused(n, reason)
	}
	return verdict
}

// classifyTikTokPartial marks the events that a partial success lists as failed. Where it lists none that we can
// tell, each is sent again alone: TikTok tells a repeat by its event_id.
func classifyTikTokPartial(data []byte, n int) []Verdict {
	var list struct {
		FailedEvents []struct {
			OrderInBatch *int `json:"order_in_batch"`
		} `json:"failed_events"`
	}
	unclear := forAll(n, Verdict{Class: Isolate, Reason: "code_20001"})
	if n == 1 {
		unclear = []Verdict{{Class: Permanent, Reason: "code_20001"}}
	}
	if err := json.Unmarshal(data, &list); err != nil || len(list.FailedEvents) == 0 {
		return unclear
	}
	verdicts := forAll(n, Verdict{Class: Delivered})
	for _, failed := range list.FailedEvents {
		if failed.OrderInBatch == nil || *failed.OrderInBatch < 0 || *failed.OrderInBatch >= n {
			return unclear
		}
		verdicts[*failed.OrderInBatch] = Verdict{Class: Permanent, Reason: "code_20001"}
	}
	return verdicts
}
