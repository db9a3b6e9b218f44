package query

import (
	"net/http"
	"net/http/httptest"
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

	now = now.Add(time.Second)
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
