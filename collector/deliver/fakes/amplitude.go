package fakes

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

func amplitudeError(status int, message string, further map[string]any) answer {
	body := map[string]any{"code": status, "error": message}
	maps.Copy(body, further)
	return answerJSON(status, body)
}

// failAmplitude words failures as Amplitude does.
func failAmplitude(status int) answer {
	switch status {
	case http.StatusBadRequest:
		return amplitudeError(status, "Invalid event JSON", nil)
	case http.StatusForbidden:
		return amplitudeError(status, "Forbidden", nil)
	case http.StatusRequestEntityTooLarge:
		return amplitudeError(status, "Payload too large", nil)
	case http.StatusTooManyRequests:
		return amplitudeError(status, "Too many requests for this app", map[string]any{"eps_threshold": 1000})
	}
	return answer{status: status}
}

// amplitudeBody knows what Amplitude knows.
type amplitudeBody struct {
	APIKey  string           `json:"api_key"`
	Events  []amplitudeEvent `json:"events"`
	Options struct {
		MinIDLength *int `json:"min_id_length"`
	} `json:"options"`
}

// amplitudeEvent has those of Amplitude's members that Weir knows of; any other is a mistake of Weir's.
type amplitudeEvent struct {
	EventType   string         `json:"event_type"`
	UserID      string         `json:"user_id"`
	DeviceID    string         `json:"device_id"`
	Time        int64          `json:"time"`
	InsertID    string         `json:"insert_id"`
	IP          string         `json:"ip"`
	UserAgent   string         `json:"user_agent"`
	Language    string         `json:"language"`
	SessionID   int64          `json:"session_id"`
	Price       amount         `json:"price"`
	Quantity    int64          `json:"quantity"`
	Revenue     amount         `json:"revenue"`
	RevenueType string         `json:"revenueType"`
	ProductID   string         `json:"productId"`
	Currency    string         `json:"currency"`
	Properties  jsontext.Value `json:"event_properties"`
}

// amplitudeNobody are the ids that have an event refused.
var amplitudeNobody = []string{
	"anonymous", "nil", "none", "null", "n/a", "na", "undefined", "unknown", "", "00000000-0000-0000-0000-000000000000", "{}", "lmy47d", "0", "-1",
}

// defaultIDLength is how long an id has to be where the request says nothing else.
const defaultIDLength = 5

// judgeAmplitude takes all of a request or none, and names of the bad events the first for each field.
func judgeAmplitude(q *request) answer {
	if q.URL.Path != "/2/httpapi" {
		return amplitudeError(http.StatusBadRequest, "Invalid request path", nil).complain("no such address")
	}
	if !q.isJSON() {
		return amplitudeError(http.StatusBadRequest, "Missing request body", nil).complain("the request must be a POST of JSON")
	}
	if len(q.body) >= 1<<20 {
		return failAmplitude(http.StatusRequestEntityTooLarge).complain("a request has less than 1 MB")
	}
	body, problem := unmarshal[amplitudeBody](q.body, strict)
	if problem != "" {
		return amplitudeError(http.StatusBadRequest, "Invalid JSON request body", nil).complain("%s", problem)
	}
	account := slices.IndexFunc(q.accounts, func(a Account) bool { return a.Platform.Amplitude != nil && a.Credentials["apiKey"] == body.APIKey })
	switch {
	case body.APIKey == "":
		return amplitudeError(http.StatusBadRequest, "Request missing required field", map[string]any{"missing_field": "api_key"}).complain("api_key is required")
	case account < 0:
		return amplitudeError(http.StatusBadRequest, "Invalid API key", nil).complain("the key is refused")
	case len(body.Events) == 0:
		return amplitudeError(http.StatusBadRequest, "Request missing required field", map[string]any{"missing_field": "events"}).complain("events are required")
	case len(body.Events) > 2000:
		return failAmplitude(http.StatusRequestEntityTooLarge).complain("a request has up to 2000 events")
	}
	q.platform = q.accounts[account].Platform.Name
	least := defaultIDLength
	if body.Options.MinIDLength != nil {
		least = *body.Options.MinIDLength
	}
	return q.amplitudeEvents(body.Events, least)
}

func (q *request) amplitudeEvents(list []amplitudeEvent, least int) answer {
	events := make([]Event, len(list))
	missing, invalid := map[string][]int{}, map[string][]int{}
	for i := range list {
		var field string
		if events[i], field = q.amplitudeEvent(&list[i], least); field == "" {
			continue
		}
		fields := invalid
		if strings.HasSuffix(events[i].Refusal, "is required") {
			fields = missing
		}
		if fields[field] == nil {
			fields[field] = []int{i}
		}
	}
	given := answerJSON(http.StatusOK, map[string]any{
		"code": http.StatusOK, "events_ingested": len(list), "payload_size_bytes": len(q.body), "server_upload_time": q.now.UnixMilli(),
	})
	if len(missing)+len(invalid) > 0 {
		message := "Invalid field values on some events"
		if len(invalid) == 0 {
			message = "Request missing required field"
		}
		given = amplitudeError(http.StatusBadRequest, message, map[string]any{
			"missing_field": nil, "events_with_missing_fields": missing, "events_with_invalid_fields": invalid,
		})
		for i := range events {
			events[i].refuse("another event of the request is refused")
		}
	}
	given.events = events
	return given
}

// whose says what is wrong with the ids of which each that is shorter counts for nothing: the field and why, "" where nothing is.
func (in *amplitudeEvent) whose(least int) (field, reason string) {
	long := func(id string) bool { return utf8.RuneCountInString(id) >= least }
	switch {
	case in.UserID != "" && slices.Contains(amplitudeNobody, strings.ToLower(in.UserID)):
		return "user_id", "user_id must be somebody's"
	case in.DeviceID != "" && slices.Contains(amplitudeNobody, strings.ToLower(in.DeviceID)):
		return "device_id", "device_id must be a device's"
	case (in.UserID == "" || !long(in.UserID)) && (in.DeviceID == "" || !long(in.DeviceID)):
		return "user_id", "user_id or device_id is required"
	}
	return "", ""
}

// amplitudeEvent checks an event and returns the field for which it is refused, "" where it is not.
func (q *request) amplitudeEvent(in *amplitudeEvent, least int) (Event, string) {
	e := Event{Name: in.EventType, ID: in.InsertID, Value: string(in.Revenue), Currency: in.Currency}
	at := time.UnixMilli(in.Time)
	if field, reason := in.whose(least); field != "" {
		e.refuse(reason)
		return e, field
	}
	switch {
	case in.EventType == "":
		e.refuse("event_type is required")
		return e, "event_type"
	case strings.HasPrefix(strings.ToLower(in.EventType), "[amplitude]") || strings.HasPrefix(in.EventType, "$"):
		e.refuse("event_type must be none of Amplitude's own")
		return e, "event_type"
	case in.InsertID == "" || q.refused[in.InsertID]:
		// Amplitude itself takes an event without one, and cannot tell a repeat then.
		e.refuse("insert_id must be there")
		return e, "insert_id"
	case at.Year() < 1990 || at.After(q.now.AddDate(1, 0, 0)):
		e.refuse("time must be in milliseconds")
		return e, "time"
	case in.Currency != "" && len(in.Currency) != len("EUR"):
		e.refuse("currency must be three capitals")
		return e, "currency"
	case (in.RevenueType != "" || in.ProductID != "") && in.Revenue == "" && in.Price == "":
		e.refuse("revenueType needs revenue")
		return e, "revenueType"
	case in.Properties != nil && in.Properties.Kind() != '{':
		e.refuse("event_properties must be an object")
		return e, "event_properties"
	}
	return e, ""
}
