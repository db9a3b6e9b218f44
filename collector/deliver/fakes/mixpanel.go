package fakes

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/platforms"
)

// failMixpanel words failures as Mixpanel's import does.
func failMixpanel(status int) answer {
	switch status {
	case http.StatusRequestTimeout, http.StatusBadGateway:
		return answer{status: status}
	}
	return answerJSON(status, map[string]any{"code": status, "error": "the request failed", "status": http.StatusText(status)})
}

type mixpanelEvent struct {
	Event      string                    `json:"event"`
	Properties map[string]jsontext.Value `json:"properties"`
}

type mixpanelFailure struct {
	Index    int    `json:"index"`
	InsertID string `json:"insert_id"`
	Field    string `json:"field"`
	Message  string `json:"message"`
}

var (
	mixpanelInsertID = regexp.MustCompile(`^[A-Za-z0-9-]{1,36}$`)
	mixpanelNobody   = []string{
		"00000000-0000-0000-0000-000000000000", "anon", "anonymous", "nil", "none", "null", "n/a", "na", "undefined",
		"unknown", "true", "false", "0", "-1", "[]", "{}",
	}
)

// judgeMixpanel takes the events that are good and says which ones are not.
func judgeMixpanel(q *request) answer {
	if q.URL.Path == mixpanelDeletions {
		return judgeMixpanelErasure(q)
	}
	if q.URL.Path != "/import" || !q.isJSON() || q.URL.Query().Get("strict") != "1" {
		return failMixpanel(http.StatusNotFound).complain("no such address")
	}
	account := q.account(func(p platforms.Platform) bool {
		return p.Mixpanel != nil && p.Mixpanel.ProjectID == q.URL.Query().Get("project_id")
	})
	name, secret, _ := q.BasicAuth()
	if account == nil || name != account.Credentials["serviceAccountUsername"] || secret != account.Credentials["serviceAccountSecret"] {
		return failMixpanel(http.StatusUnauthorized).complain("the service account is refused")
	}
	list, problem := unmarshal[[]mixpanelEvent](q.body)
	switch {
	case problem != "":
		return failMixpanel(http.StatusBadRequest).complain("%s", problem)
	case len(list) == 0 || len(list) > 2000 || len(q.body) > 10<<20:
		return failMixpanel(http.StatusRequestEntityTooLarge).complain("a request holds 1 to 2000 events and 10 MB")
	}
	events := make([]Event, len(list))
	failures := []mixpanelFailure{}
	for i := range list {
		var field string
		if events[i], field = q.mixpanelEvent(&list[i]); field != "" {
			failures = append(failures, mixpanelFailure{i, events[i].ID, field, "'" + field + "' is invalid: " + events[i].Refusal})
		}
	}
	imported := len(list) - len(failures)
	given := answerJSON(http.StatusOK, map[string]any{"code": http.StatusOK, "num_records_imported": imported, "status": "OK"})
	if len(failures) > 0 {
		given = answerJSON(http.StatusBadRequest, map[string]any{
			"code": http.StatusBadRequest, "error": "some data points in the request failed validation", "status": "Bad Request",
			"num_records_imported": imported, "failed_records": failures,
		})
	}
	given.events = events
	return given
}

// mixpanelEvent checks an event and returns the field for which it is refused, "" where it is not.
func (q *request) mixpanelEvent(in *mixpanelEvent) (Event, string) {
	text := func(name string) string {
		var s string
		if value := in.Properties[name]; value.Kind() == '"' {
			s, _ = unmarshal[string](value)
		}
		return s
	}
	e := Event{Name: in.Event, ID: text("$insert_id"), Value: string(in.Properties["value"]), Currency: text("currency")}
	millis, problem := unmarshal[int64](in.Properties["time"])
	at := time.UnixMilli(millis)
	distinct := in.Properties["distinct_id"]
	switch {
	case in.Event == "":
		e.refuse("is required")
		return e, "event"
	case !mixpanelInsertID.MatchString(e.ID) || q.refused[e.ID]:
		e.refuse("must be 1 to 36 letters, digits and hyphens")
		return e, "properties.$insert_id"
	case problem != "" || at.Year() < 1971 || at.After(q.now.Add(time.Hour)):
		e.refuse("must be a time since 1971 that is not more than an hour ahead")
		return e, "properties.time"
	case distinct.Kind() != '"' || slices.Contains(mixpanelNobody, strings.ToLower(text("distinct_id"))):
		e.refuse("must be an id or the empty text")
		return e, "properties.distinct_id"
	case len(in.Properties) > 255:
		e.refuse("must be at most 255")
		return e, "properties"
	}
	for name, value := range in.Properties {
		if wrong := mixpanelProperty(name, value); wrong != "" {
			e.refuse(wrong)
			return e, "properties." + name
		}
	}
	return e, ""
}

// mixpanelDefaults are the properties with a $ that Mixpanel's own libraries send and this one may.
var mixpanelDefaults = []string{"$insert_id", "$device_id", "$user_id", "$locale", "$current_url", "$referrer"}

// mixpanelProperty says what is wrong with a property, "" where nothing is.
func mixpanelProperty(name string, value jsontext.Value) string {
	switch {
	case name == "" || len(name) > 255:
		return "must have a name of up to 255 bytes"
	case strings.HasPrefix(name, "mp_"), strings.HasPrefix(name, "$") && !slices.Contains(mixpanelDefaults, name):
		return "is a name that Mixpanel keeps"
	case value.Kind() == 'n':
		return "must have a value"
	}
	if name == "ip" || name == "$device_id" || name == "$user_id" {
		if text, problem := unmarshal[string](value); problem != "" || text == "" || slices.Contains(mixpanelNobody, strings.ToLower(text)) {
			return "must be an id or an address"
		}
	}
	return ""
}
