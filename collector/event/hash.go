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

// ParseHash reads 64 hexadecimal digits of either case.
func ParseHash(s string) (Hash, bool) {
	var h Hash
	if len(s) != hex.EncodedLen(len(h)) {
		return Hash{}, false
	}
	_, err := hex.Decode(h[:], []byte(s))
	return h, err == nil
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
	// LastNameMeta and LastNameLower: as the first name's.
	LastNameMeta
	LastNameLower
	// Street: trimmed, lower-cased, with single spaces.
	Street
	// City and State: lower-cased, NFC, without white space and ASCII punctuation.
	City
	State
	// Zip: as City; of an American ZIP+4 code the first five digits.
	Zip
	// DateOfBirth: YYYYMMDD.
	DateOfBirth
	// Gender: f, m, or n for any other.
	Gender

	variantCount
)

// VariantSet is a set of variants.
type VariantSet uint32

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
