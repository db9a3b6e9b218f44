package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/session"
)

func TestSettingsAreReadWhereThereAreAny(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  config.Settings
		err   string
	}{
		"all of them": {
			map[string]string{config.SettingsFile: `{"collectURL": "https://collect.example", "apiURL": "https://api.example", ` +
				`"apiKeys": [{"name": "server"}, {"name": "web", "publishable": true, "allowedOrigins": ["https://a.example"]}]}`},
			config.Settings{
				CollectURL: "https://collect.example", APIURL: "https://api.example",
				APIKeys: []config.NamedKey{{Name: "server"}, {Name: "web", Publishable: true, AllowedOrigins: []string{"https://a.example"}}},
			}, "",
		},
		"none without a file":   {nil, config.Settings{}, ""},
		"none of a broken file": {map[string]string{config.SettingsFile: `{"apiKeys": 1}`}, config.Settings{}, config.SettingsFile + ": apiKeys: must be an array"},
		"none with a member that is not known": {
			map[string]string{config.SettingsFile: `{"key": "wk_secret"}`}, config.Settings{}, config.SettingsFile + ": key: is not known to this version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.LoadSettings(directory(t, c.files))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
		})
	}
}

func TestSessionKeysAreReadWhereThereAreAny(t *testing.T) {
	first, second := session.NewKey(), session.NewKey()
	now := time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)
	sealedBy := func(text string) string {
		keys, err := session.ParseKeys(text)
		if err != nil {
			t.Fatal(err)
		}
		return keys[0].Seal("default/shop", session.Session{Token: auth.HashOf("token"), ExpirationTime: now.Add(time.Hour)})
	}
	for name, c := range map[string]struct {
		files map[string]string
		// want is how many keys there are; each opens what it has sealed.
		want int
		err  string
	}{
		"one":                   {map[string]string{config.SessionKeysFile: first}, 1, ""},
		"two":                   {map[string]string{config.SessionKeysFile: second + "\n" + first + "\n"}, 2, ""},
		"none without a file":   {nil, 0, ""},
		"none of an empty file": {map[string]string{config.SessionKeysFile: ""}, 0, config.SessionKeysFile + ": must be keys of 43 digits"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.LoadSessionKeys(directory(t, c.files))
			if len(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %d keys, error %v, want %d, %q", len(got), err, c.want, c.err)
			}
			if _, opened := session.Open(got, "default/shop", sealedBy(first), now); opened != (c.want > 0) {
				t.Errorf("opened: %v", opened)
			}
		})
	}
}
