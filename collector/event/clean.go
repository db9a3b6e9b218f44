package event

import (
	"maps"
	"strings"
	"unicode/utf8"
)

// cleanContext returns the context with what only the page's URL carries read out of it, and without what
// tells of the person. The caller's own fields win over the URL's.
func (p *personalData) cleanContext(c Context) Context {
	c.ClickIDs = maps.Clone(c.ClickIDs)
	readQuery(&c)
	c.PageURL, c.Referrer = p.cleanURL(c.PageURL), p.cleanURL(c.Referrer)
	for _, field := range []*string{
		&c.UserAgent, &c.UTMSource, &c.UTMMedium, &c.UTMCampaign, &c.UTMTerm, &c.UTMContent,
	} {
		// Not the first name: a campaign may well be called like a visitor.
		*field = p.withoutContact(*field)
	}
	maps.DeleteFunc(c.ClickIDs, func(_, id string) bool { return p.contactIn(id) })
	if len(c.ClickIDs) == 0 {
		c.ClickIDs = nil
	}
	return c
}

// readQuery fills the UTM fields and click ids that the caller did not state from the page's URL.
func readQuery(c *Context) {
	rest, _, _ := strings.Cut(c.PageURL, "#")
	_, query, _ := strings.Cut(rest, "?")
	if query == "" {
		return
	}
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		value = percentDecode(strings.ReplaceAll(value, "+", " "))
		if value == "" {
			continue
		}
		if field := c.utm(name); field != nil {
			if *field == "" {
				*field = firstCharacters(value, maxTextLength)
			}
			continue
		}
		readClickID(c, name, value)
	}
}

// utm returns the field of a query parameter, nil where it is none of Google's.
func (c *Context) utm(parameter string) *string {
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
func readClickID(c *Context, name, value string) {
	if name == "ScCid" { // what Snapchat calls its parameter
		name = "sc_click_id"
	}
	for _, known := range ClickIDNames {
		if name != known || c.ClickIDs[known] != "" || utf8.RuneCountInString(value) > maxClickIDLength || isNobody(value) {
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

// cleanURL takes out of a URL, however malformed, its userinfo, the parameters of its query and fragment that
// tell of the person, and the segments of its path with a contact in them. The rest stays as it was written.
func (p *personalData) cleanURL(raw string) string {
	if p.isClean(raw) {
		return raw
	}
	cleaned := p.cleanParts(raw)
	if !p.contactIn(cleaned) {
		return cleaned
	}
	// A contact is spread over the parts: of what has a query the rest is kept.
	base, _, hasQuery := strings.Cut(cleaned, "?")
	if !hasQuery {
		return ""
	}
	return p.withoutContact(base)
}

// isClean says of most URLs in which there is nothing to take out that there is nothing, without looking at their parts.
func (p *personalData) isClean(raw string) bool {
	if suspected := suspicionOf(raw); suspected == anyContact || suspected == plainNumber && p.phoneIn(raw) {
		return false
	}
	if strings.Contains(raw, "?#") || strings.HasSuffix(raw, "?") || strings.HasSuffix(raw, "#") {
		return false
	}
	if p.name == "" {
		return true
	}
	// A space of the name may stand there as a "+", and what is not ASCII in several spellings.
	return isASCII(raw) && strings.IndexByte(raw, '+') < 0 && !strings.Contains(lower(raw), p.name)
}

func (p *personalData) cleanParts(raw string) string {
	rest, fragment, hasFragment := strings.Cut(raw, "#")
	base, query, hasQuery := strings.Cut(rest, "?")

	cleaned := p.cleanBase(base)
	if hasQuery {
		if query = p.cleanParameters(query); query != "" {
			cleaned += "?" + query
		}
	}
	if hasFragment {
		if fragment = p.cleanParameters(fragment); fragment != "" {
			cleaned += "#" + fragment
		}
	}
	return cleaned
}

// cleanBase cleans scheme, authority and path.
func (p *personalData) cleanBase(base string) string {
	var prefix string
	if start := strings.Index(base, "//"); start >= 0 {
		prefix, base = base[:start+2], base[start+2:]
		authority, path, hasPath := strings.Cut(base, "/")
		prefix += p.withoutContact(authority[strings.LastIndexByte(authority, '@')+1:])
		if !hasPath {
			return prefix
		}
		prefix, base = prefix+"/", path
	}
	segments := strings.Split(base, "/")
	for i, segment := range segments {
		segments[i] = p.withoutContact(segment)
	}
	return prefix + strings.Join(segments, "/")
}

func (p *personalData) cleanParameters(query string) string {
	var kept []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		found := p.contactIn(parameter)
		if !strings.HasPrefix(name, "utm_") {
			found = found || p.isPersonal(name) || p.isPersonal(value)
		}
		if !found {
			kept = append(kept, parameter)
		}
	}
	return strings.Join(kept, "&")
}
