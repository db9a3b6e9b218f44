package redistest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
)

// startMember starts one of several servers that speak to each other, and returns its address. Its default user needs no
// password. With an authority it speaks TLS alone.
func startMember(t testing.TB, authority *Authority, persist bool, lines []string) (server *redisserver.Server, address string) {
	t.Helper()
	// The end of a test waits for no replica that has ended before.
	options := redisserver.Options{Persist: persist, Extra: append([]string{"repl-diskless-sync-delay 0", "shutdown-timeout 0"}, lines...)}
	if authority != nil {
		options.Extra = append(options.Extra, "tls-replication yes")
		certificate, key := authority.Sign(t, nil)
		server := startTLS(t, options, certificate, key, authority.PEM)
		return server.Server, server.Address
	}
	options.Loopback, options.Extra = true, append(options.Extra, `requirepass ""`)
	server = Start(t, options)
	return server, "redis://" + hostOf(t, server.URL())
}

// Admin returns a client of one server, however it is reached from outside.
func Admin(t testing.TB, server *redisserver.Server) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	options.Password = "" // the default user needs none
	options.Protocol, options.MaxRetries, options.DialerRetries, options.ContextTimeoutEnabled = 2, -1, 1, true
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// which returns the place of the first server of which something holds, -1 where there is none. One that stands still is
// waited for only for a moment.
func which(ctx context.Context, servers []*redis.Client, holds func(context.Context, *redis.Client) bool) int {
	return slices.IndexFunc(servers, func(server *redis.Client) bool {
		ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		return holds(ctx, server)
	})
}

// follows says whether a server is a replica that is connected to its primary and has what that had.
func follows(ctx context.Context, server *redis.Client) bool {
	said := server.InfoMap(ctx, "replication").Val()["Replication"]
	return said["role"] == "slave" && said["master_link_status"] == "up" && said["master_sync_in_progress"] == "0"
}

// await waits until something holds.
func await(ctx context.Context, t testing.TB, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, ctx.Err())
		case <-ticker.C:
		}
	}
}

func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
