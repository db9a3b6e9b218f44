package controllers

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var certificateStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// certificatesOf parses certificates in PEM.
func certificatesOf(t *testing.T, text []byte) []*x509.Certificate {
	t.Helper()
	var list []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, certificate)
	}
	return list
}

// accepted says whether a client that trusts a bundle would accept a server with what a Secret holds.
func accepted(t *testing.T, bundle []byte, secret map[string][]byte, host string, now time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	for _, certificate := range certificatesOf(t, bundle) {
		roots.AddCert(certificate)
	}
	_, err := certificatesOf(t, secret[certificateKey])[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now})
	return err
}

// edwardsKey is a key that no authority of ours has.
func edwardsKey(t *testing.T) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TestCertificatesAreRenewedInTime turns the clock, in steps, from a Secret that was just filled. After the last clients that have the bundle of
// the step before accept the server, but where the row says that they cannot.
func TestCertificatesAreRenewedInTime(t *testing.T) {
	const day = 24 * time.Hour
	year := 365 * day
	damage := func(key string) func(map[string][]byte) { return func(s map[string][]byte) { s[key] = []byte("x") } }
	remove := func(key string) func(map[string][]byte) { return func(s map[string][]byte) { delete(s, key) } }
	hosts := []string{"localhost", "127.0.0.1", "weir-redis.weir-system.svc"}
	tests := map[string]struct {
		// steps are when it is looked at, from the start on.
		steps []time.Duration
		// change is done before the last step, moved says that the server is called something else then.
		change func(map[string][]byte)
		moved  bool
		// authorities is how many are trusted in the end; same and sameAuthority say that the last step leaves the server's certificate, and the first authority.
		authorities         int
		same, sameAuthority bool
		// apart says that clients of the step before do not accept the server.
		apart bool
	}{
		"nothing is due at once":                                                   {steps: []time.Duration{0}, authorities: 1, same: true, sameAuthority: true},
		"nothing is due before two thirds of 90 days":                              {steps: []time.Duration{59 * day}, authorities: 1, same: true, sameAuthority: true},
		"a server's after two thirds of 90 days":                                   {steps: []time.Duration{60 * day}, authorities: 1, sameAuthority: true},
		"a server's that has expired":                                              {steps: []time.Duration{400 * day}, authorities: 1, sameAuthority: true},
		"an authority after two thirds of 10 years, not yet a server's":            {steps: []time.Duration{2430 * day, 2434 * day}, authorities: 2, same: true},
		"a server's, a day after the new authority":                                {steps: []time.Duration{2430 * day, 2434 * day, 2435*day + time.Hour}, authorities: 2, sameAuthority: true},
		"the former authority leaves when it expires":                              {steps: []time.Duration{2434 * day, 2436 * day, 10*year - day, 10 * year}, authorities: 1, sameAuthority: true, same: true},
		"nobody has looked until the authority has expired":                        {steps: []time.Duration{11 * year}, authorities: 1, apart: true},
		"a clock that is a little behind":                                          {steps: []time.Duration{-30 * time.Minute}, authorities: 1, same: true, sameAuthority: true},
		"a clock that goes back by a day: those from the future are not valid yet": {steps: []time.Duration{-day}, authorities: 2, apart: true},
		"and forth again":                                                          {steps: []time.Duration{-day, 0}, authorities: 2, same: true, sameAuthority: true},
		"a server's certificate that is gone":                                      {steps: []time.Duration{day}, change: remove(certificateKey), authorities: 1, sameAuthority: true},
		"a server's key that is damaged":                                           {steps: []time.Duration{day}, change: damage(privateKey), authorities: 1, sameAuthority: true},
		"an authority's key that is gone: clients trust both for a day":            {steps: []time.Duration{day}, change: remove(authorityKey), authorities: 2, same: true},
		"an authority that is damaged":                                             {steps: []time.Duration{day}, change: damage(bundleKey), authorities: 1, apart: true},
		"everything is gone":                                                       {steps: []time.Duration{day}, change: func(s map[string][]byte) { clear(s) }, authorities: 1, apart: true},
		"a bundle with eight certificates": {
			steps: []time.Duration{day}, change: func(s map[string][]byte) { s[bundleKey] = bytes.Repeat(s[bundleKey], 8) }, authorities: 8, same: true, sameAuthority: true,
		},
		"a bundle with more than eight": {
			steps: []time.Duration{day}, change: func(s map[string][]byte) { s[bundleKey] = bytes.Repeat(s[bundleKey], 9) }, authorities: 1, apart: true,
		},
		"a bundle of more than 64 KiB": {
			steps: []time.Duration{day}, change: func(s map[string][]byte) { s[bundleKey] = append(make([]byte, 64<<10), s[bundleKey]...) }, authorities: 1, apart: true,
		},
		"an authority's key of another kind": {
			steps: []time.Duration{day}, change: func(s map[string][]byte) { s[authorityKey] = edwardsKey(t) }, authorities: 2, same: true,
		},
		"a server that is called something else": {steps: []time.Duration{day}, moved: true, authorities: 1, sameAuthority: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called := hosts
			have, err := renewCertificates(nil, called, certificateStart)
			if err != nil {
				t.Fatal(err)
			}
			var before map[string][]byte
			for i, step := range tt.steps {
				before = maps.Clone(have)
				if i == len(tt.steps)-1 {
					if tt.change != nil {
						tt.change(have)
					}
					if tt.moved {
						called = append(slices.Clone(hosts), "redis.example.com")
					}
				}
				now := certificateStart.Add(step)
				if have, err = renewCertificates(have, called, now); err != nil {
					t.Fatal(err)
				}
				for _, host := range called {
					if err := accepted(t, have[bundleKey], have, host, now); err != nil {
						t.Errorf("after %s, %s: %v", step, host, err)
					}
				}
				if err := accepted(t, before[bundleKey], have, hosts[0], now); i == len(tt.steps)-1 && (err != nil) != tt.apart {
					t.Errorf("after %s, clients that have not heard of it: %v", step, err)
				}
				again, err := renewCertificates(have, called, now)
				if diff := cmp.Diff(have, again); err != nil || diff != "" {
					t.Errorf("looked at twice it changes, error %v", err)
				}
			}
			if got := len(certificatesOf(t, have[bundleKey])); got != tt.authorities {
				t.Errorf("%d authorities are trusted, want %d", got, tt.authorities)
			}
			if same := bytes.Equal(have[certificateKey], before[certificateKey]); same != tt.same {
				t.Errorf("the server's certificate stays: %t, want %t", same, tt.same)
			}
			if same := bytes.Equal(have[authorityKey], before[authorityKey]); same != tt.sameAuthority {
				t.Errorf("the authority stays: %t, want %t", same, tt.sameAuthority)
			}
		})
	}
}

func TestCertificateHosts(t *testing.T) {
	for name, tt := range map[string]struct {
		url  string
		want []string
	}{
		"a Service":      {"rediss://weir:p@weir-redis.weir-system.svc:6379", []string{"localhost", "127.0.0.1", "weir-redis", "weir-redis.weir-system", "weir-redis.weir-system.svc.cluster.local", "weir-redis.weir-system.svc"}},
		"a host":         {"rediss://weir:p@redis.example.com", []string{"localhost", "127.0.0.1", "redis.example.com"}},
		"this machine":   {"rediss://weir:p@localhost:1", []string{"localhost", "127.0.0.1"}},
		"an address":     {"rediss://weir:p@[fd00::1]:6379", []string{"localhost", "127.0.0.1", "fd00::1"}},
		"no host":        {"unix:///run/redis.sock", nil},
		"what is no URL": {"rediss://weir:%zz@host", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := certificateHosts(tt.url)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != nil) {
				t.Errorf("error %v; hosts (-want +got):\n%s", err, diff)
			}
		})
	}
}
