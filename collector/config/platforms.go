package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// PlatformType discriminates a [Platform].
type PlatformType string

// Region is where a platform keeps what it gets; "" is the platform's default.
type Region string

// The regions.
const (
	RegionUS Region = "US"
	RegionEU Region = "EU"
	RegionIN Region = "IN"
)

// PlatformTraits is what the other roles and the operator have to know of a platform type; how it is spoken
// to is known to the deliverer alone. The rules of the Property's definition are tested against it.
type PlatformTraits struct {
	// Credentials are the keys that the referred Secret must hold.
	Credentials []string
	// Variants are the hashes that the platform matches by.
	Variants event.VariantSet
	// HasEndpoint says that the platform has a base URL of its own, which [Platform.Endpoint] may replace.
	HasEndpoint bool
	// Settings are the members of the settings that are texts.
	Settings []Setting

	// isSet says whether the platform has settings of this type.
	isSet func(*Platform) bool
}

// Setting is what one text of a platform's settings may be: what its pattern takes, one of its values, or a URL where it has
// neither.
type Setting struct {
	// Name is the member below the type's.
	Name string
	// Pattern is a regular expression that both Go and CEL read in the same way.
	Pattern string
	Values  []string
	// Optional settings may be absent.
	Optional bool
	// Rule says what would be right.
	Rule string

	// of reads the setting of a platform that has settings of the type.
	of func(*Platform) string
}

const (
	digits   = "^[0-9]+$"
	testCode = "^[A-Za-z0-9_-]+$"
)

// takes says whether a text may be the setting's.
func (s *Setting) takes(text string) bool {
	switch {
	case text == "" && s.Optional:
		return true
	case s.Pattern != "":
		return regexp.MustCompile(s.Pattern).MatchString(text)
	case s.Values != nil:
		return slices.Contains(s.Values, text)
	default:
		return isWebURL(text)
	}
}

// Member is the name of the Property's member with the type's settings.
func (t PlatformType) Member() string { return strings.ToLower(string(t)) }

// platformTraits has a row for every type; a file for each has the rest.
var platformTraits = map[PlatformType]PlatformTraits{
	TypeMeta:      metaTraits,
	TypeGA4:       ga4Traits,
	TypeTikTok:    tiktokTraits,
	TypePinterest: pinterestTraits,
	TypeMixpanel:  mixpanelTraits,
	TypeWebhook:   webhookTraits,
	TypeLog:       logTraits,
}

// Traits returns the type's traits and whether the type is known.
func (t PlatformType) Traits() (PlatformTraits, bool) {
	traits, ok := platformTraits[t]
	return traits, ok
}

// PlatformTypes returns all types, sorted.
func PlatformTypes() []PlatformType { return slices.Sorted(maps.Keys(platformTraits)) }
