package fakes

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

// googleStatuses are the words of Google's APIs for HTTP statuses.
var googleStatuses = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusNotFound: "NOT_FOUND", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusInternalServerError: "INTERNAL",
	http.StatusServiceUnavailable: "UNAVAILABLE",
}

// failGoogle words failures as Google's APIs do.
func failGoogle(status int) answer { return googleError(status) }

func googleError(status int, details ...any) answer {
	word, known := googleStatuses[status]
	if !known {
		return answer{status: status}
	}
	return answerJSON(status, map[string]any{"error": map[string]any{
		"code": status, "message": "There was a problem with the request.", "status": word, "details": details,
	}})
}

// googleInfo is the detail that names an error's reason.
func googleInfo(reason string) map[string]any {
	return map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "datamanager.googleapis.com"}
}

// googleViolations is the detail that names the fields that are wrong.
func googleViolations(list []map[string]any) map[string]any {
	return map[string]any{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": list}
}

type googleAccount struct {
	Product string `json:"product"`
	Type    string `json:"accountType"`
	ID      string `json:"accountId"`
}

type googleRequest struct {
	Destinations []struct {
		Reference   string         `json:"reference"`
		Operating   googleAccount  `json:"operatingAccount"`
		Login       *googleAccount `json:"loginAccount"`
		Linked      *googleAccount `json:"linkedAccount"`
		Destination string         `json:"productDestinationId"`
	} `json:"destinations"`
	Events       []googleEvent  `json:"events"`
	Encoding     string         `json:"encoding"`
	ValidateOnly bool           `json:"validateOnly"`
	Consent      *googleConsent `json:"consent"`
}

type googleConsent struct {
	AdUserData        string `json:"adUserData"`
	AdPersonalization string `json:"adPersonalization"`
}

type googleParameter struct {
	Name  string `json:"parameterName"`
	Value string `json:"value"`
}

// googleEvent has what the API's Event has, as far as it is of use for a website.
type googleEvent struct {
	References           []string `json:"destinationReferences"`
	TransactionID        string   `json:"transactionId"`
	EventTimestamp       string   `json:"eventTimestamp"`
	LastUpdatedTimestamp string   `json:"lastUpdatedTimestamp"`
	EventName            string   `json:"eventName"`
	EventSource          string   `json:"eventSource"`
	ClientID             string   `json:"clientId"`
	UserID               string   `json:"userId"`
	UserData             *struct {
		Identifiers []struct {
			Email   string `json:"emailAddress"`
			Phone   string `json:"phoneNumber"`
			Address *struct {
				GivenName  string `json:"givenName"`
				FamilyName string `json:"familyName"`
				RegionCode string `json:"regionCode"`
				PostalCode string `json:"postalCode"`
			} `json:"address"`
		} `json:"userIdentifiers"`
	} `json:"userData"`
	AdIdentifiers *struct {
		SessionAttributes string `json:"sessionAttributes"`
		Gclid             string `json:"gclid"`
		Gbraid            string `json:"gbraid"`
		Wbraid            string `json:"wbraid"`
	} `json:"adIdentifiers"`
	Consent         *googleConsent `json:"consent"`
	ConversionValue amount         `json:"conversionValue"`
	Currency        string         `json:"currency"`
	CartData        *struct {
		MerchantID          string   `json:"merchantId"`
		TransactionDiscount amount   `json:"transactionDiscount"`
		CouponCodes         []string `json:"couponCodes"`
		Items               []struct {
			MerchantProductID string            `json:"merchantProductId"`
			ItemID            string            `json:"itemId"`
			Quantity          string            `json:"quantity"`
			UnitPrice         amount            `json:"unitPrice"`
			Parameters        []googleParameter `json:"additionalItemParameters"`
		} `json:"items"`
	} `json:"cartData"`
	DeviceInfo *struct {
		IPAddress    string `json:"ipAddress"`
		UserAgent    string `json:"userAgent"`
		LanguageCode string `json:"languageCode"`
	} `json:"eventDeviceInfo"`
	Parameters []googleParameter `json:"additionalEventParameters"`
}

// judgeGoogle has three addresses: that where tokens are granted, that which takes events, and that which says what has become of
// them.
func judgeGoogle(q *request) answer {
	switch {
	case q.URL.Path == grantPath && q.Method == http.MethodPost:
		return q.grantGoogle()
	case q.URL.Path == "/v1/events:ingest" && q.isJSON():
	case q.URL.Path == "/v1/requestStatus:retrieve" && q.Method == http.MethodGet:
	default:
		return googleError(http.StatusNotFound).complain("no such address")
	}
	token, borne := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	names := q.google.accounts(token, q.now)
	if !borne || names == nil {
		return failGoogle(http.StatusUnauthorized).complain("the token is refused")
	}
	if q.Method == http.MethodGet {
		return q.google.status(q.URL.Query().Get("requestId"))
	}
	body, problem := unmarshal[googleRequest](q.body, strict)
	switch {
	case problem != "":
		return failGoogle(http.StatusBadRequest).complain("%s", problem)
	case len(body.Destinations) == 0 || len(body.Destinations) > 10:
		return googleError(http.StatusBadRequest, googleInfo("TOO_MANY_DESTINATIONS")).complain("a request has 1 to 10 destinations")
	case len(body.Events) == 0 || len(body.Events) > 2000:
		return googleError(http.StatusBadRequest, googleInfo("TOO_MANY_EVENTS")).complain("a request has 1 to 2000 events")
	}
	account := q.account(func(p platforms.Platform) bool { return slices.Contains(names, p.Name) && body.isFor(p) })
	if account == nil {
		return googleError(http.StatusForbidden, googleInfo("PERMISSION_DENIED")).complain("the account may not send to this destination")
	}
	return q.takeGoogle(&body, account.Platform.Google.Product == platforms.GoogleAnalytics)
}

// isFor says whether all destinations are a platform's own.
func (r *googleRequest) isFor(p platforms.Platform) bool {
	if p.Google == nil {
		return false
	}
	for _, to := range r.Destinations {
		login := ""
		if to.Login != nil {
			login = to.Login.ID
			if to.Login.Type != to.Operating.Type {
				return false
			}
		}
		switch {
		case to.Operating.ID != p.Google.AccountID || to.Linked != nil || to.Operating.Product != "":
			return false
		case p.Google.Product == platforms.GoogleAnalytics:
			if to.Operating.Type != "GOOGLE_ANALYTICS_PROPERTY" || login != p.Google.AccountID || to.Destination != p.Google.MeasurementID {
				return false
			}
		case to.Operating.Type != "GOOGLE_ADS" || login != p.Google.LoginAccountID || !googleAction.MatchString(to.Destination):
			return false
		}
	}
	return true
}

// takeGoogle takes all events or none, and names those for whose sake it takes none.
func (q *request) takeGoogle(body *googleRequest, analytics bool) answer {
	events, wrong := make([]Event, len(body.Events)), []map[string]any(nil)
	for i := range body.Events {
		var reason string
		events[i], reason = q.googleEvent(&body.Events[i], body, analytics)
		if events[i].Refusal != "" {
			wrong = append(wrong, map[string]any{
				"field": fmt.Sprintf("events[%d]", i), "description": "This event is not valid.", "reason": reason,
			})
		}
	}
	if wrong != nil {
		for i := range events {
			events[i].refuse("another event of the request is refused")
		}
		given := googleError(http.StatusBadRequest, googleInfo("INVALID_ARGUMENT"), googleViolations(wrong))
		given.events, given.test = events, body.ValidateOnly
		return given
	}
	var ids []string
	for i := range events {
		ids = append(ids, events[i].ID)
	}
	answered := map[string]any{}
	if !body.ValidateOnly {
		answered["requestId"] = q.google.queue(ids)
	}
	given := answerJSON(http.StatusOK, answered)
	given.events, given.test = events, body.ValidateOnly
	return given
}

var (
	googleAction   = regexp.MustCompile(`^[0-9]{1,20}$`)
	googleName     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,39}$`)
	googleCurrency = regexp.MustCompile(`^[A-Z]{3}$`)
	googleQuantity = regexp.MustCompile(`^[1-9][0-9]{0,9}$`)
	googleSources  = []string{"WEB", "APP", "IN_STORE", "PHONE", "MESSAGE", "OTHER"}
	googleWords    = []string{"", "CONSENT_GRANTED", "CONSENT_DENIED"}
)

// googleVerdict is why an event is refused: in words, and by Google's reason.
type googleVerdict struct {
	event  *Event
	reason string
}

// refuse notes the first reason.
func (v *googleVerdict) refuse(reason, words string) {
	if v.event.Refusal == "" {
		v.event.refuse(words)
		v.reason = reason
	}
}

// googleEvent judges one event, and says by which of Google's reasons it is refused.
func (q *request) googleEvent(in *googleEvent, body *googleRequest, analytics bool) (Event, string) {
	e := Event{Name: in.EventName, ID: in.TransactionID, Value: string(in.ConversionValue), Currency: in.Currency}
	if !analytics {
		e.Name = body.Destinations[0].Destination
	}
	v := &googleVerdict{event: &e}
	identifiers := q.checkGooglePerson(in, body.Encoding, v)
	q.checkGoogleTimes(in, analytics, v)
	if analytics {
		in.checkAnalytics(v)
	} else {
		in.checkConversion(identifiers, v)
	}
	switch {
	case q.refused[in.TransactionID] && in.TransactionID != "":
		v.refuse("INVALID_EVENT", "the event is not valid")
	case !slices.Contains(googleSources, in.EventSource):
		v.refuse("INVALID_ENUM_VALUE", "eventSource is none")
	case in.ConversionValue != "" && !googleCurrency.MatchString(in.Currency):
		v.refuse("INVALID_CURRENCY_CODE", "currency must be there with a value")
	}
	in.checkConsent(v)
	if in.CartData != nil {
		for _, item := range in.CartData.Items {
			if !googleQuantity.MatchString(item.Quantity) {
				v.refuse("INVALID_NUMBER_FORMAT", "quantity must be a whole number as text")
			}
		}
	}
	return e, v.reason
}

// checkGooglePerson looks at a person's identifiers, and returns how many there are.
func (q *request) checkGooglePerson(in *googleEvent, encoding string, v *googleVerdict) int {
	if in.UserData == nil {
		return 0
	}
	for _, one := range in.UserData.Identifiers {
		q.checkHashes(v.event, "emailAddress", one.Email)
		q.checkHashes(v.event, "phoneNumber", one.Phone)
		if v.event.Refusal != "" && v.reason == "" {
			v.reason = "INVALID_SHA256_FORMAT"
		}
		if (one.Email != "") == (one.Phone != "") || one.Address != nil {
			v.refuse("REQUIRED_FIELD_MISSING", "an identifier is an address or a number")
		}
	}
	identifiers := len(in.UserData.Identifiers)
	if identifiers == 0 || identifiers > 10 {
		v.refuse("TOO_MANY_USER_IDENTIFIERS", "an event has at most 10 identifiers")
	}
	if encoding != "HEX" {
		v.refuse("REQUIRED_FIELD_MISSING", "encoding must be HEX")
	}
	return identifiers
}

// checkAnalytics looks at what Google Analytics needs.
func (in *googleEvent) checkAnalytics(v *googleVerdict) {
	switch {
	case in.ClientID == "":
		v.refuse("REQUIRED_FIELD_MISSING", "clientId must be there")
	case !googleName.MatchString(in.EventName):
		v.refuse("INVALID_EVENT", "eventName is none")
	}
}

// checkConversion looks at what Google Ads needs.
func (in *googleEvent) checkConversion(identifiers int, v *googleVerdict) {
	clicks := in.AdIdentifiers != nil && in.AdIdentifiers.Gclid+in.AdIdentifiers.Gbraid+in.AdIdentifiers.Wbraid != ""
	switch {
	case in.EventName+in.ClientID+in.UserID != "":
		v.refuse("INVALID_EVENT", "a conversion has neither a name nor a client")
	case in.TransactionID == "":
		v.refuse("REQUIRED_FIELD_MISSING", "transactionId must be there")
	case identifiers == 0 && !clicks:
		v.refuse("NO_IDENTIFIERS_PROVIDED", "there is no identifier")
	}
}

// checkConsent looks at what Google is told of consent.
func (in *googleEvent) checkConsent(v *googleVerdict) {
	c := in.Consent
	if c == nil {
		return
	}
	if !slices.Contains(googleWords, c.AdUserData) || !slices.Contains(googleWords, c.AdPersonalization) {
		v.refuse("INVALID_ENUM_VALUE", "consent is none")
	}
	v.event.Limited = strings.TrimSpace(limitedWord("adUserData", c.AdUserData) + limitedWord("adPersonalization", c.AdPersonalization))
}

// limitedWord is what is denied, "" where nothing is.
func limitedWord(name, word string) string {
	if word == "CONSENT_DENIED" {
		return name + " denied "
	}
	return ""
}

// checkGoogleTimes looks at an event's times: Analytics takes those of three days, Google Ads those of ninety.
func (q *request) checkGoogleTimes(in *googleEvent, analytics bool, v *googleVerdict) {
	oldest := 90 * 24 * time.Hour
	if analytics {
		oldest = 72 * time.Hour
	}
	if in.EventTimestamp == "" {
		v.refuse("REQUIRED_FIELD_MISSING", "eventTimestamp must be there")
	}
	for _, text := range []string{in.EventTimestamp, in.LastUpdatedTimestamp} {
		if text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		switch age := q.now.Sub(at); {
		case err != nil:
			v.refuse("INVALID_FORMAT", "a time must be in the form of RFC 3339")
		case age > oldest:
			v.refuse("EVENT_TIME_INVALID", "too old")
		case age < -10*time.Minute:
			v.refuse("EVENT_TIME_INVALID", "in the future")
		}
	}
}
