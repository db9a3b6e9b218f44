package adapter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/document"
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
	EventID    string        `json:"event_id"`
	Event      string        `json:"event"`
	ReceivedAt string        `json:"received_at"`
	Value      *event.Amount `json:"value"`
	Currency   *string       `json:"currency"`
	OrderID    *string       `json:"order_id"`
	ClientID   *string       `json:"client_id"`

	document.Members `json:",inline"`

	Context webhookContext `json:"context"`
	User    webhookUser    `json:"user"`
}

type webhookContext struct {
	document.Context `json:",inline"`

	IP        *string `json:"ip"`
	UserAgent *string `json:"user_agent"`
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
	told, err := withoutPersons(&e.Event)
	if err != nil {
		return Payload{}, Verdict{Class: Permanent, Reason: "unrenderable"}
	}
	body, err := json.Marshal(webhookBody{
		Type:      e.Name,
		Timestamp: e.Time().UTC().Format(timestampFormat),
		Data: webhookData{
			EventID:    e.ID,
			Event:      e.Name,
			ReceivedAt: e.ReceivedAt.UTC().Format(timestampFormat),
			Value:      e.Value,
			Currency:   document.Nullable(e.Currency),
			OrderID:    document.Nullable(e.OrderID),
			ClientID:   document.Nullable(e.ClientID),
			Members:    document.MembersOf(&told),
			Context: webhookContext{
				Context: document.ContextOf(&e.Context), IP: document.Nullable(e.Context.IP), UserAgent: document.Nullable(e.Context.UserAgent),
			},
			User: webhookUserOf(e),
		},
	}, document.Options)
	if err != nil {
		// Only members of the sender's own can do this, where they are no JSON object or name one of ours again.
		return Payload{}, Verdict{Class: Permanent, Reason: "unrenderable"}
	}
	return Payload{Body: body}, Verdict{}
}

// withoutPersons returns an event whose members of the customer's own tell of nobody.
func withoutPersons(e *event.Event) (event.Event, error) {
	told := *e
	var err error
	if told.Properties, err = withoutPersonal(e.Properties); err != nil {
		return told, err
	}
	told.Contents = slices.Clone(e.Contents)
	for i := range told.Contents {
		if told.Contents[i].Extra, err = withoutPersonal(told.Contents[i].Extra); err != nil {
			return told, err
		}
	}
	return told, nil
}

func webhookUserOf(e *Event) webhookUser {
	hash := func(v event.Variant) *string { return document.Nullable(e.User.Get(v).String()) }
	return webhookUser{
		Email: hash(event.EmailLower), Emails: e.contacts(event.EmailLower, anyNumber),
		Phone: hash(event.PhoneE164), Phones: e.contacts(event.PhoneE164, anyNumber),
		FirstName: hash(event.FirstNameLower), LastName: hash(event.LastNameLower),
		Street: hash(event.Street), City: hash(event.City), State: hash(event.State), Zip: hash(event.Zip), Country: document.Nullable(e.Country),
		DateOfBirth: hash(event.DateOfBirth), Gender: hash(event.Gender),
	}
}

func (a *webhookAdapter) Build(batch []Payload, now time.Time) Request {
	payload := batch[0] // the type's limit is one event a request
	return a.request(payload.MessageID, payload.Body, now)
}

// request makes a signed request with a message.
func (a *webhookAdapter) request(id string, body []byte, now time.Time) Request {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header := jsonHeader()
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", a.sign(id, timestamp, body))
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: body, StatusOnly: true}
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
