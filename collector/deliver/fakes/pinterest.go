package fakes

import (
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

func pinterestError(status, code int, message string) answer {
	return answerJSON(status, map[string]any{"code": code, "message": message})
}

// failPinterest words failures as Pinterest does: a code of its own in each.
func failPinterest(status int) answer {
	switch status {
	case http.StatusBadRequest:
		return pinterestError(status, 4196, "The request was invalid.")
	case http.StatusUnauthorized:
		return pinterestError(status, 2, "Authentication failed.")
	case http.StatusForbidden:
		return pinterestError(status, 29, "You are not permitted to access that resource.")
	case http.StatusTooManyRequests:
		return pinterestError(status, 8, "This request exceeded a rate limit.")
	case http.StatusServiceUnavailable:
		return pinterestError(status, 4197, "The endpoint has been ramped down.")
	case http.StatusInternalServerError:
		return pinterestError(status, 12, "Something went wrong on our end.")
	}
	return answer{status: status}
}

// pinterestBody knows what Pinterest knows; any other member has the request refused.
type pinterestBody struct {
	Data []pinterestEvent `json:"data"`
}

type pinterestEvent struct {
	EventName      string `json:"event_name"`
	ActionSource   string `json:"action_source"`
	EventTime      int64  `json:"event_time"`
	EventID        string `json:"event_id"`
	EventSourceURL string `json:"event_source_url"`
	OptOut         bool   `json:"opt_out"`
	Language       string `json:"language"`
	UserData       struct {
		Email           []string `json:"em"`
		Phone           []string `json:"ph"`
		FirstName       []string `json:"fn"`
		LastName        []string `json:"ln"`
		City            []string `json:"ct"`
		State           []string `json:"st"`
		Zip             []string `json:"zp"`
		Country         []string `json:"country"`
		DateOfBirth     []string `json:"db"`
		Gender          []string `json:"ge"`
		ExternalID      []string `json:"external_id"`
		HashedMAIDs     []string `json:"hashed_maids"`
		ClientIPAddress string   `json:"client_ip_address"`
		ClientUserAgent string   `json:"client_user_agent"`
		ClickID         string   `json:"click_id"`
	} `json:"user_data"`
	CustomData struct {
		Value       string   `json:"value"`
		Currency    string   `json:"currency"`
		OrderID     string   `json:"order_id"`
		ContentName string   `json:"content_name"`
		ContentIDs  []string `json:"content_ids"`
		NumItems    int64    `json:"num_items"`
		Search      string   `json:"search_string"`
		OptOutType  string   `json:"opt_out_type"`
		Contents    []struct {
			ID           string `json:"id"`
			ItemName     string `json:"item_name"`
			ItemCategory string `json:"item_category"`
			ItemBrand    string `json:"item_brand"`
			ItemPrice    string `json:"item_price"`
			Quantity     int64  `json:"quantity"`
		} `json:"contents"`
	} `json:"custom_data"`
}

var (
	pinterestPath  = regexp.MustCompile(`^/v5/ad_accounts/([0-9]{1,18})/events$`)
	pinterestNames = []string{
		"add_payment_info", "add_to_cart", "add_to_wishlist", "app_install", "checkout", "custom", "initiate_checkout", "lead",
		"page_visit", "search", "signup", "subscribe", "view_category", "view_content", "watch_video",
	}
	pinterestSources  = []string{"web", "offline", "app_ios", "app_android"}
	pinterestLanguage = regexp.MustCompile(`^[a-z]{2}$`)
	pinterestPrice    = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
)

// judgePinterest has a verdict on every event; those that are good are taken whatever the others are.
func judgePinterest(q *request) answer {
	path := pinterestPath.FindStringSubmatch(q.URL.Path)
	if path == nil || !q.isJSON() {
		return pinterestError(http.StatusNotFound, 0, "Not found").complain("no such address")
	}
	account := q.account(func(p platforms.Platform) bool { return p.Pinterest != nil && p.Pinterest.AdAccountID == path[1] })
	switch {
	case account == nil:
		return failPinterest(http.StatusForbidden).complain("no ad account of that id")
	case q.Header.Get("Authorization") != "Bearer "+account.Credentials["conversionToken"]:
		return failPinterest(http.StatusUnauthorized).complain("the token is refused")
	}
	body, problem := unmarshal[pinterestBody](q.body, strict)
	switch {
	case problem != "":
		return failPinterest(http.StatusBadRequest).complain("%s", problem)
	case len(body.Data) == 0 || len(body.Data) > 1000:
		return failPinterest(http.StatusBadRequest).complain("a request holds 1 to 1000 events")
	}
	events := make([]Event, len(body.Data))
	rows := make([]map[string]any, len(body.Data))
	processed := 0
	for i := range body.Data {
		events[i] = q.pinterestEvent(&body.Data[i])
		if refusal := events[i].Refusal; refusal != "" {
			rows[i] = map[string]any{"status": "failed", "error_message": refusal, "warning_message": nil}
			continue
		}
		processed++
		rows[i] = map[string]any{"status": "processed", "error_message": nil, "warning_message": nil}
	}
	verdicts := map[string]any{"num_events_received": len(rows), "num_events_processed": processed, "events": rows}
	given := answerJSON(http.StatusOK, verdicts)
	if processed < len(rows) {
		given = answerJSON(http.StatusUnprocessableEntity, map[string]any{
			"code": 4195, "message": "Not all events were successfully processed.", "details": verdicts,
		})
	}
	given.events, given.test = events, q.URL.Query().Get("test") == "true"
	return given
}

// checkOptOut looks whether Pinterest is told of an opt-out, and of what.
func (in *pinterestEvent) checkOptOut(e *Event) {
	e.Limited = in.CustomData.OptOutType
	switch {
	case e.Limited != "" && e.Limited != "LDP":
		e.refuse("opt_out_type must be LDP")
	case e.Limited != "" && !in.OptOut:
		e.refuse("opt_out_type needs opt_out")
	}
}

func (q *request) pinterestEvent(in *pinterestEvent) Event {
	e := Event{Name: in.EventName, ID: in.EventID, Value: in.CustomData.Value, Currency: in.CustomData.Currency}
	in.checkOptOut(&e)
	u := &in.UserData
	for field, hashes := range map[string][]string{
		"em": u.Email, "ph": u.Phone, "fn": u.FirstName, "ln": u.LastName, "ct": u.City, "st": u.State, "zp": u.Zip, "country": u.Country,
		"db": u.DateOfBirth, "ge": u.Gender, "external_id": u.ExternalID,
	} {
		q.checkHashes(&e, field, hashes...)
	}
	q.checkAge(&e, time.Unix(in.EventTime, 0), 7*24*time.Hour, 10*time.Minute)
	switch {
	case !slices.Contains(pinterestNames, in.EventName):
		e.refuse("event_name is none of Pinterest's")
	case in.EventID == "" || q.refused[in.EventID] || !slices.Contains(pinterestSources, in.ActionSource):
		e.refuse("event_id and action_source must be valid")
	case len(u.Email) == 0 && len(u.HashedMAIDs) == 0 && (u.ClientIPAddress == "" || u.ClientUserAgent == ""):
		e.refuse("user_data needs em, hashed_maids, or client_ip_address and client_user_agent")
	case in.Language != "" && !pinterestLanguage.MatchString(in.Language):
		e.refuse("language must be two letters")
	case e.Value != "" && !pinterestPrice.MatchString(e.Value):
		e.refuse("value must be a decimal number as text")
	}
	for _, content := range in.CustomData.Contents {
		if content.Quantity < 1 || (content.ItemPrice != "" && !pinterestPrice.MatchString(content.ItemPrice)) {
			e.refuse("contents must have a quantity, and prices as text")
		}
	}
	return e
}
