package audit_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
)

func key(name, value string) auth.Credential {
	return auth.Credential{Name: name, Hash: auth.HashOf(value)}
}

func publishable(name, value string, origins ...string) auth.Credential {
	return auth.Credential{Name: name, Hash: auth.HashOf(value), Publishable: &auth.Publishable{AllowedOrigins: origins, EventsPerSecond: 10}}
}

func token(name, value string, scope auth.Scope, expires ...time.Time) auth.Credential {
	c := auth.Credential{Name: name, Hash: auth.HashOf(value), Scope: scope}
	for i := range expires {
		c.ExpirationTime = &expires[i]
	}
	return c
}

func TestCredentialChanges(t *testing.T) {
	type list = []auth.Credential
	for sentence, row := range map[string]struct {
		before, after list
		want          []string
	}{
		"nothing changes": {list{key("a", "1"), token("t", "2", "read", noon)}, list{key("a", "1"), token("t", "2", "read", noon.Local())}, nil},
		"the first ones are added, in their order": {nil, list{key("b", "1"), publishable("a", "2"), token("t", "3", "admin")}, []string{
			"credential.added api_key b", "credential.added publishable_key a", "credential.added access_token t admin",
		}},
		"one that is gone is revoked":                    {list{key("a", "1"), key("b", "2")}, list{key("b", "2")}, []string{"credential.revoked api_key a"}},
		"another value of the same name replaces it":     {list{key("a", "1")}, list{key("a", "2")}, []string{"credential.replaced api_key a"}},
		"another place is no change":                     {list{key("a", "1"), key("b", "2")}, list{key("b", "2"), key("a", "1")}, nil},
		"a key that becomes publishable is another one":  {list{key("a", "1")}, list{publishable("a", "2")}, []string{"credential.revoked api_key a", "credential.added publishable_key a"}},
		"a token of another scope is changed":            {list{token("t", "1", "read")}, list{token("t", "1", "admin")}, []string{"credential.changed access_token t admin [scope]"}},
		"a token that shall end is changed":              {list{token("t", "1", "read")}, list{token("t", "1", "read", noon)}, []string{"credential.changed access_token t read [expirationTime]"}},
		"a token that shall end later is changed":        {list{token("t", "1", "read", noon)}, list{token("t", "1", "read", noon.Add(time.Hour))}, []string{"credential.changed access_token t read [expirationTime]"}},
		"a key for another site is changed":              {list{publishable("a", "1", "https://a.example")}, list{publishable("a", "1", "https://b.example")}, []string{"credential.changed publishable_key a [allowedOrigins]"}},
		"a replaced one may be changed as well":          {list{token("t", "1", "read")}, list{token("t", "2", "write")}, []string{"credential.replaced access_token t write", "credential.changed access_token t write [scope]"}},
		"where all go there is a line for each of them":  {list{key("a", "1"), token("t", "2", "read")}, nil, []string{"credential.revoked api_key a", "credential.revoked access_token t read"}},
		"a value under another name is another one, too": {list{key("a", "1")}, list{key("b", "1")}, []string{"credential.revoked api_key a", "credential.added api_key b"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, entry := range audit.CredentialChanges("default/shop", audit.Party{Kind: audit.Operator}, row.before, row.after) {
				words := []string{string(entry.Act), string(entry.Object.Kind), entry.Object.Name}
				if entry.Object.Scope != "" {
					words = append(words, entry.Object.Scope)
				}
				for _, detail := range entry.Details {
					words = append(words, detail.Value.String())
				}
				got = append(got, strings.Join(words, " "))
				if entry.Property != "default/shop" || entry.Actor.Kind != audit.Operator || entry.Outcome != audit.Success {
					t.Errorf("the entry is %+v", entry)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// A log is read by many who must not have the keys.
func TestNoValueOfAKeyStandsInTheLog(t *testing.T) {
	const secret = "wk_secret"
	var lines bytes.Buffer
	log := audit.New(&lines, slog.New(slog.DiscardHandler), clock)
	for _, entry := range audit.CredentialChanges("default/shop", audit.Party{Kind: audit.Operator}, nil, []auth.Credential{key("a", secret)}) {
		log.Write(t.Context(), entry)
	}
	hash, err := auth.HashOf(secret).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if text := lines.String(); text == "" || strings.Contains(text, secret) || strings.Contains(text, string(hash[:8])) {
		t.Errorf("the line is %s", text)
	}
}
