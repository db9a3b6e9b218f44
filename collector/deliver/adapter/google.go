package adapter

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/oauth2/jwt"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const (
	googleBaseURL = "https://datamanager.googleapis.com"
	// googleFirstLook is after how long Google says that the status of a request is worth a look.
	googleFirstLook = 30 * time.Minute
	// googleMostLook is the longest pause between two looks, and googlePatience for how long a request may be under way: Google says
	// that it may take a day.
	googleMostLook, googlePatience = 6 * time.Hour, 48 * time.Hour
	// googleMostIdentifiers is how many hashes of a person an event may carry.
	googleMostIdentifiers = 10
)

// googleAdapter sends events to Google's Data Manager API: conversions to Google Ads, or events to Google Analytics.
type googleAdapter struct {
	base, version string
	grant         *jwt.Config
	settings      platforms.Google
	// purchase is the conversion action of purchases, "" where there is none.
	purchase string
	// firstLook is after how long it is asked what has become of a request.
	firstLook time.Duration
}

var googleAction = regexp.MustCompile(`^[0-9]{1,20}$`)

func openGoogle(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	a := &googleAdapter{
		base: baseURL(cfg, googleBaseURL), version: apiVersion(cfg), settings: *cfg.Google, purchase: cfg.EventNames[event.Purchase],
		firstLook: googleFirstLook,
	}
	if cfg.Endpoint != "" {
		a.firstLook = time.Second // what stands in Google's place is done with a request at once
	}
	switch analytics := a.analytics(); {
	case analytics != (a.settings.MeasurementID != ""):
		return nil, errors.New("google.measurementID must be set for the product Analytics, and for no other")
	case analytics && a.settings.LoginAccountID != "":
		return nil, errors.New("google.loginAccountID must be absent for the product Analytics")
	}
	var err error
	a.grant, err = googleGrant(credentials["serviceAccountKey"], cfg.Endpoint)
	return a, err
}

// destination is where events go: the account, and in it the conversion action or data stream.
func (a *googleAdapter) destination(product string) string {
	return a.settings.AccountID + "/" + product
}

// target is the destination as it is noted with an order. What was only checked is not there, and no refund can change it.
func (a *googleAdapter) target(action string) string {
	if a.settings.Test {
		return a.destination(action) + "/test"
	}
	return a.destination(action)
}

func (a *googleAdapter) analytics() bool { return a.settings.Product == platforms.GoogleAnalytics }

// Grant has tokens granted to the service account.
func (a *googleAdapter) Grant() Grant { return a.grant }

// googleEvent has the members of the API's Event that are sent.
type googleEvent struct {
	TransactionID        string               `json:"transactionId,omitzero"`
	EventTimestamp       string               `json:"eventTimestamp"`
	LastUpdatedTimestamp string               `json:"lastUpdatedTimestamp,omitzero"`
	EventName            string               `json:"eventName,omitzero"`
	EventSource          string               `json:"eventSource,omitzero"`
	ClientID             string               `json:"clientId,omitzero"`
	UserID               string               `json:"userId,omitzero"`
	UserData             *googleUserData      `json:"userData,omitzero"`
	AdIdentifiers        *googleAdIdentifiers `json:"adIdentifiers,omitzero"`
	Consent              *googleConsent       `json:"consent,omitzero"`
	ConversionValue      jsontext.Value       `json:"conversionValue,omitzero"`
	Currency             string               `json:"currency,omitzero"`
	CartData             *googleCart          `json:"cartData,omitzero"`
	DeviceInfo           *googleDevice        `json:"eventDeviceInfo,omitzero"`
	Parameters           []googleParameter    `json:"additionalEventParameters,omitempty"`
}

type googleUserData struct {
	Identifiers []googleIdentifier `json:"userIdentifiers"`
}

// googleIdentifier is one of a person's hashes. Addresses are none of them: Google wants the postal code in plain text beside the
// names, and that is not kept.
type googleIdentifier struct {
	Email string `json:"emailAddress,omitzero"`
	Phone string `json:"phoneNumber,omitzero"`
}

type googleAdIdentifiers struct {
	Gclid  string `json:"gclid,omitzero"`
	Gbraid string `json:"gbraid,omitzero"`
	Wbraid string `json:"wbraid,omitzero"`
}

type googleConsent struct {
	AdUserData        string `json:"adUserData,omitzero"`
	AdPersonalization string `json:"adPersonalization,omitzero"`
}

type googleCart struct {
	CouponCodes []string     `json:"couponCodes,omitempty"`
	Items       []googleItem `json:"items,omitempty"`
}

type googleItem struct {
	// MerchantProductID is the product's for Google Ads, ItemID for Google Analytics.
	MerchantProductID string `json:"merchantProductId,omitzero"`
	ItemID            string `json:"itemId,omitzero"`
	// Quantity is text, as 64-bit numbers are in JSON forms of protocol buffers.
	Quantity   string            `json:"quantity"`
	UnitPrice  jsontext.Value    `json:"unitPrice,omitzero"`
	Parameters []googleParameter `json:"additionalItemParameters,omitempty"`
}

type googleDevice struct {
	IPAddress    string `json:"ipAddress,omitzero"`
	UserAgent    string `json:"userAgent,omitzero"`
	LanguageCode string `json:"languageCode,omitzero"`
}

type googleParameter struct {
	Name  string `json:"parameterName"`
	Value string `json:"value"`
}

func (a *googleAdapter) Map(e *Event) (Payload, Verdict) {
	if a.analytics() {
		payload, verdict := mapGoogleAnalytics(e)
		payload.Group = a.destination(a.settings.MeasurementID)
		return payload, verdict
	}
	if e.limited.Has(consent.Sale) {
		return Payload{}, Skip("consent_sale") // there is no milder form
	}
	if e.Name == event.Refund {
		return a.refund(e)
	}
	action, reason := ownName(e)
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	own, verdict := a.conversion(e)
	if verdict.Class != Undecided {
		return Payload{}, verdict
	}
	goods := goodsOf(e, takes{})
	own.ConversionValue, own.Currency, own.CartData = googleAmount(goods.Value), goods.Currency, googleAdsCart(e, goods.Items)
	if goods.Value == nil && own.CartData == nil { // the prices are not told
		own.Currency = ""
	}
	payload, verdict := bodyPayload(own)
	payload.Group = a.destination(action)
	if e.Name == event.Purchase && e.OrderID != "" {
		payload.Order = &Order{ID: e.OrderID, Value: goods.Value, Currency: goods.Currency, At: e.Time(), Target: a.target(action)}
	}
	return payload, verdict
}

// refund maps a refund to the purchase whose value it changes. Its own conversion action is never asked for: under any other
// than the purchase's it would be a new conversion.
func (a *googleAdapter) refund(e *Event) (Payload, Verdict) {
	switch {
	case a.purchase == "":
		return Payload{}, Skip("no_mapping")
	case e.OrderID == "":
		return Payload{}, Skip("no_order_id")
	}
	own, verdict := a.conversion(e)
	if verdict.Class != Undecided {
		return Payload{}, verdict
	}
	payload, verdict := bodyPayload(own)
	payload.Group = a.destination(a.purchase)
	payload.Order = &Order{
		ID: e.OrderID, Refund: true, Value: e.Value, Currency: e.Currency, At: e.Time(), Target: a.target(a.purchase),
	}
	return payload, verdict
}

// conversion is what all conversions have in common.
func (a *googleAdapter) conversion(e *Event) (googleEvent, Verdict) {
	own := googleEvent{
		TransactionID: e.OrderID, EventTimestamp: e.Time().UTC().Format(timestampFormat), EventSource: googleSource(e.Context.ActionSource),
		UserData: googleUserDataOf(e), AdIdentifiers: googleClicks(e), Consent: googleConsentOf(e),
	}
	if own.TransactionID == "" || e.Name != event.Purchase && e.Name != event.Refund {
		own.TransactionID = e.DedupID()
	}
	if own.UserData == nil && own.AdIdentifiers == nil {
		return own, Skip("no_identifier")
	}
	return own, Verdict{}
}

// Restate gives a purchase or a refund the purchase's new value and the purchase's time, and says since when the value is so: of
// two, Google keeps the one with the later time. That a refund happened earlier than another does not make its value the older one.
func (a *googleAdapter) Restate(p Payload, value event.Amount, purchased, now time.Time) (Payload, Verdict) {
	var own googleEvent
	if err := json.Unmarshal(p.Body, &own); err != nil {
		return Payload{}, Verdict{Class: Permanent, Reason: "unrenderable"}
	}
	own.EventTimestamp = purchased.UTC().Format(timestampFormat)
	if now.Before(purchased) {
		now = purchased
	}
	own.LastUpdatedTimestamp = now.UTC().Format(timestampFormat)
	own.ConversionValue, own.Currency = googleAmount(&value), p.Order.Currency
	restated, verdict := bodyPayload(own)
	p.Body = restated.Body
	return p, verdict
}

func googleAmount(amount *event.Amount) jsontext.Value {
	if amount == nil {
		return nil
	}
	return jsontext.Value(amount.String())
}

// googleSource is where the event happened, in Google's words.
func googleSource(source event.ActionSource) string {
	switch source {
	case event.InApp:
		return "APP"
	case event.InPhysicalStore:
		return "IN_STORE"
	case event.ByPhoneCall:
		return "PHONE"
	}
	return "WEB"
}

// googleUserDataOf returns the person's hashes, nil for none, and none of who does not want advertisers to have them.
func googleUserDataOf(e *Event) *googleUserData {
	if ga4ConsentTo(e, consent.AdUserData) == ga4Denied {
		return nil
	}
	var data googleUserData
	for _, hash := range e.contacts(event.EmailGoogle, googleMostIdentifiers) {
		data.Identifiers = append(data.Identifiers, googleIdentifier{Email: hash})
	}
	for _, hash := range e.contacts(event.PhoneE164, googleMostIdentifiers) {
		data.Identifiers = append(data.Identifiers, googleIdentifier{Phone: hash})
	}
	if data.Identifiers == nil {
		return nil
	}
	data.Identifiers = data.Identifiers[:min(len(data.Identifiers), googleMostIdentifiers)]
	return &data
}

// googleClicks returns the click that led to the event, nil for none. Google's ids are of one click each, and the one that tells
// most goes alone.
func googleClicks(e *Event) *googleAdIdentifiers {
	switch ids := e.Context.ClickIDs; {
	case ids["gclid"] != "":
		return &googleAdIdentifiers{Gclid: ids["gclid"]}
	case ids["gbraid"] != "":
		return &googleAdIdentifiers{Gbraid: ids["gbraid"]}
	case ids["wbraid"] != "":
		return &googleAdIdentifiers{Wbraid: ids["wbraid"]}
	}
	return nil
}

// googleConsentOf tells Google of the two purposes that it asks for, nil where nothing was said of either.
func googleConsentOf(e *Event) *googleConsent {
	word := func(p consent.Purpose) string {
		if word := ga4ConsentTo(e, p); word != "" {
			return "CONSENT_" + word
		}
		return ""
	}
	c := googleConsent{AdUserData: word(consent.AdUserData), AdPersonalization: word(consent.AdPersonalization)}
	if c == (googleConsent{}) {
		return nil
	}
	return &c
}

// googleAdsCart has the items of a purchase that a feed of products can know: those with an id. With an id of a click from an app or an
// iPhone Google ignores them.
func googleAdsCart(e *Event, pieces []piece) *googleCart {
	if e.Name != event.Purchase {
		return nil
	}
	var cart googleCart
	for _, item := range pieces {
		cart.Items = append(cart.Items, googleItem{
			MerchantProductID: item.ID, Quantity: strconv.FormatInt(item.Quantity, 10), UnitPrice: googleAmount(item.Price),
		})
	}
	if cart.Items == nil {
		return nil
	}
	return &cart
}

// googleAccount is an account of one of Google's products.
type googleAccount struct {
	Type string `json:"accountType"`
	ID   string `json:"accountId"`
}

type googleDestination struct {
	Operating   googleAccount  `json:"operatingAccount"`
	Login       *googleAccount `json:"loginAccount,omitzero"`
	Destination string         `json:"productDestinationId"`
}

// googleHead is what stands before a request's events, but for its last brace.
type googleHead struct {
	Destinations [1]googleDestination `json:"destinations"`
	Encoding     string               `json:"encoding"`
	ValidateOnly bool                 `json:"validateOnly,omitzero"`
}

// Build makes a request for one destination: its payloads are of one group.
func (a *googleAdapter) Build(batch []Payload, _ time.Time) Request {
	_, product, _ := strings.Cut(batch[0].Group, "/")
	to := googleDestination{Operating: googleAccount{"GOOGLE_ADS", a.settings.AccountID}, Destination: product}
	if a.settings.LoginAccountID != "" {
		to.Login = &googleAccount{"GOOGLE_ADS", a.settings.LoginAccountID}
	}
	if a.analytics() {
		property := googleAccount{"GOOGLE_ANALYTICS_PROPERTY", a.settings.AccountID}
		to = googleDestination{Operating: property, Login: &property, Destination: a.settings.MeasurementID}
	}
	// Of texts that are digits and letters; it cannot fail.
	head, _ := json.Marshal(googleHead{Destinations: [1]googleDestination{to}, Encoding: "HEX", ValidateOnly: a.settings.Test})
	body := joinBodies(string(head[:len(head)-1])+`,"events":[`, batch, []byte("]}"))
	return Request{Method: http.MethodPost, URL: a.base + "/" + a.version + "/events:ingest", Header: jsonHeader(), Body: body}
}

// Track asks what has become of a request.
func (a *googleAdapter) Track(ticket string) Request {
	header := jsonHeader()
	header.Del("Content-Type")
	return Request{
		Method: http.MethodGet, URL: a.base + "/" + a.version + "/requestStatus:retrieve?" + url.Values{"requestId": {ticket}}.Encode(),
		Header: header,
	}
}
