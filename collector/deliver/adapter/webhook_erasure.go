package adapter

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/go-json-experiment/json"
)

// webhookErased is the type of the message that tells of an erasure.
const webhookErased = "person.erased"

// webhookErasure is what a receiver gets when a person is erased.
type webhookErasure struct {
	Type      string              `json:"type"`
	Timestamp string              `json:"timestamp"`
	Data      webhookErasedPerson `json:"data"`
}

// webhookErasedPerson is what the receiver knows the person by. The lists are empty where it was told nothing of the kind.
type webhookErasedPerson struct {
	ErasureID string   `json:"erasure_id"`
	ClientIDs []string `json:"client_ids"`
	UserIDs   []string `json:"user_ids"`
	Emails    []string `json:"emails"`
	Phones    []string `json:"phones"`
}

// Erase makes a message for each person. Its id is the erasure's and a digest of the rest, for one erasure may have several
// messages: what is sent again has the same id, and what says more has another one.
func (a *webhookAdapter) Erase(persons []Person, now time.Time) ([]ErasureRequest, error) {
	var requests []ErasureRequest
	for _, person := range persons {
		if person.Empty() {
			continue
		}
		known := webhookErasedPerson{person.Erasure, person.ClientIDs, person.UserIDs, person.Emails, person.Phones}
		data, err := json.Marshal(known)
		if err != nil {
			return nil, errUnrenderable
		}
		part := sha256.Sum256(data)
		id := person.Erasure + "-" + hex.EncodeToString(part[:8])
		body, err := json.Marshal(webhookErasure{webhookErased, now.UTC().Format(timestampFormat), known})
		if err != nil {
			return nil, errUnrenderable
		}
		requests = append(requests, ErasureRequest{Request: a.request(id, body, now), Erasures: []string{person.Erasure}})
	}
	return requests, nil
}

// ClassifyErasure goes by the status, as with events.
func (a *webhookAdapter) ClassifyErasure(r Response) Verdict { return classifyStatus(r, 1) }
