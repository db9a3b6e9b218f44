package auth_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
)

func TestGeneratedSecretsHaveAPrefixBase62DigitsAndAChecksum(t *testing.T) {
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for name, c := range map[string]struct {
		make   func() string
		prefix string
	}{
		"API keys begin with wk_":      {auth.NewAPIKey, "wk_"},
		"publishable keys with wp_":    {auth.NewPublishableKey, "wp_"},
		"access tokens begin with wt_": {auth.NewAccessToken, "wt_"},
	} {
		t.Run(name, func(t *testing.T) {
			seen, digits := map[string]bool{}, map[rune]bool{}
			for range 500 {
				secret := c.make()
				body, found := strings.CutPrefix(secret, c.prefix)
				if !found || len(body) != 27+6 || strings.Trim(body, base62) != "" {
					t.Fatalf("got %q, want %s and 33 base62 digits", secret, c.prefix)
				}
				if !auth.WellFormed(secret) {
					t.Fatalf("%q is not well-formed", secret)
				}
				if seen[secret] {
					t.Fatalf("%q was made twice", secret)
				}
				seen[secret] = true
				for _, digit := range body[:27] {
					digits[digit] = true
				}
			}
			// 13,500 digits: that a given one of 62 is missing has a chance below 1e-90.
			if len(digits) != len(base62) {
				t.Errorf("%d different digits were used, want all %d", len(digits), len(base62))
			}
		})
	}
}

func TestWellFormedTellsSecretsFromLookAlikes(t *testing.T) {
	// The checksum is pinned: scanners elsewhere compute it, so it may never change.
	const known = "wk_0123456789ABCDEFGHIJKLMNOPQ" + "2WYluI"
	for name, c := range map[string]struct {
		secret string
		want   bool
	}{
		"a known key":                        {known, true},
		"a changed digit":                    {strings.Replace(known, "Q", "R", 1), false},
		"two digits swapped":                 {strings.Replace(known, "01", "10", 1), false},
		"a changed checksum":                 {known[:len(known)-1] + "x", false},
		"a changed prefix":                   {"wt_" + known[3:], false},
		"an unknown prefix":                  {"sk_" + known[3:], false},
		"no prefix":                          {known[3:], false},
		"one digit less":                     {known[:len(known)-1], false},
		"one digit more":                     {known + "0", false},
		"white space behind":                 {known + "\n", false},
		"the prefix alone":                   {"wk_", false},
		"the empty text":                     {"", false},
		"a key that its owner brought along": {"correct-horse-battery-staple", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := auth.WellFormed(c.secret); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestHashIsReadAsSixtyFourHexadecimalDigits(t *testing.T) {
	// SHA-256 of "abc", from FIPS 180-4.
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"lower-case digits": {abc, true},
		"upper-case digits": {strings.ToUpper(abc), true},
		"one digit less":    {abc[1:], false},
		"two digits less":   {abc[2:], false},
		"two digits more":   {abc + "00", false},
		"no hexadecimal":    {"g" + abc[1:], false},
		"nothing":           {"", false},
		"the secret itself": {"wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI", false},
	} {
		t.Run(name, func(t *testing.T) {
			var hash auth.Hash
			err := hash.UnmarshalText([]byte(c.text))
			switch {
			case c.want && (err != nil || hash != auth.HashOf("abc")):
				t.Errorf("got %x, %v, want the hash of abc", hash, err)
			case !c.want && err == nil:
				t.Error("got no error, want one")
			case !c.want && c.text != "" && strings.Contains(err.Error(), c.text):
				t.Errorf("the error repeats the text: %v", err)
			}
		})
	}
	text, err := auth.HashOf("abc").MarshalText()
	if err != nil || string(text) != abc {
		t.Errorf("got %s, %v, want %s", text, err, abc)
	}
}

func TestScopesIncludeTheOnesBeforeThem(t *testing.T) {
	scopes := []auth.Scope{auth.ScopeRead, auth.ScopeWrite, auth.ScopeAdmin}
	for i, have := range scopes {
		for j, needed := range scopes {
			if got, want := have.Allows(needed), i >= j; got != want {
				t.Errorf("%s for a call that needs %s: got %v, want %v", have, needed, got, want)
			}
		}
	}
	for _, unknown := range []auth.Scope{"", "root", "READ"} {
		if unknown.Valid() || unknown.Allows(auth.ScopeRead) || auth.ScopeAdmin.Allows(unknown) {
			t.Errorf("scope %q is unknown, and yet valid, or allows or is allowed something", unknown)
		}
	}
}

func TestMatchFindsTheCredentialThatHasNotExpired(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { moment := now.Add(d); return &moment }
	credentials := []auth.Credential{
		{Name: "server", Hash: auth.HashOf("server-secret")},
		{Name: "rotated", Hash: auth.HashOf("rotated-secret"), ExpirationTime: at(time.Second)},
		{Name: "old", Hash: auth.HashOf("old-secret"), ExpirationTime: at(0)},
		{Name: "expired twin", Hash: auth.HashOf("twin-secret"), ExpirationTime: at(-time.Hour)},
		{Name: "twin", Hash: auth.HashOf("twin-secret"), Scope: auth.ScopeWrite},
		{Name: "later twin", Hash: auth.HashOf("twin-secret")},
	}
	for name, c := range map[string]struct {
		secret string
		want   string
	}{
		"the first one":                            {"server-secret", "server"},
		"one that expires later":                   {"rotated-secret", "rotated"},
		"one that expires now is no more":          {"old-secret", ""},
		"of equal ones the first that is not over": {"twin-secret", "twin"},
		"an unknown one":                           {"other-secret", ""},
		"a prefix of one":                          {"server-secre", ""},
		"nothing":                                  {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := auth.Match(credentials, c.secret, now)
			if got.Name != c.want || found != (c.want != "") {
				t.Errorf("got %q, %v, want %q", got.Name, found, c.want)
			}
			if byHash, known := auth.MatchHash(credentials, auth.HashOf(c.secret), now); known != found || byHash.Name != got.Name {
				t.Errorf("by its hash: got %q, %v, want %q, %v", byHash.Name, known, got.Name, found)
			}
			i, found := auth.Find(credentials, c.secret, now)
			if found != (c.want != "") || (found && credentials[i].Name != c.want) {
				t.Errorf("got index %d, %v, want that of %q", i, found, c.want)
			}
		})
	}
	if _, found := auth.Match(nil, "server-secret", now); found {
		t.Error("found something among no credentials")
	}
}

func TestCredentialsAreWrittenAsTheyAreRead(t *testing.T) {
	expires := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	want := []auth.Credential{
		{Name: "server", Hash: auth.HashOf("server-secret")},
		{Name: "ops", Hash: auth.HashOf("ops-secret"), Scope: auth.ScopeAdmin, ExpirationTime: &expires},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "-secret") {
		t.Errorf("a secret stands in the text: %s", text)
	}
	var got []auth.Credential
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzWellFormedAcceptsOnlyWhatHasItsChecksum(f *testing.F) {
	f.Add(auth.NewAPIKey())
	f.Add(auth.NewPublishableKey())
	f.Add(auth.NewAccessToken())
	f.Add("wk_")
	f.Add("")
	f.Fuzz(func(t *testing.T, secret string) {
		if !auth.WellFormed(secret) {
			return
		}
		if changed := secret[:3] + string(secret[3]^1) + secret[4:]; auth.WellFormed(changed) {
			t.Errorf("%q and %q are both well-formed", secret, changed)
		}
	})
}

// FuzzFind holds that a secret is found where it is the credential's own, byte by byte, and nowhere else.
func FuzzFind(f *testing.F) {
	f.Add("wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI", "wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI", 1)
	f.Add("wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI", "WK_0123456789ABCDEFGHIJKLMNOPQ2WYluI", 0)
	f.Add("", "\x00", 3)
	f.Fuzz(func(t *testing.T, secret, other string, at int) {
		credentials := make([]auth.Credential, 4)
		for i := range credentials {
			credentials[i].Hash = auth.HashOf("some other secret")
		}
		at &= 3
		credentials[at].Hash = auth.HashOf(other)
		got, found := auth.Find(credentials, secret, time.Unix(0, 0))
		if secret == "some other secret" {
			return
		}
		if found != (secret == other) || (found && got != at) {
			t.Errorf("Find(%q among the place %d of %q) = %d, %v", secret, at, other, got, found)
		}
	})
}

func BenchmarkMatchTwoCredentials(b *testing.B) {
	credentials := []auth.Credential{{Hash: auth.HashOf("one")}, {Hash: auth.HashOf("two")}}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, found := auth.Match(credentials, "wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI", now); found {
			b.Fatal("found an unknown one")
		}
	}
}
