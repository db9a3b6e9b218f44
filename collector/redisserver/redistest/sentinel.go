package redistest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
)

// SentinelName is what the Sentinels of [StartSentinel] call the Redis that they watch.
const SentinelName = "shop"

// StartSentinel starts a Sentinel that watches the primary at an address, and waits until it knows a replica that follows. Half
// a second after the primary is gone it makes that one the primary. It ends with the test. Lines are further ones of its
// configuration, password is what it asks for; "" for nothing. Returned is the address at which it listens.
func StartSentinel(t testing.TB, primary, password string, lines ...string) string {
	t.Helper()
	s := sentinel{quorum: 1, client: redis.Options{Password: password}, lines: append(lines, fmt.Sprintf("requirepass %q", password))}
	asked, address := s.start(t, primary)
	awaitKnown(t, asked, 1, 0)
	return address
}

// StartTLSSentinel is [StartSentinel] for one that speaks TLS alone, to Redis too. It asks for nothing but certificates of the
// authority.
func StartTLSSentinel(t testing.TB, authority *Authority, primary string) string {
	t.Helper()
	s := sentinel{quorum: 1, authority: authority}
	asked, address := s.start(t, primary)
	awaitKnown(t, asked, 1, 0)
	return address
}

// Guarded is a primary with two replicas, all of which keep what they have, and the three Sentinels around them, two of whom
// have to agree. Nobody needs a password.
type Guarded struct {
	// URL names all Sentinels, which listen at the addresses.
	URL       string
	Sentinels []string
	// Nodes are the servers' own URLs, Servers the servers. The first one begins as the primary.
	Nodes   []string
	Servers []*redisserver.Server
	clients []*redis.Client
}

// StartGuarded starts them for this test alone. A second and a half after the primary is gone a replica takes over, and two
// seconds after it has come back it follows. With an authority all of them speak TLS alone, to each other too: they show certificates
// of it, and ask for such. Lines are further ones of the servers' configuration.
func StartGuarded(t testing.TB, authority *Authority, lines ...string) *Guarded {
	t.Helper()
	g := &Guarded{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const servers, guards = 3, 3
	for i := range servers {
		own := slices.Clone(lines)
		if i > 0 {
			own = append(own, "replicaof "+strings.Replace(hostOf(t, g.Nodes[0]), ":", " ", 1))
		}
		server, address := startMember(t, authority, true, own)
		g.Servers, g.Nodes, g.clients = append(g.Servers, server), append(g.Nodes, address), append(g.clients, Admin(t, server))
		if i > 0 {
			await(ctx, t, "the replica follows", func() bool { return follows(ctx, g.clients[i]) })
		}
	}
	// Sooner, on a machine that has much to do, they take a primary for dead that is not.
	s := sentinel{quorum: 2, authority: authority, lines: []string{
		"sentinel down-after-milliseconds " + SentinelName + " 1500", "sentinel failover-timeout " + SentinelName + " 5000",
	}}
	scheme, primary, _ := strings.Cut(g.Nodes[0], "://")
	var asked []*redis.SentinelClient
	for range guards {
		client, address := s.start(t, primary)
		asked, g.Sentinels = append(asked, client), append(g.Sentinels, address)
	}
	for _, client := range asked {
		awaitKnown(t, client, servers-1, guards-1)
		// A server that says that it is a primary when it should follow is told otherwise after four publications, once what it
		// says of itself has been asked for: 18 seconds after it has come back where this is not turned down.
		for _, period := range [][]any{{"publish-period", 250}, {"info-period", 1000}} {
			if err := client.Process(ctx, redis.NewStatusCmd(ctx, append([]any{"sentinel", "debug"}, period...)...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.URL = scheme + "://" + g.Sentinels[0] + "?master_name=" + SentinelName + "&addr=" + strings.Join(g.Sentinels[1:], "&addr=")
	return g
}

// Primary returns the place in Servers of the one that all others follow; -1 while there is none.
func (g *Guarded) Primary(ctx context.Context) int {
	return which(ctx, g.clients, func(ctx context.Context, server *redis.Client) bool {
		said := server.InfoMap(ctx, "replication").Val()["Replication"]
		return said["role"] == "master" && said["connected_slaves"] != "0"
	})
}

// Follows says whether a server is a replica that has what its primary had when it asked.
func (g *Guarded) Follows(ctx context.Context, server int) bool {
	return follows(ctx, g.clients[server])
}

// sentinel says how Sentinels run.
type sentinel struct {
	quorum    int
	authority *Authority
	lines     []string
	client    redis.Options
}

// start starts one that watches the primary at an address. Returned are a client of it, and where it listens.
func (s sentinel) start(t testing.TB, primary string) (asked *redis.SentinelClient, address string) {
	t.Helper()
	binary, err := redisserver.Find(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	dir, own := t.TempDir(), freePort(t)
	lines := []string{
		"bind 127.0.0.1", fmt.Sprintf("dir %q", dir), fmt.Sprintf("sentinel monitor %s %s %s %d", SentinelName, host, port, s.quorum),
		"sentinel down-after-milliseconds " + SentinelName + " 500", "sentinel failover-timeout " + SentinelName + " 10000",
	}
	if s.authority == nil {
		lines = append(lines, "port "+own)
	} else {
		lines = append(lines, "port 0", "tls-replication yes", "protected-mode no")
		lines = append(lines, s.secure(t, own)...)
	}
	lines = append(lines, s.lines...)
	file := filepath.Join(dir, "sentinel.conf") // which it writes to
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runSentinel(t, binary, file)
	s.client.Addr, s.client.DialerRetries, s.client.Protocol = net.JoinHostPort("127.0.0.1", own), 1, 2
	asked = redis.NewSentinelClient(&s.client)
	t.Cleanup(func() { _ = asked.Close() })
	return asked, s.client.Addr
}

// secure makes the client speak TLS, and returns the lines with which a Sentinel does at a port.
func (s *sentinel) secure(t testing.TB, port string) []string {
	t.Helper()
	files := &TLSServer{dir: t.TempDir()}
	certificate, key := s.authority.Sign(t, nil)
	files.Give(t, certificate, key, s.authority.PEM)
	own, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(s.authority.PEM))
	s.client.TLSConfig = &tls.Config{
		ServerName: "localhost", RootCAs: trusted, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12,
	}
	return files.lines(port, true)
}

// awaitKnown waits until a Sentinel knows of so many replicas that follow, and of so many other Sentinels.
func awaitKnown(t testing.TB, asked *redis.SentinelClient, replicas, others int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	await(ctx, t, "the Sentinel knows all replicas and Sentinels", func() bool {
		known, err := asked.Replicas(ctx, SentinelName).Result()
		if err != nil || len(known) != replicas {
			return false
		}
		for _, replica := range known {
			if replica["master-link-status"] != "ok" || strings.Contains(replica["flags"], "down") {
				return false
			}
		}
		sentinels, err := asked.Sentinels(ctx, SentinelName).Result()
		return err == nil && len(sentinels) == others
	})
}

// runSentinel runs a Sentinel until the test ends.
func runSentinel(t testing.TB, binary redisserver.Binary, file string) {
	t.Helper()
	sentinel := exec.Command(binary.Path, file, "--sentinel")
	sentinel.Env = binary.Environment()
	var log lockedLog
	sentinel.Stdout, sentinel.Stderr = &log, &log
	if err := sentinel.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sentinel.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = sentinel.Wait() // it was killed
		if t.Failed() {
			t.Log(log.text.String())
		}
	})
}

// lockedLog is what a process says.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}
