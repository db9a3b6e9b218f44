package envelope

import (
	"net/netip"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
)

func (c *checker) context(n node) event.Context {
	if !c.object("context", &n) {
		return event.Context{}
	}
	below := newChecker("context.")
	read := func(name string, limit int) string { return below.text(name, n.get(name), textRule{max: limit}) }
	context := event.Context{
		PageURL:     read("page_url", maxURLLength),
		Referrer:    read("referrer", maxURLLength),
		IP:          below.address("ip", n.get("ip")),
		UserAgent:   personal.WithoutNobody(read("user_agent", maxUserAgentLength)),
		UTMSource:   read("utm_source", maxTextLength),
		UTMMedium:   read("utm_medium", maxTextLength),
		UTMCampaign: read("utm_campaign", maxTextLength),
		UTMTerm:     read("utm_term", maxTextLength),
		UTMContent:  read("utm_content", maxTextLength),
	}
	c.errs = append(c.errs, below.errs...)
	context.ClickIDs = c.clickIDs(n.get("click_ids"))
	return context
}

// address reads an IP address and returns it in its canonical form.
func (c *checker) address(field string, n node) string {
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

func (c *checker) clickIDs(n node) map[string]string {
	const field = "context.click_ids"
	if !c.object(field, &n) {
		return nil
	}
	below := newChecker(field + ".")
	var ids map[string]string
	for _, name := range event.ClickIDNames {
		id := personal.WithoutNobody(below.text(name, n.get(name), textRule{max: maxClickIDLength}))
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
