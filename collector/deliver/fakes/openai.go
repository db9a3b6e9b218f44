package fakes

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

func openaiError(status int, kind, message string) answer {
	return answerJSON(status, map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}})
}

// failOpenAI words failures as OpenAI's interfaces do.
func failOpenAI(status int) answer {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return openaiError(status, "invalid_request_error", "The request is invalid.")
	case http.StatusUnauthorized:
		return openaiError(status, "invalid_request_error", "Incorrect API key provided.")
	case http.StatusForbidden:
		return openaiError(status, "insufficient_permissions", "You have insufficient permissions for this operation.")
	case http.StatusTooManyRequests:
		return openaiError(status, "requests", "Rate limit reached.")
	case http.StatusInternalServerError:
		return openaiError(status, "server_error", "The server had an error while processing your request.")
	}
	return answer{status: status}
}

// openaiBody knows what OpenAI documents; any other member has the request refused.
type openaiBody struct {
	ValidateOnly      bool          `json:"validate_only"`
	IntegrationSource string        `json:"integration_source"`
	Events            []openaiEvent `json:"events"`
}

type openaiEvent struct {
	ID              string `json:"id"`
	Type            string `json:"type"`
	CustomEventName string `json:"custom_event_name"`
	TimestampMS     int64  `json:"timestamp_ms"`
	ActionSource    string `json:"action_source"`
	SourceURL       string `json:"source_url"`
	OppRef          string `json:"oppref"`
	OptOut          bool   `json:"opt_out"`
	User            struct {
		OBRef       string   `json:"obref"`
		Emails      []string `json:"emails_sha256"`
		Phones      []string `json:"phone_numbers_sha256"`
		ExternalIDs []string `json:"external_ids_sha256"`
		FirstNames  []string `json:"first_names_sha256"`
		LastNames   []string `json:"last_names_sha256"`
		Countries   []string `json:"countries"`
		Regions     []string `json:"regions"`
		Cities      []string `json:"cities"`
		PostalCodes []string `json:"postal_codes"`
		IPAddress   string   `json:"ip_address"`
		UserAgent   string   `json:"user_agent"`
	} `json:"user"`
	Data openaiData `json:"data"`
}

type openaiData struct {
	Type     string `json:"type"`
	PlanID   string `json:"plan_id"`
	Amount   *int64 `json:"amount"`
	Currency string `json:"currency"`
	Contents []struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		ContentType string `json:"content_type"`
		Quantity    *int64 `json:"quantity"`
		Amount      *int64 `json:"amount"`
		Currency    string `json:"currency"`
	} `json:"contents"`
}

var (
	openaiShapes = map[string]string{
		"app_installed": "customer_action", "app_opened": "customer_action", "appointment_scheduled": "customer_action",
		"checkout_started": "contents", "contents_viewed": "contents", "custom": "custom", "items_added": "contents",
		"lead_created": "customer_action", "order_created": "contents", "page_viewed": "contents", "registration_completed": "customer_action",
		"subscription_created": "plan_enrollment", "trial_started": "plan_enrollment",
	}
	openaiSources    = []string{"web", "mobile_app", "offline", "physical_store", "phone_call", "email", "other"}
	openaiCustomName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$`)
	openaiCountry    = regexp.MustCompile(`^[A-Z]{2}$`)
	openaiCurrency   = regexp.MustCompile(`^[A-Z]{3}$`)
)

// judgeOpenAI takes all events or none.
func judgeOpenAI(q *request) answer {
	if q.URL.Path != "/v1/events" || !q.isJSON() {
		return openaiError(http.StatusNotFound, "invalid_request_error", "Not found").complain("no such address")
	}
	account := q.account(func(p platforms.Platform) bool {
		return p.OpenAI != nil && p.OpenAI.PixelID == q.URL.Query().Get("pid")
	})
	switch {
	case account == nil:
		return failOpenAI(http.StatusForbidden).complain("no pixel of that id")
	case q.Header.Get("Authorization") != "Bearer "+account.Credentials["apiKey"]:
		return failOpenAI(http.StatusUnauthorized).complain("the key is refused")
	}
	body, problem := unmarshal[openaiBody](q.body, strict)
	switch {
	case problem != "":
		return failOpenAI(http.StatusBadRequest).complain("%s", problem)
	case len(body.Events) == 0 || len(body.Events) > 1000:
		return failOpenAI(http.StatusBadRequest).complain("a request holds 1 to 1000 events")
	}
	events := make([]Event, len(body.Events))
	refused := ""
	for i := range body.Events {
		events[i] = q.openaiEvent(&body.Events[i])
		if refused == "" && events[i].Refusal != "" {
			refused = "events[" + strconv.Itoa(i) + "]: " + events[i].Refusal
		}
	}
	given := answerJSON(http.StatusOK, map[string]any{})
	if refused != "" {
		given = openaiError(http.StatusBadRequest, "invalid_request_error", refused)
		for i := range events {
			events[i].refuse("another event of the request is refused")
		}
	}
	given.events, given.test = events, body.ValidateOnly
	return given
}

func (q *request) openaiEvent(in *openaiEvent) Event {
	e := Event{Name: in.Type, ID: in.ID, Currency: in.Data.Currency}
	if in.Data.Amount != nil {
		e.Value = (event.Amount(*in.Data.Amount) * event.MinorUnit(in.Data.Currency)).String() // sent in minor units
	}
	if in.OptOut {
		e.Limited = "opt_out"
	}
	q.checkOpenAIUser(&e, in)
	q.checkAge(&e, time.UnixMilli(in.TimestampMS), 7*24*time.Hour, 10*time.Minute)
	if in.ID == "" || q.refused[in.ID] {
		e.refuse("id must be valid")
	}
	e.refuse(in.wrongType())
	e.refuse(in.wrongSource())
	e.refuse(in.Data.wrong())
	return e
}

// checkOpenAIUser notes whose an event is, and what is wrong with that.
func (q *request) checkOpenAIUser(e *Event, in *openaiEvent) {
	u := &in.User
	for field, hashes := range map[string][]string{
		"emails_sha256": u.Emails, "phone_numbers_sha256": u.Phones, "external_ids_sha256": u.ExternalIDs,
		"first_names_sha256": u.FirstNames, "last_names_sha256": u.LastNames,
	} {
		q.checkHashes(e, field, hashes...)
	}
	if in.OppRef == "" && u.OBRef == "" && len(u.Emails) == 0 && len(u.Phones) == 0 && len(u.ExternalIDs) == 0 {
		e.refuse("nothing tells whose it is; OpenAI does not say so")
	}
	for _, country := range u.Countries {
		if !openaiCountry.MatchString(country) {
			e.refuse("countries must be two capital letters")
		}
	}
	if _, err := netip.ParseAddr(u.IPAddress); u.IPAddress != "" && err != nil {
		e.refuse("ip_address must be one")
	}
}

// wrongType says what is wrong with the type of an event, and with what goes with it; "" where nothing is.
func (in *openaiEvent) wrongType() string {
	shape, known := openaiShapes[in.Type]
	switch {
	case !known:
		return "type is none of OpenAI's"
	case in.Data.Type != shape:
		return "data.type must be " + shape
	case (in.Type == "custom") != (in.CustomEventName != ""):
		return "custom_event_name goes with the type custom"
	case in.CustomEventName != "" && (!openaiCustomName.MatchString(in.CustomEventName) || openaiShapes[in.CustomEventName] != ""):
		return "custom_event_name must be 1 to 64 letters, digits, _ and -, and no standard event's"
	}
	return ""
}

// wrongSource says what is wrong with where an event happened, "" where nothing is.
func (in *openaiEvent) wrongSource() string {
	page, err := url.Parse(in.SourceURL)
	switch {
	case !slices.Contains(openaiSources, in.ActionSource):
		return "action_source is none of OpenAI's"
	case in.ActionSource == "web" && in.SourceURL == "":
		return "source_url is required of the web"
	case in.SourceURL != "" && (err != nil || page.Host == ""):
		return "source_url must be a URL"
	}
	return ""
}

// wrong says what is wrong with an event's data, "" where nothing is.
func (d *openaiData) wrong() string {
	if wrong := wrongOpenAIMoney(d.Amount, d.Currency); wrong != "" {
		return wrong
	}
	if len(d.Contents) > 0 && d.Type != "contents" && d.Type != "custom" {
		return "contents are none of " + d.Type
	}
	for _, content := range d.Contents {
		if content.Quantity != nil && *content.Quantity < 1 {
			return "quantity must be a whole number from 1"
		}
		if wrong := wrongOpenAIMoney(content.Amount, content.Currency); wrong != "" {
			return wrong
		}
	}
	return ""
}

func wrongOpenAIMoney(amount *int64, currency string) string {
	switch {
	case amount != nil && *amount < 0:
		return "amount must not be negative"
	case amount != nil && !openaiCurrency.MatchString(currency):
		return "an amount needs a currency"
	case amount == nil && currency != "":
		return "a currency needs an amount"
	}
	return ""
}
