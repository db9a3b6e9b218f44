package adapter

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// amplitudeBaseURLs by where the project's data resides.
var amplitudeBaseURLs = map[platforms.Region]string{
	"":                 "https://api2.amplitude.com",
	platforms.RegionUS: "https://api2.amplitude.com",
	platforms.RegionEU: "https://api.eu.amplitude.com",
}

// amplitudeAdapter sends events to Amplitude's HTTP API, which takes all of a request or none.
type amplitudeAdapter struct {
	url string
	// tail is a request's body behind its events: it has the key, and that ids may be of any length. Shorter ones than five
	// characters would be removed from their events otherwise.
	tail []byte
}

func openAmplitude(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	key, err := json.Marshal(credentials["apiKey"])
	if err != nil {
		return nil, errors.New("apiKey must be text in UTF-8") // err itself may show the key
	}
	return &amplitudeAdapter{
		url:  baseURL(cfg, amplitudeBaseURLs[cfg.Amplitude.Region]) + "/" + apiVersion(cfg) + "/httpapi",
		tail: []byte(`],"options":{"min_id_length":1},"api_key":` + string(key) + "}"),
	}, nil
}

// amplitudeEvent has revenue where the event is one of money that has changed hands.
type amplitudeEvent struct {
	EventType   string        `json:"event_type"`
	UserID      string        `json:"user_id,omitzero"`
	DeviceID    string        `json:"device_id,omitzero"`
	Time        int64         `json:"time"`
	InsertID    string        `json:"insert_id"`
	IP          string        `json:"ip,omitzero"`
	UserAgent   string        `json:"user_agent,omitzero"`
	Language    string        `json:"language,omitzero"`
	Revenue     *event.Amount `json:"revenue,omitzero"`
	RevenueType string        `json:"revenueType,omitzero"`
	Currency    string        `json:"currency,omitzero"`
	Properties  members       `json:"event_properties"`
}

// amplitudeNobody are the ids that Amplitude takes for nobody's, besides those that Weir itself does.
var amplitudeNobody = setOf("na", "lmy47d", "{}")

// amplitudeID is an id as Amplitude gets it, "" for one that it would refuse the event for.
func amplitudeID(id string) string {
	if amplitudeNobody[strings.ToLower(id)] {
		return ""
	}
	return id
}

func (a *amplitudeAdapter) Map(e *Event) (Payload, Verdict) {
	name := e.Name
	if e.as != "" {
		name = e.as
	}
	if amplitudeKeeps(name) {
		return Payload{}, Skip("name_reserved")
	}
	own := amplitudeEvent{
		EventType: name, UserID: amplitudeID(e.UserID), DeviceID: amplitudeID(e.ClientID), Time: e.Time().UnixMilli(), InsertID: e.DedupID(),
		IP: publicIP(e.Context.IP), UserAgent: e.Context.UserAgent, Language: e.Context.Language, Properties: amplitudeProperties(e),
	}
	if own.UserID == "" && own.DeviceID == "" {
		return Payload{}, Skip("no_identifier")
	}
	if e.Value != nil && e.Currency != "" { // else Amplitude takes it for money in the project's currency
		switch e.Name {
		case event.Purchase:
			own.Revenue, own.RevenueType, own.Currency = e.Value, "Purchase", e.Currency
		case event.Refund:
			back := -*e.Value
			own.Revenue, own.RevenueType, own.Currency = &back, "Refund", e.Currency
		}
	}
	return bodyPayload(own)
}

// amplitudeKeeps says whether a name is one of Amplitude's own events, some of which change or merge people.
func amplitudeKeeps(name string) bool {
	return strings.HasPrefix(name, "$") || strings.HasPrefix(strings.ToLower(name), "[amplitude]")
}

// amplitudeProperties have names of our own: Amplitude documents none for them.
func amplitudeProperties(e *Event) members {
	c := &e.Context
	p := members{{"event_id", e.ID}}
	p.text("session_id", e.SessionID)
	p.engagement(e)
	p.data(e)
	p.contents(e)
	p.text("page_url", c.PageURL)
	p.text("page_title", c.PageTitle)
	p.text("referrer", c.Referrer)
	p.campaign(c)
	p.text("action_source", c.ActionSource.String())
	for _, click := range amplitudeClickIDs {
		p.text(click, c.ClickIDs[click])
	}
	p.properties(e, func(name string) bool { return amplitudeOwn[name] || strings.HasPrefix(name, "$") })
	return p
}

// amplitudeClickIDs are those that Amplitude's own library for browsers records, by the same names.
var amplitudeClickIDs = []string{
	"gclid", "gbraid", "wbraid", "fbclid", "ttclid", "msclkid", "rdt_cid", "li_fat_id", "twclid",
}

// amplitudeOwn are the names that have a meaning in a property of ours, set or not: none of the customer's may stand in for one.
var amplitudeOwn = setOf(append([]string{
	"event_id", "session_id", "engagement_time_msec", "value", "currency", "tax", "shipping", "discount", "order_id", "coupon", "content_id",
	"content_name", "search_term", "list_id", "list_name", "contents", "page_url", "page_title", "referrer", "utm_source", "utm_medium",
	"utm_campaign", "utm_term", "utm_content", "action_source",
}, amplitudeClickIDs...)...)

func (a *amplitudeAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Accept", "*/*")
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies(`{"events":[`, batch, a.tail)}
}

// amplitudeAnswer is what of an answer has a meaning for us. Events are named by their places in the request; of each field the
// first alone.
type amplitudeAnswer struct {
	Code             *int             `json:"code"`
	Error            string           `json:"error"`
	MissingField     string           `json:"missing_field"`
	InvalidFields    map[string][]int `json:"events_with_invalid_fields"`
	MissingFields    map[string][]int `json:"events_with_missing_fields"`
	InvalidIDLengths map[string][]int `json:"events_with_invalid_id_lengths"`
	SilencedEvents   []int            `json:"silenced_events"`
	ThrottledEvents  []int            `json:"throttled_events"`
}

// amplitudeReasons name the fields that Amplitude may refuse an event for.
var amplitudeReasons = map[string]string{
	"time": "time_refused", "event_type": "event_refused", "insert_id": "insert_id_refused", "user_id": "user_id_refused",
	"device_id": "device_id_refused", "revenue": "revenue_refused", "currency": "currency_refused", "event_properties": "properties_refused",
}

// Classify: nothing of a request is taken that has a bad event, or one of somebody who sends too fast.
func (a *amplitudeAdapter) Classify(r Response, n int) []Verdict {
	var answer amplitudeAnswer
	err := json.Unmarshal(r.Body, &answer)
	success := r.Status >= 200 && r.Status < 300
	switch {
	case success && err == nil && answer.Code != nil && *answer.Code == http.StatusOK:
		return forAll(n, Verdict{Class: Delivered})
	case success:
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	case isHTML(r) && r.Status >= 400:
		return forAll(n, Verdict{Class: Retry, Reason: "http_" + strconv.Itoa(r.Status)})
	case err != nil:
		return forAll(n, classifyStatus(r, n))
	}
	switch r.Status {
	case http.StatusBadRequest:
		if answer.MissingField == "api_key" || strings.HasPrefix(strings.ToLower(answer.Error), "invalid api key") {
			return forAll(n, Verdict{Class: Auth, Reason: "unauthorized"})
		}
		return answer.rows(r, n)
	case http.StatusTooManyRequests:
		return answer.rows(r, n)
	}
	return forAll(n, classifyStatus(r, n))
}

// rows gives the events that the answer names their verdicts. The others are sent again; where it names none, the answer is
// about all.
func (answer *amplitudeAnswer) rows(r Response, n int) []Verdict {
	verdicts := forAll(n, Verdict{Class: Retry, Reason: "batch_refused"})
	named := false
	name := func(rows []int, verdict Verdict) {
		for _, row := range rows {
			if row >= 0 && row < n {
				verdicts[row], named = verdict, true
			}
		}
	}
	// One who sends too fast may have slowed down by the next attempt. It is nothing against the project.
	name(answer.ThrottledEvents, Verdict{Class: Retry, Reason: "throttled"})
	name(answer.SilencedEvents, Verdict{Class: Permanent, Reason: "device_silenced"})
	for _, fields := range []map[string][]int{answer.InvalidIDLengths, answer.MissingFields, answer.InvalidFields} {
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			name(fields[field], Verdict{Class: Permanent, Reason: cmp.Or(amplitudeReasons[field], "refused")})
		}
	}
	if !named {
		return forAll(n, classifyStatus(r, n))
	}
	return verdicts
}
