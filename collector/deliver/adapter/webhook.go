package adapter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// webhookAdapter sends one event a request to a receiver of the customer's, signed by Standard Webhooks 1.0.
type webhookAdapter struct {
	url  string
	keys [][]byte
}

func openWebhook(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	keys, err := signingKeys(credentials["signingSecret"])
	if err != nil {
		return nil, err
	}
	return &webhookAdapter{url: cfg.Webhook.URL, keys: keys}, nil
}

// signingKeys decodes one or, while they are rotated, several secrets with spaces between them.
func signingKeys(secrets string) ([][]byte, error) {
	var keys [][]byte
	for secret := range strings.FieldsSeq(secrets) {
		encoded, prefixed := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !prefixed || err != nil || len(key) < 24 || len(key) > 64 {
			return nil, errors.New("signingSecret must be whsec_ and 24 to 64 bytes in base64, or several such with spaces between them")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// webhookBody is what a receiver gets.
type webhookBody struct {
	Type      string      `json:"type"`
	Timestamp string      `json:"timestamp"`
	Data      webhookData `json:"data"`
}

// webhookData is all of a stored event: the received event record of the read API without what is not yet known while it
// is being delivered, and what platforms need beside it. What the event lacks is null.
type webhookData struct {
	EventID        string         `json:"event_id"`
	Event          string         `json:"event"`
	ReceivedAt     string         `json:"received_at"`
	Value          *event.Amount  `json:"value"`
	Currency       *string        `json:"currency"`
	Tax            *event.Amount  `json:"tax"`
	Shipping       *event.Amount  `json:"shipping"`
	Discount       *event.Amount  `json:"discount"`
	OrderID        *string        `json:"order_id"`
	Coupon         *string        `json:"coupon"`
	ClientID       *string        `json:"client_id"`
	UserID         *string        `json:"user_id"`
	SessionID      *string        `json:"session_id"`
	EngagementTime *int64         `json:"engagement_time_msec"`
	ContentID      *string        `json:"content_id"`
	ContentName    *string        `json:"content_name"`
	SearchTerm     *string        `json:"search_term"`
	ListID         *string        `json:"list_id"`
	ListName       *string        `json:"list_name"`
	Contents       []webhookItem  `json:"contents"`
	Properties     jsontext.Value `json:"properties"`
	Context        webhookContext `json:"context"`
	Consent        webhookConsent `json:"consent"`
	User           webhookUser    `json:"user"`
}

// webhookItem has its details where the sender wrote them as Weir understands them; else they are among Extra, as they
// were sent.
type webhookItem struct {
	ID        *string        `json:"id"`
	Quantity  *event.Amount  `json:"quantity"`
	Price     *event.Amount  `json:"price"`
	Name      *string        `json:"name"`
	Category  *string        `json:"category"`
	Category2 string         `json:"category2,omitzero"`
	Category3 string         `json:"category3,omitzero"`
	Category4 string         `json:"category4,omitzero"`
	Category5 string         `json:"category5,omitzero"`
	Brand     string         `json:"brand,omitzero"`
	Variant   string         `json:"variant,omitzero"`
	Discount  *event.Amount  `json:"discount,omitzero"`
	Extra     jsontext.Value `json:",embed"`
}

type webhookContext struct {
	PageURL      *string           `json:"page_url"`
	PageTitle    *string           `json:"page_title"`
	Referrer     *string           `json:"referrer"`
	IP           *string           `json:"ip"`
	UserAgent    *string           `json:"user_agent"`
	Language     *string           `json:"language"`
	ActionSource *string           `json:"action_source"`
	UTMSource    *string           `json:"utm_source"`
	UTMMedium    *string           `json:"utm_medium"`
	UTMCampaign  *string           `json:"utm_campaign"`
	UTMTerm      *string           `json:"utm_term"`
	UTMContent   *string           `json:"utm_content"`
	ClickIDs     map[string]string `json:"click_ids"`
}

type webhookConsent struct {
	AdUserData        *string         `json:"ad_user_data"`
	AdPersonalization *string         `json:"ad_personalization"`
	AdStorage         *string         `json:"ad_storage"`
	AnalyticsStorage  *string         `json:"analytics_storage"`
	TCF               *string         `json:"tcf"`
	GPP               *string         `json:"gpp"`
	GPPSections       jsontext.Value  `json:"gpp_sid"`
	USPrivacy         *string         `json:"us_privacy"`
	LimitedDataUse    bool            `json:"limited_data_use"`
	Categories        map[string]bool `json:"categories"`
}

// webhookUser holds SHA-256 hashes in hexadecimal, and the country, which is none. Emails and Phones are all of them, the
// first among them.
type webhookUser struct {
	Email       *string  `json:"email"`
	Emails      []string `json:"emails"`
	Phone       *string  `json:"phone"`
	Phones      []string `json:"phones"`
	FirstName   *string  `json:"first_name"`
	LastName    *string  `json:"last_name"`
	Street      *string  `json:"street"`
	City        *string  `json:"city"`
	State       *string  `json:"state"`
	Zip         *string  `json:"zip"`
	Country     *string  `json:"country"`
	DateOfBirth *string  `json:"date_of_birth"`
	Gender      *string  `json:"gender"`
}

func (a *webhookAdapter) Map(e *Event) (Payload, Verdict) {
	data := webhookData{
		EventID:     e.ID,
		Event:       e.Name,
		ReceivedAt:  e.ReceivedAt.UTC().Format(timestampFormat),
		Value:       e.Value,
		Currency:    nullable(e.Currency),
		Tax:         e.Tax,
		Shipping:    e.Shipping,
		Discount:    e.Discount,
		OrderID:     nullable(e.OrderID),
		Coupon:      nullable(e.Coupon),
		ClientID:    nullable(e.ClientID),
		UserID:      nullable(e.UserID),
		SessionID:   nullable(e.SessionID),
		ContentID:   nullable(e.ContentID),
		ContentName: nullable(e.ContentName),
		SearchTerm:  nullable(e.SearchTerm),
		ListID:      nullable(e.ListID),
		ListName:    nullable(e.ListName),
		Contents:    webhookItems(e.Contents),
		Properties:  e.Properties,
		Context:     webhookContextOf(&e.Context),
		Consent:     webhookConsentOf(&e.Consent),
		User:        webhookUserOf(e),
	}
	if e.EngagementTime > 0 {
		data.EngagementTime = new(e.EngagementTime.Milliseconds())
	}
	body, err := json.Marshal(webhookBody{
		Type: e.Name, Timestamp: e.Time().UTC().Format(timestampFormat), Data: data,
	}, json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true), json.Deterministic(true))
	if err != nil {
		// Only members of the sender's own can do this, where they are no JSON object or name one of ours again.
		return Payload{}, Verdict{Class: Permanent, Reason: "unrenderable"}
	}
	return Payload{Body: body}, Verdict{}
}

func webhookContextOf(c *event.Context) webhookContext {
	return webhookContext{
		PageURL: nullable(c.PageURL), PageTitle: nullable(c.PageTitle), Referrer: nullable(c.Referrer),
		IP: nullable(c.IP), UserAgent: nullable(c.UserAgent), Language: nullable(c.Language), ActionSource: nullable(c.ActionSource.String()),
		UTMSource: nullable(c.UTMSource), UTMMedium: nullable(c.UTMMedium), UTMCampaign: nullable(c.UTMCampaign),
		UTMTerm: nullable(c.UTMTerm), UTMContent: nullable(c.UTMContent),
		ClickIDs: c.ClickIDs,
	}
}

func webhookConsentOf(c *event.Consent) webhookConsent {
	words := [...]string{event.Unstated: "", event.Granted: "granted", event.Denied: "denied"}
	consent := webhookConsent{
		AdUserData: nullable(words[c.AdUserData]), AdPersonalization: nullable(words[c.AdPersonalization]),
		AdStorage: nullable(words[c.AdStorage]), AnalyticsStorage: nullable(words[c.AnalyticsStorage]),
		TCF: nullable(c.TCF), GPP: nullable(c.GPP), USPrivacy: nullable(c.USPrivacy), LimitedDataUse: c.LimitedDataUse,
		Categories: c.Categories,
	}
	if c.GPPSections != "" {
		consent.GPPSections = jsontext.Value("[" + c.GPPSections + "]")
	}
	return consent
}

func webhookUserOf(e *Event) webhookUser {
	hash := func(v event.Variant) *string { return nullable(e.User.Get(v).String()) }
	return webhookUser{
		Email: hash(event.EmailLower), Emails: e.contacts(event.EmailLower, anyNumber),
		Phone: hash(event.PhoneE164), Phones: e.contacts(event.PhoneE164, anyNumber),
		FirstName: hash(event.FirstNameLower), LastName: hash(event.LastNameLower),
		Street: hash(event.Street), City: hash(event.City), State: hash(event.State), Zip: hash(event.Zip), Country: nullable(e.Country),
		DateOfBirth: hash(event.DateOfBirth), Gender: hash(event.Gender),
	}
}

func webhookItems(items []event.Item) []webhookItem {
	if len(items) == 0 {
		return nil
	}
	list := make([]webhookItem, len(items))
	for i, item := range items {
		list[i] = webhookItem{
			ID:        nullable(item.ID),
			Quantity:  item.Quantity,
			Price:     item.Price,
			Name:      nullable(item.Name),
			Category:  nullable(item.Category),
			Category2: item.Categories[0], Category3: item.Categories[1], Category4: item.Categories[2], Category5: item.Categories[3],
			Brand: item.Brand, Variant: item.Variant, Discount: item.Discount,
			Extra: item.Extra,
		}
	}
	return list
}

func (a *webhookAdapter) Build(batch []Payload, now time.Time) Request {
	payload := batch[0] // the type's limit is one event a request
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header := jsonHeader()
	header.Set("Webhook-Id", payload.MessageID)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", a.sign(payload.MessageID, timestamp, payload.Body))
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: payload.Body, StatusOnly: true}
}

// sign returns a signature per key, with spaces between them.
func (a *webhookAdapter) sign(id, timestamp string, body []byte) string {
	signatures := make([]string, len(a.keys))
	for i, key := range a.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

// Classify goes by the status: what a receiver writes into the body has no meaning.
func (a *webhookAdapter) Classify(r Response, n int) []Verdict {
	return forAll(n, classifyStatus(r, n))
}
