package clickhouse

import (
	"crypto/tls"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/weir-dev/weir/collector/connect"
)

// longestURL is the longest URL that is taken.
const longestURL = 4096

// ErrURL says that the URL is not one.
var ErrURL = errors.New("the ClickHouse URL must look like https://user:password@host:8443/database, or http://…:8123/database without TLS")

// CheckURL says whether this is a URL that [Dial] takes, and what is trusted and shown goes with it, as far as can be told
// without asking anybody: [ErrURL], [connect.ErrCA], [connect.ErrClientCertificate].
func CheckURL(address string, identity connect.TLS) error {
	parsed, err := parseURL(address)
	if err != nil {
		return err
	}
	_, err = tlsFor(parsed, identity)
	return err
}

// parseURL reads a URL. The error repeats nothing of it, which has a password in it.
func parseURL(address string) (*url.URL, error) {
	if len(address) > longestURL {
		return nil, ErrURL
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.Fragment != "" {
		return nil, ErrURL
	}
	if text := parsed.Port(); text != "" {
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 65535 {
			return nil, &connect.Problem{Kind: ErrURL, Detail: "its port must be a number from 1 to 65535"}
		}
	}
	if strings.Contains(database(parsed), "/") {
		return nil, &connect.Problem{Kind: ErrURL, Detail: "behind its host there may be the name of a database and nothing else"}
	}
	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return nil, ErrURL
	}
	for name, values := range query {
		if name != "skip_verify" || parsed.Scheme != "https" || !slices.Contains([]string{"true", "false", "1", "0"}, values[0]) || len(values) > 1 {
			return nil, &connect.Problem{Kind: ErrURL, Detail: "behind its question mark there may be skip_verify=true, of https:// alone, and nothing else"}
		}
	}
	password, _ := parsed.User.Password()
	for _, text := range []string{parsed.User.Username(), password, parsed.Host, parsed.Path} {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return nil, &connect.Problem{Kind: ErrURL, Detail: "it has control characters in it, such as the end of a line"}
		}
	}
	return parsed, nil
}

func database(address *url.URL) string { return strings.Trim(address.Path, "/") }

func port(address *url.URL) string {
	switch {
	case address.Port() != "":
		return address.Port()
	case address.Scheme == "https":
		return "8443"
	default:
		return "8123"
	}
}

// tlsFor makes settings of what a client trusts and shows; nil for connections in the clear.
func tlsFor(address *url.URL, identity connect.TLS) (*tls.Config, error) {
	if address.Scheme != "https" {
		return nil, identity.Unused("https://")
	}
	asked := address.Query().Get("skip_verify")
	return identity.Config(address.Hostname(), asked == "true" || asked == "1")
}
