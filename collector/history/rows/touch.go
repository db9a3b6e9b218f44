package rows

import (
	"strings"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

// TouchSeparator stands between the parts of a touch: source, medium, campaign and channel.
const TouchSeparator = "\x1f"

// Campaigns and sources are whatever somebody wrote behind utm_source: a separator within a part is escaped, and the escape too.
var (
	escapeTouch   = strings.NewReplacer("\x1e", "\x1e0", TouchSeparator, "\x1e1")
	unescapeTouch = strings.NewReplacer("\x1e0", "\x1e", "\x1e1", TouchSeparator)
)

// TouchPart returns a source, medium, campaign or channel as it stands in a touch.
func TouchPart(text string) string { return escapeTouch.Replace(text) }

// PlainPart is the inverse of [TouchPart].
func PlainPart(text string) string { return unescapeTouch.Replace(text) }

// TouchText returns a touch in one text: a table has few that differ.
func TouchText(t columns.Touch) string {
	return strings.Join([]string{TouchPart(t.Source), TouchPart(t.Medium), TouchPart(t.Campaign), TouchPart(t.Channel)}, TouchSeparator)
}

// ParseTouch is the inverse of [TouchText]; false for "" and whatever else is no touch.
func ParseTouch(text string) (columns.Touch, bool) {
	parts := strings.Split(text, TouchSeparator)
	if len(parts) != 4 {
		return columns.Touch{}, false
	}
	for i := range parts {
		parts[i] = PlainPart(parts[i])
	}
	return columns.Touch{Source: parts[0], Medium: parts[1], Campaign: parts[2], Channel: parts[3]}, true
}
