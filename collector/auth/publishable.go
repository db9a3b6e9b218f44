package auth

import (
	"regexp"
	"strings"
)

// Publishable is what bounds an API key that stands in web pages, where everybody can read it.
type Publishable struct {
	// AllowedOrigins are the origins whose pages may use the key, each as [ValidOrigin] wants it.
	AllowedOrigins []string `json:"allowedOrigins"`
	// EventsPerSecond is how many events the key may send, through all of the property's collectors together.
	EventsPerSecond int `json:"eventsPerSecond"`
	// EventsPerSecondPerAddress is how many of them may come from one public address, through one collector.
	EventsPerSecondPerAddress int `json:"eventsPerSecondPerAddress"`
}

// OriginRule says what [ValidOrigin] wants.
const OriginRule = "must be an origin as browsers send it: scheme and host in lower case, the port only where it is not the scheme's own, " +
	"and no path, such as https://www.example.com; or all hosts below one, such as https://*.example.com"

// originPattern is the origin of a page, as browsers write it. A wildcard has to have a domain behind it: *.com is
// nobody's.
var originPattern = regexp.MustCompile(`^https?://([*][.][a-z0-9]([-a-z0-9]*[a-z0-9])?[.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?$`)

// ValidOrigin says whether an entry of a list of allowed origins can be one that browsers send.
func ValidOrigin(entry string) bool {
	ownPort := strings.HasPrefix(entry, "https://") && strings.HasSuffix(entry, ":443") ||
		strings.HasPrefix(entry, "http://") && strings.HasSuffix(entry, ":80")
	return originPattern.MatchString(entry) && !ownPort
}

// AllowsOrigin says whether pages of an origin may use the key; origin is the value of the header Origin.
func (p *Publishable) AllowsOrigin(origin string) bool {
	return OriginAllowed(p.AllowedOrigins, origin)
}

// OriginAllowed says whether an origin, the value of the header Origin, is one of a list, each as [ValidOrigin] wants it.
func OriginAllowed(list []string, origin string) bool {
	for _, allowed := range list {
		scheme, domain, wildcard := strings.Cut(allowed, "*")
		if !wildcard {
			if origin == allowed {
				return true
			}
			continue
		}
		rest, below := strings.CutPrefix(origin, scheme)
		if host, ends := strings.CutSuffix(rest, domain); below && ends && isHost(host) {
			return true
		}
	}
	return false
}

// isHost says whether a text has nothing but what a host's name is made of, as browsers write it.
func isHost(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-._") == ""
}
