// Package config is the one contract between the operator and the tenant pods: what of a Property a pod
// needs, rendered to files on one side and loaded from them on the other. `weir dev` writes the same files.
//
// A pod's configuration directory holds
//
//	property/property.json      every role: a [Property]; nothing secret
//	property/settings.json      query: a [Settings], what people are told of the Property; nothing secret; absent where they are told nothing
//	property/console.json       query: an [auth.Verifier], what the cluster's console shows; nothing secret; absent or empty where there is none
//	auth/api-keys.json          collect: a list of [auth.Credential]; hashes only
//	auth/access-tokens.json     query: a list of [auth.Credential]; hashes only
//	sessions/keys               query: what seals the cookies of people who are signed in, as [session.ParseKeys] reads it; absent where nobody
//	                            can sign in
//	redis/url                   every role: the Redis URL with the role's own user
//	redis/ca.crt                every role: the authorities that Redis's certificate may come from; empty or absent for the system's
//	redis/tls.crt, tls.key      every role: the certificate that Redis is shown, and its key; empty or absent for none
//	platforms/NAME/KEY          deliver: the keys of the Secret that platform NAME refers to
//	sources/NAME/KEY            collect: what signs the webhooks of source NAME; deliver: what its shop's orders are read with
//	proxy/url                   deliver: the URL of the proxy that deliveries go through, with user and password; absent for none
//	proxy/ca.crt                deliver: the authorities that its certificate may come from; empty or absent for the system's
//	history/url                 archive, query: the URL of the ClickHouse that has the history, with the role's own user; absent where there is none
//	history/ca.crt              archive, query: as that of Redis, as are history/tls.crt and tls.key
//	erasures/ledger             every role: an [erasure.Ledger] as it encodes itself; absent where nobody keeps one. It goes on in
//	                            erasures/ledger-1, erasures/ledger-2, …, each a ledger of the same salt
package config

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	"github.com/weir-dev/weir/collector/egress"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/stream"
)

// The files of a configuration directory, by their path in it.
const (
	PropertyFile     = "property/property.json"
	APIKeysFile      = "auth/api-keys.json"
	AccessTokensFile = "auth/access-tokens.json"
	SettingsFile     = "property/settings.json"
	ConsoleFile      = "property/console.json"
	SessionKeysFile  = "sessions/keys"
	RedisURLFile     = "redis/url"
	// These are named as in a Secret of type kubernetes.io/tls.
	RedisCAFile          = "redis/ca.crt"
	RedisCertificateFile = "redis/tls.crt"
	RedisKeyFile         = "redis/tls.key"
	// PlatformsDir holds a directory per platform, with a file per key of its Secret.
	PlatformsDir = "platforms"
	// SourcesDir holds a directory per source, with a file per key of its Secrets that the role has.
	SourcesDir = "sources"
	// ProxyURLFile and ProxyCAFile are the proxy that deliveries go through.
	ProxyURLFile = "proxy/url"
	ProxyCAFile  = "proxy/ca.crt"
	// LedgerFile is the ledger of erasures, or its first part.
	LedgerFile = "erasures/ledger"
)

// Redis is how a Redis is reached.
type Redis struct {
	URL string
	TLS stream.TLS
}

// Files renders it, by the files' paths. All are there, whether or not they have a content: a volume may then name each.
func (r Redis) Files() map[string][]byte {
	return map[string][]byte{
		RedisURLFile: []byte(r.URL), RedisCAFile: []byte(r.TLS.CA), RedisCertificateFile: []byte(r.TLS.Certificate), RedisKeyFile: []byte(r.TLS.Key),
	}
}

// Property is what the pods know of a Property.
type Property struct {
	// Namespace and Name identify the Property; Name is the property id of the read API.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Currency is the reporting currency, upper-case ISO 4217.
	Currency string `json:"currency"`
	// TimeZone is an IANA name; days of the read API begin at its midnights.
	TimeZone string `json:"timeZone"`
	// EventAliases maps event names as sent to the names they stand for.
	EventAliases map[string]string `json:"eventAliases,omitempty"`
	// DeduplicationWindowHours is for how long an event_id or order_id is remembered.
	DeduplicationWindowHours int       `json:"deduplicationWindowHours"`
	Retention                Retention `json:"retention"`
	// History is how events are kept in ClickHouse; nil where Redis alone has them.
	History *History `json:"history,omitempty"`
	Limits  Limits   `json:"limits"`
	// JoinIdentities says that identifiers which an event has together are one visitor's from then on.
	JoinIdentities bool    `json:"joinIdentities,omitempty"`
	Exclude        Exclude `json:"exclude,omitzero"`
	Consent        Consent `json:"consent,omitzero"`
	// Suppression is what becomes of events of persons who were erased and are to stay so.
	Suppression Suppression          `json:"suppression,omitzero"`
	Platforms   []platforms.Platform `json:"platforms"`
	Sources     []sources.Source     `json:"sources,omitempty"`
	Egress      Egress               `json:"egress"`
	Proxies     Proxies              `json:"proxies,omitzero"`
	// LogLevel is the least that is logged.
	LogLevel slog.Level `json:"logLevel,omitzero"`
	Query    Query      `json:"query,omitzero"`
}

// Query is what bounds the read API.
type Query struct {
	// AllowedOrigins are the origins whose pages may read answers, each as [auth.ValidOrigin] wants it.
	AllowedOrigins []string `json:"allowedOrigins,omitempty"`
}

// Retention is what the stream keeps.
type Retention struct {
	Days int `json:"days"`
	// DeviceHours is for how many hours IP addresses and user agents are kept; 0 means [DefaultDeviceHours].
	DeviceHours int `json:"deviceHours,omitempty"`
	// IdentifiersDays is for how many days is kept what tells whose an event is; 0 means as long as the event.
	IdentifiersDays int `json:"identifiersDays,omitempty"`
	// MaxEvents is a hard ceiling, delivered or not.
	MaxEvents int64 `json:"maxEvents"`
}

// DefaultDeviceHours is long enough for a platform that is down from Friday evening to Monday morning.
const DefaultDeviceHours = 72

// age is for how long events are kept.
func (r Retention) age() time.Duration { return time.Duration(r.Days) * 24 * time.Hour }

// DeviceAge is for how long IP addresses and user agents are kept, to an hour more.
func (r Retention) DeviceAge() time.Duration {
	return min(time.Duration(cmp.Or(r.DeviceHours, DefaultDeviceHours))*time.Hour, r.age())
}

// SealsIdentity says that what tells whose an event is is not kept for as long as the event.
func (r Retention) SealsIdentity() bool { return r.IdentifiersDays > 0 && r.IdentifiersDays < r.Days }

// IdentityAge is for how long is kept what tells whose an event is, to a day more where that is not for as long as the event.
func (r Retention) IdentityAge() time.Duration {
	if r.SealsIdentity() {
		return time.Duration(r.IdentifiersDays) * 24 * time.Hour
	}
	return r.age()
}

// JoinedFor is for how long identifiers stand for a person after they were seen. What is remembered of them lasts for up to half
// as long again, and is to be gone with the identifiers.
func (r Retention) JoinedFor() time.Duration {
	if r.SealsIdentity() {
		return r.IdentityAge() * 2 / 3
	}
	return r.age()
}

// Limits bound what the collector accepts.
type Limits struct {
	// EventsPerSecond is shared by the property's collectors; 0 means no limit.
	EventsPerSecond int `json:"eventsPerSecond,omitempty"`
	// MaxBodyBytes bounds one event's body after decompression.
	MaxBodyBytes int64 `json:"maxBodyBytes"`
}

// Exclude says whose events do not count and are not delivered.
type Exclude struct {
	// CIDRs, Hosts and ClientIDs make an event internal whose context.ip, host of context.page_url or client_id is among
	// them. A host may begin with "*.", which stands for every host below.
	CIDRs     []netip.Prefix `json:"cidrs,omitempty"`
	Hosts     []string       `json:"hosts,omitempty"`
	ClientIDs []string       `json:"clientIDs,omitempty"`
	// KeepBots says that events of bots count like anybody's.
	KeepBots bool `json:"keepBots,omitempty"`
}

// Suppression is what becomes of the events of persons whose erasure asked for it.
type Suppression string

// The values of a [Suppression]; none is Anonymize.
const (
	// Anonymize stores the event without what identifies somebody: it counts, and is nobody's.
	Anonymize Suppression = "Anonymize"
	// Refuse stores nothing, and tells the sender so.
	Refuse Suppression = "Refuse"
)

// Egress is where deliveries may go beyond public addresses; the operator decides it, not the tenant.
type Egress struct {
	AllowCIDRs []netip.Prefix `json:"allowCIDRs,omitempty"`
	// ProxyByName asks the proxy for hosts by their names, which it resolves once more.
	ProxyByName bool `json:"proxyByName,omitzero"`
	// Proxy is what deliveries go through, from files of its own, for it has a password; nil for none.
	Proxy *egress.Proxy `json:"-"`
}

// Proxies stand between visitors' browsers and the collectors; the operator knows them, not the tenant.
type Proxies struct {
	// TrustedCIDRs are where those connect from whose X-Forwarded-For is believed.
	TrustedCIDRs []netip.Prefix `json:"trustedCIDRs,omitempty"`
}

// variants are the domain's for the hashes that platforms take.
var variants = map[platforms.Hash]event.Variant{
	platforms.EmailLower:     event.EmailLower,
	platforms.EmailGoogle:    event.EmailGoogle,
	platforms.EmailMicrosoft: event.EmailMicrosoft,
	platforms.EmailAlnum:     event.EmailAlnum,
	platforms.PhoneDigits:    event.PhoneDigits,
	platforms.PhoneE164:      event.PhoneE164,
	platforms.FirstNameMeta:  event.FirstNameMeta,
	platforms.FirstNameLower: event.FirstNameLower,
	platforms.LastNameMeta:   event.LastNameMeta,
	platforms.LastNameLower:  event.LastNameLower,
	platforms.Street:         event.Street,
	platforms.City:           event.City,
	platforms.State:          event.State,
	platforms.Zip:            event.Zip,
	platforms.DateOfBirth:    event.DateOfBirth,
	platforms.Gender:         event.Gender,
}

// Variants returns the hashes that the property's platforms need, beside those that are always kept.
func (p *Property) Variants() event.VariantSet {
	return event.Variants(event.EmailLower, event.PhoneDigits).Union(p.variantsOf(func(t platforms.Traits) []platforms.Hash { return t.Hashes }))
}

// AccountVariants returns those that they need beside [Property.Variants] where an event has a user_id.
func (p *Property) AccountVariants() event.VariantSet {
	return p.variantsOf(func(t platforms.Traits) []platforms.Hash { return t.AccountHashes })
}

func (p *Property) variantsOf(hashes func(platforms.Traits) []platforms.Hash) (set event.VariantSet) {
	for _, platform := range p.Platforms {
		traits, _ := platform.Type.Traits()
		for _, hash := range hashes(traits) {
			set = set.Union(event.Variants(variants[hash]))
		}
	}
	return set
}

// Platform returns the platform with a name, nil where none in force has it.
func (p *Property) Platform(name string) *platforms.Platform {
	for i := range p.Platforms {
		if p.Platforms[i].Name == name {
			return &p.Platforms[i]
		}
	}
	return nil
}

// PlatformNames returns the names of the platforms in force, in order.
func (p *Property) PlatformNames() []string {
	names := make([]string, len(p.Platforms))
	for i, platform := range p.Platforms {
		names[i] = platform.Name
	}
	return names
}

// RetentionAge is for how long events are kept.
func (p *Property) RetentionAge() time.Duration {
	return p.Retention.age()
}

// DeduplicationWindow is for how long an id is remembered.
func (p *Property) DeduplicationWindow() time.Duration {
	return time.Duration(p.DeduplicationWindowHours) * time.Hour
}
