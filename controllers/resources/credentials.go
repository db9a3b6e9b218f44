package resources

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
)

// Credentials are a Property's API keys and access tokens: the spec's in the clear, by their names there, which are shown to the
// owner in one Secret, while pods get their hashes.
type Credentials struct {
	APIKeys      map[string]string
	AccessTokens map[string]string
	// MadeAPIKeys and MadeAccessTokens are those that are objects of their own, of which nobody but their makers has more than the
	// hash. None has a name or a hash that another one has.
	MadeAPIKeys, MadeAccessTokens []auth.Credential
}

// Hashes returns of what [Build] does the Secrets with the hashes of keys and tokens, whatever else is wrong with the spec: who
// revokes a key does not wait for somebody to mend that.
func Hashes(property *v1alpha1.Property, credentials Credentials) ([]Object, error) {
	keys, err := credentials.apiKeyHashes(property.Spec.APIKeys)
	if err != nil {
		return nil, err
	}
	tokens, err := credentials.accessTokenHashes(property.Spec.AccessTokens)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for path, list := range map[string][]auth.Credential{config.APIKeysFile: keys, config.AccessTokensFile: tokens} {
		if files[path], err = file(path, list); err != nil {
			return nil, err
		}
	}
	return hashObjects(property, files), nil
}

// minBroughtLength is how short a key or token that an owner brings may be: 16 random letters and digits are some 95 bits.
const minBroughtLength = 16

// BroughtAPIKey reads an API key that its owner brings in a Secret. A line end behind it, which editors and echo
// leave, is not part of it. The error says what would be right and never repeats the key.
func BroughtAPIKey(value string) (string, error) {
	key, fit := brought(value)
	if !fit || strings.Contains(key, "/") {
		return "", errors.New("an API key must be at least 16 visible ASCII characters without '/'")
	}
	return key, nil
}

// BroughtAccessToken reads an access token that its owner brings, likewise. It stands in a header, where '/' ends nothing.
func BroughtAccessToken(value string) (string, error) {
	token, fit := brought(value)
	if !fit {
		return "", errors.New("an access token must be at least 16 visible ASCII characters")
	}
	return token, nil
}

func brought(value string) (secret string, fit bool) {
	secret = strings.TrimRight(value, "\r\n")
	unfit := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	return secret, len(secret) >= minBroughtLength && strings.IndexFunc(secret, unfit) < 0
}

// apiKeyHashes returns what the collector knows of API keys: the spec's, in the spec's order, then the others.
func (c Credentials) apiKeyHashes(keys []v1alpha1.PropertyAPIKey) ([]auth.Credential, error) {
	hashes := make([]auth.Credential, 0, len(keys))
	for i, key := range keys {
		secret := c.APIKeys[key.Name]
		if secret == "" {
			return nil, fmt.Errorf("spec.apiKeys[%d]: there is no key %q", i, key.Name)
		}
		hashes = append(hashes, auth.Credential{Name: key.Name, Hash: auth.HashOf(secret), Publishable: publishable(&key)})
	}
	if err := config.CheckAPIKeys(hashes); err != nil {
		return nil, fmt.Errorf("spec.apiKeys%w", err)
	}
	return append(hashes, c.MadeAPIKeys...), nil
}

// Expiration is when a key or token stops working, as pods are told; nil for never. Behind the year 9999, which an offset can lead
// beyond, there is nothing that JSON could say.
func Expiration(at *metav1.Time) *time.Time {
	if at == nil {
		return nil
	}
	utc := at.UTC()
	if last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC); utc.After(last) {
		utc = last
	}
	return &utc
}

// publishable returns what bounds a publishable key, nil for a secret one.
func publishable(key *v1alpha1.PropertyAPIKey) *auth.Publishable {
	if key.Type != v1alpha1.APIKeyPublishable {
		return nil
	}
	limits := key.Limits
	if limits == nil {
		limits = &v1alpha1.APIKeyLimits{}
	}
	origins := make([]string, len(key.AllowedOrigins))
	for i, origin := range key.AllowedOrigins {
		origins[i] = string(origin)
	}
	return &auth.Publishable{
		AllowedOrigins:            origins,
		EventsPerSecond:           int(ptr.Deref(limits.EventsPerSecond, v1alpha1.DefaultKeyEventsPerSecond)),
		EventsPerSecondPerAddress: int(ptr.Deref(limits.EventsPerSecondPerAddress, v1alpha1.DefaultKeyEventsPerSecondPerAddress)),
	}
}

// accessTokenHashes returns what the read API knows of access tokens: the spec's, in the spec's order, then the others.
func (c Credentials) accessTokenHashes(tokens []v1alpha1.PropertyAccessToken) ([]auth.Credential, error) {
	hashes := make([]auth.Credential, 0, len(tokens))
	for i, token := range tokens {
		secret := c.AccessTokens[token.Name]
		if secret == "" {
			return nil, fmt.Errorf("spec.accessTokens[%d]: there is no token %q", i, token.Name)
		}
		hashes = append(hashes, auth.Credential{
			Name: token.Name, Hash: auth.HashOf(secret), Scope: auth.Scope(token.GrantedScope()), ExpirationTime: Expiration(token.ExpirationTime),
		})
	}
	return append(hashes, c.MadeAccessTokens...), nil
}
