package role_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// TestCertificatesRotateWithoutARestart serves a property whose Redis asks for certificates, and exchanges all of them.
func TestCertificatesRotateWithoutARestart(t *testing.T) {
	before, after := redistest.NewAuthority(t), redistest.NewAuthority(t)
	certificate, key := before.Sign(t, nil)
	own, ownKey := before.Sign(t, nil)
	server := redistest.StartTLS(t, certificate, key, before.PEM)
	admin, err := stream.Dial(server.URL(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &pod{t: t, directory: t.TempDir(), property: shop("secure"), log: &logBuffer{}}
	p.write(config.PropertyFile, p.property)
	p.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	p.write(config.AccessTokensFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("token-1"), Scope: auth.ScopeRead}})
	give := func(redis config.Redis) {
		for path, content := range redis.Files() {
			p.writeText(path, string(content))
		}
	}
	give(config.Redis{URL: server.Address, TLS: stream.TLS{CA: before.PEM, Certificate: own, Key: ownKey}})
	p.run(role.Collect, role.Deliver, role.Query)
	p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })
	if got := p.send("key-1", "lead"); got != http.StatusAccepted {
		t.Fatalf("an event: %d", got)
	}

	own, ownKey = after.Sign(t, nil)
	give(config.Redis{URL: server.Address, TLS: stream.TLS{CA: after.PEM, Certificate: own, Key: "no key"}})
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
	give(config.Redis{URL: server.Address, TLS: stream.TLS{CA: after.PEM, Certificate: own, Key: ownKey}})
	p.await("events are taken again", func() bool { return p.send("key-1", "lead") == http.StatusAccepted })
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
