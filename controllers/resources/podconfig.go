// Package resources renders what a Property asks for. It is pure: the same Property, credentials and options
// always make the same objects and files, and nothing is read or written.
package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/sources"
)

// Options are what the operator decides for its Properties, and what is not in them.
type Options struct {
	// EgressAllowCIDRs are the private ranges that deliveries may reach.
	EgressAllowCIDRs []netip.Prefix
	// TrustedProxyCIDRs are where those connect from whose X-Forwarded-For the collectors believe.
	TrustedProxyCIDRs []netip.Prefix
	// WithholdUnsaid says that no platform gets an event whose visitor has said nothing of a purpose that it requires.
	WithholdUnsaid bool
	// PlatformEndpoints are base URLs in place of the platforms' own.
	PlatformEndpoints map[platforms.Type]string
	// CollectURL and APIURL are the base URLs that people are told; "" where nobody knows them.
	CollectURL, APIURL string
	// ConsoleKeys verify what the cluster's console signs; none where there is no console.
	ConsoleKeys []auth.PublicKey
	// SessionKeys are what seals people's sessions, as package session reads it; where it is "" the file is left out: pods have it
	// from a Secret of its own.
	SessionKeys string
	// Redis is how the pods reach Redis, with user and password; without a URL its files are left out.
	Redis config.Redis
	// ClickHouse is how the history is reached, where there is one; without a URL its files are left out.
	ClickHouse config.ClickHouse
	// HistoryPending says that there is no history yet, whatever the spec says: the pods are told of none.
	HistoryPending bool
	// Image is what the pods run; it is not part of their configuration.
	Image string
	// RedisImage is what a Redis runs that is made for a Property; it is not part of the pods' configuration.
	RedisImage string
	// Network bounds who may reach the pods; it is not part of their configuration.
	Network NetworkRules
	// DeliveryProxy is what deliveries go through; without a URL there is none.
	DeliveryProxy config.DeliveryProxy
	// AnyUser leaves the pods' user and groups to the cluster; it is not part of their configuration.
	AnyUser bool
	// Tracing says where the pods send spans; it is not part of their configuration.
	Tracing Tracing
	// PodDefaults are what all Properties' pods have; they are not part of their configuration.
	PodDefaults PodDefaults
}

// PodConfig renders the files of a pod's configuration directory by their paths in it, all but the platforms'
// and sources' Secrets. The property must have its defaults. An error says what of the spec the pods would refuse, or which
// credential is missing.
func PodConfig(property *v1alpha1.Property, credentials Credentials, options Options) (map[string][]byte, error) {
	rendered, err := PropertyConfig(property, options)
	if err != nil {
		return nil, err
	}
	apiKeys, err := credentials.apiKeyHashes(property.Spec.APIKeys)
	if err != nil {
		return nil, err
	}
	accessTokens, err := credentials.accessTokenHashes(property.Spec.AccessTokens)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for path, content := range map[string]any{
		config.PropertyFile:     rendered,
		config.SettingsFile:     settingsConfig(property, options),
		config.ConsoleFile:      consoleConfig(property, options),
		config.APIKeysFile:      apiKeys,
		config.AccessTokensFile: accessTokens,
	} {
		if files[path], err = file(path, content); err != nil {
			return nil, err
		}
	}
	if options.SessionKeys != "" {
		files[config.SessionKeysFile] = []byte(options.SessionKeys)
	}
	if options.Redis.URL != "" {
		addFiles(files, options.Redis.Files())
	}
	if options.ClickHouse.URL != "" {
		addFiles(files, options.ClickHouse.Files())
	}
	if options.DeliveryProxy.URL != "" {
		addFiles(files, options.DeliveryProxy.Files())
	}
	return files, nil
}

// file renders a file of JSON.
func file(path string, content any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // people read it in a ConfigMap
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(content); err != nil {
		return nil, fmt.Errorf("render %s: %w", path, err)
	}
	return text.Bytes(), nil
}

// addFiles adds those that have a content.
func addFiles(files, further map[string][]byte) {
	for path, content := range further {
		if len(content) > 0 {
			files[path] = content
		}
	}
}

// AnnotationLogLevel on a Property says what its pods log: debug, info, warn or error. They follow it without a restart.
const AnnotationLogLevel = "weir.dev/log-level"

// LogLevel is what debug, info, warn and error stand for; known is false for any other word.
func LogLevel(word string) (level slog.Level, known bool) {
	level, known = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[word]
	return level, known
}

// logLevel is what the Property asks for. Another word is none, and means info: it is no reason to leave the Property as it was.
func logLevel(property *v1alpha1.Property) slog.Level {
	level, _ := LogLevel(property.Annotations[AnnotationLogLevel])
	return level
}

// RetentionConfig renders for how long what is kept. The retention must have its defaults.
func RetentionConfig(r *v1alpha1.Retention) config.Retention {
	rendered := config.Retention{Days: int(r.Days), DeviceHours: int(r.DeviceHours), MaxEvents: r.MaxEvents}
	if r.IdentifiersDays != nil {
		rendered.IdentifiersDays = int(*r.IdentifiersDays)
	}
	return rendered
}

// retentionIn renders it for a Property with that history: identifiers that are kept for longer than Redis keeps events are kept
// for as long as those where there is none yet.
func retentionIn(history *config.History, r *v1alpha1.Retention) config.Retention {
	rendered := RetentionConfig(r)
	if history == nil && rendered.IdentifiersDays > rendered.Days {
		rendered.IdentifiersDays = 0
	}
	return rendered
}

// PropertyConfig renders what the pods know of a Property. The property must have its defaults. The error joins
// everything that the pods would refuse, one line each.
func PropertyConfig(property *v1alpha1.Property, options Options) (config.Property, error) {
	spec := &property.Spec
	history := historyConfig(spec, options.HistoryPending)
	rendered := config.Property{
		Namespace:                property.Namespace,
		Name:                     property.Name,
		Currency:                 spec.Currency,
		TimeZone:                 spec.TimeZone,
		DeduplicationWindowHours: int(spec.Deduplication.WindowHours),
		Retention:                retentionIn(history, &spec.Retention),
		History:                  history,
		Limits:                   config.Limits{MaxBodyBytes: spec.Limits.MaxBodyBytes},
		JoinIdentities:           spec.Identity.Join == nil || *spec.Identity.Join,
		Platforms:                make([]platforms.Platform, len(spec.Platforms)),
		Egress:                   config.Egress{AllowCIDRs: options.EgressAllowCIDRs, ProxyByName: options.DeliveryProxy.ByName},
		LogLevel:                 logLevel(property),
		Proxies:                  config.Proxies{TrustedCIDRs: options.TrustedProxyCIDRs},
	}
	if limit := spec.Limits.EventsPerSecond; limit != nil {
		rendered.Limits.EventsPerSecond = int(*limit)
	}
	if len(spec.EventAliases) > 0 {
		rendered.EventAliases = make(map[string]string, len(spec.EventAliases))
		for sent, name := range spec.EventAliases {
			rendered.EventAliases[sent] = string(name)
		}
	}
	if spec.Suppression == v1alpha1.SuppressionRefuse { // the other one is what holds where nothing is said
		rendered.Suppression = config.Refuse
	}
	exclude, err := excludeConfig(&spec.Exclude)
	rendered.Exclude = exclude
	rendered.Consent = consentConfig(spec.Consent, options.WithholdUnsaid)
	for _, origin := range spec.Query.AllowedOrigins {
		rendered.Query.AllowedOrigins = append(rendered.Query.AllowedOrigins, string(origin))
	}
	for i := range spec.Platforms {
		rendered.Platforms[i] = platformConfig(&spec.Platforms[i], options.PlatformEndpoints)
	}
	for _, source := range spec.Sources {
		rendered.Sources = append(rendered.Sources, sources.Source{
			Name: source.Name, Type: source.Type, ReadsOrders: source.APISecretRef != nil, Settings: source.Settings,
		})
	}
	return rendered, errors.Join(err, rendered.Validate())
}

// settingsConfig renders what people are told of a Property.
func settingsConfig(property *v1alpha1.Property, options Options) config.Settings {
	rendered := config.Settings{CollectURL: options.CollectURL, APIURL: options.APIURL}
	for _, key := range property.Spec.APIKeys {
		named := config.NamedKey{Name: key.Name, Publishable: key.Type == v1alpha1.APIKeyPublishable}
		for _, origin := range key.AllowedOrigins {
			named.AllowedOrigins = append(named.AllowedOrigins, string(origin))
		}
		rendered.APIKeys = append(rendered.APIKeys, named)
	}
	return rendered
}

// consoleConfig renders whose signed tokens the Property's read API takes. A Property's UID is no other's, not that of one which comes
// after it under the same name either.
func consoleConfig(property *v1alpha1.Property, options Options) auth.Verifier {
	if len(options.ConsoleKeys) == 0 {
		return auth.Verifier{}
	}
	return auth.Verifier{Audience: string(property.UID), Keys: options.ConsoleKeys}
}

// excludeConfig renders whose events do not count. The error names what is no range.
func excludeConfig(exclude *v1alpha1.Exclude) (config.Exclude, error) {
	rendered := config.Exclude{KeepBots: exclude.Bots != nil && !*exclude.Bots}
	var errs []error
	for i, text := range exclude.CIDRs {
		network, err := netip.ParsePrefix(string(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("exclude.cidrs[%d]: must be a range such as 203.0.113.0/24 or 2001:db8::/32", i))
			continue
		}
		rendered.CIDRs = append(rendered.CIDRs, network.Masked())
	}
	for _, host := range exclude.Hosts {
		rendered.Hosts = append(rendered.Hosts, string(host))
	}
	for _, id := range exclude.ClientIDs {
		rendered.ClientIDs = append(rendered.ClientIDs, string(id))
	}
	return rendered, errors.Join(errs...)
}

// consentConfig renders the rules by which visitors' decisions are kept. A Property may be stricter than the operator, not
// laxer.
func consentConfig(consent *v1alpha1.Consent, withholdUnsaid bool) config.Consent {
	var rendered config.Consent
	if consent != nil {
		rendered.WhenAbsent = consent.WhenAbsent
		for name, purposes := range consent.Categories {
			if rendered.Categories == nil {
				rendered.Categories = make(map[string][]platforms.Purpose, len(consent.Categories))
			}
			rendered.Categories[name] = purposes
		}
		for _, own := range consent.Platforms {
			platform := config.PlatformConsent{Name: own.Name, WhenAbsent: own.WhenAbsent}
			if own.Requires != nil {
				platform.Requires = append([]platforms.Purpose{}, *own.Requires...)
			}
			rendered.Platforms = append(rendered.Platforms, platform)
		}
	}
	if withholdUnsaid {
		rendered.WhenAbsent = platforms.Withhold
		for i := range rendered.Platforms {
			rendered.Platforms[i].WhenAbsent = ""
		}
	}
	return rendered
}

// platformConfig renders a platform.
func platformConfig(platform *v1alpha1.Platform, endpoints map[platforms.Type]string) platforms.Platform {
	rendered := platforms.Platform{
		Name: platform.Name, Type: platform.Type, Suspend: platform.Suspend, ForwardErasure: platform.ForwardErasure,
		EventNames: platform.EventNames, APIVersion: platform.APIVersion, Mode: platform.Mode,
		Endpoint: endpoints[platform.Type], Settings: platform.Settings,
	}
	for _, name := range platform.Events {
		rendered.Events = append(rendered.Events, string(name))
	}
	return rendered
}
