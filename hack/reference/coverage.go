package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/platforms"
)

// everyMember is an event with every member that there is; least is one with what platforms need to take it at all.
//
//go:embed every-member.json
var everyMember []byte

const least = `{"event":"purchase","event_id":"e","client_id":"c.1","user":{"email":"a@b.example"},"data":{"value":1,"currency":"EUR"}}`

// covered are the platforms that a column is for, each with any settings and credentials.
var covered = map[platforms.Type]platforms.Settings{
	platforms.TypeAmplitude: {Amplitude: &platforms.Amplitude{}},
	platforms.TypeGA4:       {GA4: &platforms.GA4{MeasurementID: "G-1"}},
	platforms.TypeKlaviyo:   {Klaviyo: &platforms.Klaviyo{}},
	platforms.TypeLog:       {},
	platforms.TypeMeta:      {Meta: &platforms.Meta{PixelID: "1"}},
	platforms.TypeMixpanel:  {Mixpanel: &platforms.Mixpanel{ProjectID: "1"}},
	platforms.TypeLinkedIn:  {},
	platforms.TypeMicrosoft: {Microsoft: &platforms.Microsoft{TagID: "1"}},
	platforms.TypeGoogle:    {Google: &platforms.Google{Product: platforms.GoogleAnalytics, AccountID: "1", MeasurementID: "G-1"}},
	platforms.TypePinterest: {Pinterest: &platforms.Pinterest{AdAccountID: "1"}},
	platforms.TypeReddit:    {Reddit: &platforms.Reddit{PixelID: "a2_1"}},
	platforms.TypeSnapchat:  {Snapchat: &platforms.Snapchat{PixelID: "1ec32188-754e-4be2-8e55-c949a984a39f"}},
	platforms.TypeS3:        {S3: &platforms.S3{Bucket: "shop-events", Region: "eu-central-1"}},
	platforms.TypeTikTok:    {TikTok: &platforms.TikTok{EventSourceID: "C1"}},
	platforms.TypeWebhook:   {Webhook: &platforms.Webhook{URL: "https://crm.example.com/hook"}},
	platforms.TypePostHog:   {PostHog: &platforms.PostHog{}},
	platforms.TypeSegment:   {Segment: &platforms.Segment{}},
	platforms.TypeOpenAI:    {OpenAI: &platforms.OpenAI{PixelID: "px-1"}},
}

const coverageIntro = `What of an event reaches which platform. Each cell is what the platform's adapter did with an event that has the
member, and with one that lacks it:

| | |
|---|---|
| as sent | the platform gets the value |
| hash | it gets a SHA-256 of the value |
| converted | it gets what the value becomes in its own form, such as a name of its own or a time in its own unit |
| decides | it does not get the value, but whether it gets the event depends on it |

[Consent](../consent.md) says by what rule a member decides, or becomes a field of the platform's own.

The platforms' own pages say where each stands and why another does not; the
[collect API](../collect-api.md#the-request) says what a member may be.
`

// coveragePage asks every adapter about every member.
func coveragePage(context.Context) (string, error) {
	var full, small map[string]any
	if err := decodeSamples(&full, &small); err != nil {
		return "", err
	}
	types := platforms.Types()
	adapters := make([]*adapter.Platform, len(types))
	for i, kind := range types {
		opened, err := open(kind)
		if err != nil {
			return "", err
		}
		adapters[i] = opened
	}
	var page strings.Builder
	page.WriteString("# Which platform gets what\n\n" + notice + coverageIntro + "\n| Member |")
	for _, kind := range types {
		fmt.Fprintf(&page, " [%s](%s.md) |", kind, strings.ToLower(string(kind)))
	}
	page.WriteString("\n|---|" + strings.Repeat("---|", len(types)) + "\n")
	paths := leaves(full, "")
	put(full, "consent.limited_data_use", nil) // which would have Google get no hashes
	for _, path := range paths {
		fmt.Fprintf(&page, "| `%s` |", strings.Replace(path, ".0.", "[].", 1))
		for i, opened := range adapters {
			what, err := treatment(opened, types[i], full, small, path)
			if err != nil {
				return "", fmt.Errorf("%s: %s: %w", types[i], path, err)
			}
			page.WriteString(strings.TrimRight(" "+what, " ") + " |")
		}
		page.WriteString("\n")
	}
	return page.String(), nil
}

func open(kind platforms.Type) (*adapter.Platform, error) {
	settings, ok := covered[kind]
	if !ok {
		return nil, fmt.Errorf("platform type %s has no settings here", kind)
	}
	platform := platforms.Platform{Name: "p", Type: kind, Settings: settings}
	if kind == platforms.TypeLinkedIn { // which gets no event without a rule
		platform.EventNames = map[string]string{"purchase": "1", "lead": "2"}
	}
	return adapter.OpenShadow(platform, new(config.Consent).Rule(&platform))
}

// others are the values of members whose value in every-member.json is what platforms take for granted.
var others = map[string]any{"context.action_source": "phone_call"}

// treatment says what a platform does with a member.
func treatment(opened *adapter.Platform, kind platforms.Type, full, small map[string]any, path string) (string, error) {
	value := valueAt(full, path)
	if other := others[path]; other != nil {
		value = other
	}
	small = clone(small)
	if strings.HasPrefix(path, "data.contents.") {
		put(small, "data.contents.0.id", "sku-0") // for an item more is not a member more
	}
	added := clone(small)
	put(added, path, value)
	shown := ""
	changes := false
	for _, pair := range [...][2]map[string]any{{full, without(full, path)}, {added, small}} {
		with, taken, err := sent(opened, kind, pair[0])
		if err != nil {
			return "", err
		}
		lacking, _, err := sent(opened, kind, pair[1])
		if err != nil && !errors.Is(err, errInvalid) { // without an event's name there is none
			return "", err
		}
		if taken && with != lacking {
			changes, shown = true, shown+with
		}
	}
	if refusal, decides := refusals[path]; decides && (!changes || !appears(value, shown)) {
		return decision(opened, kind, full, path, refusal)
	}
	switch {
	case !changes:
		return "", nil
	case appears(value, shown):
		return "as sent", nil
	case strings.HasPrefix(path, "user.") && path != "user.country", path == "client_id", path == "user_id":
		return "hash", nil
	case path == "user.country" && !strings.Contains(strings.ToLower(shown), `"ch"`):
		return "hash", nil
	}
	return "converted", nil
}

// refusal is what a member of consent says where it denies something, and what has to be said beside it.
type refusal struct {
	says   any
	beside map[string]any
}

// These deny everything that a string of their kind can deny: one of IAB Europe's framework and, in one of the Global Privacy
// Platform, the same beside a US Privacy string.
const (
	deniedTCF = "CAAAAAAAAAAAAAKABBENCyFgAAAAAAAAAAYgAAAAAAAA"
	deniedGPP = "DBACNY~" + deniedTCF + "~1YYN"
)

// refusals are the members of consent; every-member.json grants everything.
var refusals = map[string]refusal{
	"consent.ad_user_data":       {says: "denied"},
	"consent.ad_personalization": {says: "denied"},
	"consent.ad_storage":         {says: "denied"},
	"consent.analytics_storage":  {says: "denied"},
	"consent.tcf":                {says: deniedTCF},
	"consent.gpp":                {says: deniedGPP},
	"consent.gpp_sid":            {says: []any{-1}, beside: map[string]any{"consent.gpp": deniedGPP}},
	"consent.us_privacy":         {says: "1YYN"},
	"consent.limited_data_use":   {says: true},
	"consent.categories":         {says: map[string]any{"marketing": false, "statistics": false, "sale_of_data": false}},
}

// decision says whether it depends on a member of consent that a platform gets an event, or what it gets.
func decision(opened *adapter.Platform, kind platforms.Type, full map[string]any, path string, r refusal) (string, error) {
	granted := clone(full)
	for beside, value := range r.beside {
		put(granted, beside, value)
	}
	denied := clone(granted)
	put(denied, path, r.says)
	before, taken, err := sent(opened, kind, granted)
	if err != nil {
		return "", err
	}
	after, takenStill, err := sent(opened, kind, denied)
	switch {
	case err != nil:
		return "", err
	case taken != takenStill:
		return "decides", nil
	case strings.Contains(after, fmt.Sprintf("%q:%v", path[strings.LastIndex(path, ".")+1:], r.says)):
		return "as sent", nil
	case before != after:
		return "converted", nil
	}
	return "", nil
}

// appears says whether a value, or one of a list, stands in a payload.
func appears(value any, payload string) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, func(one any) bool { return appears(one, payload) })
	case map[string]any: // of a name that is the sender's own
		for name := range value {
			return strings.Contains(payload, `"`+name+`"`)
		}
	}
	text, err := json.Marshal(value)
	return err == nil && strings.Contains(payload, string(text))
}

var errInvalid = errors.New("the event is invalid")

// sent is what a platform is sent of an event, and whether it is sent anything.
func sent(opened *adapter.Platform, kind platforms.Type, members map[string]any) (payload string, taken bool, err error) {
	accepted, err := accept(members, kind)
	if err != nil {
		return "", false, err
	}
	mapped, verdict := opened.Map(&adapter.Event{Event: accepted, ReceivedAt: sampleTime})
	payload = string(mapped.Body)
	for _, attr := range mapped.Line {
		payload += fmt.Sprintf("%q:%q,", attr.Key, attr.Value)
	}
	return payload, verdict.Class == adapter.Undecided, nil
}

var sampleTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// accept takes an event as the collector of a property with these platforms does.
func accept(members map[string]any, kinds ...platforms.Type) (event.Event, error) {
	text, err := json.Marshal(members)
	if err != nil {
		return event.Event{}, err
	}
	decoded := new(envelope.Envelope)
	if err := decoded.Decode(text); err != nil {
		return event.Event{}, err
	}
	valid, errs := decoded.Validate(sampleTime, nil)
	if len(errs) > 0 {
		return event.Event{}, fmt.Errorf("%w: %w", errInvalid, errs)
	}
	var property config.Property
	for _, kind := range kinds {
		property.Platforms = append(property.Platforms, platforms.Platform{Type: kind})
	}
	return envelope.Pseudonymise(valid, envelope.Acceptance{
		DeliveryID: uuid.MustParse("019a9f3c-7a00-7000-8000-000000000001"), Variants: property.Variants(), AccountVariants: property.AccountVariants(),
	}), nil
}

// notSent are the fields of an event that no sender writes.
var notSent = []string{"DeliveryID", "Anonymous", "Class", "Platforms", "Person", "Extra", "Clicked"}

// isWhole says which field of a stored event the sample leaves empty: a member of the envelope would have no row.
func isWhole(full map[string]any) error {
	accepted, err := accept(full, platforms.TypeWebhook)
	if err != nil {
		return err
	}
	var missing []string
	for name, value := range map[string]any{"": accepted, "Context.": accepted.Context, "Consent.": accepted.Consent, "Contents.": accepted.Contents[0]} {
		fields := reflect.ValueOf(value)
		for i := range fields.NumField() {
			if field := fields.Type().Field(i).Name; fields.Field(i).IsZero() && !slices.Contains(notSent, field) {
				missing = append(missing, name+field)
			}
		}
	}
	for _, name := range event.ClickIDNames {
		if accepted.Context.ClickIDs[name] == "" {
			missing = append(missing, "Context.ClickIDs."+name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("every-member.json sets nothing of %s", strings.Join(missing, ", "))
	}
	return nil
}

// groups come in this order; within one, the members in alphabetical order.
var groups = []string{"", "user", "data", "properties", "context", "consent"}

// leaves are the paths of all members that hold a value; an object with names of the sender's own is one, and so is a list.
func leaves(members map[string]any, prefix string) []string {
	var paths []string
	for name, value := range members {
		path := prefix + name
		inner, isObject := value.(map[string]any)
		items, isList := value.([]any)
		switch {
		case isObject && path != "properties" && path != "consent.categories":
			paths = append(paths, leaves(inner, path+".")...)
		case isList && path == "data.contents":
			paths = append(paths, leaves(items[0].(map[string]any), path+".0.")...)
		default:
			paths = append(paths, path)
		}
	}
	rank := func(path string) int {
		group, _, found := strings.Cut(path, ".")
		if !found && group != "properties" {
			group = ""
		}
		return slices.Index(groups, group)
	}
	slices.SortFunc(paths, func(a, b string) int {
		if rank(a) != rank(b) {
			return rank(a) - rank(b)
		}
		return strings.Compare(a, b)
	})
	return paths
}

func clone(members map[string]any) map[string]any {
	text, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	var copied map[string]any
	if decoder.Decode(&copied) != nil {
		return nil
	}
	return copied
}

func valueAt(members map[string]any, path string) any {
	var at any = members
	for name := range strings.SplitSeq(path, ".") {
		switch inner := at.(type) {
		case map[string]any:
			at = inner[name]
		case []any:
			at = inner[0]
		}
	}
	return at
}

// put sets a member, and makes the objects and the list that it stands in.
func put(members map[string]any, path string, value any) {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		members[name] = value
		return
	}
	if item, found := strings.CutPrefix(rest, "0."); found {
		if members[name] == nil {
			members[name] = []any{map[string]any{}}
		}
		put(members[name].([]any)[0].(map[string]any), item, value)
		return
	}
	if members[name] == nil {
		members[name] = map[string]any{}
	}
	put(members[name].(map[string]any), rest, value)
}

func without(members map[string]any, path string) map[string]any {
	rest := clone(members)
	put(rest, path, nil) // which counts as absent
	return rest
}
