package adapter

import (
	"strconv"
	"time"

	"github.com/weir-dev/weir/collector/event"
)

// googleAnalyticsAge is how old an event may be for Google Analytics.
const googleAnalyticsAge = 72 * time.Hour

// mapGoogleAnalytics renders an event for Google Analytics. A refund is an event of its own there, which names its purchase.
func mapGoogleAnalytics(e *Event) (Payload, Verdict) {
	name, reason := ga4Name(e)
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	expires := e.Time().Add(googleAnalyticsAge - ageMargin)
	if !expires.After(e.ReceivedAt) {
		return Payload{}, Skip("too_old")
	}
	client := ga4ClientID(e.ClientID)
	if client == "" {
		return Payload{}, Skip("no_client_id") // an invented one would be a new visitor for each event
	}
	transaction := e.OrderID
	switch {
	case e.Name == event.Refund && transaction == "":
		return Payload{}, Skip("no_order_id")
	case e.Name == event.Purchase && transaction == "":
		transaction = e.DedupID() // a repeated purchase is told by this alone
	}
	goods := goodsOf(e, takes{named: true, costs: true})
	own := googleEvent{
		TransactionID: ga4Text(transaction, ga4ParamLength), EventTimestamp: e.Time().UTC().Format(timestampFormat), EventName: name,
		EventSource: googleSource(e.Context.ActionSource), ClientID: client, UserID: e.UserID, UserData: googleUserDataOf(e),
		AdIdentifiers: googleClicks(e), Consent: googleConsentOf(e), ConversionValue: googleAmount(goods.Value), Currency: goods.Currency,
		CartData: googleAnalyticsCart(e, goods.Items), Parameters: googleParameters(e, &goods),
	}
	device := googleDevice{IPAddress: publicIP(e.Context.IP), UserAgent: e.Context.UserAgent, LanguageCode: e.Context.Language}
	if device != (googleDevice{}) {
		own.DeviceInfo = &device
	}
	payload, verdict := bodyPayload(own)
	payload.Expires = expires
	return payload, verdict
}

// parameters collects an event's or an item's parameters, which are all text.
type googleParameterList []googleParameter

func (l *googleParameterList) text(name, value string, length int) {
	if value != "" {
		*l = append(*l, googleParameter{name, ga4Text(value, length)})
	}
}

func (l googleParameterList) has(name string) bool {
	for _, parameter := range l {
		if parameter.Name == name {
			return true
		}
	}
	return false
}

// googleParameters are the event's parameters beyond the API's own members: Google's, then the customer's as far as there is
// room.
func googleParameters(e *Event, goods *goods) []googleParameter {
	var l googleParameterList
	l.text("tax", amountText(goods.Tax), ga4ParamLength)
	l.text("shipping", amountText(goods.Shipping), ga4ParamLength)
	l.text("session_id", ga4SessionID(e.SessionID), ga4ParamLength)
	if e.EngagementTime > 0 {
		l.text("engagement_time_msec", strconv.FormatInt(e.EngagementTime.Milliseconds(), 10), ga4ParamLength)
	}
	l.text("page_location", e.Context.PageURL, ga4PageLength)
	l.text("page_referrer", e.Context.Referrer, ga4ReferrerLength)
	l.text("page_title", e.Context.PageTitle, ga4TitleLength)
	l.text("search_term", e.SearchTerm, ga4ParamLength)
	l.text("item_list_id", e.ListID, ga4ParamLength)
	l.text("item_list_name", e.ListName, ga4ParamLength)
	for name, value := range propertiesOf(e) {
		name = ga4Custom(name)
		if len(l) < ga4MostParams && name != "" && !l.has(name) && !ga4OwnParams[name] && !ga4Keeps(name) {
			l.text(name, plainText(value), ga4ParamLength)
		}
	}
	return l
}

// googleAnalyticsCart has the contents that have an id or a name, else the event's own content.
func googleAnalyticsCart(e *Event, pieces []piece) *googleCart {
	var cart googleCart
	if e.Coupon != "" {
		cart.CouponCodes = []string{ga4Text(e.Coupon, ga4ParamLength)}
	}
	for _, item := range ga4Items(e, pieces) {
		var l googleParameterList
		for _, text := range [...]struct{ name, value string }{
			{"item_name", item.Name}, {"item_brand", item.Brand}, {"item_variant", item.Variant}, {"item_category", item.Category},
			{"item_category2", item.Category2}, {"item_category3", item.Category3}, {"item_category4", item.Category4},
			{"item_category5", item.Category5}, {"discount", amountText(item.Discount)},
		} {
			l.text(text.name, text.value, ga4ParamLength)
		}
		cart.Items = append(cart.Items, googleItem{
			ItemID: item.ID, Quantity: strconv.FormatInt(item.Quantity, 10), UnitPrice: googleAmount(item.Price), Parameters: l,
		})
	}
	if cart.Items == nil && cart.CouponCodes == nil {
		return nil
	}
	return &cart
}
