package fakes

import (
	"net/http"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/platforms"
)

func tiktokAnswer(code int, message string) answer {
	return answerJSON(http.StatusOK, map[string]any{"code": code, "message": message, "request_id": "20261120fakefakefake", "data": map[string]any{}})
}

// failTikTok puts errors into a success, as TikTok does.
func failTikTok(status int) answer {
	switch {
	case status == http.StatusBadRequest:
		return tiktokAnswer(40002, "Invalid parameter")
	case status == http.StatusUnauthorized:
		return tiktokAnswer(40105, "Access token is incorrect or has been revoked")
	case status == http.StatusForbidden:
		return tiktokAnswer(40001, "No permission to operate this pixel")
	case status == http.StatusTooManyRequests:
		return tiktokAnswer(40100, "Too many requests")
	case status >= 500:
		return tiktokAnswer(50000, "System error")
	}
	return answer{status: status}
}

// tiktokBody is strict in types: a numeric content_id is refused.
type tiktokBody struct {
	EventSource   string        `json:"event_source"`
	EventSourceID string        `json:"event_source_id"`
	TestEventCode string        `json:"test_event_code"`
	Data          []tiktokEvent `json:"data"`
}

type tiktokEvent struct {
	Event      string     `json:"event"`
	EventTime  int64      `json:"event_time"`
	EventID    string     `json:"event_id"`
	User       tiktokUser `json:"user"`
	Properties struct {
		Value       amount `json:"value"`
		Currency    string `json:"currency"`
		OrderID     string `json:"order_id"`
		ContentType string `json:"content_type"`
		NumItems    int64  `json:"num_items"`
		Query       string `json:"query"`
		Contents    []struct {
			ContentID       string `json:"content_id"`
			ContentName     string `json:"content_name"`
			ContentCategory string `json:"content_category"`
			Brand           string `json:"brand"`
			Price           amount `json:"price"`
			Quantity        int64  `json:"quantity"`
		} `json:"contents"`
	} `json:"properties"`
	Page struct {
		URL      string `json:"url"`
		Referrer string `json:"referrer"`
	} `json:"page"`
	LimitedDataUse bool `json:"limited_data_use"`
}

type tiktokUser struct {
	Email      tiktokTexts `json:"email"`
	Phone      tiktokTexts `json:"phone"`
	ExternalID tiktokTexts `json:"external_id"`
	FirstName  string      `json:"first_name"`
	LastName   string      `json:"last_name"`
	ZipCode    string      `json:"zip_code"`
	Country    string      `json:"country"`
	TTCLID     string      `json:"ttclid"`
	TTP        string      `json:"ttp"`
	IP         string      `json:"ip"`
	UserAgent  string      `json:"user_agent"`
	Locale     string      `json:"locale"`
}

// tiktokTexts are one text or a list of them: TikTok takes both.
type tiktokTexts []string

// UnmarshalJSON takes both.
func (t *tiktokTexts) UnmarshalJSON(text []byte) error {
	if jsontext.Value(text).Kind() != '"' {
		return json.Unmarshal(text, (*[]string)(t))
	}
	*t = tiktokTexts{""}
	return json.Unmarshal(text, &(*t)[0])
}

func (u *tiktokUser) identifies() bool {
	return len(u.Email) > 0 || len(u.Phone) > 0 || len(u.ExternalID) > 0 || u.TTCLID != "" || u.TTP != "" || (u.IP != "" && u.UserAgent != "")
}

var tiktokCountry = regexp.MustCompile(`^[a-z]{2}$`)

// judgeTikTok refuses all events of a request for the sake of one.
func judgeTikTok(q *request) answer {
	if q.URL.Path != "/open_api/v1.3/event/track/" || !q.isJSON() {
		return answer{status: http.StatusNotFound}.complain("no such address")
	}
	body, problem := unmarshal[tiktokBody](q.body, strict)
	account := q.account(func(p platforms.Platform) bool {
		return p.TikTok != nil && p.TikTok.EventSourceID == body.EventSourceID
	})
	switch {
	case problem != "":
		return failTikTok(http.StatusBadRequest).complain("%s", problem)
	case account == nil:
		return failTikTok(http.StatusForbidden).complain("no pixel of that event_source_id")
	case q.Header.Get("Access-Token") != account.Credentials["accessToken"]:
		return failTikTok(http.StatusUnauthorized).complain("the token is refused")
	case body.EventSource != "web" || len(body.Data) == 0 || len(body.Data) > 1000:
		return failTikTok(http.StatusBadRequest).complain("a request has an event_source and 1 to 1000 events")
	}
	refused := ""
	events := make([]Event, len(body.Data))
	for i := range body.Data {
		events[i] = q.tiktokEvent(&body.Data[i])
		if refused == "" {
			refused = events[i].Refusal
		}
	}
	given := tiktokAnswer(0, "OK")
	if refused != "" {
		given = tiktokAnswer(40002, "Invalid parameter: "+refused)
		for i := range events {
			events[i].refuse("another event of its request is refused")
		}
	}
	given.events, given.test = events, body.TestEventCode != ""
	return given
}

func (q *request) tiktokEvent(in *tiktokEvent) Event {
	e := Event{Name: in.Event, ID: in.EventID, Value: string(in.Properties.Value), Currency: in.Properties.Currency}
	if in.LimitedDataUse {
		e.Limited = "limited_data_use"
	}
	u := &in.User
	q.checkHashes(&e, "email", u.Email...)
	q.checkHashes(&e, "phone", u.Phone...)
	q.checkHashes(&e, "external_id", u.ExternalID...)
	q.checkHashes(&e, "first_name", u.FirstName)
	q.checkHashes(&e, "last_name", u.LastName)
	q.checkHashes(&e, "zip_code", u.ZipCode)
	q.checkAge(&e, time.Unix(in.EventTime, 0), 7*24*time.Hour, 10*time.Minute)
	switch {
	case in.Event == "" || in.EventID == "" || q.refused[in.EventID]:
		e.refuse("event and event_id must be valid")
	case !u.identifies():
		e.refuse("no identifier")
	case u.Country != "" && !tiktokCountry.MatchString(u.Country):
		e.refuse("country must be two lower-case letters")
	case in.Event == "Purchase" && (e.Value == "" || e.Currency == ""):
		e.refuse("a Purchase needs value and currency")
	case e.Value != "" && e.Currency == "":
		e.refuse("a value needs a currency")
	case e.Currency != "" && tiktokRefuses[e.Currency]:
		e.refuse("the currency is not supported")
	}
	for _, content := range in.Properties.Contents {
		if content.ContentID == "" || content.Quantity < 1 {
			e.refuse("contents need content_id and quantity")
		}
	}
	return e
}

// tiktokRefuses are some of the currencies that TikTok does not know.
var tiktokRefuses = map[string]bool{"XOF": true, "XAF": true, "AFN": true, "MMK": true, "ETB": true, "XPF": true}
