// Package document writes what of an event the analytics have no columns for as JSON: for webhooks, and for exports.
package document

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
)

// Options are those with which documents are marshalled: what an event lacks is null.
var Options = json.JoinOptions(json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true), json.Deterministic(true))

// Members are what a sender says of what happened, of who was there and of what they have decided.
type Members struct {
	UserID         *string        `json:"user_id"`
	SessionID      *string        `json:"session_id"`
	EngagementTime *int64         `json:"engagement_time_msec"`
	Tax            *event.Amount  `json:"tax"`
	Shipping       *event.Amount  `json:"shipping"`
	Discount       *event.Amount  `json:"discount"`
	Coupon         *string        `json:"coupon"`
	ContentID      *string        `json:"content_id"`
	ContentName    *string        `json:"content_name"`
	SearchTerm     *string        `json:"search_term"`
	ListID         *string        `json:"list_id"`
	ListName       *string        `json:"list_name"`
	Contents       []Item         `json:"contents"`
	Properties     jsontext.Value `json:"properties"`
	Consent        Consent        `json:"consent"`
}

// Item has its details where the sender wrote them as Weir understands them; else they are among Extra, as they were sent.
type Item struct {
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

// Context is where a visitor was and came from, without their address and user agent.
type Context struct {
	PageURL      *string           `json:"page_url"`
	PageTitle    *string           `json:"page_title"`
	Referrer     *string           `json:"referrer"`
	Language     *string           `json:"language"`
	ActionSource *string           `json:"action_source"`
	UTMSource    *string           `json:"utm_source"`
	UTMMedium    *string           `json:"utm_medium"`
	UTMCampaign  *string           `json:"utm_campaign"`
	UTMTerm      *string           `json:"utm_term"`
	UTMContent   *string           `json:"utm_content"`
	ClickIDs     map[string]string `json:"click_ids"`
}

// Consent is what a visitor decided, in the forms in which the sender said so.
type Consent struct {
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

// Nullable is nil for "", so that it becomes null.
func Nullable(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// MembersOf returns an event's members.
func MembersOf(e *event.Event) Members {
	m := Members{
		UserID: Nullable(e.UserID), SessionID: Nullable(e.SessionID),
		Tax: e.Tax, Shipping: e.Shipping, Discount: e.Discount, Coupon: Nullable(e.Coupon),
		ContentID: Nullable(e.ContentID), ContentName: Nullable(e.ContentName), SearchTerm: Nullable(e.SearchTerm),
		ListID: Nullable(e.ListID), ListName: Nullable(e.ListName),
		Contents: itemsOf(e.Contents), Properties: e.Properties, Consent: consentOf(&e.Consent),
	}
	if e.EngagementTime > 0 {
		m.EngagementTime = new(e.EngagementTime.Milliseconds())
	}
	return m
}

func itemsOf(contents []event.Item) []Item {
	if len(contents) == 0 {
		return nil
	}
	items := make([]Item, len(contents))
	for i, item := range contents {
		items[i] = Item{
			ID: Nullable(item.ID), Quantity: item.Quantity, Price: item.Price, Name: Nullable(item.Name), Category: Nullable(item.Category),
			Category2: item.Categories[0], Category3: item.Categories[1], Category4: item.Categories[2], Category5: item.Categories[3],
			Brand: item.Brand, Variant: item.Variant, Discount: item.Discount,
			Extra: item.Extra,
		}
	}
	return items
}

// ContextOf returns an event's context.
func ContextOf(c *event.Context) Context {
	return Context{
		PageURL: Nullable(c.PageURL), PageTitle: Nullable(c.PageTitle), Referrer: Nullable(c.Referrer),
		Language: Nullable(c.Language), ActionSource: Nullable(c.ActionSource.String()),
		UTMSource: Nullable(c.UTMSource), UTMMedium: Nullable(c.UTMMedium), UTMCampaign: Nullable(c.UTMCampaign),
		UTMTerm: Nullable(c.UTMTerm), UTMContent: Nullable(c.UTMContent),
		ClickIDs: c.ClickIDs,
	}
}

func consentOf(c *event.Consent) Consent {
	words := [...]string{event.Unstated: "", event.Granted: "granted", event.Denied: "denied"}
	consent := Consent{
		AdUserData: Nullable(words[c.AdUserData]), AdPersonalization: Nullable(words[c.AdPersonalization]),
		AdStorage: Nullable(words[c.AdStorage]), AnalyticsStorage: Nullable(words[c.AnalyticsStorage]),
		TCF: Nullable(c.TCF), GPP: Nullable(c.GPP), USPrivacy: Nullable(c.USPrivacy), LimitedDataUse: c.LimitedDataUse,
		Categories: c.Categories,
	}
	if c.GPPSections != "" {
		consent.GPPSections = jsontext.Value("[" + c.GPPSections + "]")
	}
	return consent
}
