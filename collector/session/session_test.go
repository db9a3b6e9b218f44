package session_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/session"
)

var noon = time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)

func keys(t testing.TB, text ...string) []session.Key {
	t.Helper()
	parsed, err := session.ParseKeys(strings.Join(text, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestASessionIsOpenedByItsKeyForItsPropertyUntilItEnds(t *testing.T) {
	first, second := session.NewKey(), session.NewKey()
	sealed := session.Session{Token: auth.HashOf("wt_token"), ExpirationTime: noon.Add(time.Hour), Loopback: true}
	value := keys(t, first)[0].Seal("default/shop", sealed)
	flip := func(at int) string {
		bytes, err := base64.RawURLEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		bytes[(at+len(bytes))%len(bytes)] ^= 1
		return base64.RawURLEncoding.EncodeToString(bytes)
	}
	for name, c := range map[string]struct {
		keys     []session.Key
		property string
		value    string
		now      time.Time
		want     bool
	}{
		"with its key":                       {keys(t, first), "default/shop", value, noon, true},
		"a moment before it ends":            {keys(t, first), "default/shop", value, noon.Add(time.Hour - 1), true},
		"not when it ends":                   {keys(t, first), "default/shop", value, noon.Add(time.Hour), false},
		"with a key that seals no more":      {keys(t, second, first), "default/shop", value, noon, true},
		"not with another key":               {keys(t, second), "default/shop", value, noon, false},
		"not without a key":                  {nil, "default/shop", value, noon, false},
		"not for a property of another name": {keys(t, first), "default/blog", value, noon, false},
		"not for one of another namespace":   {keys(t, first), "other/shop", value, noon, false},
		"not with a bit of its nonce changed": {
			keys(t, first), "default/shop", flip(0), noon, false,
		},
		"not with a bit of its text changed": {keys(t, first), "default/shop", flip(20), noon, false},
		"not with a bit of its tag changed":  {keys(t, first), "default/shop", flip(-1), noon, false},
		"not cut short":                      {keys(t, first), "default/shop", value[:8], noon, false},
		"not padded":                         {keys(t, first), "default/shop", value + "=", noon, false},
		"not nothing":                        {keys(t, first), "default/shop", "", noon, false},
		"not a token":                        {keys(t, first), "default/shop", "wt_token", noon, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, opened := session.Open(c.keys, c.property, c.value, c.now)
			if opened != c.want {
				t.Fatalf("opened: %v, want %v", opened, c.want)
			}
			if want := sealed; opened && (got.Token != want.Token || got.Loopback != want.Loopback || !got.ExpirationTime.Equal(want.ExpirationTime)) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestNoTwoCookiesAreAlike(t *testing.T) {
	key := keys(t, session.NewKey())[0]
	s := session.Session{Token: auth.HashOf("wt_token"), ExpirationTime: noon}
	if a, b := key.Seal("default/shop", s), key.Seal("default/shop", s); a == b {
		t.Error("two sign-ins have one cookie")
	}
}

func TestASessionEndsWithItsTokenOrAfterTwelveHours(t *testing.T) {
	soon, late := noon.Add(1500*time.Millisecond), noon.Add(48*time.Hour)
	for name, c := range map[string]struct {
		token auth.Credential
		want  time.Time
	}{
		"after twelve hours where the token has no end":   {auth.Credential{}, noon.Add(12 * time.Hour)},
		"after twelve hours where the token lasts longer": {auth.Credential{ExpirationTime: &late}, noon.Add(12 * time.Hour)},
		"in whole seconds, with a token that ends before": {auth.Credential{ExpirationTime: &soon}, noon.Add(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := session.Until(noon, c.token); !got.Equal(c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestKeysAreReadStrictlyAndNotRepeated(t *testing.T) {
	key := session.NewKey()
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"one":                                   {key, 1},
		"one with a line end":                   {key + "\r\n", 1},
		"several with an empty line":            {key + "\n\n" + session.NewKey() + "\n", 2},
		"none":                                  {"\n", 0},
		"one that is too short":                 {key[:42], 0},
		"one that is too long":                  {key + "A", 0},
		"one that is no base64url":              {strings.Repeat("+", 43), 0},
		"one that is fine, and one that is not": {key + "\nsecret", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := session.ParseKeys(c.text)
			if len(got) != c.want || (err == nil) != (c.want > 0) {
				t.Fatalf("got %d keys, %v, want %d", len(got), err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), key[:10])) {
				t.Errorf("the error repeats a key: %v", err)
			}
		})
	}
}

// FuzzOpen holds that nothing opens but what was sealed.
func FuzzOpen(f *testing.F) {
	ring := keys(f, session.NewKey())
	f.Add(keys(f, session.NewKey())[0].Seal("default/shop", session.Session{ExpirationTime: noon.Add(time.Hour)}), "default/shop")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, value, property string) {
		if s, opened := session.Open(ring, property, value, noon); opened {
			t.Errorf("%q opened as %+v", value, s)
		}
	})
}
