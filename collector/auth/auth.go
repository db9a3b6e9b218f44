// Package auth makes API keys and access tokens, and recognises them by their hashes. What it makes is shown
// to the Property's owner once; pods only ever hold SHA-256 hashes.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"time"
)

// Prefixes of what [NewAPIKey] and [NewAccessToken] make, so that a leaked one is recognised by scanners, and of what
// [NewPublishableKey] makes, so that scanners let it pass.
const (
	APIKeyPrefix         = "wk_"
	PublishableKeyPrefix = "wp_"
	AccessTokenPrefix    = "wt_"
)

const (
	base62         = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	randomDigits   = 27 // 160 bits
	checksumDigits = 6
)

// NewAPIKey returns "wk_", 27 random base62 digits and a 6-digit checksum.
func NewAPIKey() string { return generate(APIKeyPrefix) }

// NewPublishableKey returns "wp_", 27 random base62 digits and a 6-digit checksum.
func NewPublishableKey() string { return generate(PublishableKeyPrefix) }

// NewAccessToken returns "wt_", 27 random base62 digits and a 6-digit checksum.
func NewAccessToken() string { return generate(AccessTokenPrefix) }

func generate(prefix string) string {
	digits := make([]byte, 0, randomDigits)
	for buffer := make([]byte, 2*randomDigits); len(digits) < randomDigits; {
		rand.Read(buffer) // never fails: crypto/rand ends the program instead
		for _, b := range buffer {
			// The six low bits, without the two values that base62 lacks: no digit is likelier than another.
			if b &= 63; int(b) < len(base62) && len(digits) < randomDigits {
				digits = append(digits, base62[b])
			}
		}
	}
	secret := prefix + string(digits)
	return secret + checksum(secret)
}

// checksum is the CRC-32 of the prefix and random digits in base62, most significant digit first. It lets
// scanners tell a key from a look-alike; it is not a security measure.
func checksum(secret string) string {
	sum := crc32.ChecksumIEEE([]byte(secret))
	var digits [checksumDigits]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i], sum = base62[sum%62], sum/62
	}
	return string(digits[:])
}

// WellFormed says whether secret has the form and checksum of something that this package made.
func WellFormed(secret string) bool {
	at := len(secret) - checksumDigits
	return len(secret) == len(APIKeyPrefix)+randomDigits+checksumDigits && checksum(secret[:at]) == secret[at:] &&
		slices.Contains([]string{APIKeyPrefix, PublishableKeyPrefix, AccessTokenPrefix}, secret[:len(APIKeyPrefix)])
}

// Hash is the SHA-256 of a key or token.
type Hash [sha256.Size]byte

// HashOf hashes a key or token as the caller sent it.
func HashOf(secret string) Hash {
	var buffer [64]byte // which the keys and tokens of ours fit into
	return sha256.Sum256(append(buffer[:0], secret...))
}

// MarshalText returns 64 lower-case hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (h *Hash) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*len(h) {
		return fmt.Errorf("a SHA-256 hash must be %d hexadecimal digits", 2*len(h))
	}
	return nil
}

// Scope is what an access token may do. Each scope includes the ones before it.
type Scope string

// The scopes of access tokens, narrowest first.
const (
	ScopeRead  Scope = "read"
	ScopeWrite Scope = "write"
	ScopeAdmin Scope = "admin"
)

var scopeRank = map[Scope]int{ScopeRead: 1, ScopeWrite: 2, ScopeAdmin: 3}

// Valid says whether s is one of the scopes.
func (s Scope) Valid() bool { return scopeRank[s] > 0 }

// Allows says whether a token of scope s may make a call that needs scope needed.
func (s Scope) Allows(needed Scope) bool {
	return s.Valid() && needed.Valid() && scopeRank[s] >= scopeRank[needed]
}

// Credential is one API key or access token as pods know it: by its hash.
type Credential struct {
	Name string `json:"name"`
	Hash Hash   `json:"sha256"`
	// Scope is empty for API keys.
	Scope Scope `json:"scope,omitempty"`
	// ExpirationTime is nil for a credential that does not expire.
	ExpirationTime *time.Time `json:"expirationTime,omitempty"`
	// Prefix, where it is not "", is how the key or token begins, and it is well-formed: others can read such a hash, and could
	// guess what is not random.
	Prefix string `json:"prefix,omitempty"`
	// Publishable bounds an API key that stands in web pages; nil for keys that are secret, and for access tokens.
	Publishable *Publishable `json:"publishable,omitempty"`
}

// expired says whether the credential is of no more use at now.
func (c *Credential) expired(now time.Time) bool {
	return c.ExpirationTime != nil && !now.Before(*c.ExpirationTime)
}

// Find returns the index of the credential that secret is, among those that have not expired at now; the first
// where several are. Every credential is looked at in constant time, so how long it takes tells neither whether
// nor where one was found, nor how close a guess came.
func Find(credentials []Credential, secret string, now time.Time) (int, bool) {
	form := ""
	if WellFormed(secret) {
		form = secret[:len(APIKeyPrefix)]
	}
	return find(credentials, HashOf(secret), now, func(c *Credential) bool { return c.Prefix == "" || c.Prefix == form })
}

// find looks among the credentials that are fit and have not expired.
func find(credentials []Credential, hash Hash, now time.Time, fit func(*Credential) bool) (int, bool) {
	found := -1
	for i := len(credentials) - 1; i >= 0; i-- {
		equal := subtle.ConstantTimeCompare(hash[:], credentials[i].Hash[:])
		if credentials[i].expired(now) || !fit(&credentials[i]) {
			equal = 0
		}
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	return found, found >= 0
}

// Match returns the credential that [Find] finds.
func Match(credentials []Credential, secret string, now time.Time) (Credential, bool) {
	return at(credentials)(Find(credentials, secret, now))
}

// MatchHash is [Match] for whoever has only the hash of what was found before.
func MatchHash(credentials []Credential, hash Hash, now time.Time) (Credential, bool) {
	return at(credentials)(find(credentials, hash, now, func(*Credential) bool { return true }))
}

func at(credentials []Credential) func(int, bool) (Credential, bool) {
	return func(i int, found bool) (Credential, bool) {
		if !found {
			return Credential{}, false
		}
		return credentials[i], true
	}
}
