package stream

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// dialTLS returns a client whose connections end with the test.
func dialTLS(t *testing.T, address string, identity TLS) *Client {
	t.Helper()
	client, err := Dial(address, DialOptions{TLS: identity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestWhoIsTrusted(t *testing.T) {
	ours, others := redistest.NewAuthority(t), redistest.NewAuthority(t)
	certificate, key := ours.Sign(t, nil)
	own, ownKey := ours.Sign(t, nil)
	foreign, foreignKey := others.Sign(t, nil)
	old, oldKey := ours.Sign(t, expired)
	plain := redistest.StartTLS(t, certificate, key, "")
	mutual := redistest.StartTLS(t, certificate, key, ours.PEM)
	signed := func(change func(*x509.Certificate)) string {
		certificate, key := ours.Sign(t, change)
		return redistest.StartTLS(t, certificate, key, "").Address
	}
	// any stands for a refusal that reaches the client in one of several ways.
	anyError := errors.New("any")
	for name, c := range map[string]struct {
		address  string
		identity TLS
		want     error
		says     string
	}{
		"a private authority that is given": {address: plain.Address, identity: TLS{CA: ours.PEM}},
		"one of several authorities":        {address: plain.Address, identity: TLS{CA: others.PEM + ours.PEM}},
		"a private authority that is not":   {address: plain.Address, want: ErrTLS, says: "authority is not known"},
		"another authority":                 {address: plain.Address, identity: TLS{CA: others.PEM}, want: ErrTLS, says: "authority is not known"},
		"a certificate for another name": {
			address:  signed(func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"secret.example.com"} }),
			identity: TLS{CA: ours.PEM}, want: ErrTLS, says: "another host",
		},
		"the name by which it is reached":      {address: strings.Replace(plain.Address, "127.0.0.1", "localhost", 1), identity: TLS{CA: ours.PEM}},
		"a certificate that has expired":       {address: signed(expired), identity: TLS{CA: ours.PEM}, want: ErrTLS, says: "expired"},
		"a certificate that is not valid yet":  {address: signed(future), identity: TLS{CA: ours.PEM}, want: ErrTLS, says: "not valid yet"},
		"a certificate for clients alone":      {address: signed(clientsOnly), identity: TLS{CA: ours.PEM}, want: ErrTLS, says: "not valid"},
		"a client certificate that is asked":   {address: mutual.Address, identity: TLS{CA: ours.PEM, Certificate: own, Key: ownKey}},
		"a client certificate nobody asks for": {address: plain.Address, identity: TLS{CA: ours.PEM, Certificate: own, Key: ownKey}},
		"none where one is asked":              {address: mutual.Address, identity: TLS{CA: ours.PEM}, want: anyError},
		"one from another authority":           {address: mutual.Address, identity: TLS{CA: ours.PEM, Certificate: foreign, Key: foreignKey}, want: anyError},
		"one that has expired":                 {address: mutual.Address, identity: TLS{CA: ours.PEM, Certificate: old, Key: oldKey}, want: anyError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dialTLS(t, c.address, c.identity)
			err := Explain(client.Ping(t.Context()))
			switch {
			case errors.Is(c.want, anyError) && err == nil:
				t.Error("it is let in")
			case !errors.Is(c.want, anyError) && !errors.Is(err, c.want):
				t.Errorf("Ping = %v, want %v", err, c.want)
			case c.says != "" && !strings.Contains(err.Error(), c.says):
				t.Errorf("Ping = %v, want it to say %q", err, c.says)
			case err != nil && strings.Contains(err.Error(), "secret.example.com"):
				t.Errorf("Ping = %v repeats what stands in the server's certificate", err)
			}
		})
	}
}

func expired(c *x509.Certificate)     { c.NotAfter = time.Now().Add(-time.Minute) }
func future(c *x509.Certificate)      { c.NotBefore = time.Now().Add(time.Minute) }
func clientsOnly(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }

func TestTLSThatCannotBeUsed(t *testing.T) {
	ours := redistest.NewAuthority(t)
	certificate, key := ours.Sign(t, nil)
	_, otherKey := ours.Sign(t, nil)
	damaged := "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n"
	for name, c := range map[string]struct {
		address  string
		identity TLS
		want     error
		says     string
	}{
		"an authority for a URL without TLS":          {"redis://h", TLS{CA: ours.PEM}, ErrCA, "must begin with rediss://"},
		"an authority for a socket":                   {"unix:///s", TLS{CA: ours.PEM}, ErrCA, "must begin with rediss://"},
		"a client certificate for a URL without TLS":  {"redis://h", TLS{Certificate: certificate, Key: key}, ErrClientCertificate, "must begin with rediss://"},
		"an authority and skip_verify":                {"rediss://h?skip_verify=true", TLS{CA: ours.PEM}, ErrCA, "skip_verify"},
		"an authority that is no PEM":                 {"rediss://h", TLS{CA: "secret"}, ErrCA, "in PEM"},
		"an authority that is empty but for a line":   {"rediss://h", TLS{CA: "\n"}, ErrCA, "in PEM"},
		"a key among the authorities":                 {"rediss://h", TLS{CA: ours.PEM + key}, ErrCA, "nothing else"},
		"a damaged authority behind a good one":       {"rediss://h", TLS{CA: ours.PEM + damaged}, ErrCA, "damaged"},
		"a certificate without its key":               {"rediss://h", TLS{Certificate: certificate}, ErrClientCertificate, "private key"},
		"a key without its certificate":               {"rediss://h", TLS{Key: key}, ErrClientCertificate, "private key"},
		"another certificate's key":                   {"rediss://h", TLS{Certificate: certificate, Key: otherKey}, ErrClientCertificate, "belongs to it"},
		"a certificate and a key the wrong way round": {"rediss://h", TLS{Certificate: key, Key: certificate}, ErrClientCertificate, "both in PEM"},
		"an authority of a cluster in the clear":      {"redis://h?addr=i:1", TLS{CA: ours.PEM}, ErrCA, "must begin with rediss://"},
		"an authority of Sentinels in the clear":      {"redis://h?master_name=m", TLS{CA: ours.PEM}, ErrCA, "must begin with rediss://"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Dial(c.address, DialOptions{TLS: c.identity})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Dial = %v, want %v that says %q", err, c.want, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("Dial = %v repeats what was given", err)
			}
		})
	}
}

func TestWhatSpeaksNoTLS(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("220 secret banner\r\n"))
			_ = conn.Close()
		}
	}()
	err = Explain(dialTLS(t, "rediss://"+listener.Addr().String(), TLS{}).Ping(t.Context()))
	if !errors.Is(err, ErrTLS) || !strings.Contains(err.Error(), "does not speak it") || strings.Contains(err.Error(), "secret") {
		t.Errorf("Ping = %v, want %v", err, ErrTLS)
	}
}

// TestCertificatesRotate replaces, one after the other, the server's certificate, its authority and the client's certificate, as
// whoever rotates them does it. No connection may be asked for twice: the client is not told that the old ones are gone.
func TestCertificatesRotate(t *testing.T) {
	before, after := redistest.NewAuthority(t), redistest.NewAuthority(t)
	certificate, key := before.Sign(t, nil)
	own, ownKey := before.Sign(t, nil)
	server := redistest.StartTLS(t, certificate, key, before.PEM)
	admin, ctx := dial(t, server.URL()), t.Context()
	client := dialTLS(t, server.Address, TLS{CA: before.PEM, Certificate: own, Key: ownKey})
	steps := []struct {
		name string
		do   func() error
		want bool
	}{
		{"to begin with", func() error { return nil }, true},
		{"another certificate of the same authority", func() error {
			certificate, key = before.Sign(t, nil)
			server.Give(t, certificate, key, before.PEM)
			return admin.ReloadCertificates(ctx)
		}, true},
		{"both authorities are known", func() error {
			server.Give(t, certificate, key, before.PEM+after.PEM)
			return errors.Join(admin.ReloadCertificates(ctx), client.Authenticate(server.Address, TLS{CA: before.PEM + after.PEM, Certificate: own, Key: ownKey}))
		}, true},
		{"the client's certificate comes from the new one", func() error {
			own, ownKey = after.Sign(t, nil)
			return client.Authenticate(server.Address, TLS{CA: before.PEM + after.PEM, Certificate: own, Key: ownKey})
		}, true},
		{"the server's does, and it knows no other", func() error {
			certificate, key = after.Sign(t, nil)
			server.Give(t, certificate, key, after.PEM)
			return admin.ReloadCertificates(ctx)
		}, true},
		{"the client forgets the old authority", func() error {
			return client.Authenticate(server.Address, TLS{CA: after.PEM, Certificate: own, Key: ownKey})
		}, true},
		{"what cannot be used changes nothing", func() error {
			if err := client.Authenticate(server.Address, TLS{CA: "x"}); !errors.Is(err, ErrCA) {
				t.Errorf("Authenticate = %v, want %v", err, ErrCA)
			}
			return nil
		}, true},
		{"the client trusts the old authority alone", func() error {
			return client.Authenticate(server.Address, TLS{CA: before.PEM, Certificate: own, Key: ownKey})
		}, false},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if err := admin.redis.Do(ctx, "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.Ping(ctx); (err == nil) != step.want {
			t.Errorf("%s: Ping = %v", step.name, err)
		}
	}
}

func TestARedisWithoutTLSHasNoCertificatesToReload(t *testing.T) {
	if err := dial(t, redistest.URL(t)).ReloadCertificates(t.Context()); err != nil {
		t.Error(err)
	}
}
