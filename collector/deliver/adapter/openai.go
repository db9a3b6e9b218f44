package adapter

import (
	"crypto/sha256"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
	"github.com/weir-dev/weir/collector/platforms"
)

const openaiBaseURL = "https://bzr.openai.com"

// openaiAdapter sends events to OpenAI's Conversions API for ads.
type openaiAdapter struct{ url, token, head string }

func openOpenAI(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	return &openaiAdapter{
		url:   baseURL(cfg, openaiBaseURL) + "/" + apiVersion(cfg) + "/events?" + url.Values{"pid": {cfg.OpenAI.PixelID}}.Encode(),
		token: credentials["apiKey"],
		head:  `{"validate_only":` + strconv.FormatBool(cfg.OpenAI.ValidateOnly) + `,"events":[`,
	}, nil
}

// openaiCustom is the type of events that OpenAI has no name for: they have the owner's own.
const openaiCustom = "custom"

// openaiNames are OpenAI's standard events; all others are custom.
var openaiNames = newStandardNames(map[string]string{
	"pageview":       "page_viewed",
	"view_content":   "contents_viewed",
	"view_category":  "contents_viewed",
	"view_item_list": "contents_viewed",
	"add_to_cart":    "items_added",
	"begin_checkout": "checkout_started",
	"purchase":       "order_created",
	"lead":           "lead_created",
	"contact":        "lead_created",
	"sign_up":        "registration_completed",
	"schedule":       "appointment_scheduled",
	"subscribe":      "subscription_created",
	"start_trial":    "trial_started",
}, slices.Collect(maps.Keys(openaiOfApps))...)

// openaiOfApps are OpenAI's types for what happens to an app, for which Weir has no names: the Property may give them to events.
var openaiOfApps = setOf("app_installed", "app_opened")

// openaiShapes are what sort of data each type of event has.
var openaiShapes = map[string]string{
	"page_viewed": "contents", "contents_viewed": "contents", "items_added": "contents", "checkout_started": "contents", "order_created": "contents",
	"lead_created": "customer_action", "registration_completed": "customer_action", "appointment_scheduled": "customer_action",
	"app_installed": "customer_action", "app_opened": "customer_action",
	"subscription_created": "plan_enrollment", "trial_started": "plan_enrollment",
	openaiCustom: openaiCustom,
}

// openaiCustomName is what a custom event may be called.
var openaiCustomName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$`)

// openaiType is an event's type and, of a custom one, its name; or the reason why it is not sent.
func openaiType(e *Event) (kind, name, reason string) {
	name, reason = openaiNames.of(e, e.Name)
	switch {
	case reason != "":
		return "", "", reason
	case openaiShapes[name] != "" && name != openaiCustom:
		return name, "", ""
	case name == openaiCustom:
		return "", "", "name_reserved"
	case !openaiCustomName.MatchString(name):
		return "", "", "no_mapping"
	}
	return openaiCustom, name, ""
}

// openaiEvent has OpenAI's types: amounts are whole minor units, identifiers lists.
type openaiEvent struct {
	ID              string      `json:"id"`
	Type            string      `json:"type"`
	CustomEventName string      `json:"custom_event_name,omitzero"`
	TimestampMS     int64       `json:"timestamp_ms"`
	ActionSource    string      `json:"action_source"`
	SourceURL       string      `json:"source_url,omitzero"`
	OppRef          string      `json:"oppref,omitzero"`
	OptOut          bool        `json:"opt_out,omitzero"`
	User            *openaiUser `json:"user,omitzero"`
	Data            openaiData  `json:"data"`
}

type openaiUser struct {
	Emails      []string `json:"emails_sha256,omitempty"`
	Phones      []string `json:"phone_numbers_sha256,omitempty"`
	ExternalIDs []string `json:"external_ids_sha256,omitempty"`
	FirstNames  []string `json:"first_names_sha256,omitempty"`
	LastNames   []string `json:"last_names_sha256,omitempty"`
	Countries   []string `json:"countries,omitempty"`
	IPAddress   string   `json:"ip_address,omitzero"`
	UserAgent   string   `json:"user_agent,omitzero"`
}

// identifies says whether OpenAI can tell whose an event is: it cannot by names, a country or a device.
func (u *openaiUser) identifies() bool {
	return len(u.Emails) > 0 || len(u.Phones) > 0 || len(u.ExternalIDs) > 0
}

func (u *openaiUser) isEmpty() bool {
	return !u.identifies() && u.FirstNames == nil && u.LastNames == nil && u.Countries == nil && u.IPAddress == "" && u.UserAgent == ""
}

type openaiData struct {
	Type     string          `json:"type"`
	Amount   *int64          `json:"amount,omitzero"`
	Currency string          `json:"currency,omitzero"`
	Contents []openaiContent `json:"contents,omitempty"`
}

type openaiContent struct {
	ID          string `json:"id,omitzero"`
	Name        string `json:"name,omitzero"`
	ContentType string `json:"content_type"`
	Quantity    int64  `json:"quantity,omitzero"`
	Amount      *int64 `json:"amount,omitzero"`
	Currency    string `json:"currency,omitzero"`
}

func (a *openaiAdapter) Map(e *Event) (Payload, Verdict) {
	kind, name, reason := openaiType(e)
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	user := openaiUser{
		Emails:      e.contacts(event.EmailLower, anyNumber),
		Phones:      e.contacts(event.PhoneDigits, anyNumber),
		ExternalIDs: openaiExternalIDs(e),
		FirstNames:  hashes(e.User.Get(event.FirstNameMeta)),
		LastNames:   hashes(e.User.Get(event.LastNameMeta)),
		IPAddress:   publicIP(e.Context.IP),
		UserAgent:   e.Context.UserAgent,
	}
	if e.Country != "" {
		user.Countries = []string{e.Country}
	}
	out := openaiEvent{
		ID: e.DedupID(), Type: kind, CustomEventName: name, TimestampMS: e.Time().UnixMilli(),
		OppRef: e.Context.ClickIDs["oppref"], OptOut: e.limited.Has(consent.Sale), Data: openaiDataOf(e, kind),
	}
	if out.OppRef == "" && !user.identifies() {
		return Payload{}, Skip("no_identifier")
	}
	out.ActionSource, out.SourceURL = openaiSource(&e.Context)
	if !user.isEmpty() {
		out.User = &user
	}
	return bodyPayload(out)
}

// openaiExternalIDs are the hashes of the visitor's account and of their browser or device as they are written: OpenAI, unlike
// others, tells apart ids by their case.
func openaiExternalIDs(e *Event) []string {
	var list []string
	for _, id := range []string{e.UserID, e.ClientID} {
		id = personal.Trim(id)
		hash, isHash := event.ParseHash(id)
		switch {
		case id == "":
			continue
		case !isHash:
			hash = sha256.Sum256([]byte(id))
		}
		if text := hash.String(); len(list) == 0 || list[0] != text {
			list = append(list, text)
		}
	}
	return list
}

// openaiSource is where an event happened, in OpenAI's words, and on which page: OpenAI demands one of events on websites. What is
// behind the path may say more than that, and is left out.
func openaiSource(c *event.Context) (source, page string) {
	if parsed, err := url.Parse(c.PageURL); err == nil && parsed.Host != "" && (parsed.Scheme == "https" || parsed.Scheme == "http") {
		page = parsed.Scheme + "://" + parsed.Host + parsed.EscapedPath()
	}
	switch c.ActionSource {
	case event.InApp:
		return "mobile_app", page
	case event.ByPhoneCall, event.InPhysicalStore, event.ByEmail:
		return c.ActionSource.String(), page
	case event.NoActionSource, event.OnWebsite:
		if page != "" {
			return "web", page
		}
	}
	return "other", page
}

// openaiDataOf are an event's money and items, as far as its type has them.
func openaiDataOf(e *Event, kind string) openaiData {
	goods := goodsOf(e, takes{named: true})
	data := openaiData{Type: openaiShapes[kind]}
	if data.Amount = minorUnits(goods.Value, goods.Currency); data.Amount != nil {
		data.Currency = goods.Currency
	}
	if data.Type != "contents" && data.Type != openaiCustom {
		return data
	}
	for _, item := range goods.Items {
		content := openaiContent{ID: item.ID, Name: item.Name, ContentType: "product", Quantity: item.Quantity}
		if content.Amount = minorUnits(item.Price, goods.Currency); content.Amount != nil {
			content.Currency = goods.Currency
		}
		data.Contents = append(data.Contents, content)
	}
	if len(data.Contents) == 0 && e.ContentID != "" {
		data.Contents = []openaiContent{{ID: e.ContentID, Name: e.ContentName, ContentType: "product"}}
	}
	return data
}

// minorUnits is an amount as a count of the smallest that can be paid in its currency, rounded half to even; nil for none, or for
// less than nothing.
func minorUnits(amount *event.Amount, currency string) *int64 {
	if amount == nil || *amount < 0 {
		return nil
	}
	unit := event.MinorUnit(currency)
	count, rest := int64(*amount/unit), *amount%unit
	if 2*rest > unit || 2*rest == unit && count%2 == 1 {
		count++
	}
	return &count
}

func (a *openaiAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Authorization", "Bearer "+a.token)
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies(a.head, batch, []byte("]}"))}
}

// Classify goes by the status: OpenAI takes all events of a request or none, and documents no body of its answers.
func (a *openaiAdapter) Classify(r Response, n int) []Verdict {
	return classifyBare(r, n)
}
