package fakes

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// webhookErased is the type of the message that tells of an erasure.
const webhookErased = "person.erased"

// webhookErasure is all that such a message may have, and all of it must be there.
type webhookErasure struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		ErasureID string   `json:"erasure_id"`
		ClientIDs []string `json:"client_ids"`
		UserIDs   []string `json:"user_ids"`
		Emails    []string `json:"emails"`
		Phones    []string `json:"phones"`
	} `json:"data"`
}

var webhookErasureID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// isWebhookErasure tells such a message by its data, since an event may have any name.
func isWebhookErasure(body []byte) bool {
	message, problem := unmarshal[struct {
		Type string                    `json:"type"`
		Data map[string]jsontext.Value `json:"data"`
		Rest jsontext.Value            `json:",embed"`
	}](body)
	return problem == "" && message.Type == webhookErased && message.Data["event_id"] == nil
}

// judgeWebhookErasure takes a message of a person who is erased, of which the signature has been verified.
func judgeWebhookErasure(q *request) answer {
	refuse := func(what string) answer { return failWebhook(http.StatusBadRequest).complain("%s", what) }
	message, problem := unmarshal[webhookErasure](q.body, strict)
	id := q.Header.Get("Webhook-Id")
	data := &message.Data
	switch {
	case problem != "" || message.Timestamp.IsZero():
		return refuse("the body is not that of an erasure")
	case data.ClientIDs == nil || data.UserIDs == nil || data.Emails == nil || data.Phones == nil:
		return refuse("all lists must be there, if only empty")
	case len(data.ClientIDs)+len(data.UserIDs)+len(data.Emails)+len(data.Phones) == 0:
		return refuse("nobody is named")
	case !webhookErasureID.MatchString(data.ErasureID) || !strings.HasPrefix(id, data.ErasureID+"-") || strings.Contains(id, "."):
		return refuse("the id must be the erasure's and that of the part")
	}
	for field, hashes := range map[string][]string{"emails": data.Emails, "phones": data.Phones} {
		for _, hash := range hashes {
			if wrong := q.checkHash(field, hash); wrong != "" {
				return refuse(wrong)
			}
		}
	}
	return answer{status: http.StatusNoContent, erasure: &Erasure{ID: id, Persons: map[string][]string{
		"client_ids": data.ClientIDs, "user_ids": data.UserIDs, "emails": data.Emails, "phones": data.Phones,
	}}}
}
