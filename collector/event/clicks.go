package event

import (
	"slices"
	"strings"
)

// ClickSet is a set of names of click ids, by the bits 1 << place in [ClickIDNames].
type ClickSet uint32

// Has says whether a name is in the set.
func (s ClickSet) Has(name string) bool {
	if s == 0 {
		return false
	}
	place := slices.Index(ClickIDNames[:], name)
	return place >= 0 && s&(1<<place) != 0
}

// DropIdentity takes from the event what tells whose it is: the ids of client, user and session, hashes, the country, click ids
// and the person. What is left counts as before, but is nobody's. Which click ids there were stays known, without what they
// were, and of the URLs everything but these.
func (e *Event) DropIdentity() {
	c := &e.Context
	for i, name := range ClickIDNames {
		if c.ClickIDs[name] != "" {
			c.Clicked |= 1 << i
		}
	}
	c.ClickIDs, c.PageURL, c.Referrer = nil, WithoutClickIDs(c.PageURL), WithoutClickIDs(c.Referrer)
	e.ClientID, e.UserID, e.SessionID, e.Country = "", "", "", ""
	e.User, e.MoreContacts, e.Person = Hashes{}, nil, Person{}
}

// IsClickID says whether a parameter of a URL is a platform's click id.
func IsClickID(parameter string) bool {
	return slices.Contains(ClickIDNames[:], parameter) || strings.EqualFold(parameter, SnapClickID)
}

// SnapClickID is what Snapchat calls its parameter of a page's URL, in whatever case; its name as an event's click id is
// another.
const SnapClickID = "sccid"

// WithoutClickIDs returns a URL without the parameters of its query that are click ids, otherwise as it is.
func WithoutClickIDs(url string) string {
	rest, _, _ := strings.Cut(url, "#")
	page, query, _ := strings.Cut(rest, "?")
	found := false
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		found = found || IsClickID(name)
	}
	if !found {
		return url
	}
	var kept []string
	for parameter := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(parameter, "="); !IsClickID(name) {
			kept = append(kept, parameter)
		}
	}
	if len(kept) > 0 {
		page += "?" + strings.Join(kept, "&")
	}
	return page + url[len(rest):]
}
