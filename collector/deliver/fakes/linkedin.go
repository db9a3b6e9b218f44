package fakes

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

func linkedinError(status int, code, message string) answer {
	said := map[string]any{"status": status, "message": message}
	if code != "" {
		said["code"] = code
	}
	return answerJSON(status, said)
}

// failLinkedIn words failures as LinkedIn does: with the status once more, and a code in capitals.
func failLinkedIn(status int) answer {
	switch status {
	case http.StatusBadRequest:
		return linkedinError(status, "ILLEGAL_ARGUMENT", "The request is invalid.")
	case http.StatusUnauthorized:
		return answerJSON(status, map[string]any{
			"status": status, "serviceErrorCode": 65600, "code": "INVALID_ACCESS_TOKEN", "message": "Invalid access token",
		})
	case http.StatusForbidden:
		return answerJSON(status, map[string]any{
			"status": status, "serviceErrorCode": 100, "code": "ACCESS_DENIED", "message": "Not enough permissions to access: conversionEvents.BATCH_CREATE",
		})
	case http.StatusUpgradeRequired:
		return linkedinError(status, "NONEXISTENT_VERSION", "Requested version is not active")
	case http.StatusTooManyRequests:
		return linkedinError(status, "TOO_MANY_REQUESTS", "Resource level throttle limit for calls to this resource is reached.")
	case http.StatusInternalServerError:
		return linkedinError(status, "INTERNAL_SERVER_ERROR", "Internal Server Error")
	}
	return answer{status: status}
}

// linkedinOldest is the oldest version that LinkedIn took in November 2026.
const linkedinOldest = "202601"

var linkedinVersion = regexp.MustCompile(`^20[0-9]{2}(0[1-9]|1[0-2])$`)

// badLinkedInHeader returns the refusal of a request whose headers are wrong; its status is 0 where they are right.
func (q *request) badLinkedInHeader() answer {
	version := q.Header.Get("LinkedIn-Version")
	switch {
	case version == "":
		return linkedinError(http.StatusBadRequest, "VERSION_MISSING", "A version must be present.").complain("there is no LinkedIn-Version")
	case !linkedinVersion.MatchString(version), version < linkedinOldest, version > q.now.Format("200601"):
		return failLinkedIn(http.StatusUpgradeRequired).complain("the version is none that LinkedIn takes")
	case q.Header.Get("X-Restli-Protocol-Version") != "2.0.0":
		return failLinkedIn(http.StatusBadRequest).complain("X-Restli-Protocol-Version must be 2.0.0")
	case q.Header.Get("X-RestLi-Method") != "BATCH_CREATE":
		return failLinkedIn(http.StatusBadRequest).complain("X-RestLi-Method must be BATCH_CREATE for a list of elements")
	}
	return answer{}
}

// linkedinElement is what LinkedIn knows, but for what has a person in plain text: any other member has the element refused.
type linkedinElement struct {
	Conversion string         `json:"conversion"`
	HappenedAt int64          `json:"conversionHappenedAt"`
	Value      *linkedinValue `json:"conversionValue"`
	EventID    string         `json:"eventId"`
	User       struct {
		IDs *[]struct {
			Type  string `json:"idType"`
			Value string `json:"idValue"`
		} `json:"userIds"`
		Info *struct {
			FirstName string `json:"hashedFirstName"`
			LastName  string `json:"hashedLastName"`
			Country   string `json:"countryCode"`
		} `json:"userInfo"`
		ExternalIDs []string `json:"externalIds"`
	} `json:"user"`
}

type linkedinValue struct {
	Currency string `json:"currencyCode"`
	Amount   string `json:"amount"`
}

var (
	linkedinRule    = regexp.MustCompile(`^urn:lla:llaPartnerConversion:([0-9]{1,19})$`)
	linkedinAmount  = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	linkedinCode    = regexp.MustCompile(`^[A-Z]+$`)
	linkedinIDTypes = []string{"SHA256_EMAIL", "LINKEDIN_FIRST_PARTY_ADS_TRACKING_UUID", "ACXIOM_ID", "SHA256_IP_ADDRESS", "GOOGLE_AID"}
)

// judgeLinkedIn refuses all elements of a request for the sake of one, and names that one.
func judgeLinkedIn(q *request) answer {
	if q.URL.Path != "/rest/conversionEvents" || !q.isJSON() {
		return linkedinError(http.StatusNotFound, "RESOURCE_NOT_FOUND", "No virtual resource found").complain("no such address")
	}
	i := slices.IndexFunc(q.accounts, func(a Account) bool { return q.Header.Get("Authorization") == "Bearer "+a.Credentials["accessToken"] })
	if i < 0 {
		return failLinkedIn(http.StatusUnauthorized).complain("the token is refused")
	}
	account := &q.accounts[i]
	q.platform = account.Platform.Name
	if refusal := q.badLinkedInHeader(); refusal.status > 0 {
		return refusal
	}
	body, problem := unmarshal[struct {
		Elements []jsontext.Value `json:"elements"`
	}](q.body, strict)
	switch {
	case problem != "":
		return failLinkedIn(http.StatusBadRequest).complain("%s", problem)
	case len(body.Elements) == 0 || len(body.Elements) > 5000:
		return failLinkedIn(http.StatusBadRequest).complain("a request holds 1 to 5000 elements")
	}
	events := make([]Event, len(body.Elements))
	var lines, wrongRules []string
	created := make([]map[string]any, len(events))
	for i, text := range body.Elements {
		created[i] = map[string]any{"status": http.StatusCreated}
		element, problem := unmarshal[linkedinElement](text, strict)
		if problem != "" {
			events[i].refuse("the element is not of LinkedIn's form")
			lines = append(lines, fmt.Sprintf("Index: %d, ERROR :: / :: unrecognized field or wrong type\n", i))
			continue
		}
		events[i] = q.linkedinEvent(&element)
		switch refusal := events[i].Refusal; {
		case refusal != "":
			lines = append(lines, fmt.Sprintf("Index: %d, ERROR :: / :: %s\n", i, refusal))
		case !hasValue(account.Platform.EventNames, events[i].Name):
			events[i].refuse("the account has no conversion rule of that id")
			wrongRules = append(wrongRules, fmt.Sprint(i))
		}
	}
	given := answerJSON(http.StatusOK, map[string]any{"elements": created})
	switch {
	case len(lines) > 0:
		given = linkedinError(http.StatusUnprocessableEntity, "", strings.Join(lines, ""))
	case len(wrongRules) > 0:
		given = linkedinError(http.StatusBadRequest, "", "Incorrect conversions information provided. Conversion's method should be CONVERSIONS_API, indices ["+
			strings.Join(wrongRules, ", ")+"] (0-indexed)")
	}
	for i := range events {
		if given.status >= 300 {
			events[i].refuse("another event of its request is refused")
		}
	}
	given.events = events
	return given
}

func hasValue(names map[string]string, wanted string) bool {
	for _, name := range names {
		if name == wanted {
			return true
		}
	}
	return false
}

func (q *request) linkedinEvent(in *linkedinElement) Event {
	e := Event{ID: in.EventID}
	if rule := linkedinRule.FindStringSubmatch(in.Conversion); rule != nil {
		e.Name = rule[1]
	}
	if in.Value != nil {
		e.Value, e.Currency = in.Value.Amount, in.Value.Currency
	}
	if e.Name == "" {
		e.refuse("conversion must be the URN of a rule")
	}
	if in.User.IDs == nil {
		e.refuse("userIds is required")
	}
	q.checkLinkedInUser(&e, in)
	q.checkAge(&e, time.UnixMilli(in.HappenedAt), 90*24*time.Hour, 10*time.Minute)
	switch {
	case in.Value != nil && !linkedinAmount.MatchString(in.Value.Amount):
		e.refuse("amount must be a decimal number as text")
	case in.Value != nil && (len(in.Value.Currency) != len("EUR") || !linkedinCode.MatchString(in.Value.Currency)):
		e.refuse("currencyCode must be three capital letters")
	case q.refused[in.EventID]:
		e.refuse("eventId must be valid")
	}
	return e
}

// checkLinkedInUser checks whom an event is about, by what the request's version knows.
func (q *request) checkLinkedInUser(e *Event, in *linkedinElement) {
	version, told := q.Header.Get("LinkedIn-Version"), len(in.User.ExternalIDs)
	if in.User.IDs != nil {
		for _, id := range *in.User.IDs {
			if strings.HasPrefix(id.Type, "SHA256_") {
				q.checkHashes(e, id.Type, id.Value)
			}
			switch {
			case !slices.Contains(linkedinIDTypes, id.Type) || id.Type == "SHA256_IP_ADDRESS" && version < "202607":
				e.refuse("idType is none of LinkedIn's")
			case id.Value == "":
				e.refuse("idValue must not be empty")
			case id.Type != "SHA256_IP_ADDRESS":
				told++
			}
		}
	}
	q.checkHashes(e, "externalIds", in.User.ExternalIDs...)
	if info := in.User.Info; info != nil {
		q.checkHashes(e, "hashedFirstName", info.FirstName)
		q.checkHashes(e, "hashedLastName", info.LastName)
		switch {
		case version < "202609":
			e.refuse("userInfo has hashed names since version 202609")
		case info.FirstName == "" || info.LastName == "":
			e.refuse("userInfo needs both names")
		case info.Country != "" && (len(info.Country) != len("DE") || !linkedinCode.MatchString(info.Country)):
			e.refuse("countryCode must be two capital letters")
		}
	}
	switch {
	case len(in.User.ExternalIDs) > 1:
		e.refuse("externalIds holds one at most")
	case told == 0:
		e.refuse("user needs an id beside the IP address")
	}
}
