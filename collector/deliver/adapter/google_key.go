package adapter

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2/jwt"
)

// googleScope is what a token is for.
const googleScope = "https://www.googleapis.com/auth/datamanager"

// googleTokenHosts are where Google grants tokens. A key may name no other: whoever gets the signed request there could use it.
var googleTokenHosts = []string{"oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"}

// googleKey has the members of a service account's JSON key that matter.
type googleKey struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`
	TokenURI     string `json:"token_uri"`
}

// googleGrant reads a service account's key. Where Google's endpoint is replaced, tokens are had there too. Errors repeat nothing of
// the key.
func googleGrant(text, endpoint string) (*jwt.Config, error) {
	if text == hidden {
		return new(jwt.Config), nil // for a look at what would be sent: no token is ever asked for
	}
	var key googleKey
	if err := json.Unmarshal([]byte(text), &key); err != nil {
		return nil, errors.New("the key serviceAccountKey must be the JSON key of a service account")
	}
	switch block, _ := pem.Decode([]byte(key.PrivateKey)); {
	case key.Type != "service_account":
		return nil, errors.New(`the key serviceAccountKey must have the type "service_account"`)
	case key.ClientEmail == "":
		return nil, errors.New("the key serviceAccountKey must have a client_email")
	case block == nil || !isRSAKey(block.Bytes):
		return nil, errors.New("the key serviceAccountKey must have a private_key that is an RSA key in PEM")
	}
	target := key.TokenURI
	if endpoint != "" {
		target = strings.TrimSuffix(endpoint, "/") + "/token"
	} else if !isGoogleTokenURL(target) {
		return nil, errors.New("the key serviceAccountKey must have a token_uri of Google's, such as https://oauth2.googleapis.com/token")
	}
	return &jwt.Config{
		Email: key.ClientEmail, PrivateKey: []byte(key.PrivateKey), PrivateKeyID: key.PrivateKeyID, Scopes: []string{googleScope}, TokenURL: target,
	}, nil
}

func isGoogleTokenURL(text string) bool {
	target, err := url.Parse(text)
	return err == nil && target.Scheme == "https" && target.User == nil && slices.Contains(googleTokenHosts, target.Host)
}

func isRSAKey(der []byte) bool {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		_, ok := key.(*rsa.PrivateKey)
		return ok
	}
	_, err := x509.ParsePKCS1PrivateKey(der)
	return err == nil
}
