package fakes

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weir-dev/weir/collector/platforms"
)

func redditError(status int, message string, fields ...map[string]string) answer {
	wrong := map[string]any{"code": status, "message": message}
	if len(fields) > 0 {
		wrong["fields"] = fields
	}
	return answerJSON(status, map[string]any{"error": wrong})
}

// failReddit words failures as Reddit does.
func failReddit(status int) answer {
	switch status {
	case http.StatusBadRequest:
		return redditError(status, "Bad Request")
	case http.StatusUnauthorized:
		return redditError(status, "UNAUTHORIZED")
	case http.StatusForbidden:
		return redditError(status, "You're not authorized to post conversions to this Pixel ID.")
	case http.StatusTooManyRequests:
		return redditError(status, "Too many requests/events within timeframe.")
	case http.StatusInternalServerError:
		return redditError(status, "The service is currently unavailable. No conversion events were processed.")
	}
	return answer{status: status}
}

// redditBody knows what Reddit knows; any other member has the request refused.
type redditBody struct {
	Data struct {
		TestID  string        `json:"test_id"`
		Partner string        `json:"partner"`
		Events  []redditEvent `json:"events"`
	} `json:"data"`
}

type redditEvent struct {
	EventAt        int64  `json:"event_at"`
	ActionSource   string `json:"action_source"`
	EventSourceURL string `json:"event_source_url"`
	ClickID        string `json:"click_id"`
	Type           struct {
		TrackingType    string `json:"tracking_type"`
		CustomEventName string `json:"custom_event_name"`
	} `json:"type"`
	User     redditUser `json:"user"`
	Metadata struct {
		ConversionID string `json:"conversion_id"`
		Value        amount `json:"value"`
		Currency     string `json:"currency"`
		ItemCount    *int64 `json:"item_count"`
		Products     []struct {
			ID        string `json:"id"`
			Name      string `json:"name"`
			Category  string `json:"category"`
			Quantity  int64  `json:"quantity"`
			ItemPrice amount `json:"item_price"`
		} `json:"products"`
	} `json:"metadata"`
}

type redditUser struct {
	Email       string `json:"email"`
	PhoneNumber string `json:"phone_number"`
	ExternalID  string `json:"external_id"`
	IPAddress   string `json:"ip_address"`
	UserAgent   string `json:"user_agent"`
	UUID        string `json:"uuid"`
	IDFA        string `json:"idfa"`
	AAID        string `json:"aaid"`
	Processing  *struct {
		Modes   []string `json:"modes"`
		Country string   `json:"country"`
		Region  string   `json:"region"`
	} `json:"data_processing_options"`
}

func (u *redditUser) identifies() bool {
	return u.Email != "" || u.PhoneNumber != "" || u.ExternalID != "" || u.IPAddress != "" || u.UserAgent != "" || u.UUID != "" ||
		u.IDFA != "" || u.AAID != ""
}

var (
	redditPath     = regexp.MustCompile(`^/api/v3/pixels/([A-Za-z0-9_-]+)/conversion_events$`)
	redditTypes    = []string{"ADD_TO_CART", "ADD_TO_WISHLIST", "CUSTOM", "LEAD", "PAGE_VISIT", "PURCHASE", "SEARCH", "SIGN_UP", "VIEW_CONTENT"}
	redditUnvalued = []string{"PAGE_VISIT", "SEARCH", "VIEW_CONTENT"}
	redditCounted  = []string{"ADD_TO_CART", "ADD_TO_WISHLIST", "CUSTOM", "PURCHASE"}
	redditSources  = []string{"WEBSITE", "APP", "PHYSICAL_STORE", "OTHER"}
	redditCountry  = regexp.MustCompile(`^[A-Z]{2}$`)
	redditCurrency = regexp.MustCompile(`^[A-Z]{3}$`)
)

// judgeReddit takes all events of a request or none, and names those for whose sake it takes none.
func judgeReddit(q *request) answer {
	path := redditPath.FindStringSubmatch(q.URL.Path)
	if path == nil || !q.isJSON() {
		return redditError(http.StatusNotFound, "Not Found").complain("no such address")
	}
	account := q.account(func(p platforms.Platform) bool { return p.Reddit != nil && p.Reddit.PixelID == path[1] })
	switch {
	case q.Header.Get("Authorization") == "":
		return redditError(http.StatusUnauthorized, "No bearer token provided").complain("no token")
	case account == nil:
		return failReddit(http.StatusForbidden).complain("no pixel of that id")
	case q.Header.Get("Authorization") != "Bearer "+account.Credentials["accessToken"]:
		return failReddit(http.StatusUnauthorized).complain("the token is refused")
	}
	body, problem := unmarshal[redditBody](q.body, strict)
	switch {
	case problem != "":
		return redditError(http.StatusBadRequest, "JSON error").complain("%s", problem)
	case len(body.Data.Events) == 0 || len(body.Data.Events) > 1000:
		return failReddit(http.StatusBadRequest).complain("a request holds 1 to 1000 events")
	case body.Data.TestID != "" && len(body.Data.Events) > 1:
		return failReddit(http.StatusBadRequest).complain("of several test events in a request one is shown")
	}
	events := make([]Event, len(body.Data.Events))
	var fields []map[string]string
	for i := range body.Data.Events {
		var field string
		if events[i], field = q.redditEvent(&body.Data.Events[i]); events[i].Refusal != "" {
			fields = append(fields, map[string]string{"field": fmt.Sprintf("$.data.events[%d].%s", i, field), "message": events[i].Refusal})
		}
	}
	given := answerJSON(http.StatusOK, map[string]any{
		"data": map[string]any{"message": fmt.Sprintf("Successfully processed %d conversion events.", len(events))},
	})
	if len(fields) > 0 {
		given = redditError(http.StatusBadRequest,
			fmt.Sprintf("There were %d invalid conversion events. None were processed.", len(fields)), fields...)
		for i := range events {
			events[i].refuse("another event of its request is refused")
		}
	}
	given.events, given.test = events, body.Data.TestID != ""
	return given
}

// redditEvent reads an event and names the field for which it is refused, "" where it is not.
func (q *request) redditEvent(in *redditEvent) (e Event, field string) {
	e = Event{Name: in.Type.TrackingType, ID: in.Metadata.ConversionID, Value: string(in.Metadata.Value), Currency: in.Metadata.Currency}
	if in.Type.CustomEventName != "" {
		e.Name = in.Type.CustomEventName
	}
	for _, check := range []struct {
		field string
		run   func()
	}{
		{"event_at", func() { q.checkAge(&e, time.UnixMilli(in.EventAt), 7*24*time.Hour, 5*time.Minute) }},
		{"action_source", func() { in.checkSource(&e) }},
		{"type", func() { in.checkType(&e) }},
		{"user", func() { q.checkRedditUser(&e, in) }},
		{"metadata", func() { q.checkRedditMetadata(&e, in) }},
	} {
		check.run()
		if e.Refusal != "" && field == "" {
			field = check.field
		}
	}
	return e, field
}

func (in *redditEvent) checkSource(e *Event) {
	switch {
	case !slices.Contains(redditSources, in.ActionSource):
		e.refuse("invalid action_source")
	case in.ActionSource != "WEBSITE" && in.EventSourceURL != "":
		e.refuse("event_source_url belongs to events of a website")
	case in.ActionSource == "PHYSICAL_STORE" && (in.ClickID != "" || in.User.UUID != "" || in.User.IPAddress != "" || in.User.UserAgent != ""):
		e.refuse("an event of a store has nothing of a device")
	}
}

func (in *redditEvent) checkType(e *Event) {
	kind, name := in.Type.TrackingType, in.Type.CustomEventName
	switch {
	case !slices.Contains(redditTypes, kind):
		e.refuse("tracking_type is none of Reddit's")
	case (kind == "CUSTOM") != (name != ""):
		e.refuse("custom_event_name belongs to CUSTOM")
	case utf8.RuneCountInString(name) > 64:
		e.refuse("custom_event_name has at most 64 characters")
	}
}

func (q *request) checkRedditUser(e *Event, in *redditEvent) {
	u := &in.User
	q.checkHashes(e, "email", u.Email)
	q.checkHashes(e, "phone_number", u.PhoneNumber)
	q.checkHashes(e, "external_id", u.ExternalID)
	if u.IPAddress != "" {
		if _, err := netip.ParseAddr(u.IPAddress); err != nil {
			e.refuse("ip_address must be an IP address")
		}
	}
	if in.ClickID == "" && !u.identifies() {
		e.refuse("an event needs a click_id or a match key")
	}
	if u.Processing != nil {
		switch {
		case !slices.Equal(u.Processing.Modes, []string{"LDU"}):
			e.refuse("modes must be LDU")
			return
		case !redditCountry.MatchString(u.Processing.Country):
			e.refuse("limited data use needs a country of two capitals")
		}
		e.Limited = "LDU"
	}
}

func (q *request) checkRedditMetadata(e *Event, in *redditEvent) {
	m := &in.Metadata
	switch kind := in.Type.TrackingType; {
	case m.ConversionID == "" || q.refused[m.ConversionID]:
		e.refuse("conversion_id must be valid")
	case (e.Value == "") != (e.Currency == ""):
		e.refuse("value and currency need each other")
	case e.Value != "" && slices.Contains(redditUnvalued, kind):
		e.refuse("the tracking_type has no value")
	case e.Currency != "" && !redditCurrency.MatchString(e.Currency):
		e.refuse("currency must be three capitals")
	case m.ItemCount != nil && !slices.Contains(redditCounted, kind):
		e.refuse("the tracking_type has no item_count")
	}
	for _, product := range m.Products {
		if product.ID == "" || product.Quantity < 1 {
			e.refuse("products must have an id and a quantity")
		}
	}
}
