package adapter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
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
type mixpanelAdapter struct{ url, authorization string }

func openMixpanel(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	account := credentials["serviceAccountUsername"] + ":" + credentials["serviceAccountSecret"]
	query := url.Values{"strict": {"1"}, "project_id": {cfg.Mixpanel.ProjectID}}
	return &mixpanelAdapter{
		url:           baseURL(cfg, mixpanelBaseURLs[cfg.Mixpanel.Region]) + "/import?" + query.Encode(),
		authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte(account)),
	}, nil
}

// mixpanelEvent is an event of Mixpanel's; its properties have names of our own but for those with a $.
type mixpanelEvent struct {
	Event      string             `json:"event"`
	Properties mixpanelProperties `json:"properties"`
}

type mixpanelProperties struct {
	Time        int64          `json:"time"`
	DistinctID  string         `json:"distinct_id"`
	InsertID    string         `json:"$insert_id"`
	EventID     string         `json:"event_id"`
	Value       *event.Amount  `json:"value,omitzero"`
	Currency    string         `json:"currency,omitzero"`
	OrderID     string         `json:"order_id,omitzero"`
	ContentID   string         `json:"content_id,omitzero"`
	ContentName string         `json:"content_name,omitzero"`
	Contents    []mixpanelItem `json:"contents,omitempty"`
	CurrentURL  string         `json:"$current_url,omitzero"`
	Referrer    string         `json:"$referrer,omitzero"`
	UTMSource   string         `json:"utm_source,omitzero"`
	UTMMedium   string         `json:"utm_medium,omitzero"`
	UTMCampaign string         `json:"utm_campaign,omitzero"`
	UTMTerm     string         `json:"utm_term,omitzero"`
	UTMContent  string         `json:"utm_content,omitzero"`
}

type mixpanelItem struct {
	ID       string        `json:"id,omitzero"`
	Name     string        `json:"name,omitzero"`
	Category string        `json:"category,omitzero"`
	Price    *event.Amount `json:"price,omitzero"`
	Quantity *event.Amount `json:"quantity,omitzero"`
}

func (a *mixpanelAdapter) Map(e *Event) (Payload, Verdict) {
	// Events of these names merge people, or are of Mixpanel's own libraries.
	if strings.HasPrefix(e.Name, "$") {
		return Payload{}, Skip("name_reserved")
	}
	properties := mixpanelProperties{
		Time: e.Time().UnixMilli(), DistinctID: e.ClientID, InsertID: mixpanelInsertID(e.DedupID()), EventID: e.ID,
		Value: e.Value, Currency: e.Currency, OrderID: e.OrderID, ContentID: e.ContentID, ContentName: e.ContentName,
		CurrentURL: e.Context.PageURL, Referrer: e.Context.Referrer,
		UTMSource: e.Context.UTMSource, UTMMedium: e.Context.UTMMedium, UTMCampaign: e.Context.UTMCampaign,
		UTMTerm: e.Context.UTMTerm, UTMContent: e.Context.UTMContent,
	}
	for _, item := range e.Contents {
		properties.Contents = append(properties.Contents, mixpanelItem{
			ID: item.ID, Name: item.Name, Category: item.Category, Price: item.Price, Quantity: item.Quantity,
		})
	}
	return bodyPayload(mixpanelEvent{Event: e.Name, Properties: properties})
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
	case err == nil && answer.Imported != nil && (success || r.Status == http.StatusBadRequest):
		return classifyMixpanelRecords(r, answer, n)
	case success:
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	case isHTML(r) && r.Status >= 400:
		return forAll(n, Verdict{Class: Retry, Reason: "http_" + strconv.Itoa(r.Status)})
	default:
		return forAll(n, classifyStatus(r, n))
	}
}

func classifyMixpanelRecords(r Response, answer mixpanelAnswer, n int) []Verdict {
	rest := Verdict{Class: Delivered}
	if len(answer.Failed) == 0 && *answer.Imported < n && r.Status == http.StatusBadRequest {
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
