package fakes

import (
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/platforms"
)

// failGA4 has no body: Google Analytics says nothing.
func failGA4(status int) answer { return answer{status: status} }

// ga4Body knows what Google documents; the validation server refuses any other member.
type ga4Body struct {
	// ValidationBehavior is for the validation server: elsewhere it would have events refused in silence.
	ValidationBehavior string `json:"validation_behavior"`
	ClientID           string `json:"client_id"`
	TimestampMicros    int64  `json:"timestamp_micros"`
	Consent            struct {
		AdUserData        string `json:"ad_user_data"`
		AdPersonalization string `json:"ad_personalization"`
	} `json:"consent"`
	UserID   string `json:"user_id"`
	UserData struct {
		Email []string `json:"sha256_email_address"`
		Phone []string `json:"sha256_phone_number"`
	} `json:"user_data"`
	IPOverride string `json:"ip_override"`
	UserAgent  string `json:"user_agent"`
	Device     *struct {
		Language string `json:"language"`
	} `json:"device"`
	Events []ga4Event `json:"events"`
}

type ga4Event struct {
	Name   string    `json:"name"`
	Params ga4Params `json:"params"`
}

// ga4Params are Google's own with their types, and any others.
type ga4Params struct {
	TransactionID  string                    `json:"transaction_id"`
	Value          amount                    `json:"value"`
	Currency       string                    `json:"currency"`
	Tax            amount                    `json:"tax"`
	Shipping       amount                    `json:"shipping"`
	Coupon         string                    `json:"coupon"`
	SessionID      string                    `json:"session_id"`
	EngagementTime uint64                    `json:"engagement_time_msec"`
	PageLocation   string                    `json:"page_location"`
	PageReferrer   string                    `json:"page_referrer"`
	PageTitle      string                    `json:"page_title"`
	SearchTerm     string                    `json:"search_term"`
	ItemListID     string                    `json:"item_list_id"`
	ItemListName   string                    `json:"item_list_name"`
	DebugMode      bool                      `json:"debug_mode"`
	Items          []ga4Item                 `json:"items"`
	Own            map[string]jsontext.Value `json:",embed"`
	// count is of all.
	count int
}

// UnmarshalJSONFrom also counts the parameters.
func (p *ga4Params) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	text, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	var all map[string]jsontext.Value
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	type plain ga4Params
	p.count = len(all)
	return json.Unmarshal(text, (*plain)(p))
}

type ga4Item struct {
	ID        string `json:"item_id"`
	Name      string `json:"item_name"`
	Brand     string `json:"item_brand"`
	Variant   string `json:"item_variant"`
	Category  string `json:"item_category"`
	Category2 string `json:"item_category2"`
	Category3 string `json:"item_category3"`
	Category4 string `json:"item_category4"`
	Category5 string `json:"item_category5"`
	Price     amount `json:"price"`
	Discount  amount `json:"discount"`
	Quantity  amount `json:"quantity"`
}

// ga4Message is what the validation server says of an error.
type ga4Message struct {
	FieldPath      string `json:"fieldPath"`
	Description    string `json:"description"`
	ValidationCode string `json:"validationCode"`
}

// judgeGA4 answers everything with success, as Google Analytics does, and checks as its validation server does,
// which is there as well. What is invalid, or comes with another secret, is not counted.
func judgeGA4(q *request) answer {
	if q.Method != http.MethodPost || (q.URL.Path != "/mp/collect" && q.URL.Path != "/debug/mp/collect") {
		return failGA4(http.StatusNotFound).complain("no such address")
	}
	body, problem := unmarshal[ga4Body](q.body, strict)
	var messages []ga4Message
	if problem != "" {
		messages = []ga4Message{{"", problem, "VALUE_INVALID"}}
	} else {
		messages = q.ga4Errors(&body)
	}
	if strings.HasPrefix(q.URL.Path, "/debug/") {
		given := answerJSON(http.StatusOK, map[string]any{"validationMessages": messages})
		given.test = true
		return given
	}
	given := answer{status: http.StatusNoContent}
	query := q.URL.Query()
	account := q.account(func(p platforms.Platform) bool {
		return p.GA4 != nil && p.GA4.MeasurementID == query.Get("measurement_id")
	})
	switch {
	case account == nil:
		return given.complain("no data stream of that measurement_id; Google Analytics does not say so")
	case query.Get("api_secret") != account.Credentials["apiSecret"]:
		return given.complain("another api_secret; Google Analytics does not say so")
	case body.ValidationBehavior != "":
		return given.complain("validation_behavior belongs to the validation server")
	}
	for i := range body.Events {
		e := ga4EventOf(&body, &body.Events[i])
		if len(messages) > 0 {
			e.refuse(messages[0].FieldPath + " " + messages[0].Description + "; Google Analytics does not say so")
		}
		given.events = append(given.events, e)
	}
	if problem != "" {
		given.complaint = problem
	}
	return given
}

func ga4EventOf(body *ga4Body, in *ga4Event) Event {
	e := Event{Name: in.Name, ID: in.Params.TransactionID, Value: string(in.Params.Value), Currency: in.Params.Currency}
	if e.ID == "" { // nothing else to tell a repeat by
		e.ID = body.ClientID + " " + in.Name + " " + strconv.FormatInt(body.TimestampMicros, 10)
	}
	for _, purpose := range []struct{ name, word string }{
		{"ad_user_data", body.Consent.AdUserData}, {"ad_personalization", body.Consent.AdPersonalization},
	} {
		if purpose.word == "DENIED" {
			e.Limited = strings.TrimSpace(e.Limited + " " + purpose.name)
		}
	}
	for field, hashes := range map[string][]string{"sha256_email_address": body.UserData.Email, "sha256_phone_number": body.UserData.Phone} {
		if len(hashes) > 0 {
			if e.Hashes == nil {
				e.Hashes = map[string][]string{}
			}
			e.Hashes[field] = hashes
		}
	}
	return e
}

// ga4Errors lists what is wrong with a request as the validation server would.
func (q *request) ga4Errors(body *ga4Body) []ga4Message {
	var all []ga4Message
	refuse := func(field, description, code string) { all = append(all, ga4Message{field, description, code}) }
	if body.ClientID == "" {
		refuse("client_id", "must not be empty", "VALUE_REQUIRED")
	}
	if len(body.Events) == 0 || len(body.Events) > 25 {
		refuse("events", "must be 1 to 25", "EXCEEDED_MAX_ENTITIES")
	}
	if len(q.body) > 130_000 {
		refuse("", "the body must be at most 130 kB", "VALUE_OUT_OF_BOUNDS")
	}
	if at := time.UnixMicro(body.TimestampMicros); q.now.Sub(at) > 72*time.Hour || at.After(q.now.Add(time.Minute)) {
		refuse("timestamp_micros", "must be within the last 72 hours", "VALUE_OUT_OF_BOUNDS")
	}
	if body.Consent.AdUserData == "DENIED" && (len(body.UserData.Email) > 0 || len(body.UserData.Phone) > 0) {
		refuse("user_data", "must be absent where ad_user_data is denied", "VALUE_INVALID")
	}
	for _, word := range []string{body.Consent.AdUserData, body.Consent.AdPersonalization} {
		if !slices.Contains([]string{"", "GRANTED", "DENIED"}, word) {
			refuse("consent", "must be GRANTED or DENIED", "VALUE_INVALID")
		}
	}
	if _, err := netip.ParseAddr(body.IPOverride); body.IPOverride != "" && err != nil {
		refuse("ip_override", "must be an IP address", "VALUE_INVALID")
	}
	if len(body.UserID) > 256 {
		refuse("user_id", "must be at most 256 characters", "VALUE_OUT_OF_BOUNDS")
	}
	if body.Device != nil && body.UserAgent != "" {
		refuse("device", "stands in the way of user_agent", "VALUE_INVALID")
	}
	all = append(all, q.ga4UserErrors(body)...)
	for i := range body.Events {
		in := &body.Events[i]
		all = slices.Concat(all, ga4NameErrors(in.Name), ga4MoneyErrors(in), ga4TextErrors(&in.Params), ga4ParamErrors(&in.Params))
	}
	return all
}

func (q *request) ga4UserErrors(body *ga4Body) []ga4Message {
	var all []ga4Message
	for field, hashes := range map[string][]string{"sha256_email_address": body.UserData.Email, "sha256_phone_number": body.UserData.Phone} {
		for _, hash := range hashes {
			if wrong := q.checkHash(field, hash); wrong != "" {
				all = append(all, ga4Message{"user_data." + field, wrong, "VALUE_INVALID"})
			}
		}
		if len(hashes) > 3 {
			all = append(all, ga4Message{"user_data." + field, "must be at most 3", "EXCEEDED_MAX_ENTITIES"})
		}
	}
	if body.UserID == "" && len(body.UserData.Email)+len(body.UserData.Phone) > 0 {
		all = append(all, ga4Message{"user_data", "must come with a user_id", "VALUE_REQUIRED"})
	}
	return all
}

var (
	ga4EventName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,39}$`)
	ga4Number    = regexp.MustCompile(`^[0-9]+$`)
	ga4Currency  = regexp.MustCompile(`^[A-Z]{3}$`)
	ga4Kept      = regexp.MustCompile(`^(ad_(activeview|click|exposure|impression|query|reward)|adunit_exposure|` +
		`app_(background|clear_data|exception|install|remove|store_(refund|subscription_(cancel|convert|renew))|uninstall|update|upgrade)|` +
		`click|dynamic_link_(app_open|app_update|first_open)|error|fiam_(action|dismiss|impression)|file_download|first_(open|visit)|` +
		`form_(start|submit)|in_app_purchase|notification_(dismiss|foreground|open|receive|send)|os_update|screen_view|scroll|` +
		`session_start(_with_rollout)?|user_engagement|video_(complete|progress|start)|view_complete|view_search_results)$`)
)

// ga4Keeps says whether a name begins as only Google's own do.
func ga4Keeps(name string) bool {
	return slices.ContainsFunc([]string{"_", "firebase_", "ga_", "google_", "gtag."}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func ga4NameErrors(name string) []ga4Message {
	switch {
	case !ga4EventName.MatchString(name):
		return []ga4Message{{"events.name", "must be a letter and up to 39 letters, digits and underscores", "NAME_INVALID"}}
	case ga4Keeps(name) || ga4Kept.MatchString(name):
		return []ga4Message{{"events.name", "is reserved", "NAME_RESERVED"}}
	}
	return nil
}

func ga4MoneyErrors(in *ga4Event) []ga4Message {
	var all []ga4Message
	refuse := func(param, description, code string) {
		all = append(all, ga4Message{"events.params." + param, description, code})
	}
	p := &in.Params
	if (in.Name == "purchase" || in.Name == "refund") && p.TransactionID == "" {
		refuse("transaction_id", "is required", "VALUE_REQUIRED")
	}
	if in.Name == "purchase" && p.Value == "" {
		refuse("value", "is required", "VALUE_REQUIRED")
	}
	if (p.Value != "" || p.Tax != "" || p.Shipping != "") && p.Currency == "" {
		refuse("currency", "is required with amounts", "VALUE_REQUIRED")
	}
	if p.Currency != "" && !ga4Currency.MatchString(p.Currency) {
		refuse("currency", "must be an ISO 4217 code in capitals", "VALUE_INVALID")
	}
	return all
}

func ga4TextErrors(p *ga4Params) []ga4Message {
	texts := map[string]int{p.TransactionID: 100, p.PageLocation: 1000, p.PageReferrer: 420, p.PageTitle: 300}
	for _, text := range []string{p.Coupon, p.SearchTerm, p.ItemListID, p.ItemListName} {
		texts[text] = 100
	}
	for _, item := range p.Items {
		for _, text := range []string{
			item.ID, item.Name, item.Brand, item.Variant, item.Category, item.Category2, item.Category3, item.Category4, item.Category5,
		} {
			texts[text] = 100
		}
	}
	var all []ga4Message
	for text, most := range texts {
		if utf8.RuneCountInString(text) > most {
			all = append(all, ga4Message{"events.params", "a text is too long", "VALUE_OUT_OF_BOUNDS"})
		}
	}
	return all
}

func ga4ParamErrors(p *ga4Params) []ga4Message {
	var all []ga4Message
	refuse := func(field, description, code string) { all = append(all, ga4Message{field, description, code}) }
	if p.SessionID != "" && !ga4Number.MatchString(p.SessionID) {
		refuse("events.params.session_id", "must be digits", "VALUE_INVALID")
	}
	if p.count > 25 {
		refuse("events.params", "must be at most 25", "EXCEEDED_MAX_ENTITIES")
	}
	for name, value := range p.Own {
		if wrong := ga4OwnParam(name, value); wrong != "" {
			refuse("events.params."+name, wrong, "NAME_INVALID")
		}
	}
	if len(p.Items) > 200 {
		refuse("events.params.items", "must be at most 200", "EXCEEDED_MAX_ENTITIES")
	}
	for _, item := range p.Items {
		if item.ID == "" && item.Name == "" {
			refuse("events.params.items", "need item_id or item_name", "VALUE_REQUIRED")
		}
	}
	return all
}

// ga4OwnParam says what is wrong with a parameter of the customer's own, "" where nothing is.
func ga4OwnParam(name string, value jsontext.Value) string {
	text, problem := unmarshal[string](value)
	switch {
	case !ga4EventName.MatchString(name):
		return "must be a letter and up to 39 letters, digits and underscores"
	case ga4Keeps(name):
		return "is reserved"
	case value.Kind() == '0':
		return ""
	case problem != "" || text == "" || utf8.RuneCountInString(text) > 100:
		return "must be a number, or a text of up to 100 characters"
	}
	return ""
}
