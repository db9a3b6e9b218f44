package query

import (
	"net/http"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/sources"
)

type settingsAnswer struct {
	Data settingsRecord `json:"data"`
}

// settingsRecord is what a property is like: names and rules, no keys and no tokens.
type settingsRecord struct {
	Property      string  `json:"property"`
	Namespace     string  `json:"namespace"`
	CollectURL    *string `json:"collect_url"`
	APIURL        *string `json:"api_url"`
	Currency      string  `json:"currency"`
	TimeZone      string  `json:"time_zone"`
	RetentionDays int     `json:"retention_days"`

	APIKeys      []keySetting      `json:"api_keys"`
	AccessTokens []tokenSetting    `json:"access_tokens"`
	Platforms    []platformSetting `json:"platforms"`
	Sources      []sourceSetting   `json:"sources"`
}

// keySetting is an API key. AllowedOrigins is null for a secret one, Key but for who sits at the machine of `weir dev`.
type keySetting struct {
	Name           string    `json:"name"`
	Type           string    `json:"type"`
	AllowedOrigins *[]string `json:"allowed_origins"`
	Key            *string   `json:"key"`
}

// tokenSetting is an access token. ExpiresAt is null for one that does not expire.
type tokenSetting struct {
	Name      string     `json:"name"`
	Scope     auth.Scope `json:"scope"`
	ExpiresAt *string    `json:"expires_at"`
}

type platformSetting struct {
	Platform  string         `json:"platform"`
	Type      platforms.Type `json:"type"`
	Mode      string         `json:"mode"`
	Suspended bool           `json:"suspended"`
}

type sourceSetting struct {
	Name string       `json:"name"`
	Type sources.Type `json:"type"`
}

// The types of API keys, as people read them.
const (
	typeSecret      = "Secret"
	typePublishable = "Publishable"
)

// settings answers GET /properties/{property}/settings.
func (h *Handler) settings(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" || !withoutParameters(w, r) {
		return
	}
	property := &t.Property
	record := settingsRecord{
		Property: property.Name, Namespace: property.Namespace,
		CollectURL: optional(t.Settings.CollectURL), APIURL: optional(t.Settings.APIURL),
		Currency: property.Currency, TimeZone: property.TimeZone, RetentionDays: property.Retention.Days,
		APIKeys: h.keySettings(t), AccessTokens: []tokenSetting{}, Platforms: []platformSetting{}, Sources: []sourceSetting{},
	}
	for _, token := range t.Tokens {
		if token.Prefix != "" { // people have made it for themselves: the console shows it to whoever may see it
			continue
		}
		setting := tokenSetting{Name: token.Name, Scope: token.Scope}
		if token.ExpirationTime != nil {
			setting.ExpiresAt = optional(instant(*token.ExpirationTime))
		}
		record.AccessTokens = append(record.AccessTokens, setting)
	}
	for _, platform := range property.Platforms {
		record.Platforms = append(record.Platforms, platformSetting{platform.Name, platform.Type, modeName(platform.Mode), platform.Suspend})
	}
	for _, source := range property.Sources {
		record.Sources = append(record.Sources, sourceSetting{source.Name, source.Type})
	}
	server.JSON(w, http.StatusOK, settingsAnswer{record})
}

// keySettings lists the API keys; with the keys themselves for who sits at the machine of `weir dev`.
func (h *Handler) keySettings(t *Tenant) []keySetting {
	list := []keySetting{}
	for _, key := range t.Settings.APIKeys {
		setting := keySetting{Name: key.Name, Type: typeSecret}
		if key.Publishable {
			setting.Type, setting.AllowedOrigins = typePublishable, &key.AllowedOrigins
		}
		if h.local != nil && t.atTheMachine {
			setting.Key = optional(h.local.APIKeys[propertyOf(t)][key.Name])
		}
		list = append(list, setting)
	}
	return list
}
