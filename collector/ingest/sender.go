package ingest

import (
	"net/http"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// sender is who a request comes from: whoever has one of a tenant's keys.
type sender struct {
	*tenant
	way      *way
	counters *counters
	// key is the name of the API key.
	key string
	// use notes that the key was used.
	use *audit.Use
	// rate is what its events are counted against; without events a second there is no limit.
	rate stream.Rate
	// fetched says that nobody sent this: it was read from a shop.
	fetched bool
	// web is nil for secret keys.
	web *web
	// visitor is whom a page's request comes from.
	visitor envelope.Visitor
}

// newSenders returns who has a key of a tenant's, at its place in the tenant's list, for each way in.
func newSenders(t *tenant, place int, key auth.Credential) (senders [ways]*sender) {
	s := sender{tenant: t, key: key.Name, use: t.FirstUses.Of(key), rate: stream.Rate{EventsPerSecond: t.Property.Limits.EventsPerSecond}}
	if key.Publishable != nil {
		s.web = newWeb(key.Publishable)
		s.rate = stream.Rate{Key: place + 1, EventsPerSecond: key.Publishable.EventsPerSecond}
	}
	for i, way := range allWays {
		via := s
		via.way, via.counters = way, &t.counters[i]
		senders[i] = &via
	}
	return senders
}

// authenticate finds the sender whose key stands in the path. Where there is none it has answered: alike for
// every wrong key, whatever is wrong with it, and without looking at the body.
func (h *Handler) authenticate(w http.ResponseWriter, r *http.Request, via *way) (*sender, bool) {
	return h.authenticateKey(w, r, via, server.PathParameter(r, "api_key")) // what cannot be unescaped is no key of anybody's
}

// authenticateKey finds the sender who has a key. Where there is none it has answered.
func (h *Handler) authenticateKey(w http.ResponseWriter, r *http.Request, via *way, key string) (*sender, bool) {
	s, found := h.senderOf(via, key)
	if !found {
		refuseKey(w, via)
		return nil, false
	}
	if s.web != nil {
		return h.admitPage(s, w, r)
	}
	if len(r.Header["Origin"]) > 0 { // a browser asks beforehand only about what a form could not send
		h.refuse(s, w, &refusal{status: http.StatusForbidden, message: secretInPage})
		return nil, false
	}
	server.Authenticated(r)
	return s, true
}

// senderOf finds the sender who has a key, and notes that it was used.
func (h *Handler) senderOf(via *way, key string) (*sender, bool) {
	all := h.served.Load()
	i, found := auth.Find(all.keys, key, h.now())
	if !found {
		return nil, false
	}
	s := all.senders[i][via.index]
	s.use.Note()
	return s, true
}

func refuseKey(w http.ResponseWriter, via *way) {
	server.Refuse(w)
	via.message(w, http.StatusUnauthorized, "Invalid API key.")
}

// judge says what of an event that is valid the sender's key may not send.
func (s *sender) judge(valid *envelope.Valid) event.Errors {
	if name := valid.Name(); s.web != nil && (name == event.Purchase || name == event.Refund) {
		return event.Errors{{Field: "event", Message: "The event field must be another than " + name + ": with a publishable API key anybody could send it. Send it from a server."}}
	}
	return nil
}
