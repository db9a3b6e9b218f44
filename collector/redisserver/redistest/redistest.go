// Package redistest gives tests a real Redis of their own.
package redistest

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver"
)

// URL starts a server without persistence for this test alone and returns its address. It ends with the test.
func URL(t testing.TB) string {
	t.Helper()
	return Start(t, redisserver.Options{}).URL()
}

// Start starts a server with the options, in a directory of its own where they name none. It ends with the test.
func Start(t testing.TB, options redisserver.Options) *redisserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	binary, err := redisserver.Find(ctx, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	if options.Dir == "" {
		// Not t.TempDir: with a long test name a socket's path there would be too long.
		if options.Dir, err = os.MkdirTemp("", "weir-redis-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(options.Dir); err != nil {
				t.Error(err)
			}
		})
	}
	server, err := redisserver.Start(ctx, binary, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return server
}
