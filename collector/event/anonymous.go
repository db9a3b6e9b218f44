package event

import (
	"net/url"
	"slices"

	"github.com/google/uuid"
)

// Anonymous returns what of an event counts and tells of nobody: it is a number under a new id, for no platform. It has what
// happened, when, what for and for how much, by which campaign, and of addresses of pages no more than the site. All else goes:
// ids of the person, of the visit, of the order and of the event itself, hashes, contacts, country, device, clicks, consent,
// coupons, search terms, and whatever members are the sender's own.
func (e *Event) Anonymous(id uuid.UUID) Event {
	kept := Event{
		ID: id.String(), DeliveryID: id, Name: e.Name, OccurredAt: e.OccurredAt, Class: e.Class, EngagementTime: e.EngagementTime,
		Value: e.Value, Currency: e.Currency, Tax: e.Tax, Shipping: e.Shipping, Discount: e.Discount,
		ContentID: e.ContentID, ContentName: e.ContentName, ListID: e.ListID, ListName: e.ListName, Contents: slices.Clone(e.Contents),
		Context: Context{
			PageURL: site(e.Context.PageURL), Referrer: site(e.Context.Referrer), ActionSource: e.Context.ActionSource,
			UTMSource: e.Context.UTMSource, UTMMedium: e.Context.UTMMedium, UTMCampaign: e.Context.UTMCampaign, // not what may stand for one mail
		},
	}
	for i := range kept.Contents {
		kept.Contents[i].Extra = nil
	}
	return kept
}

// site returns the scheme and the host of a page's address, "" where there is none.
func site(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host + "/"
}
