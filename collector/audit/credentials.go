package audit

import (
	"log/slog"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/auth"
)

// CredentialOf returns an API key or access token as an actor, or as what is acted on.
func CredentialOf(c auth.Credential) Party {
	switch {
	case c.Scope != "":
		return Party{Kind: AccessToken, Name: c.Name, Scope: string(c.Scope)}
	case c.Publishable != nil:
		return Party{Kind: PublishableKey, Name: c.Name}
	}
	return Party{Kind: APIKey, Name: c.Name}
}

// sameCredential says whether two credentials are one: of the same name and of the same kind, whatever the rights.
func sameCredential(a, b auth.Credential) bool {
	return a.Name == b.Name && CredentialOf(a).Kind == CredentialOf(b).Kind
}

// CredentialChanges returns what has become of a property's API keys, or of its access tokens: what was revoked in the order
// of before, then the rest in the order of after. A key that becomes publishable, or secret, is another one.
func CredentialChanges(property string, actor Party, before, after []auth.Credential) []Entry {
	var entries []Entry
	add := func(act Act, c auth.Credential, details ...slog.Attr) {
		entries = append(entries, Entry{Act: act, Property: property, Actor: actor, Object: CredentialOf(c), Outcome: Success, Details: details})
	}
	for _, c := range before {
		if !slices.ContainsFunc(after, func(a auth.Credential) bool { return sameCredential(a, c) }) {
			add(CredentialRevoked, c)
		}
	}
	for _, c := range after {
		i := slices.IndexFunc(before, func(b auth.Credential) bool { return sameCredential(b, c) })
		if i < 0 {
			add(CredentialAdded, c)
			continue
		}
		if before[i].Hash != c.Hash {
			add(CredentialReplaced, c)
		}
		if members := changedMembers(before[i], c); len(members) > 0 {
			add(CredentialChanged, c, slog.Any("members", members))
		}
	}
	return entries
}

// changedMembers names what one may do otherwise than before, as the Property names it.
func changedMembers(before, after auth.Credential) []string {
	var members []string
	if before.Scope != after.Scope {
		members = append(members, "scope")
	}
	if !sameTime(before.ExpirationTime, after.ExpirationTime) {
		members = append(members, "expirationTime")
	}
	if before.Publishable == nil || after.Publishable == nil {
		return members
	}
	if !slices.Equal(before.Publishable.AllowedOrigins, after.Publishable.AllowedOrigins) {
		members = append(members, "allowedOrigins")
	}
	if before.Publishable.EventsPerSecond != after.Publishable.EventsPerSecond ||
		before.Publishable.EventsPerSecondPerAddress != after.Publishable.EventsPerSecondPerAddress {
		members = append(members, "limits")
	}
	return members
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
