package fakes

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weir-dev/weir/collector/platforms"
)

func failWebhook(status int) answer {
	return answer{status: status, contentType: "text/plain; charset=utf-8", body: http.StatusText(status) + "\n"}
}

type webhookBody struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		EventID  string             `json:"event_id"`
		Event    string             `json:"event"`
		Value    *amount            `json:"value"`
		Currency *string            `json:"currency"`
		User     map[string]*string `json:"user"`
	} `json:"data"`
}

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
	body, problem := unmarshal[webhookBody](q.body)
	if problem != "" || body.Timestamp.IsZero() {
		return failWebhook(http.StatusBadRequest).complain("the body is not a webhook's JSON")
	}
	e := Event{Name: body.Type, ID: q.Header.Get("Webhook-Id")}
	if body.Data.Value != nil && body.Data.Currency != nil {
		e.Value, e.Currency = string(*body.Data.Value), *body.Data.Currency
	}
	for field, hash := range body.Data.User {
		if hash != nil {
			q.checkHashes(&e, field, *hash)
		}
	}
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
	given.events = []Event{e}
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
