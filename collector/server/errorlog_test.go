package server

import "testing"

func TestOnlyWhatNetHTTPWordedIsKeptOfItsLines(t *testing.T) {
	for line, want := range map[string]string{
		"http: TLS handshake error from 203.0.113.7:50000: EOF":                          "http: TLS handshake error from",
		"http: TLS handshake error from [2001:db8::7]:50000: EOF":                        "http: TLS handshake error from",
		"http: panic serving 203.0.113.7:50000: jane@example.com":                        "http: panic serving",
		`http: invalid Content-Length of "jane@example.com" from client`:                 "http: invalid Content-Length of",
		"http: Accept error: accept tcp [::]:8080: too many open files; retrying in 5ms": "http: Accept error: accept tcp [::]:8080: too many open files; retrying in 5ms",
		"http: superfluous response.WriteHeader call from main.f (main.go:7)":            "http: superfluous response.WriteHeader call from main.f (main.go:7)",
		"": "",
	} {
		if got := worded(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
