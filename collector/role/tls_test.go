package role_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// dial returns a client whose connections end with the test.
func dial(t *testing.T, address string, identity stream.TLS) *stream.Client {
	t.Helper()
	client, err := stream.Dial(address, stream.DialOptions{TLS: identity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// newSecurePod prepares a pod whose Redis is reached so.
func newSecurePod(t *testing.T, redis config.Redis) *pod {
	t.Helper()
	p := &pod{t: t, directory: t.TempDir(), property: shop("secure"), log: &logBuffer{}}
	p.write(config.PropertyFile, p.property)
	p.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	p.write(config.AccessTokensFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("token-1"), Scope: auth.ScopeRead}})
	p.give(redis)
	return p
}

// give writes down how Redis is reached.
func (p *pod) give(redis config.Redis) {
	p.t.Helper()
	for path, content := range redis.Files() {
		p.writeText(path, string(content))
	}
}

// TestCertificatesRotateWithoutARestart serves a property whose Redis asks for certificates, and exchanges all of them.
func TestCertificatesRotateWithoutARestart(t *testing.T) {
	before, after := redistest.NewAuthority(t), redistest.NewAuthority(t)
	certificate, key := before.Sign(t, nil)
	own, ownKey := before.Sign(t, nil)
	server := redistest.StartTLS(t, certificate, key, before.PEM)
	admin := dial(t, server.URL(), stream.TLS{})
	if err := admin.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := newSecurePod(t, config.Redis{URL: server.Address, TLS: stream.TLS{CA: before.PEM, Certificate: own, Key: ownKey}})
	p.run(role.Collect, role.Deliver, role.Query)
	p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })
	if got := p.send("key-1", "lead"); got != http.StatusAccepted {
		t.Fatalf("an event: %d", got)
	}

	own, ownKey = after.Sign(t, nil)
	p.give(config.Redis{URL: server.Address, TLS: stream.TLS{CA: after.PEM, Certificate: own, Key: "no key"}})
	p.await("the error is logged", func() bool { return strings.Contains(p.log.String(), "redis/tls.crt, redis/tls.key") })
	if strings.Contains(p.log.String(), "no key") {
		t.Error("the log repeats the key")
	}
	certificate, key = after.Sign(t, nil)
	server.Give(t, certificate, key, after.PEM)
	if err := admin.ReloadCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil { // all connections are new
		t.Fatal(err)
	}
	if err := admin.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.send("key-1", "lead"); got != http.StatusServiceUnavailable {
		t.Errorf("an event while the authority is not known: %d", got)
	}
	p.give(config.Redis{URL: server.Address, TLS: stream.TLS{CA: after.PEM, Certificate: own, Key: ownKey}})
	p.await("events are taken again", func() bool { return p.send("key-1", "lead") == http.StatusAccepted })
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestEveryKindOfRedisOverTLS has the operator's client and a pod reach each kind of Redis that there is, which shows
// certificates of a private authority, and asks for such. The primary behind Sentinels ends while the pod runs.
func TestEveryKindOfRedisOverTLS(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *redistest.Authority) (address string, fail func()){
		"a server": func(t *testing.T, a *redistest.Authority) (string, func()) {
			return startTLS(t, a).Address, func() {}
		},
		"a cluster": func(t *testing.T, a *redistest.Authority) (string, func()) {
			return redistest.StartClusterWith(t, redistest.ClusterOptions{Authority: a}).URL, func() {}
		},
		"Sentinels": func(t *testing.T, a *redistest.Authority) (string, func()) {
			primary := startTLS(t, a, "tls-replication yes")
			at := strings.TrimPrefix(primary.Address, "rediss://")
			startTLS(t, a, "tls-replication yes", "repl-diskless-sync-delay 0", "replicaof "+strings.Replace(at, ":", " ", 1))
			sentinel := redistest.StartTLSSentinel(t, a, at)
			return "rediss://" + sentinel + "?master_name=" + redistest.SentinelName, func() {
				if err := primary.Kill(); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours := redistest.NewAuthority(t)
			address, fail := start(t, ours)
			certificate, key := ours.Sign(t, nil)
			identity := stream.TLS{CA: ours.PEM, Certificate: certificate, Key: key}
			operator := dial(t, address, identity)
			if err := errors.Join(operator.Check(t.Context()), operator.Load(t.Context())); err != nil {
				t.Fatal(err)
			}
			tenant := stream.User{Name: "tenant", Password: "password", Access: stream.AppendAccess, Namespace: "default", Property: "secure"}
			if err := stream.NewUsers(operator).Set(t.Context(), []stream.User{tenant}); err != nil {
				t.Fatal(err)
			}
			if err := dial(t, strings.Replace(address, "//", "//tenant:password@", 1), identity).Ping(t.Context()); err != nil {
				t.Errorf("a tenant's user: %v", err)
			}
			for who, unknown := range map[string]stream.TLS{
				"nobody's authority": {Certificate: certificate, Key: key}, "another authority": {CA: redistest.NewAuthority(t).PEM},
			} {
				if err := stream.Explain(dial(t, address, unknown).Ping(t.Context())); !errors.Is(err, stream.ErrTLS) {
					t.Errorf("%s is trusted: %v", who, err)
				}
			}
			p := newSecurePod(t, config.Redis{URL: address, TLS: identity})
			p.property.Platforms = []platforms.Platform{{Name: "console", Type: platforms.TypeLog}}
			p.write(config.PropertyFile, p.property)
			p.run(role.Collect, role.Deliver, role.Query)
			p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })
			fail()
			p.await("an event is taken", func() bool { return p.send("key-1", "lead") == http.StatusAccepted })
			p.await("it is delivered", func() bool {
				return strings.Contains(p.log.String(), "console") && strings.Contains(p.log.String(), "lead")
			})
			p.await("it can be asked for", func() bool { return p.list("token-1") == http.StatusOK })
			if err := p.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
}

// startTLS starts a server with a certificate of the authority, which asks for such.
func startTLS(t *testing.T, authority *redistest.Authority, lines ...string) *redistest.TLSServer {
	t.Helper()
	certificate, key := authority.Sign(t, nil)
	return redistest.StartTLS(t, certificate, key, authority.PEM, lines...)
}
