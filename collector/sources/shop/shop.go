// Package shop reads what shop systems report of their orders: it verifies their webhooks, makes envelopes of what they
// hold, and reads the same orders back from a shop's API through a client that it is given. It stores nothing. What of a
// document becomes which member is a table of paths for each system.
package shop

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/sources"
)

// Report is what a shop says with one document.
type Report struct {
	Events []Event
	// Ignored says why there is no event; "" where there is one.
	Ignored string
	// Erasure is the topic of a request to erase or to hand out what is known of a person, which is no event; "" for none.
	Erasure string
	// Subject is who is to be erased, by the members that an event of the shop would have of them; nil where nobody is, or where only
	// the owner can see to it.
	Subject map[string]string
	// Repeat is the same where the shop asks for the same erasure again; "" where nobody can tell.
	Repeat string
}

// Event is a purchase or a refund.
type Event struct {
	// members are the envelope's.
	members map[string]any
	// At is since when it may have been reported. What has been counted at that time and forgotten since must not be
	// counted again.
	At time.Time
}

// Envelope is what a customer's server would send of the event, as JSON.
func (e Event) Envelope() ([]byte, error) {
	encoded, err := json.Marshal(e.members)
	if err != nil {
		return nil, fmt.Errorf("write the envelope of a shop's order: %w", err)
	}
	return encoded, nil
}

// Order is an order as a shop has it. Value is decimal.
type Order struct{ ID, Value, Currency string }

// Order returns what the event's order is; isOne is false for what is no purchase.
func (e Event) Order() (o Order, isOne bool) {
	data, _ := e.members["data"].(map[string]any)
	o = Order{text(data["order_id"]), text(data["value"]), strings.ToUpper(text(data["currency"]))}
	return o, text(e.members["event"]) == event.Purchase && o.ID != ""
}

// needed are the members without which an event is none.
var needed = []string{"event", "event_id", "data.value", "data.currency", "data.order_id"}

// Without leaves out the members that fields of the envelope are in, of which several may be in one, and says whether
// anything was left out and the event can do without all of it.
func (e Event) Without(fields []string) bool {
	if slices.ContainsFunc(fields, func(field string) bool { return slices.Contains(needed, field) }) {
		return false
	}
	left := false
	for _, field := range fields {
		name, below, _ := strings.Cut(field, ".")
		object := e.members
		if inner, isObject := object[name].(map[string]any); isObject && below != "" {
			name, _, _ = strings.Cut(below, ".")
			object = inner
		}
		if _, found := object[name]; found {
			delete(object, name)
			left = true
		}
	}
	return left
}

// ErrMalformed says that a document is none of the system's. It holds nothing of the document.
var ErrMalformed = errors.New("the request body must be a JSON object")

// system is what is known of a type of sources.
type system struct {
	// verify says whether a webhook was signed with a secret.
	verify func(header http.Header, body []byte, secret string, now time.Time) bool
	// topicHeader names the field of the header that says what a webhook is about; "" where the body says it.
	topicHeader string
	// repeatHeader names the field that is the same where a webhook is sent again; "" where there is none.
	repeatHeader string
	// read makes a report of a document about a topic; [topicChanged] for an order that was read back.
	read func(source *sources.Source, topic string, document any) (Report, error)
	// changed asks the shop's API for what has changed; see [API.Changed].
	changed func(ctx context.Context, a *API, since time.Time, found func(Report) error) (time.Time, error)
	// mend switches on again what the shop has switched off; nil where it does not do that.
	mend func(ctx context.Context, a *API) error
}

var systems = map[sources.Type]system{
	sources.Shopify:     {verifyShopify, "X-Shopify-Topic", "X-Shopify-Webhook-Id", readShopify, changedShopify, nil},
	sources.WooCommerce: {verifyWooCommerce, "X-Wc-Webhook-Topic", "", readWooCommerce, changedWooCommerce, mendWooCommerce},
	sources.Stripe:      {verifyStripe, "", "", readStripe, changedStripe, nil},
}

// Verify says whether a webhook of a source was signed with one of the secrets, not too long before now where its
// signature tells.
func Verify(kind sources.Type, header http.Header, body []byte, secrets []string, now time.Time) bool {
	verified := false
	for _, secret := range secrets {
		verified = systems[kind].verify(header, body, secret, now) || verified
	}
	return verified
}

// Read makes a report of a webhook that was verified. It fails with [ErrMalformed].
func Read(source *sources.Source, header http.Header, body []byte) (Report, error) {
	system := systems[source.Type]
	document, err := decode(body)
	if err != nil {
		return Report{}, err
	}
	topic := header.Get(system.topicHeader)
	if system.topicHeader == "" {
		topic = text(at(document, "type"))
	}
	report, err := system.read(source, topic, document)
	if report.Subject != nil {
		report.Repeat = header.Get(system.repeatHeader)
	}
	return report, err
}

// decode reads a JSON object, with its numbers as they are written.
func decode(body []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var document map[string]any
	if err := decoder.Decode(&document); err != nil || document == nil || decoder.More() {
		return nil, ErrMalformed
	}
	return document, nil
}

// signedBase64 says whether a field of the header is the base64 of the body's HMAC with SHA-256.
func signedBase64(header http.Header, field string, body []byte, secret string) bool {
	sent, err := base64.StdEncoding.DecodeString(header.Get(field))
	return err == nil && hmac.Equal(sent, sign(secret, body))
}

func sign(secret string, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// ignored is a report without an event.
func ignored(reason string) Report { return Report{Ignored: reason} }

// IsPing says whether a request asks no more than whether somebody answers, as WooCommerce does when a webhook is saved,
// with a form. It is not signed.
func IsPing(kind sources.Type, body []byte) bool {
	digits, found := bytes.CutPrefix(body, []byte("webhook_id="))
	return kind == sources.WooCommerce && found && len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0
}
