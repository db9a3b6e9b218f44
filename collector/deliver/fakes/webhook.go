package fakes

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weir-dev/weir/collector/platforms"
)

func failWebhook(status int) answer {
	return answer{status: status, contentType: "text/plain; charset=utf-8", body: http.StatusText(status) + "\n"}
}

// webhookBody is all that a receiver may be sent: a member that is missing here is an error, as it is for a receiver that
// checks what it gets.
type webhookBody struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		EventID        string                    `json:"event_id"`
		Event          string                    `json:"event"`
		ReceivedAt     time.Time                 `json:"received_at"`
		Value          *amount                   `json:"value"`
		Currency       *string                   `json:"currency"`
		Tax            *amount                   `json:"tax"`
		Shipping       *amount                   `json:"shipping"`
		Discount       *amount                   `json:"discount"`
		OrderID        *string                   `json:"order_id"`
		Coupon         *string                   `json:"coupon"`
		ClientID       *string                   `json:"client_id"`
		UserID         *string                   `json:"user_id"`
		SessionID      *string                   `json:"session_id"`
		EngagementTime *uint64                   `json:"engagement_time_msec"`
		ContentID      *string                   `json:"content_id"`
		ContentName    *string                   `json:"content_name"`
		SearchTerm     *string                   `json:"search_term"`
		ListID         *string                   `json:"list_id"`
		ListName       *string                   `json:"list_name"`
		Contents       []webhookItem             `json:"contents"`
		Properties     map[string]jsontext.Value `json:"properties"`
		Context        webhookContext            `json:"context"`
		Consent        webhookConsent            `json:"consent"`
		User           map[string]jsontext.Value `json:"user"`
	} `json:"data"`
}

// webhookItem has members of the sender's own beside these.
type webhookItem struct {
	ID       *string        `json:"id"`
	Quantity *amount        `json:"quantity"`
	Price    *amount        `json:"price"`
	Name     *string        `json:"name"`
	Category *string        `json:"category"`
	Own      jsontext.Value `json:",embed"`
}

type webhookContext struct {
	PageURL      *string           `json:"page_url"`
	PageTitle    *string           `json:"page_title"`
	Referrer     *string           `json:"referrer"`
	IP           *netip.Addr       `json:"ip"`
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
	GPPSections       []int32         `json:"gpp_sid"`
	USPrivacy         *string         `json:"us_privacy"`
	LimitedDataUse    bool            `json:"limited_data_use"`
	Categories        map[string]bool `json:"categories"`
}

// webhookMembers must all be there, if only as null: receivers read them by name.
var webhookMembers = map[string][]string{
	"data": {
		"event_id", "event", "received_at", "value", "currency", "tax", "shipping", "discount", "order_id", "coupon", "client_id", "user_id",
		"session_id", "engagement_time_msec", "content_id", "content_name", "search_term", "list_id", "list_name", "contents", "properties",
		"context", "consent", "user",
	},
	"data.context": {
		"page_url", "page_title", "referrer", "ip", "user_agent", "language", "action_source", "utm_source", "utm_medium", "utm_campaign",
		"utm_term", "utm_content", "click_ids",
	},
	"data.consent": {
		"ad_user_data", "ad_personalization", "ad_storage", "analytics_storage", "tcf", "gpp", "gpp_sid", "us_privacy", "limited_data_use",
		"categories",
	},
	"data.user": {
		"email", "emails", "phone", "phones", "first_name", "last_name", "street", "city", "state", "zip", "country", "date_of_birth", "gender",
	},
}

// webhookLacks returns the path of a member that the body lacks, "" where it has all.
func webhookLacks(body []byte) string {
	for _, path := range slices.Sorted(maps.Keys(webhookMembers)) {
		members, problem := unmarshal[map[string]jsontext.Value](body)
		for name := range strings.SplitSeq(path, ".") {
			if problem == "" {
				members, problem = unmarshal[map[string]jsontext.Value](members[name])
			}
		}
		if problem != "" {
			return path
		}
		for _, name := range webhookMembers[path] {
			if members[name] == nil {
				return path + "." + name
			}
		}
	}
	return ""
}

// checkWebhookUser takes the hashes, of which there may be lists, and the country, which is none.
func (q *request) checkWebhookUser(e *Event, user map[string]jsontext.Value) {
	for field, value := range user {
		if !slices.Contains(webhookMembers["data.user"], field) {
			e.refuse("user." + field + " is none of the members")
			continue
		}
		list, problem := unmarshal[[]string](value)
		if value.Kind() == '"' {
			var text string
			text, problem = unmarshal[string](value)
			list = []string{text}
		}
		switch isList := field == "emails" || field == "phones"; {
		case problem != "", isList && value.Kind() == '"', value.Kind() == '[' && (!isList || len(list) == 0):
			e.refuse("user." + field + " must be a text, or emails and phones a list of texts")
		case field == "country":
			if len(list) > 0 && !webhookCountry.MatchString(list[0]) {
				e.refuse("user.country must be two capital letters")
			}
		default:
			q.checkHashes(e, field, list...)
		}
	}
}

var webhookCountry = regexp.MustCompile(`^[A-Z]{2}$`)

// judgeWebhook is a receiver that verifies signatures with the reference implementation of Standard Webhooks. An
// account is found by the path of its URL, and any of its secrets will do, as for a receiver that is being moved
// from one to the next.
func judgeWebhook(q *request) answer {
	account := q.account(func(p platforms.Platform) bool {
		if p.Webhook == nil {
			return false
		}
		own, err := url.Parse(p.Webhook.URL)
		return err == nil && own.Path == q.URL.Path
	})
	if account == nil || !q.isJSON() {
		return failWebhook(http.StatusNotFound).complain("no receiver there")
	}
	if !verifies(q, account.Credentials["signingSecret"]) {
		return failWebhook(http.StatusUnauthorized).complain("the signature does not match")
	}
	if isWebhookErasure(q.body) {
		return judgeWebhookErasure(q)
	}
	return judgeWebhookEvent(q)
}

// judgeWebhookEvent takes a message of an event, of which the signature has been verified.
func judgeWebhookEvent(q *request) answer {
	body, problem := unmarshal[webhookBody](q.body, strict)
	if problem != "" || body.Timestamp.IsZero() || body.Data.ReceivedAt.IsZero() {
		return failWebhook(http.StatusBadRequest).complain("the body is not a webhook's JSON")
	}
	if path := webhookLacks(q.body); path != "" {
		return failWebhook(http.StatusBadRequest).complain("the body lacks %s", path)
	}
	e := Event{Name: body.Type, ID: q.Header.Get("Webhook-Id")}
	if body.Data.Value != nil && body.Data.Currency != nil {
		e.Value, e.Currency = string(*body.Data.Value), *body.Data.Currency
	}
	q.checkWebhookUser(&e, body.Data.User)
	switch {
	case e.Name == "" || e.Name != body.Data.Event || body.Data.EventID == "":
		e.refuse("type, data.event and data.event_id must be there")
	case e.ID == "" || strings.Contains(e.ID, ".") || q.refused[body.Data.EventID]:
		e.refuse("the id must be valid")
	}
	given := answer{status: http.StatusNoContent}
	if e.Refusal != "" {
		given = failWebhook(http.StatusBadRequest)
	}
	given.events, given.test = []Event{e}, e.Name == platforms.WebhookTest
	return given
}

// verifies says whether one of the secrets verifies the request. The library goes by the real time, so what is
// asked of it is the signature alone; the timestamp is checked here.
func verifies(q *request, secrets string) bool {
	stamp := q.Header.Get("Webhook-Timestamp")
	seconds, problem := unmarshal[int64]([]byte(stamp))
	if problem != "" || q.now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	return slices.ContainsFunc(strings.Fields(secrets), func(secret string) bool {
		verifier, err := standardwebhooks.NewWebhook(secret)
		return err == nil && verifier.VerifyIgnoringTimestamp(q.body, q.Header) == nil
	})
}
