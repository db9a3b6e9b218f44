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
		given.events = events
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
	given.events = events
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

// googleEvent judges one event, and says by which of Google's reasons it is refused.
func (q *request) googleEvent(in *googleEvent, body *googleRequest, analytics bool) (Event, string) {
	e := Event{Name: in.EventName, ID: in.TransactionID, Value: string(in.ConversionValue), Currency: in.Currency}
	if !analytics {
		e.Name = body.Destinations[0].Destination
	}
	reason := ""
	refuse := func(why, word string) {
		if e.Refusal == "" {
			e.refuse(word)
			reason = why
		}
	}
	identifiers := 0
	if in.UserData != nil {
		for _, one := range in.UserData.Identifiers {
			identifiers++
			q.checkHashes(&e, "emailAddress", one.Email)
			q.checkHashes(&e, "phoneNumber", one.Phone)
			if (one.Email != "") == (one.Phone != "") || one.Address != nil {
				refuse("REQUIRED_FIELD_MISSING", "an identifier is an address or a number")
			}
		}
		if identifiers == 0 || identifiers > 10 {
			refuse("TOO_MANY_USER_IDENTIFIERS", "an event has at most 10 identifiers")
		}
		if body.Encoding != "HEX" {
			refuse("REQUIRED_FIELD_MISSING", "encoding must be HEX")
		}
	}
	if e.Refusal != "" && reason == "" {
		reason = "INVALID_SHA256_FORMAT"
	}
	q.checkGoogleTimes(in, analytics, refuse)
	clicks := in.AdIdentifiers != nil && (in.AdIdentifiers.Gclid != "" || in.AdIdentifiers.Gbraid != "" || in.AdIdentifiers.Wbraid != "")
	switch {
	case q.refused[in.TransactionID] && in.TransactionID != "":
		refuse("INVALID_EVENT", "the event is not valid")
	case analytics && in.ClientID == "":
		refuse("REQUIRED_FIELD_MISSING", "clientId must be there")
	case analytics && !googleName.MatchString(in.EventName):
		refuse("INVALID_EVENT", "eventName is none")
	case !analytics && in.EventName+in.ClientID+in.UserID != "":
		refuse("INVALID_EVENT", "a conversion has neither a name nor a client")
	case !analytics && in.TransactionID == "":
		refuse("REQUIRED_FIELD_MISSING", "transactionId must be there")
	case !analytics && identifiers == 0 && !clicks:
		refuse("NO_IDENTIFIERS_PROVIDED", "there is no identifier")
	case !slices.Contains(googleSources, in.EventSource):
		refuse("INVALID_ENUM_VALUE", "eventSource is none")
	case in.ConversionValue != "" && !googleCurrency.MatchString(in.Currency):
		refuse("INVALID_CURRENCY_CODE", "currency must be there with a value")
	}
	if c := in.Consent; c != nil {
		if !slices.Contains(googleWords, c.AdUserData) || !slices.Contains(googleWords, c.AdPersonalization) {
			refuse("INVALID_ENUM_VALUE", "consent is none")
		}
		e.Limited = strings.TrimSpace(limitedWord("adUserData", c.AdUserData) + limitedWord("adPersonalization", c.AdPersonalization))
	}
	if in.CartData != nil {
		for _, item := range in.CartData.Items {
			if !googleQuantity.MatchString(item.Quantity) {
				refuse("INVALID_NUMBER_FORMAT", "quantity must be a whole number as text")
			}
		}
	}
	return e, reason
}

// limitedWord is what is denied, "" where nothing is.
func limitedWord(name, word string) string {
	if word == "CONSENT_DENIED" {
		return name + " denied "
	}
	return ""
}

// checkGoogleTimes looks at an event's times: Analytics takes those of three days, Google Ads those of ninety.
func (q *request) checkGoogleTimes(in *googleEvent, analytics bool, refuse func(why, word string)) {
	oldest := 90 * 24 * time.Hour
	if analytics {
		oldest = 72 * time.Hour
	}
	if in.EventTimestamp == "" {
		refuse("REQUIRED_FIELD_MISSING", "eventTimestamp must be there")
	}
	for _, text := range []string{in.EventTimestamp, in.LastUpdatedTimestamp} {
		if text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		switch age := q.now.Sub(at); {
		case err != nil:
			refuse("INVALID_FORMAT", "a time must be in the form of RFC 3339")
		case age > oldest:
			refuse("EVENT_TIME_INVALID", "too old")
		case age < -10*time.Minute:
			refuse("EVENT_TIME_INVALID", "in the future")
		}
	}
}
