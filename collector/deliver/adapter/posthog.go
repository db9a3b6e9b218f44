package adapter

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// posthogBaseURLs by where the project's data resides.
var posthogBaseURLs = map[platforms.Region]string{
	"":                 "https://us.i.posthog.com",
	platforms.RegionUS: "https://us.i.posthog.com",
	platforms.RegionEU: "https://eu.i.posthog.com",
}

// posthogAdapter sends events to PostHog's capture API, many in a request.
type posthogAdapter struct {
	url string
	// head opens the body, before the list of events: PostHog takes the token nowhere else.
	head     string
	profiles platforms.PersonProfiles
}

func openPostHog(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	token, err := json.Marshal(credentials["projectToken"])
	if err != nil {
		return nil, errors.New("projectToken must be valid UTF-8")
	}
	target, err := hostedURL(cfg, "posthog", cfg.PostHog.Host, posthogBaseURLs, cfg.PostHog.Region)
	if err != nil {
		return nil, err
	}
	return &posthogAdapter{url: target + "/batch/", head: `{"api_key":` + string(token) + `,"batch":[`, profiles: cfg.PostHog.PersonProfiles}, nil
}

// posthogEvent is an event of PostHog's; its properties have names of our own but for those of its own libraries.
type posthogEvent struct {
	Event      string  `json:"event"`
	DistinctID string  `json:"distinct_id"`
	UUID       string  `json:"uuid"`
	Timestamp  string  `json:"timestamp"`
	Properties members `json:"properties"`
}

// posthogNames are the events that PostHog's web and app analytics go by; all others are the owner's own.
var posthogNames = map[string]string{event.Pageview: "$pageview", "screen_view": "$screen"}

// posthogName is PostHog's name for an event, or the reason why it is not sent.
func posthogName(e *Event) (name, reason string) {
	if e.as != "" {
		return e.as, ""
	}
	if name, known := posthogNames[e.Name]; known {
		return name, ""
	}
	// Events of these names merge people or change them, or are of PostHog's own libraries.
	if strings.HasPrefix(e.Name, "$") {
		return "", "name_reserved"
	}
	return e.Name, ""
}

// posthogNobodies are ids that PostHog merges nobody by, beside those that are nobody's everywhere.
var posthogNobodies = setOf("distinctid", "distinct_id", "id", "not_authenticated", "email", "guest", "[object object]", "nan")

// posthogLongestID is how many characters of an id PostHog keeps: two that begin alike would be one person.
const posthogLongestID = 200

// posthogID is an id in PostHog's form, "" for one that PostHog takes for nobody's.
func posthogID(id string) string {
	switch {
	case posthogNobodies[strings.ToLower(strings.Trim(id, `"'`))]:
		return ""
	case utf8.RuneCountInString(id) > posthogLongestID:
		sum := sha256.Sum256([]byte(id))
		return hex.EncodeToString(sum[:])
	}
	return id
}

// posthogClickIDs are the click ids that PostHog's own library records, by its names for them.
var posthogClickIDs = [...]struct{ name, of string }{
	{"gclid", "gclid"}, {"gbraid", "gbraid"}, {"wbraid", "wbraid"}, {"fbclid", "fbclid"}, {"msclkid", "msclkid"}, {"twclid", "twclid"},
	{"li_fat_id", "li_fat_id"}, {"ttclid", "ttclid"}, {"rdt_cid", "rdt_cid"}, {"epik", "epik"}, {"sccid", "sc_click_id"},
}

func (a *posthogAdapter) Map(e *Event) (Payload, Verdict) {
	name, reason := posthogName(e)
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	user, device := posthogID(e.UserID), posthogID(e.ClientID)
	who := user
	if who == "" {
		who = device
	}
	if who == "" {
		// PostHog demands an id, and one that was made up would be a new person.
		return Payload{}, Skip("no_identifier")
	}
	c := &e.Context
	p := members{{"$lib", "weir"}, {"event_id", e.ID}}
	if a.profiles == platforms.ProfilesNever || a.profiles != platforms.ProfilesAlways && user == "" {
		p = append(p, member{"$process_person_profile", false})
	}
	if ip := publicIP(c.IP); ip != "" {
		p = append(p, member{"$ip", ip})
	} else {
		// PostHog would find the place of whoever sends the request.
		p = append(p, member{"$geoip_disable", true})
	}
	p.text("$device_id", device)
	p.text("$user_id", user)
	if id, err := uuid.Parse(e.SessionID); err == nil && id.Version() == 7 {
		p.text("$session_id", id.String()) // PostHog's sessions take no other form
	} else {
		p.text("session_id", e.SessionID)
	}
	p.text("$current_url", c.PageURL)
	p.text("title", c.PageTitle)
	p.text("$referrer", c.Referrer)
	p.text("$raw_user_agent", c.UserAgent)
	p.text("$browser_language", c.Language)
	p.campaign(c)
	for _, click := range posthogClickIDs {
		p.text(click.name, c.ClickIDs[click.of])
	}
	p.text("action_source", c.ActionSource.String())
	p.engagement(e)
	p.data(e)
	p.contents(e)
	p.properties(e, posthogKeeps)
	return bodyPayload(posthogEvent{
		Event: name, DistinctID: who, UUID: e.DeliveryID.String(), Timestamp: e.Time().UTC().Format(timestampFormat), Properties: p,
	})
}

// posthogOwn are the names that have a meaning in a property of PostHog's or ours, set or not: none of the customer's may stand
// in for one.
var posthogOwn = setOf(
	"token", "distinct_id", "capture_internal", "event_id", "session_id", "title", "engagement_time_msec", "value", "currency", "tax", "shipping",
	"discount", "order_id", "coupon", "content_id", "content_name", "search_term", "list_id", "list_name", "contents",
	"utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "action_source",
)

// posthogKeeps says whether a property's name is one that no customer's may have.
func posthogKeeps(name string) bool {
	if posthogOwn[name] || strings.HasPrefix(name, "$") {
		return true
	}
	for _, click := range posthogClickIDs {
		if click.name == name {
			return true
		}
	}
	return false
}

func (a *posthogAdapter) Build(batch []Payload, _ time.Time) Request {
	return Request{Method: http.MethodPost, URL: a.url, Header: jsonHeader(), Body: joinBodies(a.head, batch, []byte("]}"))}
}

// posthogAnswer is what of an answer has a meaning for us.
type posthogAnswer struct {
	// Status is "Ok", or 1 of older servers.
	Status       jsontext.Value `json:"status"`
	QuotaLimited []string       `json:"quota_limited"`
}

// Classify: PostHog takes a request or refuses it, as a whole.
func (a *posthogAdapter) Classify(r Response, n int) []Verdict {
	switch {
	case r.Status >= 200 && r.Status < 300:
		return forAll(n, classifyPostHogSuccess(r))
	default:
		return forAll(n, classifyError(r, n))
	}
}

func classifyPostHogSuccess(r Response) Verdict {
	var answer posthogAnswer
	err := json.Unmarshal(r.Body, &answer)
	switch status := string(answer.Status); {
	case err == nil && len(answer.QuotaLimited) > 0:
		// It has dropped them, and goes on to until the quota is raised or begins anew.
		return Verdict{Class: Throttle, Reason: "throttled"}
	case err == nil && (strings.EqualFold(status, `"Ok"`) || status == "1"):
		return Verdict{Class: Delivered}
	default:
		return Verdict{Class: Retry, Reason: "answer_unreadable"}
	}
}
