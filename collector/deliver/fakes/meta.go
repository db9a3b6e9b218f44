package fakes

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

type metaError struct {
	Message     string `json:"message"`
	Type        string `json:"type"`
	Code        int    `json:"code"`
	Subcode     int    `json:"error_subcode,omitzero"`
	IsTransient bool   `json:"is_transient"`
	TraceID     string `json:"fbtrace_id"`
}

func metaRefuses(status, code, subcode int, message string) answer {
	return answerJSON(status, map[string]metaError{"error": {
		Message: message, Type: "OAuthException", Code: code, Subcode: subcode, IsTransient: code == 2, TraceID: "AfakeFakeFake",
	}})
}

// failMeta words failures as the Graph API does, whose statuses say little.
func failMeta(status int) answer {
	switch {
	case status == http.StatusBadRequest:
		return metaRefuses(status, 100, 2804019, "Invalid parameter")
	case status == http.StatusUnauthorized:
		return metaRefuses(http.StatusBadRequest, 190, 0, "Invalid OAuth access token")
	case status == http.StatusForbidden:
		return metaRefuses(status, 200, 0, "Permissions error")
	case status == http.StatusTooManyRequests:
		return metaRefuses(http.StatusBadRequest, 4, 0, "Application request limit reached")
	case status >= 500:
		return metaRefuses(status, 2, 0, "Service temporarily unavailable")
	}
	return answer{status: status}
}

type metaEvent struct {
	Name         string         `json:"event_name"`
	Time         int64          `json:"event_time"`
	ID           string         `json:"event_id"`
	ActionSource string         `json:"action_source"`
	URL          string         `json:"event_source_url"`
	User         map[string]any `json:"user_data"`
	Custom       struct {
		Value    amount `json:"value"`
		Currency string `json:"currency"`
		Contents []struct {
			ID       string `json:"id"`
			Quantity amount `json:"quantity"`
		} `json:"contents"`
	} `json:"custom_data"`
}

var metaPath = regexp.MustCompile(`^/v[0-9]+\.0/([0-9]+)/events$`)

var metaSources = []string{
	"email", "website", "app", "phone_call", "chat", "physical_store", "system_generated", "business_messaging", "other",
}

// judgeMeta refuses all events of a request for the sake of one.
func judgeMeta(q *request) answer {
	path := metaPath.FindStringSubmatch(q.URL.Path)
	if path == nil || q.Method != http.MethodPost {
		return metaRefuses(http.StatusBadRequest, 100, 33, "Unsupported request").complain("no such address")
	}
	account := q.account(func(p platforms.Platform) bool { return p.Meta != nil && p.Meta.PixelID == path[1] })
	switch {
	case account == nil:
		return metaRefuses(http.StatusBadRequest, 100, 33, "Object does not exist").complain("no pixel of that id")
	case q.URL.Query().Get("access_token") != account.Credentials["accessToken"]:
		return failMeta(http.StatusUnauthorized).complain("the token is refused")
	}
	body, problem := unmarshal[struct {
		Data []metaEvent `json:"data"`
	}](q.body)
	switch {
	case problem != "" || !q.isJSON():
		return failMeta(http.StatusBadRequest).complain("the body is not of the platform's form")
	case len(body.Data) == 0 || len(body.Data) > 1000:
		return failMeta(http.StatusBadRequest).complain("a request holds 1 to 1000 events")
	}
	worst, events := 0, make([]Event, len(body.Data))
	for i := range body.Data {
		var subcode int
		events[i], subcode = q.metaEvent(&body.Data[i])
		if worst == 0 {
			worst = subcode
		}
	}
	if worst == 0 {
		given := answerJSON(http.StatusOK, map[string]any{"events_received": len(events), "messages": []string{}, "fbtrace_id": "AfakeFakeFake"})
		given.events = events
		return given
	}
	for i := range events {
		events[i].refuse("another event of its request is refused")
	}
	given := metaRefuses(http.StatusBadRequest, 100, worst, "Invalid parameter")
	given.events = events
	return given
}

// metaEvent checks an event and returns the subcode by which it is refused, 0 where it is not.
func (q *request) metaEvent(in *metaEvent) (Event, int) {
	e := Event{Name: in.Name, ID: in.ID, Value: string(in.Custom.Value), Currency: in.Custom.Currency}
	q.checkMetaUser(&e, in.User)
	if e.Refusal != "" {
		return e, 2804019
	}
	website := in.ActionSource == "website"
	q.checkAge(&e, time.Unix(in.Time, 0), 7*24*time.Hour, time.Minute)
	switch {
	case e.Refusal != "":
		return e, 2804003
	case in.Name == "" || in.ID == "" || q.refused[in.ID] || !slices.Contains(metaSources, in.ActionSource):
		e.refuse("event_name, event_id and action_source must be valid")
		return e, 2804019
	case website && (in.URL == "" || in.User["client_user_agent"] == nil):
		e.refuse("website events need event_source_url and client_user_agent")
		return e, 2804019
	case in.Name == "Purchase" && (in.Custom.Value == "" || in.Custom.Currency == ""):
		e.refuse("a Purchase needs value and currency")
		return e, 2804009
	}
	for _, content := range in.Custom.Contents {
		if content.ID == "" {
			e.refuse("contents need an id")
			return e, 2804019
		}
	}
	if !metaIdentifies(in.User) {
		e.refuse("not enough customer data")
		return e, 2804050
	}
	return e, 0
}

func (q *request) checkMetaUser(e *Event, user map[string]any) {
	for _, field := range []string{"em", "ph", "fn", "external_id"} {
		value, there := user[field]
		if !there {
			continue
		}
		hashes, isList := value.([]any)
		if !isList || len(hashes) == 0 {
			e.refuse(field + " must be a list")
		}
		for _, hash := range hashes {
			text, _ := hash.(string)
			// Meta's own libraries put a point and eight characters behind the hash.
			if before, appendix, found := strings.Cut(text, "."); found && len(appendix) == 8 {
				text = before
			}
			if text == "" {
				text = "none"
			}
			q.checkHashes(e, field, text)
		}
	}
}

// metaIdentifies says whether the data hold more than the combinations that Meta finds too little.
func metaIdentifies(user map[string]any) bool {
	for field := range user {
		if !slices.Contains([]string{"fn", "ln", "ge", "ct", "st", "zp", "db", "country", "client_user_agent"}, field) {
			return true
		}
	}
	return false
}
