package egress

import (
	"errors"
	"strings"
	"testing"
)

func TestParseProxy(t *testing.T) {
	for name, test := range map[string]struct {
		url, ca, address string
		want             error
	}{
		"a proxy with a port":              {"http://proxy:3128", "", "proxy:3128", nil},
		"a user, a password and a slash":   {" http://weir:hunter2@proxy:3128/\n", "", "proxy:3128", nil},
		"http without a port":              {"http://proxy", "", "proxy:80", nil},
		"https without a port":             {"https://[fd00::1]", "", "[fd00::1]:443", nil},
		"SOCKS, which is another":          {"socks5://weir:hunter2@proxy:1080", "", "", ErrProxyURL},
		"a host alone":                     {"proxy:3128", "", "", ErrProxyURL},
		"a path":                           {"http://weir:hunter2@proxy/pac", "", "", ErrProxyURL},
		"a port that is none":              {"http://proxy:65536", "", "", ErrProxyURL},
		"no host":                          {"http://:3128", "", "", ErrProxyURL},
		"nothing":                          {"", "", "", ErrProxyURL},
		"no URL":                           {"http://weir:hunter2@pro xy", "", "", ErrProxyURL},
		"an authority that is none":        {"https://proxy", "hunter2", "", ErrProxyCA},
		"an authority for one without TLS": {"http://proxy", "-----BEGIN CERTIFICATE-----", "", ErrProxyCA},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, err := ParseProxy(test.url, test.ca)
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if err != nil {
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("the error repeats the URL: %v", err)
				}
				return
			}
			if got := proxy.address(); got != test.address {
				t.Errorf("its address is %s, want %s", got, test.address)
			}
		})
	}
}
