package stream

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/redis/go-redis/v9"
)

// longestURL is the longest Redis URL that is taken.
const longestURL = 4096

// parameters are what may stand behind the question mark of a Redis URL. A tenant may bring it: how many connections a
// process makes, and for how long it waits, is not theirs to say.
var parameters = []string{"addr", "master_name", "sentinel_username", "sentinel_password", "db", "skip_verify"}

// CheckURL says whether a Redis URL is one, as far as can be told without asking anybody. The error is [ErrURL].
func CheckURL(address string, how DialOptions) error {
	_, err := parseURL(address, how.Untrusted)
	return err
}

// parseURL reads a Redis URL. The error repeats nothing of it, which has a password in it.
func parseURL(address string, untrusted bool) (*url.URL, error) {
	if len(address) > longestURL {
		return nil, &Problem{ErrURL, fmt.Sprintf("it is longer than %d characters", longestURL)}
	}
	parsed, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"redis", "rediss", "unix"}, parsed.Scheme) {
		return nil, ErrURL
	}
	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return nil, ErrURL
	}
	if untrusted && parsed.Scheme == "unix" {
		return nil, &Problem{ErrURL, "unix:// leads to a socket of the machine, and is not for a cluster"}
	}
	for i, pair := range strings.Split(parsed.RawQuery, "&") {
		escaped, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(escaped)
		if err != nil || pair != "" && !slices.Contains(parameters, name) {
			return nil, &Problem{ErrURL, fmt.Sprintf("its parameter %d is none of %s", i+1, strings.Join(parameters, ", "))}
		}
	}
	password, _ := parsed.User.Password()
	texts := []string{parsed.User.Username(), password, parsed.Host, parsed.Path}
	for _, values := range query {
		texts = append(texts, values...)
	}
	for _, text := range texts {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return nil, &Problem{ErrURL, "it has control characters in it, such as the end of a line"}
		}
	}
	return parsed, nil
}

func withoutUser(address *url.URL) string {
	place := *address
	place.User = nil
	return place.String()
}

// newSentinels reads the URL of Sentinels. The Redis library takes the URL's user for theirs.
func newSentinels(address *url.URL, how DialOptions, secure *atomic.Pointer[tls.Config], credentials func() (string, string)) (*sentinels, error) {
	query := address.Query()
	username, password := query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	own := *address
	own.User, own.RawQuery = nil, query.Encode()
	read, err := redis.ParseFailoverURL(own.String())
	if err != nil {
		return nil, err
	}
	s := &sentinels{name: read.MasterName, addresses: read.SentinelAddrs, nodes: map[string]*redis.Client{}}
	s.to.DB = read.DB
	prepare(&s.of, how, secure, func() (string, string) { return username, password })
	prepare(&s.to, how, secure, credentials)
	return s, nil
}
