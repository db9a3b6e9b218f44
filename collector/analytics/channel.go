package analytics

import (
	"slices"
	"strings"
)

// Direct is the channel of a conversion without a touch.
const Direct = "Direct"

// kind is what a source is known to be.
type kind string

// The kinds of sources. A source that is in no list of [sites] is of kind "".
const (
	anySource kind = "any"
	search    kind = "search"
	social    kind = "social"
	assistant kind = "assistant"
	mail      kind = "mail"
	direct    kind = "direct"
)

// rule is a row of the channel table: it matches a touch whose source is of the kind and whose medium is in
// the list; no list means any medium.
type rule struct {
	channel string
	kind    kind
	media   []string
}

// channelOf returns the channel of the first rule that matches. Upper and lower case, and "-", " " and "_",
// are the same in a medium. The last rule matches everything.
func channelOf(source, medium string) string {
	sourceKind, medium := kindOf(source), normalMedium(medium)
	for _, r := range rules {
		if (r.kind == anySource || r.kind == sourceKind) && (r.media == nil || slices.Contains(r.media, medium)) {
			return r.channel
		}
	}
	return "Referral"
}

func normalMedium(medium string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return '_'
		}
		return r
	}, strings.ToLower(medium))
}

// kindOf looks a source up: a name such as "google", a host or any of its parent domains, or, for a site with
// a domain in many countries, a host that begins with the site's name.
func kindOf(source string) kind {
	source = strings.TrimPrefix(strings.ToLower(source), "www.")
	if k, ok := kinds[source]; ok {
		return k
	}
	for _, parent, _ := strings.Cut(source, "."); strings.Contains(parent, "."); _, parent, _ = strings.Cut(parent, ".") {
		if k, ok := kinds[parent]; ok {
			return k
		}
	}
	if name, rest, isHost := strings.Cut(source, "."); isHost && rest != "" {
		return kinds[name+".*"]
	}
	return ""
}

// referrerMedium is the medium of a touch whose only source is a referrer.
func referrerMedium(host string) string {
	switch kindOf(host) {
	case search:
		return "organic"
	case social:
		return "social"
	case mail:
		return "email"
	default:
		return "referral"
	}
}
