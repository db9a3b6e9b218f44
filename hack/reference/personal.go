package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/platforms"
)

// personal is the page of what is stored of whom.
const personal = "personal-data"

// kinds are the kinds of data, by how the members begin that are of the kind; the first that fits counts.
var kinds = []struct{ begins, kind string }{
	{"user.country", "place"}, {"user.", "contact"},
	{"client_id", "identifier"}, {"user_id", "identifier"}, {"session_id", "identifier"}, {"context.click_ids.", "identifier"},
	{"event_id", "reference"}, {"data.order_id", "reference"},
	{"context.ip", "device"}, {"context.user_agent", "device"}, {"context.language", "device"},
	{"consent.", "choice"},
	{"event", "behaviour"}, {"timestamp", "behaviour"}, {"engagement_time_msec", "behaviour"}, {"data.", "behaviour"}, {"properties", "behaviour"},
	{"context.page_", "behaviour"}, {"context.referrer", "behaviour"}, {"context.utm_", "behaviour"}, {"context.action_source", "behaviour"},
}

const personalIntro = `What of an event is personal, in which form it is stored, for how long, and who gets it; and Redis's keys with who may
read them. [privacy.md](../operate/privacy.md) is about what follows from that.

## Members of an event

| Kind | |
|---|---|
| contact | data of the person that you know from them |
| identifier | stands for the person, their browser or their click, here and elsewhere |
| device | tells of the device and its connection |
| place | the person's country |
| reference | leads to the person in your own systems |
| choice | what the person has decided |
| behaviour | what the person did; personal where one of the others stands beside it |

"Stored as" is what an event that has the member leaves in the stream: the value, a SHA-256 of it, or a form of its own,
such as a number for a name; "for platforms that take it" means that a Property without such a platform stores nothing.
[What tells of a person](collect-api.md#personal-data) is taken out of texts before.

"Kept for" names the Property's field: without ` + "`identifiersDays`" + ` it is ` + "`days`" + ` for all. Which click ids there were, not
what they were, is known for [as long as the event](property.md#what-goes-before-the-event-does).

"Of a suppressed person" is what is stored of whoever [was erased and is
suppressed](../operate/privacy.md#erasure).

`

// personalPage asks the collector what it stores, the adapters what they send, and the rules of Redis's users who may read.
func personalPage(ctx context.Context) (string, error) {
	var full, small map[string]any
	if err := decodeSamples(&full, &small); err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString("# Personal data\n\n" + notice + personalIntro)
	page.WriteString("| Member | Kind | Stored as | Kept for | Of a suppressed person | Sent to |\n|---|---|---|---|---|---|\n")
	received := map[platforms.Type]map[string][]string{}
	paths := leaves(full, "")
	put(full, "consent.limited_data_use", nil) // which would have Google get no hashes
	for _, path := range paths {
		kind, err := kindOfMember(path)
		if err != nil {
			return "", err
		}
		kept, err := storage(full, path)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		var sentTo []string
		for _, platform := range platforms.Types() {
			what, err := treatmentBy(platform, full, small, path)
			if err != nil {
				return "", fmt.Errorf("%s: %s: %w", platform, path, err)
			}
			if what == "" || what == "decides" {
				continue
			}
			sentTo = append(sentTo, fmt.Sprintf("%s: %s", platform, what))
			if kind != "behaviour" && kind != "choice" {
				if received[platform] == nil {
					received[platform] = map[string][]string{}
				}
				received[platform][what] = append(received[platform][what], "`"+written(path)+"`")
			}
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s |\n", written(path), kind, kept.as, kept.lives, kept.suppressed, strings.Join(sentTo, ", "))
	}
	page.WriteString(platformRows(received))
	keys, err := keyRows()
	if err != nil {
		return "", err
	}
	page.WriteString(keys)
	return strings.ReplaceAll(page.String(), "  |", " |"), nil
}

func decodeSamples(full, small *map[string]any) error {
	if err := json.Unmarshal(everyMember, full); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(least), small); err != nil {
		return err
	}
	return isWhole(*full)
}

// written is a member's path as pages write it.
func written(path string) string { return strings.Replace(path, ".0.", "[].", 1) }

func kindOfMember(path string) (string, error) {
	for _, row := range kinds {
		if strings.HasPrefix(path, row.begins) {
			return row.kind, nil
		}
	}
	return "", fmt.Errorf("%s has no kind of data: add it to kinds", path)
}

func treatmentBy(kind platforms.Type, full, small map[string]any, path string) (string, error) {
	opened, err := open(kind)
	if err != nil {
		return "", err
	}
	return treatment(opened, kind, full, small, path)
}

// stored is what is kept of a member.
type stored struct{ as, lives, suppressed string }

// storage says what an event leaves of a member in the stream, by what it leaves without it.
func storage(full map[string]any, path string) (stored, error) {
	with, err := accept(full, platforms.Types()...)
	if err != nil {
		return stored{}, err
	}
	lacking, err := accept(without(full, path), platforms.Types()...)
	required := errors.Is(err, errInvalid) // and without it there is no event
	if err != nil && !required {
		return stored{}, err
	}
	value := valueAt(full, path)
	found := stored{as: formOf(path, value, &with, &lacking)}
	if found.as == "" {
		return found, nil
	}
	unwanted, err := accept(full)
	if err != nil {
		return stored{}, err
	}
	unwantedLacking, err := accept(without(full, path))
	if err == nil && formOf(path, value, &unwanted, &unwantedLacking) == "" {
		found.as += ", for platforms that take it"
	}
	if found.lives = "`retention.days`"; !required {
		found.lives = livesFor(&with, &lacking)
	}
	anonymous, lackingAnonymous := with.Anonymized(uuid.Nil), lacking.Anonymized(uuid.Nil)
	if found.suppressed = formOf(path, value, &anonymous, &lackingAnonymous); found.suppressed == "" {
		found.suppressed = "nothing"
	}
	return found, nil
}

// livesFor names the field of a Property that says for how long a member is kept, by the part of an entry that it is in.
func livesFor(with, lacking *event.Event) string {
	parts, other := wire.Split(with, true), wire.Split(lacking, true)
	for part, field := range [...]string{wire.Device: "deviceHours", wire.Identity: "identifiersDays"} {
		if !bytes.Equal(parts.Sealed[part], other.Sealed[part]) {
			return "`retention." + field + "`"
		}
	}
	return "`retention.days`"
}

// formOf says in which form a member stands in an event, "" where the event is the same without it.
func formOf(path string, value any, with, lacking *event.Event) string {
	switch {
	case string(wire.Encode(with)) == string(wire.Encode(lacking)):
		return ""
	case strings.HasPrefix(path, "user.") && path != "user.country":
		return "hash"
	case standsIn(reflect.ValueOf(*with), value):
		return "value"
	default:
		return "own form"
	}
}

// standsIn says whether a text of a sample, or one within it, stands in a field of an event, or is one of its numbers.
func standsIn(field reflect.Value, value any) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, func(one any) bool { return standsIn(field, one) })
	case map[string]any:
		for name := range value {
			return standsIn(field, name)
		}
		return false
	case float64, bool:
		return true // money is counted in ten-thousandths, and is the same money
	}
	switch field.Kind() {
	case reflect.String:
		text, _ := value.(string)
		return text != "" && strings.Contains(field.String(), text)
	case reflect.Struct:
		for _, inner := range field.Fields() {
			if standsIn(inner, value) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range field.Len() {
			if standsIn(field.Index(i), value) {
				return true
			}
		}
	case reflect.Map:
		for _, key := range field.MapKeys() {
			if standsIn(key, value) || standsIn(field.MapIndex(key), value) {
				return true
			}
		}
	case reflect.Pointer:
		return !field.IsNil() && standsIn(field.Elem(), value)
	}
	return false
}

const platformsIntro = `
## What each platform gets of whom

Of the members above those that are no behaviour and no choice. An event whose consent is denied reaches [fewer
platforms](platforms/README.md#what-all-have-in-common).

| Platform | Hashes of | Values of | In a form of its own | What is left to you when a person is erased |
|---|---|---|---|---|
`

func platformRows(received map[platforms.Type]map[string][]string) string {
	var rows strings.Builder
	rows.WriteString(platformsIntro)
	for _, kind := range platforms.Types() {
		traits, _ := kind.Traits()
		get := func(what string) string { return strings.Join(received[kind][what], ", ") }
		fmt.Fprintf(&rows, "| [%s](platforms/%s.md) | %s | %s | %s | %s |\n", kind, strings.ToLower(string(kind)),
			get("hash"), get("as sent"), get("converted"), cell(traits.Erasure.Instruction))
	}
	return rows.String()
}
