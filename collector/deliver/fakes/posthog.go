package fakes

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/platforms"
)

// posthogError is a text, as PostHog's capture has it.
func posthogError(status int, message string) answer {
	return answer{status: status, contentType: "text/plain; charset=utf-8", body: message}
}

// failPostHog words failures as PostHog's capture does.
func failPostHog(status int) answer {
	switch status {
	case http.StatusBadRequest:
		return posthogError(status, "failed to parse request")
	case http.StatusUnauthorized:
		return posthogError(status, "API key is not valid: unknown")
	case http.StatusTooManyRequests:
		return posthogError(status, "rate limited")
	case http.StatusRequestEntityTooLarge:
		return posthogError(status, "maximum event size exceeded")
	case http.StatusServiceUnavailable:
		return posthogError(status, "transient error, please retry")
	}
	return answer{status: status}
}

type posthogBody struct {
	APIKey string         `json:"api_key"`
	Batch  []posthogEvent `json:"batch"`
	// SentAt and HistoricalMigration are of PostHog's own libraries, as are what they say of themselves in each event.
	SentAt              string `json:"sent_at"`
	HistoricalMigration bool   `json:"historical_migration"`
}

type posthogEvent struct {
	Event      string                    `json:"event"`
	DistinctID jsontext.Value            `json:"distinct_id"`
	UUID       string                    `json:"uuid"`
	Timestamp  string                    `json:"timestamp"`
	Properties map[string]jsontext.Value `json:"properties"`
}

const (
	posthogLargestEvent = 1 << 20
	posthogLargest      = 20 << 20
	// posthogAhead is how far in the future an event may be before its time is not heeded.
	posthogAhead = 23 * time.Hour
)

// posthogBooleans are properties of PostHog's that are true or false, posthogTexts those that are texts.
var (
	posthogBooleans = setOfNames("$process_person_profile", "$geoip_disable")
	posthogTexts    = setOfNames(
		"$ip", "$device_id", "$user_id", "$session_id", "$current_url", "$referrer", "$raw_user_agent", "$browser_language", "$lib", "$lib_version",
		"event_id", "title", "currency",
	)
)

func setOfNames(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// judgePostHog takes all events or none.
func judgePostHog(q *request) answer {
	if strings.TrimSuffix(q.URL.Path, "/") != "/batch" || !q.isJSON() {
		return posthogError(http.StatusNotFound, "").complain("no such address")
	}
	body, problem := unmarshal[posthogBody](q.body)
	switch {
	case problem != "":
		return failPostHog(http.StatusBadRequest).complain("%s", problem)
	case body.APIKey == "":
		return posthogError(http.StatusUnauthorized, "event submitted without an api_key").complain("the token is missing")
	}
	account := q.account(func(p platforms.Platform) bool { return p.PostHog != nil })
	if account == nil || body.APIKey != account.Credentials["projectToken"] {
		return failPostHog(http.StatusUnauthorized).complain("the token is refused")
	}
	switch {
	case len(body.Batch) == 0:
		return posthogError(http.StatusBadRequest, "request holds no event").complain("a request holds an event at least")
	case len(q.body) > posthogLargest:
		return failPostHog(http.StatusRequestEntityTooLarge).complain("a request holds 20 MB")
	}
	events := make([]Event, len(body.Batch))
	refused := ""
	for i := range body.Batch {
		events[i] = q.posthogEvent(&body.Batch[i])
		if refused == "" {
			refused = events[i].Refusal
		}
	}
	given := answerJSON(http.StatusOK, map[string]any{"status": "Ok"})
	if refused != "" {
		given = posthogError(http.StatusBadRequest, refused)
		for i := range events {
			events[i].refuse("another event of the request is refused")
		}
	}
	given.events = events
	return given
}

func (q *request) posthogEvent(in *posthogEvent) Event {
	text := func(name string) string {
		var s string
		if value := in.Properties[name]; value.Kind() == '"' {
			s, _ = unmarshal[string](value)
		}
		return s
	}
	// The sender's own id is shown where it tells one: it goes with the uuid, by which PostHog tells a repeat.
	e := Event{Name: in.Event, ID: text("event_id"), Value: string(in.Properties["value"]), Currency: text("currency")}
	if e.ID == "" {
		e.ID = in.UUID
	}
	id, problem := unmarshal[string](in.DistinctID)
	_, wrong := uuid.Parse(in.UUID)
	at, badTime := time.Parse(time.RFC3339, in.Timestamp)
	switch {
	case in.Event == "":
		e.refuse("event submitted with an empty event name")
	case in.DistinctID == nil || problem != "" || strings.TrimSpace(id) == "":
		e.refuse("event submitted without a distinct_id")
	case in.UUID != "" && wrong != nil || q.refused[e.ID] || q.refused[in.UUID]:
		e.refuse("failed to parse request: the uuid is none")
	// What follows PostHog does not say, but drops, cuts off or puts right: nobody wants that.
	case utf8.RuneCountInString(id) > 200:
		e.refuse("distinct_id is longer than 200 characters")
	case posthogNobody[strings.ToLower(strings.Trim(id, `"'`))]:
		e.refuse("distinct_id is one that PostHog merges nobody by")
	case in.Timestamp != "" && badTime != nil || at.After(q.now.Add(posthogAhead)):
		e.refuse("timestamp must be a time of ISO 8601 that is not 23 hours ahead")
	}
	e.refuse(posthogProperties(in.Properties))
	return e
}

// posthogNobody are ids of nobody.
var posthogNobody = setOfNames(
	"anonymous", "guest", "distinctid", "distinct_id", "id", "not_authenticated", "email", "undefined", "true", "false", "[object object]", "nan", "none",
	"null", "0",
)

// posthogProperties says what is wrong with properties, "" where nothing is.
func posthogProperties(properties map[string]jsontext.Value) string {
	size := 0
	for name, value := range properties {
		size += len(name) + len(value)
		kind := value.Kind()
		switch {
		case posthogBooleans[name] && kind != 't' && kind != 'f':
			return name + " must be true or false"
		case posthogTexts[name] && kind != '"':
			return name + " must be a text"
		case name == "$set" || name == "$set_once" || name == "token" || name == "distinct_id":
			return name + " is none that Weir may set"
		}
	}
	if session := properties["$session_id"]; session != nil {
		text, _ := unmarshal[string](session)
		if id, err := uuid.Parse(text); err != nil || id.Version() != 7 {
			return "$session_id must be a UUID of version 7"
		}
	}
	if size > posthogLargestEvent {
		return "maximum event size exceeded"
	}
	return ""
}
