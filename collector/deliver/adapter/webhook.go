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

// webhookData is the received event record of the read API without what is not yet known while it is being
// delivered, and what platforms need beside it. What the event lacks is null.
type webhookData struct {
	EventID     string         `json:"event_id"`
	Event       string         `json:"event"`
	ReceivedAt  string         `json:"received_at"`
	Value       *event.Amount  `json:"value"`
	Currency    *string        `json:"currency"`
	OrderID     *string        `json:"order_id"`
	ClientID    *string        `json:"client_id"`
	ContentID   *string        `json:"content_id"`
	ContentName *string        `json:"content_name"`
	Contents    []webhookItem  `json:"contents"`
	Context     webhookContext `json:"context"`
	User        webhookUser    `json:"user"`
}

type webhookItem struct {
	ID       *string        `json:"id"`
	Quantity *event.Amount  `json:"quantity"`
	Price    *event.Amount  `json:"price"`
	Name     *string        `json:"name"`
	Category *string        `json:"category"`
	Extra    jsontext.Value `json:",embed"`
}

type webhookContext struct {
	UTMSource   *string `json:"utm_source"`
	UTMMedium   *string `json:"utm_medium"`
	UTMCampaign *string `json:"utm_campaign"`
	UTMTerm     *string `json:"utm_term"`
	UTMContent  *string `json:"utm_content"`
}

// webhookUser holds SHA-256 hashes in hexadecimal.
type webhookUser struct {
	Email     *string `json:"email"`
	Phone     *string `json:"phone"`
	FirstName *string `json:"first_name"`
}

func (a *webhookAdapter) Map(e *Event) (Payload, Verdict) {
	body, err := json.Marshal(webhookBody{
		Type:      e.Name,
		Timestamp: e.Time().UTC().Format(timestampFormat),
		Data: webhookData{
			EventID:     e.ID,
			Event:       e.Name,
			ReceivedAt:  e.ReceivedAt.UTC().Format(timestampFormat),
			Value:       e.Value,
			Currency:    nullable(e.Currency),
			OrderID:     nullable(e.OrderID),
			ClientID:    nullable(e.ClientID),
			ContentID:   nullable(e.ContentID),
			ContentName: nullable(e.ContentName),
			Contents:    webhookItems(e.Contents),
			Context: webhookContext{
				UTMSource:   nullable(e.Context.UTMSource),
				UTMMedium:   nullable(e.Context.UTMMedium),
				UTMCampaign: nullable(e.Context.UTMCampaign),
				UTMTerm:     nullable(e.Context.UTMTerm),
				UTMContent:  nullable(e.Context.UTMContent),
			},
			User: webhookUser{
				Email:     nullable(e.User.Get(event.EmailLower).String()),
				Phone:     nullable(e.User.Get(event.PhoneE164).String()),
				FirstName: nullable(e.User.Get(event.FirstNameLower).String()),
			},
		},
	}, json.FormatNilSliceAsNull(true))
	if err != nil {
		// Only an item's own members can do this, where they are no JSON object or name one of ours again.
		return Payload{}, Verdict{Class: Permanent, Reason: "unrenderable"}
	}
	return Payload{Body: body}, Verdict{}
}

func webhookItems(items []event.Item) []webhookItem {
	if len(items) == 0 {
		return nil
	}
	list := make([]webhookItem, len(items))
	for i, item := range items {
		list[i] = webhookItem{
			ID:       nullable(item.ID),
			Quantity: item.Quantity,
			Price:    item.Price,
			Name:     nullable(item.Name),
			Category: nullable(item.Category),
			Extra:    item.Extra,
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
