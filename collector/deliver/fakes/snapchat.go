package fakes

import (
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

func snapchatAnswer(status int, word, reason string) answer {
	return answerJSON(status, map[string]any{"status": word, "reason": reason})
}

// failSnapchat words failures as Snapchat does.
func failSnapchat(status int) answer {
	switch status {
	case http.StatusBadRequest:
		return snapchatAnswer(status, "INVALID", "Invalid request")
	case http.StatusUnauthorized:
		return snapchatAnswer(status, "INVALID", "Unauthorized")
	case http.StatusForbidden:
		return snapchatAnswer(status, "INVALID", "Forbidden")
	case http.StatusTooManyRequests:
		return snapchatAnswer(status, "INVALID", "Too many requests")
	}
	return answer{status: status}
}

// snapchatBody knows the members that Snapchat's documents and its own integrations have, in their types; any other has the request
// refused.
type snapchatBody struct {
	Data          []snapchatEvent `json:"data"`
	TestEventCode string          `json:"test_event_code"`
}

type snapchatEvent struct {
	EventName      string   `json:"event_name"`
	EventTime      int64    `json:"event_time"`
	EventID        string   `json:"event_id"`
	ActionSource   string   `json:"action_source"`
	EventSourceURL string   `json:"event_source_url"`
	Integration    string   `json:"integration"`
	Processing     []string `json:"data_processing_options"`
	UserData       struct {
		Email           []string `json:"em"`
		Phone           []string `json:"ph"`
		FirstName       []string `json:"fn"`
		LastName        []string `json:"ln"`
		City            []string `json:"ct"`
		State           []string `json:"st"`
		Zip             []string `json:"zp"`
		Country         []string `json:"country"`
		Gender          []string `json:"ge"`
		ExternalID      []string `json:"external_id"`
		MobileAdID      string   `json:"madid"`
		ClientIPAddress string   `json:"client_ip_address"`
		ClientUserAgent string   `json:"client_user_agent"`
		ClickID         string   `json:"sc_click_id"`
		Cookie          string   `json:"sc_cookie1"`
	} `json:"user_data"`
	CustomData struct {
		Value      amount   `json:"value"`
		Currency   string   `json:"currency"`
		OrderID    string   `json:"order_id"`
		Search     string   `json:"search_string"`
		ContentIDs []string `json:"content_ids"`
		NumItems   int64    `json:"num_items"`
		Contents   []struct {
			ID        string `json:"id"`
			Quantity  string `json:"quantity"`
			ItemPrice string `json:"item_price"`
			Brand     string `json:"brand"`
		} `json:"contents"`
	} `json:"custom_data"`
}

var (
	snapchatPath  = regexp.MustCompile(`^/v3/([0-9a-f-]{36})/events(/validate)?$`)
	snapchatNames = []string{
		"ACHIEVEMENT_UNLOCKED", "ADD_BILLING", "ADD_CART", "ADD_TO_WISHLIST", "AD_CLICK", "AD_VIEW", "APP_INSTALL", "APP_OPEN",
		"COMPLETE_TUTORIAL", "CUSTOM_EVENT_1", "CUSTOM_EVENT_2", "CUSTOM_EVENT_3", "CUSTOM_EVENT_4", "CUSTOM_EVENT_5", "INVITE",
		"LEVEL_COMPLETE", "LIST_VIEW", "LOGIN", "PAGE_VIEW", "PURCHASE", "RATE", "RESERVE", "SAVE", "SEARCH", "SHARE", "SIGN_UP",
		"SPENT_CREDITS", "START_CHECKOUT", "START_TRIAL", "SUBSCRIBE", "VIEW_CONTENT",
	}
	snapchatSources  = []string{"WEB", "OFFLINE"} // MOBILE_APP has the id of an app in its address
	snapchatQuantity = regexp.MustCompile(`^[1-9][0-9]*$`)
	snapchatPrice    = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	// snapchatRefuses are some of the currencies that Snapchat does not know.
	snapchatRefuses = []string{"AFN", "ETB", "MMK", "XAF", "XPF"}
)

// judgeSnapchat refuses all events of a request for the sake of one, which it numbers.
func judgeSnapchat(q *request) answer {
	path := snapchatPath.FindStringSubmatch(q.URL.Path)
	if path == nil || !q.isJSON() {
		return answer{status: http.StatusNotFound}.complain("no such address")
	}
	account := q.account(func(p platforms.Platform) bool { return p.Snapchat != nil && p.Snapchat.PixelID == path[1] })
	switch {
	case account == nil:
		return failSnapchat(http.StatusForbidden).complain("no Snap Pixel of that id")
	case q.URL.Query().Get("access_token") != account.Credentials["accessToken"]:
		return failSnapchat(http.StatusUnauthorized).complain("the token is refused")
	}
	body, problem := unmarshal[snapchatBody](q.body, strict)
	switch {
	case problem != "":
		return failSnapchat(http.StatusBadRequest).complain("%s", problem)
	case len(body.Data) == 0 || len(body.Data) > 2000:
		return failSnapchat(http.StatusBadRequest).complain("a request holds 1 to 2000 events")
	}
	events := make([]Event, len(body.Data))
	bad := -1
	for i := range body.Data {
		events[i] = q.snapchatEvent(&body.Data[i])
		if bad < 0 && events[i].Refusal != "" {
			bad = i
		}
	}
	given := snapchatAnswer(http.StatusOK, "VALID", "Events have been processed successfully.")
	if bad >= 0 {
		given = answerJSON(http.StatusBadRequest, map[string]any{
			"status": "INVALID", "event": bad, "errors": map[string]any{"codes": []string{}, "error_msgs": []string{events[bad].Refusal}},
		})
		for i := range events {
			events[i].refuse("another event of its request is refused")
		}
	}
	given.events, given.test = events, path[2] != ""
	return given
}

func (q *request) snapchatEvent(in *snapchatEvent) Event {
	e := Event{Name: in.EventName, ID: in.EventID, Value: string(in.CustomData.Value), Currency: in.CustomData.Currency}
	u := &in.UserData
	for field, hashes := range map[string][]string{
		"em": u.Email, "ph": u.Phone, "fn": u.FirstName, "ln": u.LastName, "ct": u.City, "st": u.State, "zp": u.Zip, "country": u.Country,
		"ge": u.Gender, "external_id": u.ExternalID,
	} {
		q.checkHashes(&e, field, hashes...)
	}
	q.checkAge(&e, time.Unix(in.EventTime, 0), 37*24*time.Hour, 10*time.Minute)
	switch {
	case !slices.Contains(snapchatNames, in.EventName):
		e.refuse("event_name is none of Snapchat's")
	case in.EventID == "" || q.refused[in.EventID] || !slices.Contains(snapchatSources, in.ActionSource):
		e.refuse("event_id and action_source must be valid")
	case in.ActionSource == "WEB" && in.EventSourceURL == "":
		e.refuse("an event of the web needs event_source_url")
	case len(u.Email) == 0 && len(u.Phone) == 0 && u.MobileAdID == "" && (u.ClientIPAddress == "" || u.ClientUserAgent == ""):
		e.refuse("user_data needs em, ph, madid, or client_ip_address and client_user_agent")
	case in.EventName == "PURCHASE" && (e.Value == "" || e.Currency == ""):
		e.refuse("a PURCHASE needs value and currency")
	case slices.Contains(snapchatRefuses, e.Currency):
		e.refuse("the currency is not supported")
	}
	in.checkProcessing(&e)
	in.checkContents(&e)
	return e
}

func (in *snapchatEvent) checkProcessing(e *Event) {
	if len(in.Processing) == 0 {
		return
	}
	e.Limited = in.Processing[0]
	if len(in.Processing) > 1 || e.Limited != "LDU" {
		e.refuse("data_processing_options must be LDU")
	}
}

func (in *snapchatEvent) checkContents(e *Event) {
	for _, content := range in.CustomData.Contents {
		if content.ID == "" || !snapchatQuantity.MatchString(content.Quantity) ||
			(content.ItemPrice != "" && !snapchatPrice.MatchString(content.ItemPrice)) {
			e.refuse("contents must have an id, a quantity as text, and prices as text")
		}
	}
}
