package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/sources"
)

// The names that Kubernetes objects, platforms and keys may have.
var (
	namePattern         = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	propertyNamePattern = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)
)

const nameRule = "must be lower-case letters, digits and '-', with no '-' at either end"

// hostPattern is a host, or "*." and what hosts end with.
var hostPattern = regexp.MustCompile(`^([*][.])?[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?([.][a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*$`)

// How many characters texts may have.
const (
	maxEventNameLength = 100
	maxHostLength      = 253
	maxClientIDLength  = 255
)

// IsPropertyName says whether a Property can have the name.
func IsPropertyName(s string) bool { return propertyNamePattern.MatchString(s) }

func isName(s string) bool { return namePattern.MatchString(s) }

// validateRetention looks at for how long what is kept, and where.
func (p *Property) validateRetention(f *errs) {
	f.check(p.Retention.Days >= 1, "retention.days", "must be at least 1")
	f.check(p.Retention.DeviceHours >= 0, "retention.deviceHours", "must be at least 1, or absent for the default")
	f.check(p.Retention.MaxEvents >= 1, "retention.maxEvents", "must be at least 1")
	kept, field := p.Retention.Days, "retention.days"
	if p.History != nil {
		kept, field = p.History.RetentionDays, "history.retentionDays"
		f.check(kept >= p.Retention.Days, field, "must be at least retention.days")
	}
	f.check(p.Retention.IdentifiersDays >= 0 && p.Retention.IdentifiersDays <= max(1, kept), "retention.identifiersDays",
		"must be at least 1 and at most "+field+", or absent for that")
}

// Validate returns every error of the property, joined: each names the field and what would be right.
func (p *Property) Validate() error {
	var f errs
	f.check(isName(p.Namespace), "namespace", nameRule)
	f.check(IsPropertyName(p.Name), "name", "must be at most 40 lower-case letters, digits and '-', with a letter first and no '-' at the end")
	f.check(event.IsCurrency(p.Currency), "currency", "must be an ISO 4217 code in capitals, such as EUR")
	f.check(isTimeZone(p.TimeZone), "timeZone", "must be an IANA time zone, such as Europe/Berlin or UTC")
	for _, sent := range slices.Sorted(maps.Keys(p.EventAliases)) {
		f.check(isEventName(sent) && isEventName(p.EventAliases[sent]), fmt.Sprintf("eventAliases[%q]", sent),
			"must map one event name to another: 1 to 100 characters without control characters or space around them")
	}
	p.validateRetention(&f)
	f.check(p.DeduplicationWindowHours >= 1, "deduplicationWindowHours", "must be at least 1")
	f.check(p.DeduplicationWindowHours <= 24*max(1, p.Retention.Days), "deduplicationWindowHours", "must be at most the hours of retention.days")
	f.check(p.Limits.EventsPerSecond >= 0, "limits.eventsPerSecond", "must be at least 1, or absent for no limit")
	f.check(p.Limits.MaxBodyBytes >= 1, "limits.maxBodyBytes", "must be at least 1")
	f.check(slices.Contains([]Suppression{"", Anonymize, Refuse}, p.Suppression), "suppression", "must be Anonymize or Refuse, or absent for Anonymize")
	p.Exclude.validate(&f)
	for i, prefix := range p.Egress.AllowCIDRs {
		f.check(prefix.IsValid(), fmt.Sprintf("egress.allowCIDRs[%d]", i), "must be a range such as 10.0.0.0/8 or fd00::/8")
	}
	for i, prefix := range p.Proxies.TrustedCIDRs {
		f.check(prefix.IsValid(), fmt.Sprintf("proxies.trustedCIDRs[%d]", i), "must be a range such as 10.0.0.0/8 or fd00::/8")
	}
	for i, origin := range p.Query.AllowedOrigins {
		f.check(auth.ValidOrigin(origin), fmt.Sprintf("query.allowedOrigins[%d]", i), auth.OriginRule)
	}
	names := map[string]bool{}
	for i := range p.Platforms {
		at := fmt.Sprintf("platforms[%d]", i)
		platform := &p.Platforms[i]
		f.check(!names[platform.Name], at+".name", "must be unique among the platforms")
		names[platform.Name] = true
		validatePlatform(platform, at, &f)
	}
	p.Consent.validate(names, &f)
	p.validateSources(&f)
	return errors.Join(f...)
}

func (e *Exclude) validate(f *errs) {
	for i, prefix := range e.CIDRs {
		f.check(prefix.IsValid() && !prefix.Addr().Is4In6(), fmt.Sprintf("exclude.cidrs[%d]", i), "must be a range such as 203.0.113.0/24 or 2001:db8::/32")
	}
	for i, host := range e.Hosts {
		f.check(len(host) <= maxHostLength && hostPattern.MatchString(host), fmt.Sprintf("exclude.hosts[%d]", i),
			"must be a host in lower case, without scheme, port and path, such as staging.shop.example, or *.shop.example for every host below")
	}
	for i, id := range e.ClientIDs {
		f.check(isClientID(id), fmt.Sprintf("exclude.clientIDs[%d]", i), "must be 1 to 255 characters without control characters or space around them")
	}
}

func isClientID(id string) bool {
	return id != "" && strings.TrimSpace(id) == id && utf8.RuneCountInString(id) <= maxClientIDLength && !strings.ContainsFunc(id, isControl)
}

func isControl(r rune) bool { return r < ' ' || (r >= 0x7f && r < 0xa0) }

func validatePlatform(p *platforms.Platform, at string, f *errs) {
	f.check(isName(p.Name), at+".name", nameRule)
	for i, name := range p.Events {
		f.check(isEventName(name), fmt.Sprintf("%s.events[%d]", at, i), "must be an event name: 1 to 100 characters without control characters or space around them")
	}
	f.check(p.Endpoint == "" || platforms.IsWebURL(p.Endpoint), at+".endpoint", "must be an http or https URL with a host, or absent")
	if _, known := p.Type.Traits(); !known {
		f.check(false, at+".type", "must be one of "+joined(platforms.Types()))
		return
	}
	f.check(p.Mode != platforms.Shadow || p.Type != platforms.TypeS3, at+".mode",
		"must be absent or Deliver for a platform of type S3: what would be in its files is what the export of events has")
	f.check(!p.ForwardErasure || slices.Contains(platforms.ErasureTypes(), p.Type), at+".forwardErasure",
		"must be absent or false: the types that have an interface for erasures are "+joined(platforms.ErasureTypes()))
	f.check(p.Type.TakesVersion(p.APIVersion), at+".apiVersion", p.Type.VersionRule())
	p.Type.CheckSettings(&p.Settings, func(member, rule string) { f.check(false, at+"."+member, rule) })
}

func (p *Property) validateSources(f *errs) {
	names := map[string]bool{}
	for i := range p.Sources {
		at, source := fmt.Sprintf("sources[%d]", i), &p.Sources[i]
		f.check(isName(source.Name), at+".name", nameRule)
		f.check(!names[source.Name], at+".name", "must be unique among the sources")
		names[source.Name] = true
		if _, known := source.Type.Traits(); !known {
			f.check(false, at+".type", "must be one of "+joined(sources.Types()))
			continue
		}
		source.Check(func(member, rule string) { f.check(false, at+"."+member, rule) })
	}
}

// joined lists the names of types.
func joined[T ~string](types []T) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// isTimeZone also refuses the names by which Go means the machine's own zone.
func isTimeZone(name string) bool {
	if name == "" || name == "Local" {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

func isEventName(s string) bool {
	return s != "" && strings.TrimSpace(s) == s && utf8.RuneCountInString(s) <= maxEventNameLength && !strings.ContainsFunc(s, isControl)
}

// errors are what is wrong, in the order in which it was found.
type errs []error

// check notes an error of field unless ok. Neither the field nor the rule repeats a value that could be secret.
func (f *errs) check(ok bool, field, rule string) {
	if !ok {
		*f = append(*f, fmt.Errorf("%s: %s", field, rule))
	}
}
