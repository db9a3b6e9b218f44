package adapter

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
	"github.com/weir-dev/weir/collector/platforms"
)

const microsoftBaseURL = "https://capi.uet.microsoft.com"

// microsoftAdapter sends events to Microsoft Advertising's UET Conversions API.
type microsoftAdapter struct {
	url, token string
	// pageLoads says that no tag on the pages reports them.
	pageLoads bool
}

func openMicrosoft(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	return &microsoftAdapter{
		url:       baseURL(cfg, microsoftBaseURL) + "/" + apiVersion(cfg) + "/" + url.PathEscape(cfg.Microsoft.TagID) + "/events",
		token:     credentials["accessToken"],
		pageLoads: cfg.Microsoft.PageLoads,
	}, nil
}

// microsoftPageLoad is the one type of event that has no name.
const microsoftPageLoad = "pageLoad"

// microsoftNames are the actions that the UET tag has names for. An event goal that is set up for the tag's action counts the
// server's event too, and the two of one event_id are one. Another name is sent as it is, as an action of the owner's.
var microsoftNames = newStandardNames(map[string]string{
	"pageview":         microsoftPageLoad,
	"view_content":     "view_item",
	"view_category":    "view_item_list",
	"view_item_list":   "view_item_list",
	"view_cart":        "view_cart",
	"search":           "search",
	"add_to_cart":      "add_to_cart",
	"remove_from_cart": "remove_from_cart",
	"add_to_wishlist":  "add_to_wishlist",
	"begin_checkout":   "begin_checkout",
	"add_payment_info": "add_payment_info",
	"purchase":         "purchase",
	"lead":             "generate_lead",
	"sign_up":          "sign_up",
	"login":            "login",
	"share":            "share",
}, "page_view", "view_search_results")

// microsoftPages are the kinds of pages, in Microsoft's words, on which events happen; audiences are made of them.
var microsoftPages = map[string]string{
	"view_content": "product", "view_category": "category", "view_item_list": "category", "search": "searchresults", "add_to_cart": "cart", "view_cart": "cart",
	"purchase": "purchase",
}

type microsoftEvent struct {
	EventType string `json:"eventType"`
	EventID   string `json:"eventId"`
	EventName string `json:"eventName,omitzero"`
	// EventTime is in seconds.
	EventTime      int64  `json:"eventTime"`
	EventSourceURL string `json:"eventSourceUrl,omitzero"`
	ReferrerURL    string `json:"referrerUrl,omitzero"`
	PageTitle      string `json:"pageTitle,omitzero"`
	// AdStorageConsent is G where ad_storage was granted, D where it was denied; what Microsoft makes of "" differs by country.
	AdStorageConsent string               `json:"adStorageConsent,omitzero"`
	UserData         microsoftUserData    `json:"userData"`
	CustomData       *microsoftCustomData `json:"customData,omitzero"`
}

type microsoftUserData struct {
	Email           string `json:"em,omitzero"`
	Phone           string `json:"ph,omitzero"`
	ExternalID      string `json:"externalId,omitzero"`
	AnonymousID     string `json:"anonymousId,omitzero"`
	ClickID         string `json:"msclkid,omitzero"`
	ClientIPAddress string `json:"clientIpAddress,omitzero"`
	ClientUserAgent string `json:"clientUserAgent,omitzero"`
}

// identifies says whether Microsoft takes an event with these data: an address and a user agent are not enough.
func (u *microsoftUserData) identifies() bool {
	return u.Email != "" || u.Phone != "" || u.ExternalID != "" || u.AnonymousID != "" || u.ClickID != ""
}

type microsoftCustomData struct {
	Value         *event.Amount   `json:"value,omitzero"`
	Currency      string          `json:"currency,omitzero"`
	TransactionID string          `json:"transactionId,omitzero"`
	SearchTerm    string          `json:"searchTerm,omitzero"`
	PageType      string          `json:"pageType,omitzero"`
	Items         []microsoftItem `json:"items,omitempty"`
	ItemIDs       []string        `json:"itemIds,omitempty"`
}

type microsoftItem struct {
	ID       string        `json:"id,omitzero"`
	Name     string        `json:"name,omitzero"`
	Price    *event.Amount `json:"price,omitzero"`
	Quantity int64         `json:"quantity"`
}

func (a *microsoftAdapter) Map(e *Event) (Payload, Verdict) {
	name, reason := microsoftNames.of(e, e.Name)
	if reason == "" && name == microsoftPageLoad && !a.pageLoads {
		reason = "no_mapping" // the tag reports it, and there is nothing by which the two could be told to be one
	}
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	out := microsoftEvent{
		EventType: "custom", EventName: name, EventID: e.DedupID(), EventTime: e.Time().Unix(),
		EventSourceURL: e.Context.PageURL, ReferrerURL: e.Context.Referrer, PageTitle: e.Context.PageTitle,
		AdStorageConsent: microsoftConsent(e),
		UserData: microsoftUserData{
			Email:           e.User.Get(event.EmailMicrosoft).String(),
			Phone:           e.User.Get(event.PhoneE164).String(),
			ExternalID:      personal.ExternalID(e.UserID).String(),
			AnonymousID:     e.ClientID,
			ClickID:         microsoftClick(e.Context.ClickIDs["msclkid"]),
			ClientIPAddress: publicIP(e.Context.IP),
			ClientUserAgent: e.Context.UserAgent,
		},
		CustomData: microsoftCustom(e),
	}
	switch {
	case name == microsoftPageLoad && out.EventSourceURL == "":
		return Payload{}, Skip("no_page_url")
	case name == microsoftPageLoad:
		out.EventType, out.EventName, out.CustomData = microsoftPageLoad, "", nil
	}
	if !out.UserData.identifies() {
		return Payload{}, Skip("no_identifier")
	}
	return bodyPayload(out)
}

func microsoftConsent(e *Event) string {
	switch {
	case e.limited.Has(consent.AdStorage):
		return "D"
	case e.granted.Has(consent.AdStorage):
		return "G"
	}
	return ""
}

// microsoftClick is a click id as Microsoft's interface has it, a UUID; on landing pages it stands without hyphens. "" for what is
// none, which would have the event refused.
func microsoftClick(text string) string {
	if len(text) != 32 && len(text) != 36 {
		return ""
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return ""
	}
	return id.String()
}

func microsoftCustom(e *Event) *microsoftCustomData {
	goods := goodsOf(e, takes{named: true})
	custom := microsoftCustomData{
		Value: goods.Value, Currency: goods.Currency, TransactionID: e.OrderID, SearchTerm: e.SearchTerm, PageType: microsoftPages[e.Name],
	}
	for _, item := range goods.Items {
		custom.Items = append(custom.Items, microsoftItem{ID: item.ID, Name: item.Name, Price: item.Price, Quantity: item.Quantity})
		if item.ID != "" {
			custom.ItemIDs = append(custom.ItemIDs, item.ID)
		}
	}
	if len(custom.ItemIDs) == 0 && e.ContentID != "" {
		custom.ItemIDs = []string{e.ContentID}
	}
	if custom.Value == nil && custom.Currency == "" && custom.TransactionID == "" && custom.SearchTerm == "" && custom.PageType == "" &&
		custom.Items == nil && custom.ItemIDs == nil {
		return nil
	}
	return &custom
}

func (a *microsoftAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Authorization", "Bearer "+a.token)
	// The good events of a batch are taken though others are refused.
	tail := []byte(`],"dataProvider":"Weir","continueOnValidationError":true}`)
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies(`{"data":[`, batch, tail)}
}

// microsoftAnswer is what of an answer has a meaning for us.
type microsoftAnswer struct {
	// EventsReceived are those that were taken.
	EventsReceived *int           `json:"eventsReceived"`
	Error          microsoftError `json:"error"`
}

type microsoftError struct {
	Code    string            `json:"code"`
	Details []microsoftDetail `json:"details"`
}

// microsoftDetail is what is wrong with one event.
type microsoftDetail struct {
	// Index is the event's place in the request, from 0; nil where the request as a whole is meant.
	Index    *int   `json:"index"`
	Property string `json:"propertyName"`
	// IsWarning says that the event was taken, without the property.
	IsWarning bool `json:"isWarning"`
}

// Classify goes by the details, which name the events that were refused, and by how many events were received.
func (a *microsoftAdapter) Classify(r Response, n int) []Verdict {
	var answer microsoftAnswer
	err := json.Unmarshal(r.Body, &answer)
	success := r.Status >= 200 && r.Status < 300
	invalid := r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity
	switch {
	case err == nil && answer.Error.Code == "Unauthorized":
		return forAll(n, Verdict{Class: Auth, Reason: "unauthorized"})
	case err == nil && success && answer.EventsReceived != nil && (*answer.EventsReceived < 0 || *answer.EventsReceived > n):
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"}) // it is about another request
	case err == nil && (success && answer.EventsReceived != nil || invalid && len(answer.Error.Details) > 0):
		return classifyMicrosoftDetails(r, n, &answer)
	case success:
		// A success that does not say how many events there were is none; a repeat is told by its name and id.
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	}
	return forAll(n, classifyError(r, n))
}

// classifyMicrosoftDetails fails the events that the details name. The others were taken if as many were received; else they are
// sent again, and alone where nothing says which were not.
func classifyMicrosoftDetails(r Response, n int, answer *microsoftAnswer) []Verdict {
	reasons := map[int]string{}
	for _, detail := range answer.Error.Details {
		switch {
		case detail.IsWarning:
		case detail.Index == nil || *detail.Index < 0 || *detail.Index >= n:
			return forAll(n, refused(n, "refused"))
		case detail.Property == "eventTime":
			reasons[*detail.Index] = "time_refused"
		case reasons[*detail.Index] == "":
			reasons[*detail.Index] = "refused"
		}
	}
	received := 0
	if answer.EventsReceived != nil {
		received = *answer.EventsReceived
	}
	others := Verdict{Class: Delivered}
	switch {
	case received >= n-len(reasons):
	case len(reasons) > 0:
		others = Verdict{Class: Retry, Reason: "not_received"}
	case r.Status >= 400:
		others = refused(n, "http_"+strconv.Itoa(r.Status))
	case n > 1:
		others = Verdict{Class: Isolate, Reason: "not_received"}
	default:
		others = Verdict{Class: Retry, Reason: "not_received"}
	}
	verdicts := forAll(n, others)
	for i, reason := range reasons {
		verdicts[i] = Verdict{Class: Permanent, Reason: reason}
	}
	return verdicts
}
