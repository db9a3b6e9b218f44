// Package clickhousetest gives tests a ClickHouse server, with the real engine, and faults on the way to it.
package clickhousetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/clickhouseserver"
)

// Server is a server of a test's own.
type Server struct {
	t testing.TB
	*clickhouseserver.Server
}

// Start starts a server without data for this test alone. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartWith(t, clickhouseserver.Options{})
}

// StartWith is [Start] with options; where they name no directory the server has one of its own.
func StartWith(t testing.TB, options clickhouseserver.Options) *Server {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	server, err := start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
	})
	return &Server{t, server}
}

func start(options clickhouseserver.Options) (*clickhouseserver.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	program, err := program(ctx)
	if err != nil {
		return nil, err
	}
	return clickhouseserver.Start(ctx, program, options)
}

// program is the server's, which the checkout's script makes where there is none, or an older one.
func program(ctx context.Context) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		script := filepath.Join(folder, "hack", "clickhouse.sh")
		if _, err := os.Stat(script); err == nil {
			cmd := exec.CommandContext(ctx, script)
			cmd.Stderr = os.Stderr
			output, err := cmd.Output()
			return strings.TrimSpace(string(output)), err
		}
		if filepath.Dir(folder) == folder {
			return clickhouseserver.Find()
		}
		folder = filepath.Dir(folder)
	}
}

// Kill ends the server as a crash would, and waits until it is gone.
func (s *Server) Kill() {
	s.t.Helper()
	if err := s.Server.Kill(); err != nil {
		s.t.Fatal(err)
	}
}

// Restart starts the server again, with the same data and at the same address.
func (s *Server) Restart() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Server.Restart(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// Database makes a database and returns its URL. It is dropped at the end of the test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return database(t, s.Server)
}

// shared is the server of a test binary, which ends with it.
var shared = sync.OnceValues(func() (*clickhouseserver.Server, error) {
	pattern := filepath.Join(os.TempDir(), "weir-clickhouse-shared-")
	old, err := filepath.Glob(pattern + "*")
	if err != nil {
		return nil, err
	}
	for _, dir := range old {
		// Its server has ended with the process that is in the name, and nobody could remove it then.
		if _, err := os.Stat("/proc/" + strings.TrimPrefix(dir, pattern)); os.IsNotExist(err) {
			_ = os.RemoveAll(dir)
		}
	}
	return start(clickhouseserver.Options{Dir: fmt.Sprintf("%s%d", pattern, os.Getpid())})
})

// Shared returns the URL of a database for this test alone, in a server that all tests of the binary share. It is
// dropped at the end of the test.
func Shared(t testing.TB) string {
	t.Helper()
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return database(t, server)
}

func database(t testing.TB, server *clickhouseserver.Server) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	Exec(t, server.URL(""), "CREATE DATABASE "+name)
	t.Cleanup(func() {
		// A server that the test has killed takes the database along.
		_, _ = run(server.URL(""), "DROP DATABASE IF EXISTS "+name)
	})
	return server.URL(name)
}

// Exec runs a statement at a URL and returns what it answers, tab-separated. It is for what a test sets up; the collector's own
// client is collector/clickhouse.
func Exec(t testing.TB, address, sql string) string {
	t.Helper()
	answer, err := run(address, sql)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// once is a client that keeps no connection, for what a server does not do it does not do again.
var once = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func run(address, sql string) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if database := strings.Trim(parsed.Path, "/"); database != "" {
		parsed.RawQuery = url.Values{"database": {database}}.Encode()
	}
	parsed.Path = "/"
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, parsed.String(), strings.NewReader(sql))
	if err != nil {
		return "", err
	}
	answer, err := once.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", sql, strings.TrimSpace(string(text)))
	}
	return strings.TrimSpace(string(text)), err
}
