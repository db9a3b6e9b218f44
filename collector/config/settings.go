package config

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/session"
)

// Settings are what people are told of a Property by the read API, beside what is in [Property] and of its access tokens. They
// change nothing of what is served.
type Settings struct {
	// CollectURL and APIURL are the base URLs under which senders and readers reach the Property; "" where that is not known.
	CollectURL string `json:"collectURL,omitempty"`
	APIURL     string `json:"apiURL,omitempty"`
	// APIKeys are the keys' names, in the Property's order.
	APIKeys []NamedKey `json:"apiKeys,omitempty"`
}

// NamedKey is an API key, without the key.
type NamedKey struct {
	Name string `json:"name"`
	// Publishable says that it is for web pages, those of the AllowedOrigins.
	Publishable    bool     `json:"publishable,omitempty"`
	AllowedOrigins []string `json:"allowedOrigins,omitempty"`
}

// LoadSettings reads the settings below dir; none where there is no file.
func LoadSettings(dir string) (Settings, error) {
	var s Settings
	if err := readJSON(dir, SettingsFile, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Settings{}, err
	}
	return s, nil
}

// LoadConsole reads below dir whose signed tokens are taken; nobody's where there is no file.
func LoadConsole(dir string) (auth.Verifier, error) {
	var console auth.Verifier
	if err := readJSON(dir, ConsoleFile, &console); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return auth.Verifier{}, err
	}
	return console, nil
}

// LoadSessionKeys reads the keys of sessions below dir, the one that seals first; none where there is no file.
func LoadSessionKeys(dir string) ([]session.Key, error) {
	text, err := readFile(dir, SessionKeysFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	keys, err := session.ParseKeys(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SessionKeysFile, err)
	}
	return keys, nil
}
