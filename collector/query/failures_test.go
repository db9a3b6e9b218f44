package query

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

// askFrom asks for a property's summary from an address.
func askFrom(api http.Handler, address, token string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, "/api/v1/properties/berlin/analytics/summary", nil)
	request.RemoteAddr = address
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, request)
	return answer
}

func TestFailedAttemptsAreLimited(t *testing.T) {
	handler, api := serve(t)
	now := fixtureNow
	handler.now = func() time.Time { return now }
	const caller = "203.0.113.7:4711"
	fail := func(want int) *httptest.ResponseRecorder {
		t.Helper()
		answer := askFrom(api, caller, "wt_guess")
		if answer.Code != want {
			t.Fatalf("got %d %s, want %d", answer.Code, answer.Body, want)
		}
		return answer
	}
	for range failureBurst {
		fail(401)
	}
	beyond := fail(429)
	if got, want := beyond.Header().Get("Retry-After"), "1"; got != want {
		t.Errorf("Retry-After is %q, want %q", got, want)
	}
	if got, want := beyond.Body.String(), message("Too many failed attempts."); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if challenge := beyond.Header().Get("WWW-Authenticate"); challenge != "" {
		t.Errorf("a 429 has the challenge %q", challenge)
	}

	for name, test := range map[string]struct {
		from, token string
		want        int
	}{
		"a valid token from the same address is served":      {caller, tokens["berlin"], 200},
		"another port is the same caller":                    {"203.0.113.7:4712", "wt_guess", 429},
		"a request without a token fails as well":            {caller, "", 429},
		"an expired token fails as well":                     {caller, tokens["expired"], 429},
		"another address has an allowance of its own":        {"203.0.113.8:4711", "wt_guess", 401},
		"an address that is none shares that of all others":  {"@", "wt_guess", 401},
		"IPv4 written as IPv6 is the same address":           {"[::ffff:203.0.113.7]:1", "wt_guess", 429},
		"another's valid token for this property is no fail": {caller, tokens["kolkata"], 404},
	} {
		t.Run(name, func(t *testing.T) {
			if got := askFrom(api, test.from, test.token).Code; got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}

	now = now.Add(failureInterval)
	fail(401)
	fail(429)
	now = now.Add(time.Hour)
	for range failureBurst {
		fail(401)
	}
	fail(429)
}

func TestAnIPv6NetworkIsOneCaller(t *testing.T) {
	_, api := serve(t)
	for range failureBurst {
		askFrom(api, "[2001:db8:1:2::1]:80", "wt_guess")
	}
	for address, want := range map[string]int{"[2001:db8:1:2:ffff::9%eth0]:80": 429, "[2001:db8:1:3::1]:80": 401} {
		if got := askFrom(api, address, "wt_guess").Code; got != want {
			t.Errorf("%s: got %d, want %d", address, got, want)
		}
	}
}

func TestFailuresTakeBoundedMemory(t *testing.T) {
	var f failures
	now := fixtureNow
	address := netip.MustParseAddr("10.0.0.1")
	for range 10 * maxFailing {
		f.add(address, now)
		address = address.Next()
	}
	if len(f.limiters) > maxFailing+1 {
		t.Errorf("%d addresses are remembered, want at most %d", len(f.limiters), maxFailing+1)
	}
	if wait := f.add(netip.MustParseAddr("192.0.2.1"), now); wait == 0 {
		t.Error("an address beyond the memory is not limited")
	}
	if wait := f.add(netip.MustParseAddr("10.0.0.1"), now); wait != 0 {
		t.Errorf("an address with an allowance of its own has to wait %s", wait)
	}
	now = now.Add(time.Minute)
	if wait := f.add(netip.MustParseAddr("192.0.2.1"), now); wait != 0 || len(f.limiters) > 2 {
		t.Errorf("after a minute: %d addresses are remembered, the next has to wait %s", len(f.limiters), wait)
	}
}
