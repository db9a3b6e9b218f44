package fakes

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const klaviyoMediaType = "application/vnd.api+json"

// klaviyoCodes are Klaviyo's words for statuses.
var klaviyoCodes = map[int][2]string{
	http.StatusBadRequest:            {"invalid", "Invalid input."},
	http.StatusUnauthorized:          {"not_authenticated", "Authentication credentials were not provided."},
	http.StatusForbidden:             {"permission_denied", "You do not have permission to perform this action."},
	http.StatusNotFound:              {"not_found", "Not found."},
	http.StatusMethodNotAllowed:      {"method_not_allowed", "Method not allowed."},
	http.StatusGone:                  {"gone", "This revision is no longer available."},
	http.StatusUnsupportedMediaType:  {"unsupported_media_type", "Unsupported media type in request."},
	http.StatusRequestEntityTooLarge: {"payload_too_large", "The payload is too large."},
	http.StatusTooManyRequests:       {"throttled", "Request was throttled."},
}

// klaviyoErrors is an answer with an error for each pointer: where in the request it stands.
func klaviyoErrors(status int, detail string, pointers ...string) answer {
	words, known := klaviyoCodes[status]
	if !known {
		words = [2]string{"error", "A server error occurred."}
	}
	errs := make([]map[string]any, len(pointers))
	for i, pointer := range pointers {
		errs[i] = map[string]any{
			"id": fmt.Sprintf("752f7ece-af20-44e0-aa3a-%012d", i), "status": status, "code": words[0], "title": words[1], "detail": detail,
			"source": map[string]any{"pointer": pointer}, "links": map[string]any{}, "meta": map[string]any{},
		}
	}
	given := answerJSON(status, map[string]any{"errors": errs})
	given.contentType = klaviyoMediaType
	return given
}

// failKlaviyo words failures as JSON:API does.
func failKlaviyo(status int) answer { return klaviyoErrors(status, "The request failed.", "/data/") }

// klaviyoMember is one of JSON:API's objects around what it has.
type klaviyoMember[T any] struct {
	Data struct {
		Type       string `json:"type"`
		ID         string `json:"id"`
		Attributes T      `json:"attributes"`
	} `json:"data"`
}

type klaviyoMetric struct {
	Name    string `json:"name"`
	Service string `json:"service"`
}

// klaviyoProfile is what Klaviyo tells a person by. Weir sends nothing else of one.
type klaviyoProfile struct {
	ExternalID  string `json:"external_id"`
	AnonymousID string `json:"anonymous_id"`
	ExchangeID  string `json:"_kx"`
}

// klaviyoEvent is an event by itself; in a bulk job its profile stands beside it.
type klaviyoEvent struct {
	Metric        klaviyoMember[klaviyoMetric]   `json:"metric"`
	Properties    map[string]jsontext.Value      `json:"properties"`
	Time          string                         `json:"time"`
	Value         amount                         `json:"value"`
	ValueCurrency string                         `json:"value_currency"`
	UniqueID      string                         `json:"unique_id"`
	Backfill      bool                           `json:"backfill"`
	Profile       *klaviyoMember[klaviyoProfile] `json:"profile"`
}

// klaviyoJob is a bulk job: events by the profiles that they are of.
type klaviyoJob struct {
	Bulk struct {
		Data []struct {
			Type       string `json:"type"`
			Attributes struct {
				Backfill bool                          `json:"backfill"`
				Profile  klaviyoMember[klaviyoProfile] `json:"profile"`
				Events   struct {
					Data []struct {
						Type       string       `json:"type"`
						Attributes klaviyoEvent `json:"attributes"`
					} `json:"data"`
				} `json:"events"`
			} `json:"attributes"`
		} `json:"data"`
	} `json:"events-bulk-create"`
}

var (
	klaviyoRevision = regexp.MustCompile(`^202[2-9]-[01][0-9]-[0-3][0-9](\.pre)?$`)
	klaviyoCurrency = regexp.MustCompile(`^[A-Z]{3}$`)
)

// judgeKlaviyo takes all of a request or none, and says where in it what is wrong stands.
func judgeKlaviyo(q *request) answer {
	single := q.URL.Path == "/api/events"
	key, isKey := strings.CutPrefix(q.Header.Get("Authorization"), "Klaviyo-API-Key ")
	// The key says whose account it is.
	account := slices.IndexFunc(q.accounts, func(a Account) bool { return a.Platform.Klaviyo != nil && a.Credentials["apiKey"] == key })
	switch {
	case !single && q.URL.Path != "/api/event-bulk-create-jobs":
		return failKlaviyo(http.StatusNotFound).complain("no such address")
	case q.Method != http.MethodPost:
		return failKlaviyo(http.StatusMethodNotAllowed).complain("no such method")
	case !isKey || account < 0:
		return failKlaviyo(http.StatusUnauthorized).complain("the key is refused")
	case q.Header.Get("Content-Type") != klaviyoMediaType:
		return failKlaviyo(http.StatusUnsupportedMediaType).complain("the content type must be %s", klaviyoMediaType)
	case !klaviyoRevision.MatchString(q.Header.Get("Revision")):
		return klaviyoErrors(http.StatusBadRequest, "A valid revision header is required.", "/data/").complain("the revision is none of Klaviyo's")
	case len(q.body) > 5<<20:
		return failKlaviyo(http.StatusRequestEntityTooLarge).complain("a request has up to 5 MB")
	}
	q.platform = q.accounts[account].Platform.Name
	if single {
		return q.klaviyoSingle()
	}
	return q.klaviyoBulk()
}

func (q *request) klaviyoSingle() answer {
	body, problem := unmarshal[klaviyoMember[klaviyoEvent]](q.body, strict)
	if problem != "" || body.Data.Type != "event" {
		return failKlaviyo(http.StatusBadRequest).complain("%s", "the body is not of the form of an event")
	}
	in := &body.Data.Attributes
	if in.Profile == nil {
		return klaviyoErrors(http.StatusBadRequest, "'profile' is a required field.", "/data/attributes/profile").complain("profile is required")
	}
	e, pointer := q.klaviyoEvent(in, in.Profile)
	given := answer{status: http.StatusAccepted}
	if e.Refusal != "" {
		given = klaviyoErrors(http.StatusBadRequest, "Invalid input.", "/data/attributes"+pointer)
	}
	given.events = []Event{e}
	return given
}

func (q *request) klaviyoBulk() answer {
	body, problem := unmarshal[klaviyoMember[klaviyoJob]](q.body, strict)
	rows := body.Data.Attributes.Bulk.Data
	switch {
	case problem != "" || body.Data.Type != "event-bulk-create-job":
		return failKlaviyo(http.StatusBadRequest).complain("%s", "the body is not of the form of a bulk job")
	case len(rows) == 0 || len(rows) > 1000:
		return klaviyoErrors(http.StatusBadRequest, "A job has 1 to 1000 events.", "/data/attributes/events-bulk-create/data").complain("a job has 1 to 1000 events")
	}
	var events []Event
	var pointers []string
	seen := map[[3]string]bool{}
	for i := range rows {
		row := &rows[i].Attributes
		if rows[i].Type != "event-bulk-create" || len(row.Events.Data) != 1 || row.Events.Data[0].Type != "event" || row.Events.Data[0].Attributes.Profile != nil {
			return failKlaviyo(http.StatusBadRequest).complain("row %d is not of the form of a profile's event", i)
		}
		in := &row.Events.Data[0].Attributes
		e, pointer := q.klaviyoEvent(in, &row.Profile)
		profile := row.Profile.Data.Attributes
		once := [3]string{profile.ExternalID + "\n" + profile.AnonymousID + "\n" + profile.ExchangeID, e.Name, e.ID}
		if seen[once] {
			e.refuse("unique_id is repeated for the same profile and metric")
			pointer = "/unique_id"
		}
		seen[once] = true
		if e.Refusal != "" {
			where := "/events/data/0/attributes"
			if strings.HasPrefix(pointer, "/profile") {
				where = ""
			}
			pointers = append(pointers, fmt.Sprintf("/data/attributes/events-bulk-create/data/%d/attributes%s%s", i, where, pointer))
		}
		events = append(events, e)
	}
	given := answer{status: http.StatusAccepted}
	if len(pointers) > 0 {
		given = klaviyoErrors(http.StatusBadRequest, "Invalid input.", pointers...)
		for i := range events {
			events[i].refuse("another event of the job is refused")
		}
	}
	given.events = events
	return given
}

// klaviyoEvent checks an event and returns where what it is refused for stands, "" where it is not.
func (q *request) klaviyoEvent(in *klaviyoEvent, profile *klaviyoMember[klaviyoProfile]) (Event, string) {
	name := in.Metric.Data.Attributes.Name
	e := Event{Name: name, ID: in.UniqueID, Value: string(in.Value), Currency: in.ValueCurrency}
	at, err := time.Parse(time.RFC3339, in.Time)
	pointer := ""
	refuse := func(where, reason string) {
		pointer = where
		e.refuse(reason)
	}
	switch {
	case profile.Data.Type != "profile" || profile.Data.Attributes == (klaviyoProfile{}) && profile.Data.ID == "":
		refuse("/profile/data/attributes", "a profile must have an identifier")
	case utf8.RuneCountInString(profile.Data.Attributes.ExternalID) > 255:
		refuse("/profile/data/attributes/external_id", "external_id must have at most 255 characters")
	case in.Metric.Data.Type != "metric" || name == "" || utf8.RuneCountInString(name) >= 128:
		refuse("/metric/data/attributes/name", "a metric's name must have less than 128 characters")
	case in.Properties == nil || len(in.Properties) > 400 || q.refused[in.UniqueID]:
		refuse("/properties", "properties must be there, and at most 400")
	case err != nil || at.Year() < 1991 || at.After(q.now.AddDate(1, 0, 0)):
		refuse("/time", "time must be after 1990 and up to a year ahead")
	case in.ValueCurrency != "" && !klaviyoCurrency.MatchString(in.ValueCurrency):
		refuse("/value_currency", "value_currency must be a code of ISO 4217")
	case in.UniqueID == "":
		// Klaviyo would take the time, to the second: of two events in one it would keep the first.
		refuse("/unique_id", "unique_id must be there")
	}
	for name, value := range in.Properties {
		if len(value) > 100<<10 {
			refuse("/properties", name+" must have at most 100 KB")
		}
	}
	return e, pointer
}
