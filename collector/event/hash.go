package event

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash is a SHA-256 of a person's normalised datum. The zero Hash means that there is none.
type Hash [sha256.Size]byte

// IsZero says that there is no hash.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns 64 lower-case hexadecimal digits, or "" for the zero Hash.
func (h Hash) String() string {
	if h.IsZero() {
		return ""
	}
	return hex.EncodeToString(h[:])
}

// ExternalID is the hash as which an advertising platform gets the client's id: of the id trimmed and lower-cased, or the id
// itself where the caller has hashed it already. It is zero where there is no client.
func (e *Event) ExternalID() Hash {
	id := trim(e.ClientID)
	if isNobody(id) {
		return Hash{}
	}
	if hash, ok := parseHash(id); ok {
		return hash
	}
	return sha256.Sum256([]byte(lower(id)))
}

// Variant names a normalisation of a person's datum before it is hashed; platforms differ in theirs.
type Variant uint8

// The variants, numbered as in the stream. New ones are appended.
const (
	// EmailLower: trimmed, lower-cased. Always kept: visitors are told apart by it.
	EmailLower Variant = iota
	// EmailGoogle: EmailLower; for gmail.com and googlemail.com also without dots and "+alias" in the local part.
	EmailGoogle
	// EmailMicrosoft: EmailLower without dots and "+alias" in the local part, for every domain.
	EmailMicrosoft
	// EmailAlnum: EmailLower without "+alias" and anything outside a-z0-9 in the local part, for every domain.
	EmailAlnum
	// PhoneDigits: the digits of the E.164 number. Always kept: visitors are told apart by it.
	PhoneDigits
	// PhoneE164: "+" and the digits.
	PhoneE164
	// FirstNameMeta: lower-cased, NFC, without white space and ASCII punctuation.
	FirstNameMeta
	// FirstNameLower: trimmed, lower-cased.
	FirstNameLower

	variantCount
)

// VariantSet is a set of variants.
type VariantSet uint16

// Variants makes a set.
func Variants(list ...Variant) VariantSet {
	var s VariantSet
	for _, v := range list {
		s |= 1 << v
	}
	return s
}

// Has says whether v is in the set.
func (s VariantSet) Has(v Variant) bool { return s&(1<<v) != 0 }

// Union returns the variants of both sets.
func (s VariantSet) Union(o VariantSet) VariantSet { return s | o }

// Hashes are what is left of a person: one hash per variant that was needed at acceptance, zero elsewhere.
type Hashes [variantCount]Hash

// Get returns one variant's hash.
func (h *Hashes) Get(v Variant) Hash { return h[v] }
