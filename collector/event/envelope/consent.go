package envelope

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/personal"
)

// consents reads what the visitor decided: an object, or of a translation one for each place in which something was said, of
// which the strictest holds.
func (c *checker) consents(n outline.Node, translated bool) event.Consent {
	const field = "consent"
	if !translated || n.Kind() != jsontext.KindBeginArray {
		return c.consent(field, n)
	}
	var all event.Consent
	index := 0
	for one := range n.Elements() {
		said := c.consent(field+"."+strconv.Itoa(index), one)
		all = together(&all, &said)
		index++
	}
	if len(all.Categories) > maxPurposes {
		c.fail(field+".categories", fmt.Sprintf("must not have more than %d items.", maxPurposes))
	}
	return all
}

// together is what two consents say: denied in one is denied. Of strings that differ nobody knows which one holds, so that they
// are one that cannot be read.
func together(a, b *event.Consent) event.Consent {
	both := event.Consent{
		AdUserData:        max(a.AdUserData, b.AdUserData), // denied is the highest, unsaid the lowest
		AdPersonalization: max(a.AdPersonalization, b.AdPersonalization),
		AdStorage:         max(a.AdStorage, b.AdStorage),
		AnalyticsStorage:  max(a.AnalyticsStorage, b.AnalyticsStorage),
		TCF:               oneOf(a.TCF, b.TCF),
		GPP:               oneOf(a.GPP, b.GPP),
		USPrivacy:         oneOf(a.USPrivacy, b.USPrivacy),
		LimitedDataUse:    a.LimitedDataUse || b.LimitedDataUse,
		Categories:        maps.Clone(a.Categories),
	}
	switch { // without sections all of a string's apply
	case b.GPP == "", a.GPPSections == b.GPPSections:
		both.GPPSections = a.GPPSections
	case a.GPP == "":
		both.GPPSections = b.GPPSections
	}
	for name, yes := range b.Categories {
		if before, said := both.Categories[name]; said {
			yes = yes && before
		}
		if both.Categories == nil {
			both.Categories = make(map[string]bool, len(b.Categories))
		}
		both.Categories[name] = yes
	}
	return both
}

// oneOf returns the consent string of two of which one may be "".
func oneOf(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return lostConsent
}

func (c *checker) consent(field string, n outline.Node) event.Consent {
	if !c.object(field, &n) {
		return event.Consent{}
	}
	below := newChecker(field + ".")
	consent := event.Consent{
		AdUserData:        below.decision("ad_user_data", n.Get("ad_user_data")),
		AdPersonalization: below.decision("ad_personalization", n.Get("ad_personalization")),
		AdStorage:         below.decision("ad_storage", n.Get("ad_storage")),
		AnalyticsStorage:  below.decision("analytics_storage", n.Get("analytics_storage")),
		TCF:               below.consentString("tcf", n.Get("tcf"), base64URL+"."),
		GPP:               below.consentString("gpp", n.Get("gpp"), base64URL+".~"),
		GPPSections:       below.sections("gpp_sid", n.Get("gpp_sid")),
		USPrivacy:         below.usPrivacy("us_privacy", n.Get("us_privacy")),
		LimitedDataUse:    below.boolean("limited_data_use", n.Get("limited_data_use")),
	}
	consent.Categories = below.categories("categories", n.Get("categories"))
	c.errs = append(c.errs, below.errs...)
	return consent
}

func (c *checker) decision(field string, n outline.Node) event.Decision {
	switch said := c.text(field, n, textRule{max: maxTextLength}); {
	case n.Absent():
	case n.Kind() != jsontext.KindString: // reported already
	case said == "granted":
		return event.Granted
	case said == "denied":
		return event.Denied
	default:
		c.fail(field, "must be granted or denied.")
	}
	return event.Unstated
}

// base64URL are the characters of consent strings, with those that part their segments.
const base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// lostConsent stands in place of a consent string that may not be kept: nobody can read it, and nobody takes it for nothing.
const lostConsent = "-"

// consentString reads a string of these characters. Another text is none that anybody could read, now or later, and may be of
// somebody: that it was there is kept, which denies, since an order is not to be lost for it.
func (c *checker) consentString(field string, n outline.Node, characters string) string {
	said := personal.Trim(c.text(field, n, textRule{max: maxConsentLength}))
	if strings.Trim(said, characters) != "" {
		return lostConsent
	}
	return said
}

// sections reads the numbers of the sections of a GPP string, as a list, or as a text as advertising's requests have it.
func (c *checker) sections(field string, n outline.Node) string {
	var numbers []string
	switch {
	case n.Absent():
		return ""
	case n.Kind() != jsontext.KindBeginArray:
		if kind := n.Kind(); kind != jsontext.KindString && kind != jsontext.KindNumber {
			c.fail(field, "must be a string or a list of numbers.")
			return ""
		}
		said := personal.Trim(c.text(field, n, textRule{max: maxTextLength, numbers: true}))
		if said == "" {
			return ""
		}
		numbers = strings.FieldsFunc(said, func(r rune) bool { return r == ',' || r == '_' })
	case n.Length > maxSections:
		c.fail(field, fmt.Sprintf("must not have more than %d items.", maxSections))
		return ""
	default:
		for element := range n.Elements() {
			if element.Kind() != jsontext.KindNumber {
				c.fail(field, "must be a string or a list of numbers.")
				return ""
			}
			numbers = append(numbers, element.Raw)
		}
	}
	for i, number := range numbers {
		if numbers[i] = personal.Trim(number); !isSection(numbers[i]) {
			return undetermined
		}
	}
	return strings.Join(numbers, ",")
}

// undetermined is the section that is said where nobody knows yet which ones apply, so that all do.
const undetermined = "0"

// noSection is said where none applies.
const noSection = "-1"

func isSection(number string) bool {
	if number == noSection {
		return true
	}
	n, err := strconv.ParseUint(number, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == number
}

// usPrivacy reads four characters: the version, and whether the visitor was told, has opted out, and is covered.
func (c *checker) usPrivacy(field string, n outline.Node) string {
	said := strings.ToUpper(personal.Trim(c.text(field, n, textRule{max: maxTextLength})))
	if said != "" && (len(said) != 4 || said[0] != '1' || strings.Trim(said[1:], "YN-") != "") {
		return lostConsent
	}
	return said
}

func (c *checker) boolean(field string, n outline.Node) bool {
	switch {
	case n.Absent(), n.Raw == "false":
	case n.Raw == "true":
		return true
	default:
		c.fail(field, "must be true or false.")
	}
	return false
}

// categories reads the decisions on purposes by the names that the customer has for them.
func (c *checker) categories(field string, n outline.Node) map[string]bool {
	if !c.object(field, &n) {
		return nil
	}
	decisions := map[string]bool{}
	for i := 0; i < len(n.Inner); i += 1 + n.Inner[i].Below {
		m := &n.Inner[i]
		if outline.Absent(m.Raw) {
			continue
		}
		if m.Name == "" || len(m.Name) > maxNameLength || hasControl(m.Name) {
			c.fail(field, fmt.Sprintf("must have names of 1 to %d bytes without control characters.", maxNameLength))
			return nil
		}
		if m.Raw != "true" && m.Raw != "false" {
			c.fail(field, "must be true or false for each name.") // not which, since names may be anybody's
			return nil
		}
		decisions[strings.Clone(m.Name)] = m.Raw == "true"
	}
	if len(decisions) > maxPurposes {
		c.fail(field, fmt.Sprintf("must not have more than %d items.", maxPurposes))
		return nil
	}
	return decisions
}
