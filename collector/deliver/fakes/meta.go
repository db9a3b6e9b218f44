package fakes

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

type metaError struct {
	Message     string `json:"message"`
	Type        string `json:"type"`
	Code        int    `json:"code"`
	Subcode     int    `json:"error_subcode,omitzero"`
	IsTransient bool   `json:"is_transient"`
	TraceID     string `json:"fbtrace_id"`
}

func metaRefuses(status, code, subcode int, message string) answer {
	return answerJSON(status, map[string]metaError{"error": {
		Message: message, Type: "OAuthException", Code: code, Subcode: subcode, IsTransient: code == 2, TraceID: "AfakeFakeFake",
	}})
}

// failMeta words failures as the Graph API does, whose statuses say little.
func failMeta(status int) answer {
	switch {
	case status == http.StatusBadRequest:
		return metaRefuses(status, 100, 2804019, "Invalid parameter")
	case status == http.StatusUnauthorized:
		return metaRefuses(http.StatusBadRequest, 190, 0, "Invalid OAuth access token")
	case status == http.StatusForbidden:
		return metaRefuses(status, 200, 0, "Permissions error")
	case status == http.StatusTooManyRequests:
		return metaRefuses(http.StatusBadRequest, 4, 0, "Application request limit reached")
	case status >= 500:
		return metaRefuses(status, 2, 0, "Service temporarily unavailable")
	}
	return answer{status: status}
}

type metaEvent struct {
	Name         string         `json:"event_name"`
	Time         int64          `json:"event_time"`
	ID           string         `json:"event_id"`
	ActionSource string         `json:"action_source"`
	URL          string         `json:"event_source_url"`
	User         map[string]any `json:"user_data"`
	Custom       struct {
		Value    amount `json:"value"`
		Currency string `json:"currency"`
		Contents []struct {
			ID        string `json:"id"`
			Quantity  amount `json:"quantity"`
			ItemPrice amount `json:"item_price"`
			Title     string `json:"title"`
			Brand     string `json:"brand"`
			Category  string `json:"category"`
		} `json:"contents"`
		OrderID     string   `json:"order_id"`
		ContentName string   `json:"content_name"`
		ContentType string   `json:"content_type"`
		ContentIDs  []string `json:"content_ids"`
		NumItems    int64    `json:"num_items"`
		Search      string   `json:"search_string"`
	} `json:"custom_data"`
	// These come together or not at all.
	Options *[]string `json:"data_processing_options"`
	Country *int      `json:"data_processing_options_country"`
	State   *int      `json:"data_processing_options_state"`
}

// checkOptions looks whether Meta understands how the event is to be processed: without limit, or for its customer alone in
// a state of America's, which Meta tells by itself for 0.
func (m *metaEvent) checkOptions(e *Event) {
	switch {
	case m.Options == nil && m.Country == nil && m.State == nil, m.Options != nil && len(*m.Options) == 0:
	case m.Options == nil || !slices.Equal(*m.Options, []string{"LDU"}):
		e.refuse("data_processing_options must be [] or LDU")
	case m.Country == nil || m.State == nil:
		e.refuse("data_processing_options need a country and a state")
	case (*m.Country != 0 || *m.State != 0) && (*m.Country != 1 || *m.State != 0 && (*m.State < 1000 || *m.State > 1099)):
		e.refuse("data_processing_options_country and _state must be 0, or 1 and a state's code")
	default:
		e.Limited = "LDU"
	}
}

var metaPath = regexp.MustCompile(`^/(v[0-9]+\.[0-9]+)/([0-9]+)/events$`)

var metaSources = []string{
	"email", "website", "app", "phone_call", "chat", "physical_store", "system_generated", "business_messaging", "other",
}

// metaVersionEnded is the code for a version that Meta takes no longer: of the Conversions API none is led on to a later one.
const metaVersionEnded = 2635

// judgeMeta refuses all events of a request for the sake of one.
func judgeMeta(q *request) answer {
	path := metaPath.FindStringSubmatch(q.URL.Path)
	if path == nil || q.Method != http.MethodPost {
		return metaRefuses(http.StatusBadRequest, 100, 33, "Unsupported request").complain("no such address")
	}
	if ends := platforms.TypeMeta.Version(path[1]).Ends; !ends.IsZero() && !q.now.Before(ends) {
		return metaRefuses(http.StatusBadRequest, metaVersionEnded, 0, "You are calling a deprecated version of the Ads API").complain("Meta takes %s no longer", path[1])
	}
	account := q.account(func(p platforms.Platform) bool { return p.Meta != nil && p.Meta.PixelID == path[2] })
	switch {
	case account == nil:
		return metaRefuses(http.StatusBadRequest, 100, 33, "Object does not exist").complain("no pixel of that id")
	case q.URL.RawQuery != "":
		// Meta itself takes the token there, and what else it has as parameters; Weir has no use for any.
		return failMeta(http.StatusUnauthorized).complain("the token belongs into the header Authorization, and nothing into the query")
	case q.Header.Get("Authorization") != "Bearer "+account.Credentials["accessToken"]:
		return failMeta(http.StatusUnauthorized).complain("the token is refused")
	}
	body, problem := unmarshal[struct {
		Data          []metaEvent `json:"data"`
		TestEventCode *string     `json:"test_event_code"`
	}](q.body)
	switch {
	case problem != "" || !q.isJSON():
		return failMeta(http.StatusBadRequest).complain("the body is not of the platform's form")
	case len(body.Data) == 0 || len(body.Data) > 1000:
		return failMeta(http.StatusBadRequest).complain("a request holds 1 to 1000 events")
	case body.TestEventCode != nil && !platforms.IsTestCode(*body.TestEventCode):
		return failMeta(http.StatusBadRequest).complain("test_event_code is no code of the Events Manager")
	}
	worst, events := 0, make([]Event, len(body.Data))
	for i := range body.Data {
		var subcode int
		events[i], subcode = q.metaEvent(&body.Data[i])
		if worst == 0 {
			worst = subcode
		}
	}
	if worst == 0 {
		given := answerJSON(http.StatusOK, map[string]any{"events_received": len(events), "messages": []string{}, "fbtrace_id": "AfakeFakeFake"})
		given.events, given.test = events, body.TestEventCode != nil
		return given
	}
	for i := range events {
		events[i].refuse("another event of its request is refused")
	}
	given := metaRefuses(http.StatusBadRequest, 100, worst, "Invalid parameter")
	given.events, given.test = events, body.TestEventCode != nil
	return given
}

// metaEvent checks an event and returns the subcode by which it is refused, 0 where it is not.
func (q *request) metaEvent(in *metaEvent) (Event, int) {
	e := Event{Name: in.Name, ID: in.ID, Value: string(in.Custom.Value), Currency: in.Custom.Currency}
	in.checkOptions(&e)
	q.checkMetaUser(&e, in.User)
	if e.Refusal != "" {
		return e, 2804019
	}
	website, app := in.ActionSource == "website", in.ActionSource == "app"
	q.checkAge(&e, time.Unix(in.Time, 0), 7*24*time.Hour, time.Minute)
	switch {
	case e.Refusal != "":
		return e, 2804003
	case in.Name == "" || in.ID == "" || q.refused[in.ID] || !slices.Contains(metaSources, in.ActionSource):
		e.refuse("event_name, event_id and action_source must be valid")
		return e, 2804019
	case website && (in.URL == "" || in.User["client_user_agent"] == nil):
		e.refuse("website events need event_source_url and client_user_agent")
		return e, 2804019
	case app:
		e.refuse("events of apps need app_data")
		return e, 2804019
	case in.Name == "Purchase" && (in.Custom.Value == "" || in.Custom.Currency == ""):
		e.refuse("a Purchase needs value and currency")
		return e, 2804009
	}
	for _, content := range in.Custom.Contents {
		if content.ID == "" {
			e.refuse("contents need an id")
			return e, 2804019
		}
	}
	if !metaIdentifies(in.User) {
		e.refuse("not enough customer data")
		return e, 2804050
	}
	return e, 0
}

// metaHashes are the members of user_data that hold hashes, metaPlain those that do not.
var (
	metaHashes = []string{"em", "ph", "fn", "ln", "ct", "st", "zp", "country", "db", "ge", "external_id"}
	metaPlain  = []string{"client_ip_address", "client_user_agent", "fbc", "fbp"}
	metaClick  = regexp.MustCompile(`^fb\.[0-9]\.[0-9]{10,13}\..+$`)
)

func (q *request) checkMetaUser(e *Event, user map[string]any) {
	for field, value := range user {
		text, isText := value.(string)
		switch {
		case slices.Contains(metaPlain, field):
			if !isText || text == "" || (field == "fbc" || field == "fbp") && !metaClick.MatchString(text) {
				e.refuse(field + " must be a text of its form")
			}
		case !slices.Contains(metaHashes, field):
			e.refuse(field + " is none of user_data's members")
		default:
			q.checkMetaHashes(e, field, value)
		}
	}
}

func (q *request) checkMetaHashes(e *Event, field string, value any) {
	hashes, isList := value.([]any)
	if !isList || len(hashes) == 0 {
		e.refuse(field + " must be a list")
	}
	for _, hash := range hashes {
		text, _ := hash.(string)
		// Meta's own libraries put a point and eight characters behind the hash.
		if before, appendix, found := strings.Cut(text, "."); found && len(appendix) == 8 {
			text = before
		}
		if text == "" {
			text = "none"
		}
		if field == "ge" && text == metaNoGender {
			e.refuse("ge must be f or m")
		}
		q.checkHashes(e, field, text)
	}
}

// metaNoGender is the SHA-256 of n, which Meta does not know.
const metaNoGender = "1b16b1df538ba12dc3f97edbb85caa7050d46c148134290feba80f8236c83db9"

// metaTooLittle are the combinations of which Meta refuses each, and each part of one.
var metaTooLittle = [][]string{
	{"ct", "country", "st", "zp", "ge", "client_user_agent"}, {"db", "client_user_agent"}, {"fn", "ge"}, {"ln", "ge"},
}

// metaIdentifies says whether the data hold more than what Meta finds too little.
func metaIdentifies(user map[string]any) bool {
	return !slices.ContainsFunc(metaTooLittle, func(combination []string) bool {
		for field := range user {
			if !slices.Contains(combination, field) {
				return false
			}
		}
		return true
	})
}
