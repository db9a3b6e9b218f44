package auth_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/auth"
)

func TestAnOriginIsAllowedWhereTheListHasItOrADomainAboveIt(t *testing.T) {
	key := auth.Publishable{AllowedOrigins: []string{
		"https://www.example.com", "http://localhost:3000", "https://*.shop.example", "https://*.example.net:8443",
	}}
	for name, c := range map[string]struct {
		origin string
		want   bool
	}{
		"one of the list":                       {"https://www.example.com", true},
		"one with a port":                       {"http://localhost:3000", true},
		"a host below a wildcard's domain":      {"https://www.shop.example", true},
		"a host further below":                  {"https://de.www.shop.example", true},
		"a wildcard with a port":                {"https://a.example.net:8443", true},
		"another scheme":                        {"http://www.example.com", false},
		"another port":                          {"https://www.example.com:8443", false},
		"another port than the wildcard's":      {"https://a.example.net", false},
		"another host":                          {"https://example.com", false},
		"a host that only ends alike":           {"https://evilshop.example", false},
		"a wildcard's own domain":               {"https://shop.example", false},
		"nothing before the wildcard's domain":  {"https://.shop.example", false},
		"a longer domain":                       {"https://www.example.com.evil.example", false},
		"a user before the wildcard's domain":   {"https://evil@www.shop.example", false},
		"a path before the wildcard's domain":   {"https://evil.example/.shop.example", false},
		"a port before the wildcard's domain":   {"https://evil.example:1.shop.example", false},
		"a query before the wildcard's domain":  {"https://evil.example?x.shop.example", false},
		"a line end":                            {"https://www.example.com\n", false},
		"a path behind":                         {"https://www.example.com/", false},
		"the opaque origin":                     {"null", false},
		"nothing":                               {"", false},
		"the wildcard itself":                   {"https://*.shop.example", false},
		"upper case, which no browser sends":    {"https://WWW.EXAMPLE.COM", false},
		"a wildcard's domain in another scheme": {"http://www.shop.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := key.AllowsOrigin(c.origin); got != c.want {
				t.Errorf("AllowsOrigin(%q) = %v, want %v", c.origin, got, c.want)
			}
		})
	}
	if (&auth.Publishable{}).AllowsOrigin("https://www.example.com") {
		t.Error("a key without origins allows one")
	}
}

func TestAnEntryOfAllowedOriginsIsOneThatBrowsersCanSend(t *testing.T) {
	for entry, want := range map[string]bool{
		"https://www.example.com": true, "https://example.com": true, "http://localhost": true, "http://localhost:3000": true,
		"http://127.0.0.1:8080": true, "https://*.example.com": true, "https://*.example.com:8443": true, "https://xn--bcher-kva.example": true,
		"": false, "*": false, "null": false, "example.com": false, "https://": false, "https://www.example.com/": false,
		"https://www.example.com:443": false, "http://www.example.com:80": false, "https://www.example.com:0": false,
		"https://WWW.example.com": false, "ftp://example.com": false, "https://*": false, "https://*.com": false, "https://w*.example.com": false,
		"https://*.*.example.com": false, "https://user@example.com": false, "https://example..com": false, "https://bücher.example": false,
		"https://-a.example.com": false, "https://example.com:123456": false,
		"https://www.example.com\u0020": false,
	} {
		if got := auth.ValidOrigin(entry); got != want {
			t.Errorf("ValidOrigin(%q) = %v, want %v", entry, got, want)
		}
	}
}

// FuzzAllowsOrigin holds that what is allowed is an origin, and its host the list's or below the wildcard's domain.
func FuzzAllowsOrigin(f *testing.F) {
	for _, origin := range []string{"https://www.example.com", "https://a.b.shop.example", "https://evil@a.shop.example", "https://a/.shop.example", "null", ""} {
		f.Add(origin)
	}
	key := auth.Publishable{AllowedOrigins: []string{"https://www.example.com", "https://*.shop.example"}}
	f.Fuzz(func(t *testing.T, origin string) {
		if !key.AllowsOrigin(origin) {
			return
		}
		parsed, err := url.Parse(origin)
		if err != nil {
			t.Fatalf("%q is allowed and no URL: %v", origin, err)
		}
		ours := parsed.Host == "www.example.com" || strings.HasSuffix(parsed.Host, ".shop.example")
		if parsed.Scheme+"://"+parsed.Host != origin || parsed.Scheme != "https" || !ours {
			t.Errorf("%q is allowed, of scheme %q and host %q", origin, parsed.Scheme, parsed.Host)
		}
	})
}
