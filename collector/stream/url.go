package stream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
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
	if failed, ok := errors.AsType[*url.Error](err); ok && strings.HasPrefix(failed.Err.Error(), "invalid port") {
		return nil, errPort
	}
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
	if err := checkPlace(parsed, query); err != nil {
		return nil, err
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

// errPort says that a URL's port is none.
var errPort = &Problem{ErrURL, "its port must be a number from 1 to 65535"}

// checkPlace says what of where a URL leads the library would not take.
func checkPlace(address *url.URL, query url.Values) error {
	if port := address.Port(); port != "" && !isNumber(port, 1, 65535) {
		return errPort
	}
	var path []string
	if address.Scheme != "unix" {
		path = strings.FieldsFunc(address.Path, func(r rune) bool { return r == '/' })
	}
	noDatabase := func(text string) bool { return text != "" && !isNumber(text, 0, math.MaxInt32) }
	cluster, skips := query.Has("addr") && !query.Has("master_name"), query["skip_verify"]
	switch {
	case len(path) > 1 || slices.ContainsFunc(append(path, query["db"]...), noDatabase):
		return &Problem{ErrURL, "behind its host there may be the number of a database and nothing else, as in redis://host:6379/0"}
	case cluster && (query.Has("db") || len(skips) > 0):
		return &Problem{ErrURL, "its parameters db and skip_verify are not for clusters"}
	case len(skips) > 0 && address.Scheme != "rediss":
		return &Problem{ErrURL, "its parameter skip_verify is for rediss:// alone"}
	case len(skips) > 0 && !slices.Contains([]string{"true", "false", "1", "0", ""}, skips[len(skips)-1]):
		return &Problem{ErrURL, "its parameter skip_verify must be true or false"}
	}
	for _, node := range query["addr"] {
		if host, port, err := net.SplitHostPort(node); err != nil || host == "" || !isNumber(port, 1, 65535) {
			return &Problem{ErrURL, "its parameter addr must be a host and a port, as in addr=host2:6379"}
		}
	}
	return nil
}

func isNumber(text string, least, most int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && least <= n && n <= most
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
	s := &sentinels{name: read.MasterName, addresses: read.SentinelAddrs, every: lookEvery, nodes: map[string]*redis.Client{}}
	s.to.DB = read.DB
	prepare(&s.of, how, secure, func() (string, string) { return username, password })
	prepare(&s.to, how, secure, credentials)
	return s, nil
}
