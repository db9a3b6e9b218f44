package adapter

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const linkedinBaseURL = "https://api.linkedin.com"

// linkedinAdapter sends events to LinkedIn's Conversions API.
type linkedinAdapter struct{ url, token, version string }

var linkedinRule = regexp.MustCompile(`^[0-9]{1,19}$`)

func openLinkedIn(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	return &linkedinAdapter{
		url: baseURL(cfg, linkedinBaseURL) + "/rest/conversionEvents", token: credentials["accessToken"], version: apiVersion(cfg),
	}, nil
}

// The versions since which LinkedIn knows some of what is sent; before, it would refuse the batch for it.
const (
	linkedinTakesHashedIPs   = "202607"
	linkedinTakesHashedNames = "202609"
)

// linkedinEvent has LinkedIn's types: amounts are text, times are milliseconds.
type linkedinEvent struct {
	// Conversion is the rule that the event counts for.
	Conversion string `json:"conversion"`
	HappenedAt int64  `json:"conversionHappenedAt"`
	// Value is nil for none: LinkedIn refuses one without an amount.
	Value   *linkedinValue `json:"conversionValue,omitzero"`
	EventID string         `json:"eventId"`
	User    linkedinUser   `json:"user"`
}

type linkedinValue struct {
	Currency string `json:"currencyCode"`
	Amount   string `json:"amount"`
}

type linkedinUser struct {
	// IDs may be empty and must not be absent.
	IDs []linkedinID `json:"userIds"`
	// Info is nil unless both names are known.
	Info *linkedinInfo `json:"userInfo,omitzero"`
	// ExternalIDs holds at most one: LinkedIn looks at no other.
	ExternalIDs []string `json:"externalIds,omitempty"`
}

type linkedinID struct {
	Type  string `json:"idType"`
	Value string `json:"idValue"`
}

type linkedinInfo struct {
	FirstName string `json:"hashedFirstName"`
	LastName  string `json:"hashedLastName"`
	Country   string `json:"countryCode,omitzero"`
}

func (a *linkedinAdapter) Map(e *Event) (Payload, Verdict) {
	rule, reason := ownName(e)
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	out := linkedinEvent{
		Conversion: "urn:lla:llaPartnerConversion:" + rule, HappenedAt: e.Time().UnixMilli(), EventID: e.DedupID(), User: linkedinUser{IDs: []linkedinID{}},
	}
	user := &out.User
	for _, id := range []linkedinID{
		{"SHA256_EMAIL", e.User.Get(event.EmailLower).String()},
		{"LINKEDIN_FIRST_PARTY_ADS_TRACKING_UUID", e.Context.ClickIDs["li_fat_id"]},
	} {
		if id.Value != "" {
			user.IDs = append(user.IDs, id)
		}
	}
	if ids := e.externalIDs(); len(ids) > 0 {
		user.ExternalIDs = ids[:1]
	}
	if len(user.IDs) == 0 && len(user.ExternalIDs) == 0 { // an address and names are not enough
		return Payload{}, Skip("no_identifier")
	}
	if ip := hashedIPv4(publicIP(e.Context.IP)); ip != "" && a.version >= linkedinTakesHashedIPs {
		user.IDs = append(user.IDs, linkedinID{"SHA256_IP_ADDRESS", ip})
	}
	first, last := e.User.Get(event.FirstNameMeta), e.User.Get(event.LastNameMeta)
	if !first.IsZero() && !last.IsZero() && a.version >= linkedinTakesHashedNames {
		user.Info = &linkedinInfo{FirstName: first.String(), LastName: last.String(), Country: e.Country}
	}
	if goods := goodsOf(e, takes{}); goods.Value != nil {
		out.Value = &linkedinValue{Currency: goods.Currency, Amount: goods.Value.String()}
	}
	return bodyPayload(out)
}

// hashedIPv4 is the hash of an address, "" for one that is not of IPv4: LinkedIn knows no others.
func hashedIPv4(text string) string {
	address, err := netip.ParseAddr(text)
	if err != nil || !address.Is4() {
		return ""
	}
	return event.Hash(sha256.Sum256([]byte(address.String()))).String()
}

func (a *linkedinAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Authorization", "Bearer "+a.token)
	header.Set("LinkedIn-Version", a.version)
	header.Set("X-Restli-Protocol-Version", "2.0.0")
	header.Set("X-RestLi-Method", "BATCH_CREATE")
	return Request{Method: http.MethodPost, URL: a.url, Header: header, Body: joinBodies(`{"elements":[`, batch, []byte("]}"))}
}

// linkedinAnswer is what of an answer has a meaning for us: a status for each event, or an error.
type linkedinAnswer struct {
	Elements []struct {
		Status int `json:"status"`
	} `json:"elements"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// linkedinEnded are the codes of LinkedIn's for a version that it does not take, or not any more.
var linkedinEnded = setOf("NONEXISTENT_VERSION", "VERSION_MISSING")

// Classify goes by the status of each event in a success. In a refusal, which is of the whole batch, it goes by the places that
// the message names.
func (a *linkedinAdapter) Classify(r Response, n int) []Verdict {
	var answer linkedinAnswer
	err := json.Unmarshal(r.Body, &answer)
	success := r.Status >= 200 && r.Status < 300
	reason := "http_" + strconv.Itoa(r.Status)
	switch {
	case success && err == nil && len(answer.Elements) == n:
		return classifyLinkedInElements(r, &answer)
	case r.Status == http.StatusCreated && n == 1 && len(r.Body) == 0: // how LinkedIn answers about one
		return forAll(n, Verdict{Class: Delivered})
	case success:
		// A success that does not say what has become of each event is none; a repeat is told by its eventId.
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	case isHTML(r) && r.Status >= 400:
		return forAll(n, Verdict{Class: Retry, Reason: reason})
	case r.Status == http.StatusUpgradeRequired, err == nil && linkedinEnded[answer.Code]:
		return forAll(n, Verdict{Class: Config, Reason: "api_version_ended"})
	case err == nil && r.Status == http.StatusUnprocessableEntity:
		return classifyLinkedInRows(linkedinIndexes(answer.Message), n, reason, Verdict{Class: Permanent, Reason: reason})
	case err == nil && r.Status == http.StatusBadRequest && linkedinWrongRules.MatchString(answer.Message):
		// The rules are not of the Conversions API: it is the Property that has to change.
		return classifyLinkedInRows(linkedinIndexes(answer.Message), n, reason, Verdict{Class: Config, Reason: "rule_refused"})
	}
	return forAll(n, classifyStatus(r, n))
}

func classifyLinkedInElements(r Response, answer *linkedinAnswer) []Verdict {
	verdicts := make([]Verdict, len(answer.Elements))
	for i, element := range answer.Elements {
		switch status := element.Status; {
		case status == http.StatusCreated:
			verdicts[i] = Verdict{Class: Delivered}
		case status > 0:
			verdicts[i] = classifyStatus(Response{Status: status, Header: r.Header, At: r.At}, 1)
		default:
			verdicts[i] = Verdict{Class: Retry, Reason: "answer_unreadable"}
		}
	}
	return verdicts
}

// classifyLinkedInRows gives the events that a refusal names their verdict, and has the others sent again: they were refused for
// those. Where it names none that there is, each is sent alone.
func classifyLinkedInRows(rows []int, n int, reason string, named Verdict) []Verdict {
	if len(rows) == 0 || rows[len(rows)-1] >= n {
		if n == 1 {
			return []Verdict{named}
		}
		return forAll(n, Verdict{Class: Isolate, Reason: reason})
	}
	verdicts := forAll(n, Verdict{Class: Retry, Reason: reason})
	for _, i := range rows {
		verdicts[i] = named
	}
	return verdicts
}

var (
	// linkedinRow stands before what is wrong with each event: "Index: 2, ERROR :: /user :: …".
	linkedinRow = regexp.MustCompile(`(?m)^\s*Index: ([0-9]{1,6})\b`)
	// linkedinWrongRules is said of conversion rules that are not of the Conversions API: "…, indices [0, 2] (0-indexed)".
	linkedinWrongRules = regexp.MustCompile(`CONVERSIONS_API, indices \[([0-9, ]*)\]`)
)

// linkedinIndexes are the places that a message names, counted from 0, in ascending order, each once.
func linkedinIndexes(message string) []int {
	var texts []string
	for _, match := range linkedinRow.FindAllStringSubmatch(message, -1) {
		texts = append(texts, match[1])
	}
	if match := linkedinWrongRules.FindStringSubmatch(message); match != nil {
		texts = append(texts, strings.FieldsFunc(match[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	var rows []int
	for _, text := range texts {
		if row, err := strconv.Atoi(text); err == nil {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}
