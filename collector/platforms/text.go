package platforms

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Text is a setting that is a text: what its pattern takes, one of its values, or a web URL ([IsWebURL]) where it has neither.
type Text struct {
	// Name is the member below the type's.
	Name string
	// Pattern is a regular expression that Go and CEL read in the same way.
	Pattern string
	Values  []string
	// MaxLength is in characters; 0 where Values bound it.
	MaxLength int
	// Optional settings may be absent.
	Optional bool
	// Rule says what would be right, in the Property's definition as in the pods; "" where Values say it.
	Rule string

	// of reads the setting; the settings of its type are there.
	of func(*Settings) string
}

const (
	digits   = "^[0-9]+$"
	testCode = "^[A-Za-z0-9_-]+$"
)

// takes says whether a text may be the setting's.
func (t *Text) takes(text string) bool {
	switch {
	case text == "" && t.Optional:
		return true
	case t.Values != nil:
		return slices.Contains(t.Values, text)
	case utf8.RuneCountInString(text) > t.MaxLength:
		return false
	case t.Pattern != "":
		return regexp.MustCompile(t.Pattern).MatchString(text)
	default:
		return IsWebURL(text)
	}
}

// rule is what would be right, in full.
func (t *Text) rule() string {
	rule := t.Rule
	if t.Values != nil {
		rule = "must be one of " + strings.Join(t.Values, ", ")
	}
	if t.Optional {
		rule += ", or absent"
	}
	return rule
}

// IsWebURL says whether a text is an http or https URL with a host, and without a user name or password: what shows who
// sends is never part of an address.
func IsWebURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Hostname() != "" && parsed.User == nil
}

// CheckSettings calls wrong for each member of the settings that does not belong to a type that is known, or is not what it
// takes: with its path below the platform and what would be right. The value is not repeated: it may be a secret in the wrong place.
func (t Type) CheckSettings(settings *Settings, wrong func(member, rule string)) {
	for _, other := range Types() {
		traits := table[other]
		if traits.isSet == nil {
			continue
		}
		set := traits.isSet(settings)
		switch {
		case set && other != t:
			wrong(other.Member(), "must be absent for a platform of type "+string(t))
		case !set && other == t:
			wrong(other.Member(), "must be set for a platform of type "+string(t))
		case set:
			for i := range traits.Texts {
				if text := &traits.Texts[i]; !text.takes(text.of(settings)) {
					wrong(other.Member()+"."+text.Name, text.rule())
				}
			}
		}
	}
}
