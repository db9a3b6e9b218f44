package adapter

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const metaBaseURL = "https://graph.facebook.com"

// metaAdapter sends events to Meta's Conversions API.
type metaAdapter struct {
	url, authorization string
	// tail closes the body, behind the list of events.
	tail []byte
}

func openMeta(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	tail := []byte("]}")
	if cfg.Meta.TestEventCode != "" {
		tail = []byte(`],"test_event_code":"` + cfg.Meta.TestEventCode + `"}`) // the setting's pattern takes nothing to escape
	}
	return &metaAdapter{
		url: baseURL(cfg, metaBaseURL) + "/" + apiVersion(cfg) + "/" + url.PathEscape(cfg.Meta.PixelID) + "/events",
		// Meta takes the token in the address too, which proxies and logs on the way may keep.
		authorization: "Bearer " + credentials["accessToken"],
		tail:          tail,
	}, nil
}

// metaNames are Meta's standard events, which are told apart by case. Another name is sent as it is, as a custom event.
var metaNames = newStandardNames(map[string]string{
	"pageview":           "PageView",
	"view_content":       "ViewContent",
	"search":             "Search",
	"add_to_cart":        "AddToCart",
	"begin_checkout":     "InitiateCheckout",
	"add_payment_info":   "AddPaymentInfo",
	"purchase":           "Purchase",
	"lead":               "Lead",
	"sign_up":            "CompleteRegistration",
	"subscribe":          "Subscribe",
	"add_to_wishlist":    "AddToWishlist",
	"start_trial":        "StartTrial",
	"contact":            "Contact",
	"schedule":           "Schedule",
	"find_location":      "FindLocation",
	"submit_application": "SubmitApplication",
	"customize_product":  "CustomizeProduct",
	"donate":             "Donate",
})

type metaEvent struct {
	EventName      string          `json:"event_name"`
	EventTime      int64           `json:"event_time"`
	EventID        string          `json:"event_id"`
	ActionSource   string          `json:"action_source"`
	EventSourceURL string          `json:"event_source_url,omitzero"`
	UserData       metaUserData    `json:"user_data"`
	CustomData     *metaCustomData `json:"custom_data,omitzero"`
	*metaDataProcessing
}

// metaDataProcessing asks Meta to process an event for its customer alone.
type metaDataProcessing struct {
	Options []string `json:"data_processing_options"`
	Country int      `json:"data_processing_options_country"`
	State   int      `json:"data_processing_options_state"`
}

// metaLimitedDataUse leaves it to Meta to tell the country and the state, which 0 stands for.
var metaLimitedDataUse = &metaDataProcessing{Options: []string{"LDU"}}

type metaUserData struct {
	personData
	FBC string `json:"fbc,omitzero"`
	FBP string `json:"fbp,omitzero"`
}

// identifies says whether Meta takes an event with these data. A name is enough with a place or a date of birth; names,
// places, a gender or a user agent by themselves are not.
func (u *metaUserData) identifies() bool {
	named := len(u.FirstName) > 0 && len(u.LastName) > 0
	placed := len(u.City) > 0 || len(u.State) > 0 || len(u.Zip) > 0 || len(u.DateOfBirth) > 0
	return len(u.Email) > 0 || len(u.Phone) > 0 || len(u.ExternalID) > 0 || u.ClientIPAddress != "" || u.FBC != "" || u.FBP != "" ||
		named && placed
}

type metaCustomData struct {
	Value       *event.Amount `json:"value,omitzero"`
	Currency    string        `json:"currency,omitzero"`
	OrderID     string        `json:"order_id,omitzero"`
	ContentType string        `json:"content_type,omitzero"`
	ContentName string        `json:"content_name,omitzero"`
	ContentIDs  []string      `json:"content_ids,omitempty"`
	Contents    []metaContent `json:"contents,omitempty"`
	NumItems    int64         `json:"num_items,omitzero"`
	Search      string        `json:"search_string,omitzero"`
}

type metaContent struct {
	ID        string        `json:"id"`
	Quantity  int64         `json:"quantity"`
	ItemPrice *event.Amount `json:"item_price,omitzero"`
	Title     string        `json:"title,omitzero"`
	Brand     string        `json:"brand,omitzero"`
	Category  string        `json:"category,omitzero"`
}

func (a *metaAdapter) Map(e *Event) (Payload, Verdict) {
	name, reason := metaNames.of(e, e.Name)
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	user := metaUser(e)
	if !user.identifies() {
		return Payload{}, Skip("no_identifier")
	}
	out := metaEvent{
		EventName:    name,
		EventTime:    e.Time().Unix(),
		EventID:      e.DedupID(),
		ActionSource: metaSource(&e.Context),
		UserData:     user,
		CustomData:   metaCustom(e),
	}
	if out.ActionSource == metaWebsite {
		out.EventSourceURL = e.Context.PageURL
	}
	if e.limited.Has(consent.Sale) {
		out.metaDataProcessing = metaLimitedDataUse
	}
	return bodyPayload(out)
}

const metaWebsite = "website"

// metaSource is where the event happened, in Meta's words: what the caller says, else a website's where there is a page. Meta
// refuses website events that lack the page or the user agent, and those of apps without data of the device that an envelope
// does not have: both happened elsewhere.
func metaSource(c *event.Context) string {
	switch c.ActionSource {
	case event.ByPhoneCall, event.InPhysicalStore, event.ByEmail, event.InChat:
		return c.ActionSource.String()
	case event.OnWebsite, event.NoActionSource:
		if c.UserAgent != "" && c.PageURL != "" {
			return metaWebsite
		}
	}
	return "other"
}

// The forms of Meta's cookies: fb, the level of the domain, when it was made in milliseconds, and the click or a random number.
// Meta's own libraries add what made it, behind a dot.
var (
	metaClickCookie   = regexp.MustCompile(`^fb\.[0-9]{1,2}\.[0-9]{1,16}\.[^\s\pC]+$`)
	metaBrowserCookie = regexp.MustCompile(`^fb\.[0-9]{1,2}\.[0-9]{1,16}\.[0-9]+(\.[A-Za-z0-9_-]{2,8})?$`)
)

// metaCookie is a cookie of that form, "" for what visitors have in its place: Meta refuses the event for that.
func metaCookie(form *regexp.Regexp, text string) string {
	if !form.MatchString(text) {
		return ""
	}
	return text
}

func metaUser(e *Event) metaUserData {
	user := metaUserData{
		personData: personOf(e, event.FirstNameMeta, event.LastNameMeta),
		FBC:        metaCookie(metaClickCookie, e.Context.ClickIDs["fbc"]),
		FBP:        metaCookie(metaBrowserCookie, e.Context.ClickIDs["fbp"]),
	}
	user.withoutOtherGenders(e)
	if click := e.Context.ClickIDs["fbclid"]; user.FBC == "" && click != "" {
		// The cookie's documented form, for a click whose cookie the caller did not pass on.
		user.FBC = metaCookie(metaClickCookie, "fb.1."+strconv.FormatInt(e.Time().UnixMilli(), 10)+"."+click)
	}
	return user
}

func metaCustom(e *Event) *metaCustomData {
	goods := goodsOf(e, takes{}) // Meta needs an item's id
	custom := metaCustomData{
		Value:       goods.Value,
		Currency:    goods.Currency,
		OrderID:     e.OrderID,
		ContentName: e.ContentName,
		Search:      e.SearchTerm,
	}
	for _, item := range goods.Items {
		custom.Contents = append(custom.Contents, metaContent{
			ID: item.ID, Quantity: item.Quantity, ItemPrice: item.Price, Title: item.Name, Brand: item.Brand, Category: item.Category,
		})
		custom.ContentIDs = append(custom.ContentIDs, item.ID)
		custom.NumItems += item.Quantity
	}
	if len(custom.ContentIDs) == 0 && e.ContentID != "" {
		custom.ContentIDs = []string{e.ContentID}
	}
	if len(custom.ContentIDs) > 0 {
		custom.ContentType = "product"
	}
	if custom.Value == nil && custom.Currency == "" && custom.OrderID == "" && custom.ContentName == "" && custom.Search == "" &&
		custom.ContentIDs == nil {
		return nil
	}
	return &custom
}

func (a *metaAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Authorization", a.authorization)
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies(`{"data":[`, batch, a.tail)}
}

// metaAnswer is what of an answer has a meaning for us.
type metaAnswer struct {
	EventsReceived *int `json:"events_received"`
	Error          *struct {
		Code        int  `json:"code"`
		Subcode     int  `json:"error_subcode"`
		IsTransient bool `json:"is_transient"`
	} `json:"error"`
}

// Classify goes by the code in the body, as Meta's statuses are not to be relied on.
func (a *metaAdapter) Classify(r Response, n int) []Verdict {
	var answer metaAnswer
	switch err := json.Unmarshal(r.Body, &answer); {
	case err == nil && answer.Error != nil:
		return forAll(n, classifyMetaError(r, n, answer.Error.Code, answer.Error.Subcode, answer.Error.IsTransient))
	case r.Status < 200 || r.Status >= 300:
		return forAll(n, classifyError(r, n))
	case err != nil || answer.EventsReceived == nil || *answer.EventsReceived < 0 || *answer.EventsReceived > n:
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	case *answer.EventsReceived < n && n > 1:
		return forAll(n, Verdict{Class: Isolate, Reason: "not_received"})
	case *answer.EventsReceived < n:
		return forAll(n, Verdict{Class: Retry, Reason: "not_received"})
	default:
		return forAll(n, Verdict{Class: Delivered})
	}
}

// Codes and subcodes of the Graph API.
const (
	metaInvalidParameter = 100
	metaObjectMissing    = 33
	metaEventTooOld      = 2804003
	metaVersionEnded     = 2635
)

func classifyMetaError(r Response, n, code, subcode int, transient bool) Verdict {
	reason := "code_" + strconv.Itoa(code)
	if subcode != 0 {
		reason += "_" + strconv.Itoa(subcode)
	}
	switch {
	case code == 190, code == 102:
		return Verdict{Class: Auth, Reason: "unauthorized"}
	case code == 4, code == 17, code == 32, code == 613, code >= 80000 && code <= 80014:
		after, _ := retryAfter(r.Header, r.At)
		return Verdict{Class: Throttle, Reason: "throttled", After: after}
	case code == 3, code == 10, code >= 200 && code <= 299, code == metaVersionEnded, code == metaInvalidParameter && subcode == metaObjectMissing:
		return Verdict{Class: Config, Reason: reason}
	case transient, code == 1, code == 2, code == 341, code == 368, code == 5000, code == 21009:
		return Verdict{Class: Retry, Reason: reason}
	case code == metaInvalidParameter && subcode == metaEventTooOld && n == 1:
		return Verdict{Class: Expired, Reason: "too_old"}
	case code == metaInvalidParameter:
		return refused(n, reason)
	default:
		verdict := classifyStatus(r, n)
		if verdict.Class == Delivered { // an error in a 200
			return refused(n, reason)
		}
		return verdict
	}
}
