package personal

import (
	"crypto/sha256"

	"github.com/weir-dev/weir/collector/event"
)

// hashes returns the wanted variants of what is known; email and name are the person's, trimmed, the address also in lower
// case, and so is a name in ASCII.
func (p *Person) hashes(email, name string, wanted event.VariantSet) event.Hashes {
	var h event.Hashes
	put := func(v event.Variant, normalised string) {
		if normalised != "" {
			h[v] = sha256.Sum256([]byte(normalised))
		}
	}
	if !isPlaceholder(email) {
		for v := event.EmailLower; v <= event.EmailAlnum; v++ {
			if wanted.Has(v) {
				put(v, normaliseEmail(v, email))
			}
		}
	}
	if p.Phone != "" {
		put(event.PhoneDigits, p.Phone[1:])
		if wanted.Has(event.PhoneE164) {
			put(event.PhoneE164, p.Phone)
		}
	}
	if !isPlaceholder(name) {
		for v := event.FirstNameMeta; v <= event.FirstNameLower; v++ {
			if wanted.Has(v) {
				put(v, normaliseFirstName(v, name))
			}
		}
	}
	keep := func(v event.Variant, given event.Hash) {
		if wanted.Has(v) && !given.IsZero() && !isPlaceholderHash(given) {
			h[v] = given
		}
	}
	keep(event.EmailLower, p.EmailHash)
	keep(event.PhoneDigits, p.PhoneHash)
	keep(event.FirstNameLower, p.FirstNameHash)
	return h
}

// ExternalID is the hash as which an advertising platform gets a client's id: of the id trimmed and lower-cased, or the id
// itself where the caller has hashed it already. It is zero where there is no client.
func ExternalID(clientID string) event.Hash {
	id := Trim(clientID)
	if IsNobody(id) {
		return event.Hash{}
	}
	if hash, ok := event.ParseHash(id); ok {
		return hash
	}
	return sha256.Sum256([]byte(lower(id)))
}
