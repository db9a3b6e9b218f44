package adapter

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// ga4Validation has Google's validation server judge the events of a data stream, which keeps none of them.
type ga4Validation struct{ *ga4Adapter }

func (a *ga4Adapter) testing() Adapter { return ga4Validation{a} }

// Build makes the request that the events would come in, at the address of the validation server, which is asked to be strict.
func (a ga4Validation) Build(batch []Payload, now time.Time) Request {
	request := a.ga4Adapter.Build(batch, now)
	request.URL = strings.Replace(request.URL, "/mp/collect?", "/debug/mp/collect?", 1)
	request.Body = slices.Concat([]byte(`{"validation_behavior":"ENFORCE_RECOMMENDATIONS",`), bytes.TrimPrefix(request.Body, []byte("{")))
	return request
}

// Classify goes by the messages: the status says nothing.
func (a ga4Validation) Classify(r Response, n int) []Verdict {
	var answer struct {
		Messages *[]any `json:"validationMessages"`
	}
	err := json.Unmarshal(r.Body, &answer)
	switch {
	case r.Status != http.StatusOK:
		return forAll(n, classifyError(r, n))
	case err != nil || answer.Messages == nil:
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	case len(*answer.Messages) > 0:
		return forAll(n, Verdict{Class: Permanent, Reason: "not_valid"})
	}
	return forAll(n, Verdict{Class: Delivered})
}
