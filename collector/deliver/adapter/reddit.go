package adapter

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const redditBaseURL = "https://ads-api.reddit.com"

// redditAdapter sends events to Reddit's Conversions API.
type redditAdapter struct {
	url, token string
	// head opens the body, up to the list of events; test says that they are test events.
	head string
	test bool
}

func openReddit(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	head := `{"data":{"events":[`
	if cfg.Reddit.TestID != "" {
		head = `{"data":{"test_id":"` + cfg.Reddit.TestID + `","events":[` // the setting's pattern takes nothing to escape
	}
	return &redditAdapter{
		url: baseURL(cfg, redditBaseURL) + "/api/" + apiVersion(cfg) + "/pixels/" + url.PathEscape(cfg.Reddit.PixelID) +
			"/conversion_events",
		token: credentials["accessToken"], head: head, test: cfg.Reddit.TestID != "",
	}, nil
}

// narrow has test events sent one by one: of several in a request Reddit shows one.
func (a *redditAdapter) narrow(limits platforms.Limits) platforms.Limits {
	if a.test {
		limits.Events = 1
	}
	return limits
}

const redditCustom = "CUSTOM"

// redditNames are Reddit's standard events. Another name is sent as it is, as a custom event.
var redditNames = newStandardNames(map[string]string{
	"pageview":        "PAGE_VISIT",
	"view_content":    "VIEW_CONTENT",
	"search":          "SEARCH",
	"add_to_cart":     "ADD_TO_CART",
	"add_to_wishlist": "ADD_TO_WISHLIST",
	"purchase":        "PURCHASE",
	"lead":            "LEAD",
	"sign_up":         "SIGN_UP",
})

var (
	redditStandard = setOf(slices.Collect(maps.Values(redditNames.standard))...)
	// redditValued are the events that Reddit takes a value of, redditCounted those that it takes a number of items of.
	redditValued  = setOf("ADD_TO_CART", "ADD_TO_WISHLIST", "PURCHASE", "LEAD", "SIGN_UP", redditCustom)
	redditCounted = setOf("ADD_TO_CART", "ADD_TO_WISHLIST", "PURCHASE", redditCustom)
)

// redditLongestName is how many characters a custom event's name may have.
const redditLongestName = 64

type redditEvent struct {
	EventAt        int64          `json:"event_at"`
	ActionSource   string         `json:"action_source"`
	EventSourceURL string         `json:"event_source_url,omitzero"`
	ClickID        string         `json:"click_id,omitzero"`
	Type           redditType     `json:"type"`
	User           redditUser     `json:"user,omitzero"`
	Metadata       redditMetadata `json:"metadata"`
}

type redditType struct {
	TrackingType    string `json:"tracking_type"`
	CustomEventName string `json:"custom_event_name,omitzero"`
}

type redditUser struct {
	Email       string `json:"email,omitzero"`
	PhoneNumber string `json:"phone_number,omitzero"`
	ExternalID  string `json:"external_id,omitzero"`
	IPAddress   string `json:"ip_address,omitzero"`
	UserAgent   string `json:"user_agent,omitzero"`
	// Processing asks Reddit to process the event for its customer alone.
	Processing *redditProcessing `json:"data_processing_options,omitzero"`
}

type redditProcessing struct {
	Modes   []string `json:"modes"`
	Country string   `json:"country"`
}

// redditLimited is limited data use. Reddit wants a country with it: that whose states have the laws that such opt-outs are under.
var redditLimited = &redditProcessing{Modes: []string{"LDU"}, Country: "US"}

// identifies says whether Reddit can match an event with these data to anybody.
func (u *redditUser) identifies() bool {
	return u.Email != "" || u.PhoneNumber != "" || u.ExternalID != "" || (u.IPAddress != "" && u.UserAgent != "")
}

type redditMetadata struct {
	ConversionID string          `json:"conversion_id"`
	Value        *event.Amount   `json:"value,omitzero"`
	Currency     string          `json:"currency,omitzero"`
	ItemCount    int64           `json:"item_count,omitzero"`
	Products     []redditProduct `json:"products,omitempty"`
}

type redditProduct struct {
	ID        string        `json:"id"`
	Name      string        `json:"name,omitzero"`
	Category  string        `json:"category,omitzero"`
	Quantity  int64         `json:"quantity"`
	ItemPrice *event.Amount `json:"item_price,omitzero"`
}

func (a *redditAdapter) Map(e *Event) (Payload, Verdict) {
	name, reason := redditNames.of(e, e.Name)
	kind := redditType{TrackingType: name}
	if !redditStandard[name] {
		kind = redditType{TrackingType: redditCustom, CustomEventName: name}
	}
	if reason == "" && utf8.RuneCountInString(kind.CustomEventName) > redditLongestName {
		reason = "no_mapping" // cut, two names could become one
	}
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	out := redditEvent{
		EventAt: e.Time().UnixMilli(), ActionSource: redditSource(e.Context.ActionSource), Type: kind,
		User: redditUser{
			Email:       first(e.contacts(event.EmailAlnum, 1)),
			PhoneNumber: first(e.contacts(event.PhoneE164, 1)),
			ExternalID:  first(e.externalIDs()),
		},
		Metadata: redditMetadataOf(e, kind.TrackingType),
	}
	if out.ActionSource == redditWebsite {
		out.EventSourceURL = e.Context.PageURL
	}
	if out.ActionSource != redditStore { // for which Reddit wants nothing of a device
		out.ClickID = e.Context.ClickIDs["rdt_cid"]
		out.User.IPAddress, out.User.UserAgent = publicIP(e.Context.IP), e.Context.UserAgent
	}
	if out.ClickID == "" && !out.User.identifies() {
		return Payload{}, Skip("no_identifier")
	}
	if e.limited.Has(consent.Sale) {
		out.User.Processing = redditLimited
	}
	return bodyPayload(out)
}

const (
	redditWebsite = "WEBSITE"
	redditStore   = "PHYSICAL_STORE"
)

// redditSource is where the event happened, in Reddit's words.
func redditSource(source event.ActionSource) string {
	switch source {
	case event.OnWebsite, event.NoActionSource:
		return redditWebsite
	case event.InApp:
		return "APP"
	case event.InPhysicalStore:
		return redditStore
	}
	return "OTHER"
}

// redditMetadataOf leaves out what Reddit refuses for the kind of event, and with it the batch.
func redditMetadataOf(e *Event, kind string) redditMetadata {
	goods := goodsOf(e, takes{}) // Reddit needs an item's id
	metadata := redditMetadata{ConversionID: e.DedupID()}
	if redditValued[kind] && goods.Value != nil {
		metadata.Value, metadata.Currency = goods.Value, goods.Currency
	}
	var pieces int64
	for _, item := range goods.Items {
		product := redditProduct{ID: item.ID, Name: item.Name, Category: item.Category, Quantity: item.Quantity}
		if metadata.Currency != "" { // the currency of the prices too
			product.ItemPrice = item.Price
		}
		metadata.Products = append(metadata.Products, product)
		pieces += item.Quantity
	}
	if redditCounted[kind] {
		metadata.ItemCount = pieces
	}
	if len(metadata.Products) == 0 && e.ContentID != "" {
		metadata.Products = []redditProduct{{ID: e.ContentID, Name: e.ContentName, Quantity: 1}}
	}
	return metadata
}

func (a *redditAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Authorization", "Bearer "+a.token)
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies(a.head, batch, []byte("]}}"))}
}

// redditAnswer is what of an answer has a meaning for us.
type redditAnswer struct {
	// Data is there in a success.
	Data *struct {
		Message string `json:"message"`
	} `json:"data"`
	// InvalidEvents are what the version before this one answers.
	InvalidEvents []jsontext.Value `json:"invalid_events"`
	Error         *redditError     `json:"error"`
}

// redditError has in its message how many events are wrong, and for each of them fields that are.
type redditError struct {
	Message string `json:"message"`
	Fields  []struct {
		Field string `json:"field"`
	} `json:"fields"`
}

// Classify goes by the fields that a refusal names: Reddit takes all of a request's events or none.
func (a *redditAdapter) Classify(r Response, n int) []Verdict {
	var answer redditAnswer
	err := json.Unmarshal(r.Body, &answer)
	success := r.Status >= 200 && r.Status < 300
	switch {
	case success && err == nil && (answer.Error != nil || len(answer.InvalidEvents) > 0):
		return forAll(n, refused(n, "refused"))
	case success && (err != nil || answer.Data == nil):
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	case success:
		return forAll(n, Verdict{Class: Delivered})
	case isHTML(r) && r.Status >= 400:
		return forAll(n, Verdict{Class: Retry, Reason: "http_" + strconv.Itoa(r.Status)})
	case r.Status == http.StatusBadRequest && err == nil && answer.Error != nil:
		return classifyRedditError(answer.Error, n)
	default:
		return forAll(n, classifyStatus(r, n))
	}
}

var (
	redditInvalid = regexp.MustCompile(`^There were ([0-9]+) invalid conversion events\. None were processed`)
	redditField   = regexp.MustCompile(`^\$\.data\.events\[([0-9]+)\](\.event_at)?`)
)

// classifyRedditError marks the events that a refusal names; the others are sent again without these. Where it does not name as many
// as it says are wrong, each is sent again alone.
func classifyRedditError(refusal *redditError, n int) []Verdict {
	unclear := forAll(n, refused(n, "http_400"))
	stated := redditInvalid.FindStringSubmatch(refusal.Message)
	if stated == nil {
		return unclear
	}
	verdicts := forAll(n, Verdict{Class: Retry, Reason: "batch_refused"})
	named := map[int]bool{}
	for _, wrong := range refusal.Fields {
		field := redditField.FindStringSubmatch(wrong.Field)
		if field == nil {
			return unclear
		}
		i, err := strconv.Atoi(field[1])
		if err != nil || i >= n {
			return unclear
		}
		named[i] = true
		if field[2] != "" {
			verdicts[i] = Verdict{Class: Permanent, Reason: "time_refused"}
		} else if verdicts[i].Class == Retry {
			verdicts[i] = Verdict{Class: Permanent, Reason: "refused"}
		}
	}
	if strconv.Itoa(len(named)) != stated[1] || len(named) == 0 {
		return unclear
	}
	return verdicts
}
