package fakes

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

func microsoftError(status int, code, message string) answer {
	return answerJSON(status, map[string]any{"error": map[string]any{"code": code, "message": message}})
}

// failMicrosoft words failures as Microsoft's interfaces do: a code in words.
func failMicrosoft(status int) answer {
	switch status {
	case http.StatusBadRequest:
		return microsoftError(status, "ValidationError", "One or more validation errors occurred.")
	case http.StatusUnauthorized:
		return microsoftError(status, "Unauthorized", "The token is invalid for this tag.")
	case http.StatusForbidden:
		return microsoftError(status, "Forbidden", "The account may not use the Conversions API.")
	case http.StatusTooManyRequests:
		return microsoftError(status, "TooManyRequests", "Too many requests.")
	case http.StatusInternalServerError:
		return microsoftError(status, "InternalServerError", "An error occurred.")
	}
	return answer{status: status}
}

type microsoftBody struct {
	Data         []microsoftEvent `json:"data"`
	DataProvider string           `json:"dataProvider"`
	// Continue has the good events taken though there are bad ones.
	Continue bool `json:"continueOnValidationError"`
}

// microsoftEvent knows what Microsoft's guide has. Which members else it takes is not known, so none is taken here.
type microsoftEvent struct {
	EventType        string `json:"eventType"`
	EventID          string `json:"eventId"`
	EventName        string `json:"eventName"`
	EventTime        int64  `json:"eventTime"`
	EventSourceURL   string `json:"eventSourceUrl"`
	ReferrerURL      string `json:"referrerUrl"`
	PageTitle        string `json:"pageTitle"`
	PageLoadID       string `json:"pageLoadId"`
	Keywords         string `json:"keywords"`
	AdStorageConsent string `json:"adStorageConsent"`
	UserData         struct {
		Email           string `json:"em"`
		Phone           string `json:"ph"`
		ExternalID      string `json:"externalId"`
		AnonymousID     string `json:"anonymousId"`
		ClickID         string `json:"msclkid"`
		AppleID         string `json:"idfa"`
		GoogleID        string `json:"gaid"`
		ClientIPAddress string `json:"clientIpAddress"`
		ClientUserAgent string `json:"clientUserAgent"`
	} `json:"userData"`
	CustomData struct {
		EventCategory   string   `json:"eventCategory"`
		EventLabel      string   `json:"eventLabel"`
		EventValue      amount   `json:"eventValue"`
		Value           amount   `json:"value"`
		Currency        string   `json:"currency"`
		TransactionID   string   `json:"transactionId"`
		SearchTerm      string   `json:"searchTerm"`
		PageType        string   `json:"pageType"`
		ItemIDs         []string `json:"itemIds"`
		EcommTotalValue amount   `json:"ecommTotalValue"`
		EcommCategory   string   `json:"ecommCategory"`
		Items           []struct {
			ID       string `json:"id"`
			Name     string `json:"name"`
			Price    amount `json:"price"`
			Quantity int64  `json:"quantity"`
		} `json:"items"`
	} `json:"customData"`
}

var (
	microsoftPath     = regexp.MustCompile(`^/v1/([0-9]{1,20})/events$`)
	microsoftClick    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	microsoftCurrency = regexp.MustCompile(`^[A-Z]{3}$`)
	microsoftPages    = map[string]bool{
		"": true, "home": true, "searchresults": true, "category": true, "product": true, "cart": true, "purchase": true, "other": true,
	}
)

// microsoftDetail is what is wrong with an event.
type microsoftDetail struct {
	Index     int    `json:"index"`
	Property  string `json:"propertyName"`
	Message   string `json:"errorMessage"`
	Code      string `json:"errorCode"`
	IsWarning bool   `json:"isWarning"`
}

// judgeMicrosoft names the events that are bad by their places. It takes the others where it was asked to go on.
func judgeMicrosoft(q *request) answer {
	path := microsoftPath.FindStringSubmatch(q.URL.Path)
	if path == nil || !q.isJSON() {
		return microsoftError(http.StatusNotFound, "NotFound", "Not found.").complain("no such address")
	}
	account := q.account(func(p platforms.Platform) bool { return p.Microsoft != nil && p.Microsoft.TagID == path[1] })
	switch {
	case account == nil:
		return failMicrosoft(http.StatusUnauthorized).complain("no tag of that id")
	case q.Header.Get("Authorization") != "Bearer "+account.Credentials["accessToken"]:
		return failMicrosoft(http.StatusUnauthorized).complain("the token is refused")
	}
	body, problem := unmarshal[microsoftBody](q.body, strict)
	switch {
	case problem != "":
		return failMicrosoft(http.StatusBadRequest).complain("%s", problem)
	case len(body.Data) == 0 || len(body.Data) > 1000:
		return failMicrosoft(http.StatusBadRequest).complain("a request holds 1 to 1000 events")
	}
	events := make([]Event, len(body.Data))
	details := []microsoftDetail{}
	for i := range body.Data {
		e, property := q.microsoftEvent(&body.Data[i])
		if e.Refusal != "" {
			details = append(details, microsoftDetail{i, property, e.Refusal, "InvalidValue", false})
		}
		events[i] = e
	}
	received := len(events) - len(details)
	if len(details) > 0 && !body.Continue {
		received = 0
		for i := range events {
			events[i].refuse("another event of its request is refused")
		}
	}
	said := map[string]any{"eventsReceived": received}
	if len(details) > 0 {
		said["error"] = map[string]any{"code": "ValidationError", "message": "One or more validation errors occurred.", "details": details}
	}
	given := answerJSON(http.StatusOK, said)
	if received == 0 {
		given = answerJSON(http.StatusBadRequest, said)
	}
	given.events = events
	return given
}

// microsoftEvent also returns the property that an event is refused for.
func (q *request) microsoftEvent(in *microsoftEvent) (e Event, property string) {
	e = Event{Name: in.EventName, ID: in.EventID, Value: string(in.CustomData.Value), Currency: in.CustomData.Currency}
	if in.EventType == "pageLoad" {
		e.Name = in.EventType
	}
	if in.AdStorageConsent == "D" {
		e.Limited = "D"
	}
	u := &in.UserData
	q.checkHashes(&e, "em", u.Email)
	q.checkHashes(&e, "ph", u.Phone)
	q.checkHashes(&e, "externalId", u.ExternalID)
	if e.Refusal != "" {
		return e, "userData"
	}
	if q.checkAge(&e, time.Unix(in.EventTime, 0), 7*24*time.Hour, 10*time.Minute); e.Refusal != "" {
		return e, "eventTime"
	}
	switch {
	case in.EventID == "" || q.refused[in.EventID]:
		e.refuse("eventId must be valid")
		return e, "eventId"
	case in.EventType != "pageLoad" && in.EventType != "custom":
		e.refuse("eventType must be pageLoad or custom")
		return e, "eventType"
	case in.EventType == "custom" && in.EventName == "":
		e.refuse("a custom event needs an eventName")
		return e, "eventName"
	case in.EventType == "pageLoad" && in.EventSourceURL == "":
		e.refuse("a pageLoad needs an eventSourceUrl")
		return e, "eventSourceUrl"
	case in.AdStorageConsent != "" && in.AdStorageConsent != "G" && in.AdStorageConsent != "D":
		e.refuse("adStorageConsent must be G or D")
		return e, "adStorageConsent"
	}
	if problem := in.badUserData(); problem != "" {
		e.refuse(problem)
		return e, "userData"
	}
	if problem := in.badCustomData(); problem != "" {
		e.refuse(problem)
		return e, "customData"
	}
	return e, ""
}

func (in *microsoftEvent) badUserData() string {
	u := &in.UserData
	switch {
	case u.Email == "" && u.Phone == "" && u.ExternalID == "" && u.AnonymousID == "" && u.ClickID == "" && u.AppleID == "" && u.GoogleID == "":
		return "userData needs anonymousId, externalId, em, ph, msclkid, idfa or gaid"
	case u.ClickID != "" && !microsoftClick.MatchString(u.ClickID):
		return "msclkid must be a UUID"
	}
	if _, err := netip.ParseAddr(u.ClientIPAddress); err != nil && u.ClientIPAddress != "" {
		return "clientIpAddress must be an IP address"
	}
	if source, err := url.Parse(in.EventSourceURL); in.EventSourceURL != "" && (err != nil || source.Host == "") {
		return "eventSourceUrl must be a URL"
	}
	return ""
}

func (in *microsoftEvent) badCustomData() string {
	c := &in.CustomData
	switch {
	case c.Currency != "" && !microsoftCurrency.MatchString(c.Currency):
		return "currency must be three capital letters"
	case c.Value != "" && c.Currency == "":
		return "a value needs a currency"
	case !microsoftPages[c.PageType]:
		return "pageType is none of Microsoft's"
	}
	for _, item := range c.Items {
		if item.ID == "" && item.Name == "" || item.Quantity < 1 {
			return "items need an id or a name, and a quantity"
		}
	}
	return ""
}
