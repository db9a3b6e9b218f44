package fakes

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/platforms"
)

// failSegment words failures as Segment's HTTP Tracking API does.
func failSegment(status int) answer {
	switch status {
	case http.StatusBadRequest:
		return answerJSON(status, map[string]any{"success": false, "message": "malformed JSON", "code": "invalid_request"})
	case http.StatusUnauthorized, http.StatusForbidden:
		return answerJSON(status, map[string]any{"success": false, "message": "invalid write key", "code": "invalid_write_key"})
	}
	return answer{status: status}
}

// segmentBody has what Segment documents of a batch.
type segmentBody struct {
	Batch        []jsontext.Value          `json:"batch"`
	SentAt       string                    `json:"sentAt"`
	WriteKey     string                    `json:"writeKey"`
	Context      map[string]jsontext.Value `json:"context"`
	Integrations map[string]jsontext.Value `json:"integrations"`
}

// segmentMessage knows the members of Segment's common fields, and of the calls that Weir makes.
type segmentMessage struct {
	Type        string                    `json:"type"`
	Event       string                    `json:"event"`
	Name        string                    `json:"name"`
	MessageID   string                    `json:"messageId"`
	AnonymousID string                    `json:"anonymousId"`
	UserID      string                    `json:"userId"`
	Timestamp   string                    `json:"timestamp"`
	Channel     string                    `json:"channel"`
	Properties  map[string]jsontext.Value `json:"properties"`
	Context     segmentContext            `json:"context"`
	// Integrations and Metadata are of Segment's own libraries.
	Integrations map[string]jsontext.Value `json:"integrations"`
	Metadata     jsontext.Value            `json:"_metadata"`
}

type segmentContext struct {
	Library   map[string]string `json:"library"`
	IP        string            `json:"ip"`
	UserAgent string            `json:"userAgent"`
	Locale    string            `json:"locale"`
	SessionID string            `json:"sessionId"`
	Page      struct {
		URL      string `json:"url"`
		Path     string `json:"path"`
		Search   string `json:"search"`
		Title    string `json:"title"`
		Referrer string `json:"referrer"`
	} `json:"page"`
	Campaign map[string]string `json:"campaign"`
	Consent  struct {
		CategoryPreferences map[string]bool `json:"categoryPreferences"`
		AdUserData          string          `json:"ad_user_data"`
		AdPersonalization   string          `json:"ad_personalization"`
		AdStorage           string          `json:"ad_storage"`
		AnalyticsStorage    string          `json:"analytics_storage"`
		TCF                 string          `json:"tcf"`
		GPP                 string          `json:"gpp"`
		GPPSections         []int           `json:"gpp_sid"`
		USPrivacy           string          `json:"us_privacy"`
		LimitedDataUse      bool            `json:"limited_data_use"`
	} `json:"consent"`
}

const (
	segmentLargestEvent = 32 << 10
	segmentLargestBatch = 500 << 10
	segmentMostEvents   = 2500
)

// judgeSegment answers success to every request that it can read and that is not too large, as Segment does, and notes which events
// Segment would drop.
func judgeSegment(q *request) answer {
	if q.URL.Path != "/v1/batch" || !q.isJSON() {
		return failSegment(http.StatusNotFound).complain("no such address")
	}
	account := q.account(func(p platforms.Platform) bool { return p.Segment != nil })
	if key, password, ok := q.BasicAuth(); account == nil || !ok || key != account.Credentials["writeKey"] || password != "" {
		return answerJSON(http.StatusOK, map[string]any{"success": true}).complain("another write key; Segment does not say so")
	}
	body, problem := unmarshal[segmentBody](q.body, strict)
	if problem == "" && (len(body.Batch) == 0 || len(q.body) > segmentLargestBatch || slices.ContainsFunc(body.Batch, isTooLargeForSegment)) {
		problem = "a request holds 500 KB, and each event 32 KB"
	}
	if problem != "" {
		return failSegment(http.StatusBadRequest).complain("%s", problem)
	}
	given := answerJSON(http.StatusOK, map[string]any{"success": true})
	if len(body.Batch) > segmentMostEvents {
		return given.complain("a request holds 2500 events; Segment does not say so")
	}
	if _, err := time.Parse(time.RFC3339, body.SentAt); err != nil {
		given = given.complain("sentAt must be a time of ISO 8601; Segment does not say so")
	}
	given.events = make([]Event, len(body.Batch))
	for i, message := range body.Batch {
		given.events[i] = q.segmentEvent(message)
	}
	return given
}

func isTooLargeForSegment(message jsontext.Value) bool { return len(message) > segmentLargestEvent }

// segmentEvent checks a message. Segment has a name and a form for what it documents, and takes anything else of the sender's.
func (q *request) segmentEvent(message jsontext.Value) Event {
	in, problem := unmarshal[segmentMessage](message, strict)
	if problem != "" {
		return Event{Refusal: problem}
	}
	e := Event{Name: in.Event, ID: in.MessageID, Currency: strings.Trim(string(in.Properties["currency"]), `"`)}
	for _, name := range []string{"total", "value"} {
		if value := in.Properties[name]; e.Value == "" && value.Kind() == '0' {
			e.Value = string(value)
		}
	}
	if in.Type != "track" {
		e.Name = in.Type
	}
	_, badTime := time.Parse(time.RFC3339, in.Timestamp)
	switch {
	case !slices.Contains([]string{"track", "page", "screen"}, in.Type):
		e.refuse("type must be track, page or screen")
	case in.Type == "track" && in.Event == "":
		e.refuse("a track call needs an event")
	case in.UserID == "" && in.AnonymousID == "":
		e.refuse("no_user_anon_id: userId or anonymousId is required")
	case in.MessageID == "" || utf8.RuneCountInString(in.MessageID) >= 100 || q.refused[in.MessageID]:
		e.refuse("messageId must have fewer than 100 characters")
	case badTime != nil:
		e.refuse("timestamp must be a time of ISO 8601")
	case in.Context.Library["name"] == "":
		e.refuse("context.library must have a name")
	}
	if shop.MatchString(in.Event) { // others mean by their properties what they like
		e.refuse(segmentProperties(in.Properties))
	}
	return e
}

// shop are the events of Segment's e-commerce specification.
var shop = regexp.MustCompile(`^(Product|Order|Cart|Checkout|Payment|Coupon|Promotion)s? `)

// segmentProperties says what is wrong with the properties of Segment's e-commerce specification, "" where nothing is.
func segmentProperties(properties map[string]jsontext.Value) string {
	for _, name := range []string{"total", "revenue", "value", "tax", "shipping", "discount", "price", "quantity"} {
		if value := properties[name]; value != nil && value.Kind() != '0' {
			return name + " must be a number"
		}
	}
	if products := properties["products"]; products != nil {
		if _, problem := unmarshal[[]map[string]jsontext.Value](products); problem != "" {
			return "products must be a list of objects"
		}
	}
	return ""
}
