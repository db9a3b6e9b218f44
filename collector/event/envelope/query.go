package envelope

import (
	"strings"
	"unicode/utf8"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
)

// readQuery fills the UTM fields and click ids that the caller did not state from the page's URL.
func readQuery(c *event.Context) {
	rest, _, _ := strings.Cut(c.PageURL, "#")
	_, query, _ := strings.Cut(rest, "?")
	if query == "" {
		return
	}
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		value = personal.PercentDecode(strings.ReplaceAll(value, "+", " "))
		if value == "" {
			continue
		}
		if field := utm(c, name); field != nil {
			if *field == "" {
				*field = firstCharacters(value, maxTextLength)
			}
			continue
		}
		readClickID(c, name, value)
	}
}

// utm returns the field of a query parameter, nil where it is none of Google's.
func utm(c *event.Context, parameter string) *string {
	switch parameter {
	case "utm_source":
		return &c.UTMSource
	case "utm_medium":
		return &c.UTMMedium
	case "utm_campaign":
		return &c.UTMCampaign
	case "utm_term":
		return &c.UTMTerm
	case "utm_content":
		return &c.UTMContent
	}
	return nil
}

// readClickID keeps a click id. One that is too long has been tampered with and would match nothing.
func readClickID(c *event.Context, name, value string) {
	if strings.EqualFold(name, event.SnapClickID) {
		name = "sc_click_id"
	}
	for _, known := range event.ClickIDNames {
		if name != known || c.ClickIDs[known] != "" || utf8.RuneCountInString(value) > maxClickIDLength || personal.IsNobody(value) {
			continue
		}
		if c.ClickIDs == nil {
			c.ClickIDs = map[string]string{}
		}
		c.ClickIDs[known] = value
	}
}

func firstCharacters(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
