package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-json-experiment/json"
)

// Signed tokens are what the cluster's console shows the read API in place of an access token: JSON Web Tokens (RFC 7519) that are
// good for one property, for a minute at most, and signed with Ed25519 alone (RFC 8037).

// SignedFor is how long a signed token lasts.
const SignedFor = 30 * time.Second

// maxSignedFor bounds what is taken of others, clockSkew by how much their clock may be ahead.
const (
	maxSignedFor = time.Minute
	clockSkew    = 10 * time.Second
)

// signedIssuer is the claim iss, maxSignedBytes how long a token may be: a user's name is up to 512 characters.
const (
	signedIssuer   = "weir-console"
	maxSignedBytes = 8 << 10
)

// SigningKey signs tokens.
type SigningKey struct {
	// ID is the header kid: a digest of the public half.
	ID string `json:"kid"`
	// Seed is the private half, 32 random bytes.
	Seed []byte `json:"seed"`
	// Created is when the key was made.
	Created time.Time `json:"created"`
}

// NewSigningKey makes a key.
func NewSigningKey(now time.Time) SigningKey {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed) // never fails: crypto/rand ends the program instead
	key := SigningKey{Seed: seed, Created: now.UTC().Truncate(time.Second)}
	key.ID = key.Public().ID()
	return key
}

// ParseSigningKeys reads what json.Marshal writes of keys, of which there is at least one. The error repeats nothing of them.
func ParseSigningKeys(text []byte) ([]SigningKey, error) {
	var keys []SigningKey
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, errors.New("must be a list of keys in JSON, each with kid, seed and created")
	}
	if len(keys) == 0 {
		return nil, errors.New("must have a key at least")
	}
	for i, key := range keys {
		if len(key.Seed) != ed25519.SeedSize || key.ID != key.Public().ID() {
			return nil, fmt.Errorf("[%d]: must have a seed of %d bytes and the kid of that", i, ed25519.SeedSize)
		}
	}
	return keys, nil
}

// Public is the half that verifies.
func (k SigningKey) Public() PublicKey {
	if len(k.Seed) != ed25519.SeedSize {
		return nil
	}
	public, _ := ed25519.NewKeyFromSeed(k.Seed).Public().(ed25519.PublicKey)
	return PublicKey(public)
}

// PublicKey verifies signed tokens. In JSON it is 43 digits of unpadded base64url.
type PublicKey []byte

// ID is the header kid of the tokens that the key verifies.
func (k PublicKey) ID() string {
	sum := sha256.Sum256(k)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// MarshalText returns 43 digits of base64url.
func (k PublicKey) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, k), nil
}

// UnmarshalText reads them.
func (k *PublicKey) UnmarshalText(text []byte) error {
	key, err := base64.RawURLEncoding.Strict().DecodeString(string(text))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return errors.New("must be an Ed25519 public key, 43 digits of base64url")
	}
	*k = key
	return nil
}

// signedClaims are a signed token's: iss, sub, aud, iat, exp and scope.
type signedClaims struct {
	jwt.Claims
	Scope Scope `json:"scope"`
}

// Sign returns a token with which user may do what scope allows at the property that has an audience, from now on.
func (k SigningKey) Sign(user, audience string, scope Scope, now time.Time) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{
		Key: ed25519.NewKeyFromSeed(k.Seed), KeyID: k.ID, Algorithm: string(jose.EdDSA),
	}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(signedClaims{jwt.Claims{
		Issuer: signedIssuer, Subject: user, Audience: jwt.Audience{audience}, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(SignedFor)),
	}, scope}).Serialize()
}

// Verifier takes signed tokens. The zero value takes none.
type Verifier struct {
	// Audience is the property's UID.
	Audience string `json:"audience,omitempty"`
	// Keys are those of the console.
	Keys []PublicKey `json:"keys,omitempty"`
}

// LooksSigned says whether a bearer token is a signed one, rather than one of [NewAccessToken].
func LooksSigned(token string) bool { return strings.Count(token, ".") == 2 }

// Verify returns what a signed token stands for at now: the user as its name, and the scope.
func (v *Verifier) Verify(token string, now time.Time) (Credential, bool) {
	if v.Audience == "" || len(token) > maxSignedBytes || !LooksSigned(token) {
		return Credential{}, false
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(parsed.Headers) != 1 {
		return Credential{}, false
	}
	at := slices.IndexFunc(v.Keys, func(key PublicKey) bool { return key.ID() == parsed.Headers[0].KeyID })
	if at < 0 {
		return Credential{}, false
	}
	var claims signedClaims
	if err := parsed.Claims(ed25519.PublicKey(v.Keys[at]), &claims); err != nil || claims.IssuedAt == nil || claims.Expiry == nil {
		return Credential{}, false
	}
	expected := jwt.Expected{Issuer: signedIssuer, AnyAudience: jwt.Audience{v.Audience}, Time: now}
	lasts := claims.Expiry.Time().Sub(claims.IssuedAt.Time())
	if claims.ValidateWithLeeway(expected, clockSkew) != nil || lasts <= 0 || lasts > maxSignedFor || !now.Before(claims.Expiry.Time()) ||
		len(claims.Audience) != 1 || claims.Subject == "" || !claims.Scope.Valid() {
		return Credential{}, false
	}
	end := claims.Expiry.Time()
	return Credential{Name: claims.Subject, Scope: claims.Scope, ExpirationTime: &end}, true
}
