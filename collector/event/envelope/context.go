package envelope

import (
	"net/netip"
	"strings"

	"golang.org/x/text/language"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/personal"
)

func (c *checker) context(n outline.Node) event.Context {
	if !c.object("context", &n) {
		return event.Context{}
	}
	below := newChecker("context.")
	read := func(name string, limit int) string { return below.text(name, n.Get(name), textRule{max: limit}) }
	context := event.Context{
		PageURL:     read("page_url", maxURLLength),
		Referrer:    read("referrer", maxURLLength),
		IP:          below.address("ip", n.Get("ip")),
		UserAgent:   personal.WithoutNobody(read("user_agent", maxUserAgentLength)),
		UTMSource:   read("utm_source", maxTextLength),
		UTMMedium:   read("utm_medium", maxTextLength),
		UTMCampaign: read("utm_campaign", maxTextLength),
		UTMTerm:     read("utm_term", maxTextLength),
		UTMContent:  read("utm_content", maxTextLength),
		PageTitle:   read("page_title", maxTitleLength),
		Language:    below.language("language", n.Get("language")),
	}
	context.ActionSource = below.actionSource("action_source", n.Get("action_source"))
	c.errs = append(c.errs, below.errs...)
	context.ClickIDs = c.clickIDs(n.Get("click_ids"))
	return context
}

// address reads an IP address and returns it in its canonical form.
func (c *checker) address(field string, n outline.Node) string {
	said := c.text(field, n, textRule{max: maxTextLength})
	if said == "" {
		return ""
	}
	address, err := netip.ParseAddr(said)
	if err != nil || address.Zone() != "" {
		c.malformed(field)
		return ""
	}
	if address.Is4() {
		return said // which has one form only
	}
	return address.Unmap().String()
}

// language reads a language's tag and returns its canonical form.
func (c *checker) language(field string, n outline.Node) string {
	tag, known := parseLanguage(c.text(field, n, textRule{max: maxTextLength, plain: true}))
	if !known {
		c.malformed(field)
	}
	return tag
}

// parseLanguage reads a language's tag, the first one where browsers list several, also as operating systems write it
// ("de_CH.UTF-8"). It returns the tag's canonical form, "" for none, and whether it could be read.
func parseLanguage(said string) (canonical string, known bool) {
	if said == "" {
		return "", true
	}
	if end := strings.IndexAny(said, ",;."); end >= 0 {
		said = said[:end]
	}
	tag, err := language.Parse(said)
	if err != nil && tag == language.Und {
		return "", false
	}
	return tag.String(), true
}

func (c *checker) actionSource(field string, n outline.Node) event.ActionSource {
	said := c.text(field, n, textRule{max: maxTextLength})
	if said == "" {
		return event.NoActionSource
	}
	source, known := event.ParseActionSource(said)
	if !known {
		c.unlisted(field)
	}
	return source
}

func (c *checker) clickIDs(n outline.Node) map[string]string {
	const field = "context.click_ids"
	if !c.object(field, &n) {
		return nil
	}
	below := newChecker(field + ".")
	var ids map[string]string
	for _, name := range event.ClickIDNames {
		value := n.Get(name)
		if name == "sc_click_id" && value.Absent() {
			value = n.Get(event.SnapClickID)
		}
		id := personal.WithoutNobody(below.text(name, value, textRule{max: maxClickIDLength}))
		if id == "" {
			continue
		}
		if ids == nil {
			ids = map[string]string{}
		}
		ids[name] = id
	}
	c.errs = append(c.errs, below.errs...)
	return ids
}
