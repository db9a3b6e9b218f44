package adapter

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/platforms"
)

// mixpanelBaseURLs by where the project's data resides.
var mixpanelBaseURLs = map[platforms.Region]string{
	"":                 "https://api.mixpanel.com",
	platforms.RegionUS: "https://api.mixpanel.com",
	platforms.RegionEU: "https://api-eu.mixpanel.com",
	platforms.RegionIN: "https://api-in.mixpanel.com",
}

// mixpanelAdapter sends events to Mixpanel's import, which checks them one by one.
type mixpanelAdapter struct {
	url, authorization string
	// erasureURL and erasureAuthorization are for erasures; they are of use where the Secret has the keys for these.
	erasureURL, erasureAuthorization string
}

func openMixpanel(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	account := credentials["serviceAccountUsername"] + ":" + credentials["serviceAccountSecret"]
	query := url.Values{"strict": {"1"}, "project_id": {cfg.Mixpanel.ProjectID}}
	return &mixpanelAdapter{
		url:           baseURL(cfg, mixpanelBaseURLs[cfg.Mixpanel.Region]) + "/import?" + query.Encode(),
		authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte(account)),
		erasureURL: baseURL(cfg, mixpanelErasureURLs[cfg.Mixpanel.Region]) + "/api/app/data-deletions/v3.0/?" +
			url.Values{"token": {credentials["projectToken"]}}.Encode(),
		erasureAuthorization: "Bearer " + credentials["gdprToken"],
	}, nil
}

// mixpanelEvent is an event of Mixpanel's; its properties have names of our own but for those of its own libraries.
type mixpanelEvent struct {
	Event      string  `json:"event"`
	Properties members `json:"properties"`
}

// mixpanelClickIDs are the click ids that Mixpanel's own libraries record, by their names for them.
var mixpanelClickIDs = [...]struct{ name, of string }{
	{"gclid", "gclid"}, {"wbraid", "wbraid"}, {"fbclid", "fbclid"}, {"ttclid", "ttclid"}, {"msclkid", "msclkid"}, {"sccid", "sc_click_id"},
	{"li_fat_id", "li_fat_id"}, {"twclid", "twclid"},
}

func (a *mixpanelAdapter) Map(e *Event) (Payload, Verdict) {
	// Events of these names merge people, or are of Mixpanel's own libraries.
	if strings.HasPrefix(e.Name, "$") {
		return Payload{}, Skip("name_reserved")
	}
	who := e.UserID
	if who == "" {
		who = e.ClientID
	}
	c := &e.Context
	p := members{{"time", e.Time().UnixMilli()}, {"distinct_id", who}, {"$insert_id", mixpanelInsertID(e.DedupID())}, {"event_id", e.ID}}
	p.text("$device_id", e.ClientID)
	p.text("$user_id", e.UserID)
	p.text("ip", publicIP(c.IP))
	p.text("$locale", c.Language)
	p.text("session_id", e.SessionID)
	p.engagement(e)
	p.data(e)
	p.contents(e)
	p.text("$current_url", c.PageURL)
	p.text("current_page_title", c.PageTitle)
	p.text("$referrer", c.Referrer)
	p.campaign(c)
	p.text("action_source", c.ActionSource.String())
	for _, click := range mixpanelClickIDs {
		p.text(click.name, c.ClickIDs[click.of])
	}
	p.properties(e, mixpanelKeeps)
	return bodyPayload(mixpanelEvent{Event: cmp.Or(e.as, e.Name), Properties: p})
}

// mixpanelOwn are the names that have a meaning in a property of Mixpanel's or ours, set or not: none of the customer's may
// stand in for one.
var mixpanelOwn = setOf(
	"time", "distinct_id", "event_id", "ip", "id", "token", "session_id", "engagement_time_msec", "value", "currency", "tax", "shipping", "discount",
	"order_id", "coupon", "content_id", "content_name", "search_term", "list_id", "list_name", "contents", "current_page_title",
	"utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "action_source",
)

// mixpanelKeeps says whether a property's name is one that no customer's may have.
func mixpanelKeeps(name string) bool {
	return mixpanelOwn[name] || strings.HasPrefix(name, "$") || strings.HasPrefix(name, "mp_") ||
		slices.ContainsFunc(mixpanelClickIDs[:], func(click struct{ name, of string }) bool { return click.name == name })
}

var mixpanelInsertIDPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,36}$`)

// mixpanelInsertID is what Mixpanel tells a repeat by: the event's id where it has Mixpanel's form, else as much
// of its hash as fits.
func mixpanelInsertID(id string) string {
	if mixpanelInsertIDPattern.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:36]
}

func (a *mixpanelAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Authorization", a.authorization)
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies("[", batch, []byte("]"))}
}

// mixpanelAnswer is what of an answer has a meaning for us.
type mixpanelAnswer struct {
	Imported *int `json:"num_records_imported"`
	Failed   []struct {
		Index *int   `json:"index"`
		Field string `json:"field"`
	} `json:"failed_records"`
}

// mixpanelReasons name the fields that Mixpanel may refuse an event for.
var mixpanelReasons = map[string]string{
	"properties.time":        "time_refused",
	"properties.distinct_id": "distinct_id_refused",
	"properties.$insert_id":  "insert_id_refused",
	"properties":             "properties_refused",
	"event":                  "event_refused",
}

// Classify reads a 400 that says which events were refused as what it is: the others have been taken.
func (a *mixpanelAdapter) Classify(r Response, n int) []Verdict {
	var answer mixpanelAnswer
	err := json.Unmarshal(r.Body, &answer)
	success := r.Status >= 200 && r.Status < 300
	switch {
	case err == nil && answer.Imported != nil && (*answer.Imported < 0 || *answer.Imported > n) && (success || r.Status == http.StatusBadRequest):
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"}) // it is about another request
	case err == nil && answer.Imported != nil && (success || r.Status == http.StatusBadRequest):
		return classifyMixpanelRecords(r, answer, n)
	case success:
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	default:
		return forAll(n, classifyError(r, n))
	}
}

func classifyMixpanelRecords(r Response, answer mixpanelAnswer, n int) []Verdict {
	rest := Verdict{Class: Delivered}
	if len(answer.Failed) == 0 && r.Status == http.StatusBadRequest {
		return forAll(n, refused(n, "http_400"))
	}
	verdicts := make([]Verdict, n)
	failed := 0
	for _, record := range answer.Failed {
		if record.Index == nil || *record.Index < 0 || *record.Index >= n {
			continue
		}
		reason, known := mixpanelReasons[record.Field]
		if !known {
			reason = "refused"
		}
		if verdicts[*record.Index].Class == Undecided {
			failed++
		}
		verdicts[*record.Index] = Verdict{Class: Permanent, Reason: reason}
	}
	if *answer.Imported+failed < n {
		// Some are missing from both: Mixpanel tells a repeat by its $insert_id, so all that is in doubt is sent again.
		rest = Verdict{Class: Retry, Reason: "not_received"}
	}
	for i := range verdicts {
		if verdicts[i].Class == Undecided {
			verdicts[i] = rest
		}
	}
	return verdicts
}
