package role_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/connect"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// secureHistory is a ClickHouse behind TLS, which asks for certificates. Each question makes a connection of its own, so that what is
// changed holds from the next one on.
type secureHistory struct {
	*httptest.Server
	mu       sync.Mutex
	settings *tls.Config
	// shown are the certificates that were shown with questions that were answered.
	shown map[string]bool
}

// startSecureHistory puts TLS before a server.
func startSecureHistory(t *testing.T, address string) *secureHistory {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	s := &secureHistory{shown: map[string]bool{}}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target.Host})
	proxy.ErrorLog = quiet
	proxy.ModifyResponse = func(answer *http.Response) error {
		if answer.StatusCode == http.StatusOK {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.shown[string(answer.Request.TLS.PeerCertificates[0].Raw)] = true
		}
		return nil
	}
	s.Server = httptest.NewUnstartedServer(proxy)
	s.Config.ErrorLog = quiet
	s.Config.SetKeepAlivesEnabled(false)
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.settings, nil
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// identity is a certificate and its key.
type identity struct{ certificate, key string }

// sign has an authority sign one.
func sign(t *testing.T, a *redistest.Authority) identity {
	t.Helper()
	certificate, key := a.Sign(t, nil)
	return identity{certificate, key}
}

// give has the server show a certificate, and ask for such of authorities.
func (s *secureHistory) give(t *testing.T, own identity, clients ...*redistest.Authority) {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(own.certificate), []byte(own.key))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	for _, one := range clients {
		pool.AppendCertsFromPEM([]byte(one.PEM))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

// saw says whether somebody who was answered has shown a certificate.
func (s *secureHistory) saw(t *testing.T, one identity) bool {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(one.certificate), []byte(one.key))
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[string(pair.Certificate[0])]
}

// rotated is a Property whose history is reached by TLS: pods of its own write and read that, as users of their own.
type rotated struct {
	t                      *testing.T
	server                 *secureHistory
	keeper                 *access.Keeper
	history                *clickhouse.Client
	collect, query, copies *pod
	// secrets are what no log is to have.
	secrets []string
	sent    int
}

// user is one of the history's.
func (r *rotated) user(of access.Role, password string) access.User {
	return access.User{Role: of, Password: password, KeepPasswords: true}
}

// give tells pods how the history is reached: whom they trust, what each shows, and the password.
func (r *rotated) give(password string, copies, query identity, authorities ...*redistest.Authority) {
	r.t.Helper()
	ca := ""
	for _, one := range authorities {
		ca += one.PEM
	}
	for _, one := range []struct {
		*pod
		access.Role
		identity
	}{{r.copies, access.Archive, copies}, {r.query, access.Query, query}} {
		address, err := url.Parse(r.keeper.URL(r.user(one.Role, password)))
		if err != nil {
			r.t.Fatal(err)
		}
		address.Scheme, address.Host = "https", r.server.Listener.Addr().String()
		way := config.ClickHouse{URL: address.String(), TLS: connect.TLS{CA: ca, Certificate: one.certificate, Key: one.key}}
		for path, content := range way.Files() {
			one.writeText(path, string(content))
		}
		r.secrets = append(r.secrets, address.String(), one.key)
	}
	r.secrets = append(r.secrets, password)
}

// send sends an event, which is accepted whatever becomes of the history.
func (r *rotated) send() {
	r.t.Helper()
	if got := r.collect.send("key-1", "lead"); got != http.StatusAccepted {
		r.t.Fatalf("an event: %d", got)
	}
	r.sent++
}

// copied is how many events the history has.
func (r *rotated) copied() int {
	r.t.Helper()
	n, err := clickhouse.One[uint64](r.t.Context(), r.history, clickhouse.Query{SQL: "SELECT count() FROM events"})
	if err != nil {
		r.t.Fatal(err)
	}
	return int(n)
}

// startRotated starts the pods of a Property whose history shows a certificate of an authority, and asks for such.
func startRotated(t *testing.T, authority *redistest.Authority) *rotated {
	t.Helper()
	redis, keeper, _, history := emptyHistory(t)
	admin := dial(t, redis.URL(), stream.TLS{})
	if err := admin.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := &rotated{t: t, server: startSecureHistory(t, keeper.URL(access.User{Role: access.Archive})), keeper: keeper, history: history}
	if _, err := keeper.Ensure(t.Context(), []access.User{r.user(access.Archive, "the first"), r.user(access.Query, "the first")}); err != nil {
		t.Fatal(err)
	}
	property := shop("kept")
	property.History = &config.History{RetentionDays: 100}
	for _, into := range []**pod{&r.collect, &r.query, &r.copies} {
		p := &pod{t: t, directory: t.TempDir(), property: property, log: &logBuffer{}}
		p.write(config.PropertyFile, property)
		p.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
		p.write(config.AccessTokensFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("token-1"), Scope: auth.ScopeRead}})
		p.writeText(config.RedisURLFile, redis.URL())
		*into = p
	}
	copies, query := sign(t, authority), sign(t, authority)
	r.server.give(t, sign(t, authority), authority)
	r.give("the first", copies, query, authority)
	r.collect.run(role.Collect)
	r.copies.run(role.Archive)
	r.query.run(role.Query)
	t.Cleanup(func() {
		for _, one := range []*pod{r.collect, r.query, r.copies} {
			if err := one.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			for _, secret := range r.secrets {
				if strings.Contains(one.log.String(), secret) {
					t.Errorf("a log has a URL, a password or a key:\n%s", one.log)
				}
			}
		}
	})
	r.collect.await("collecting", func() bool { return r.collect.send("key-1", "lead") == http.StatusAccepted })
	r.sent++
	r.query.await("the first event is in answers", func() bool { return r.listed() == r.sent })
	return r
}

// listed is how many events the query pod's answer has, -1 where it has none.
func (r *rotated) listed() int {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.query.collect+"/api/v1/properties/kept/events?limit=1000", http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer token-1")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		return -1
	}
	return strings.Count(string(text), `"event":"lead"`)
}

// TestThePasswordAndCertificatesOfAHistoryRotateWithoutARestart exchanges all of them in the order in which nobody is refused: what is
// new is known before it is shown, and what is old is refused once nobody shows it. Each question meanwhile is answered.
func TestThePasswordAndCertificatesOfAHistoryRotateWithoutARestart(t *testing.T) {
	before, after := redistest.NewAuthority(t), redistest.NewAuthority(t)
	r := startRotated(t, before)
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	asking.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if got := r.query.list("token-1"); got != http.StatusOK {
				t.Errorf("a question while all is exchanged: %d", got)
			}
			<-ticker.C
		}
	})

	copies, query := sign(t, before), sign(t, before)
	exchanged := func(what string) {
		t.Helper()
		r.send()
		r.copies.await(what+": both pods show their certificates", func() bool { return r.server.saw(t, copies) && r.server.saw(t, query) })
		r.send()
		r.query.await(what+": all is in answers", func() bool { return r.listed() == r.sent })
	}
	r.give("the first", copies, query, before, after)
	exchanged("the pods know both authorities")
	r.server.give(t, sign(t, after), before, after)
	exchanged("the server shows a certificate of the new one")
	copies, query = sign(t, after), sign(t, after)
	if _, err := r.keeper.Ensure(t.Context(), []access.User{r.user(access.Archive, "the second"), r.user(access.Query, "the second")}); err != nil {
		t.Fatal(err)
	}
	r.give("the second", copies, query, before, after)
	exchanged("so do the pods, with the new password")
	for _, of := range access.Roles() {
		if err := r.keeper.Rotated(t.Context(), r.user(of, "the second")); err != nil {
			t.Fatal(err)
		}
	}
	copies, query = sign(t, after), sign(t, after)
	r.server.give(t, sign(t, after), after)
	r.give("the second", copies, query, after)
	exchanged("and nobody knows the old ones")
	if got := r.copied(); got != r.sent {
		t.Errorf("the history has %d events, want %d", got, r.sent)
	}
}

// TestAHistoryWhoseCertificatesChangeAllAtOnceIsBackWhenThePodsAreTold exchanges all of them before any pod knows of it.
func TestAHistoryWhoseCertificatesChangeAllAtOnceIsBackWhenThePodsAreTold(t *testing.T) {
	before, after := redistest.NewAuthority(t), redistest.NewAuthority(t)
	r := startRotated(t, before)
	r.server.give(t, sign(t, after), after)
	for _, of := range access.Roles() {
		if err := r.keeper.Rotated(t.Context(), r.user(of, "the second")); err != nil {
			t.Fatal(err)
		}
	}
	r.query.await("it is said that the history is away", func() bool { return r.listed() == -1 })
	for range 5 {
		r.send()
	}
	if got := r.copied(); got != 1 {
		t.Errorf("the history has %d events meanwhile, want the first one", got)
	}
	r.give("the second", sign(t, after), sign(t, after), after)
	r.query.await("all is in answers", func() bool { return r.listed() == r.sent })
	if got := r.copied(); got != r.sent {
		t.Errorf("the history has %d events, want %d", got, r.sent)
	}
}

// TestAHistoryThatNobodyVouchesForIsNotAsked shows pods a certificate of another authority, and one of another host.
func TestAHistoryThatNobodyVouchesForIsNotAsked(t *testing.T) {
	known := redistest.NewAuthority(t)
	elsewhere := func(certificate *x509.Certificate) {
		certificate.IPAddresses, certificate.DNSNames = nil, []string{"elsewhere.example"}
	}
	for name, shown := range map[string]func() (certificate, key string){
		"of another authority": func() (string, string) { return redistest.NewAuthority(t).Sign(t, nil) },
		"for another host":     func() (string, string) { return known.Sign(t, elsewhere) },
	} {
		t.Run(name, func(t *testing.T) {
			r := startRotated(t, known)
			certificate, key := shown()
			r.server.give(t, identity{certificate, key}, known)
			r.query.await("it is said that the history is away", func() bool { return r.listed() == -1 })
			r.send()
			r.server.give(t, sign(t, known), known)
			r.query.await("all is in answers", func() bool { return r.listed() == r.sent })
		})
	}
}
