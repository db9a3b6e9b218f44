package redistest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
	port := freePort(t)
	client := redis.Options{Addr: net.JoinHostPort("127.0.0.1", port), Password: password}
	return startSentinel(t, primary, client, append(lines, "port "+port, fmt.Sprintf("requirepass %q", password)))
}

// StartTLSSentinel is [StartSentinel] for one that speaks TLS alone, to Redis too. It asks for nothing but certificates of the
// authority.
func StartTLSSentinel(t testing.TB, authority *Authority, primary string) string {
	t.Helper()
	files := &TLSServer{dir: t.TempDir()}
	certificate, key := authority.Sign(t, nil)
	files.Give(t, certificate, key, authority.PEM)
	own, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(authority.PEM))
	port := freePort(t)
	client := redis.Options{Addr: net.JoinHostPort("127.0.0.1", port), TLSConfig: &tls.Config{
		ServerName: "localhost", RootCAs: trusted, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12,
	}}
	return startSentinel(t, primary, client, append(files.lines(port, true), "port 0", "tls-replication yes", "protected-mode no"))
}

// startSentinel starts a Sentinel and asks it as a client until it knows a replica.
func startSentinel(t testing.TB, primary string, client redis.Options, lines []string) string {
	t.Helper()
	binary, err := redisserver.Find(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lines = append([]string{
		"bind 127.0.0.1", fmt.Sprintf("dir %q", dir), "sentinel monitor " + SentinelName + " " + host + " " + port + " 1",
		"sentinel down-after-milliseconds " + SentinelName + " 500", "sentinel failover-timeout " + SentinelName + " 10000",
	}, lines...)
	file := filepath.Join(dir, "sentinel.conf") // which it writes to
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runSentinel(t, binary, file)
	client.DialerRetries, client.Protocol = 1, 2
	asked := redis.NewSentinelClient(&client)
	defer asked.Close()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		replicas, err := asked.Replicas(t.Context(), SentinelName).Result()
		if err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok" && !strings.Contains(replicas[0]["flags"], "down") {
			return client.Addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("the Sentinel knows no replica after a minute: %v, %v", replicas, err)
		}
	}
}

// runSentinel runs a Sentinel until the test ends.
func runSentinel(t testing.TB, binary redisserver.Binary, file string) {
	t.Helper()
	sentinel := exec.Command(binary.Path, file, "--sentinel")
	sentinel.Env = append(os.Environ(), "LD_LIBRARY_PATH="+binary.LibraryPath)
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
