package role_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// emptyHistory is a Redis, and the history of default/kept with its tables: who keeps it, its archive's user, and an administrator.
func emptyHistory(t *testing.T) (redis *redisserver.Server, keeper *access.Keeper, user access.User, history *clickhouse.Client) {
	t.Helper()
	server := clickhousetest.Start(t)
	redis = redistest.Start(t, redisserver.Options{Loopback: true})
	opened, err := access.Open(server.URL(""), clickhouse.Options{}, access.Place{Namespace: "default", Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	user = access.User{Role: access.Archive, Password: "first"}
	if _, err := opened.Ensure(t.Context(), []access.User{user}); err != nil {
		t.Fatal(err)
	}
	client, err := clickhouse.Dial(server.URL("weir_default_kept"), clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := schema.Ensure(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	return redis, opened, user, client
}

// TestTheArchiveRole runs the role with the users that it has in both systems, and nothing more.
func TestTheArchiveRole(t *testing.T) {
	redis, keeper, user, history := emptyHistory(t)
	admin, err := stream.Dial(redis.URL(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	if err := admin.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	own := stream.User{Name: "archive", Password: "own", Access: stream.ArchiveAccess, Namespace: "default", Property: "kept"}
	if err := stream.NewUsers(admin).Set(t.Context(), []stream.User{own}); err != nil {
		t.Fatal(err)
	}
	events := func() uint64 {
		n, err := clickhouse.One[uint64](t.Context(), history, clickhouse.Query{SQL: "SELECT count() FROM events"})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	property := shop("kept")
	collect := &pod{t: t, directory: t.TempDir(), property: property, log: &logBuffer{}}
	collect.write(config.PropertyFile, property)
	collect.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	collect.writeText(config.RedisURLFile, redis.URL())
	collect.run(role.Collect)
	collect.await("collecting", func() bool { return collect.send("key-1", "lead") == http.StatusAccepted })

	p := &pod{t: t, directory: t.TempDir(), property: property, log: &logBuffer{}}
	p.write(config.PropertyFile, property)
	p.writeText(config.RedisURLFile, "redis://archive:own@"+redis.URL()[strings.Index(redis.URL(), "@")+1:])
	p.run(role.Archive)
	ready := func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK }
	p.await("ready without a history, of which there is nothing to reach", ready)

	property.History = &config.History{RetentionDays: 100}
	p.writeText(config.HistoryURLFile, keeper.URL(user))
	p.write(config.PropertyFile, property)
	p.await("what was there before is archived", func() bool { return events() == 1 })
	p.await("ready", ready)
	began := time.Now()
	if got := collect.send("key-1", "lead"); got != http.StatusAccepted {
		t.Fatalf("an event: %d", got)
	}
	p.await("a further event is archived", func() bool { return events() == 2 })
	t.Logf("it took %s", time.Since(began))

	// The password is rotated: the pods are told of the new one a while after it has been in force.
	paused := func() string {
		reasons, err := admin.Stream("default", "kept").PausedPlatforms(t.Context(), []string{stream.ArchiveName})
		if err != nil {
			t.Fatal(err)
		}
		return reasons[stream.ArchiveName]
	}
	user.Password = "second"
	if err := keeper.Rotated(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	collect.send("key-1", "lead")
	p.await("the operator is told", func() bool { return paused() == "HistoryAccessDenied" })
	p.writeText(config.HistoryURLFile, keeper.URL(user))
	p.await("what came meanwhile is archived", func() bool { return events() == 3 })
	p.await("nobody is told any more", func() bool { return paused() == "" })
	for _, secret := range []string{"first", "second", "own@"} {
		if strings.Contains(p.log.String(), secret) {
			t.Errorf("the log tells a password:\n%s", p.log)
		}
	}
	for _, one := range []*pod{p, collect} {
		if err := one.stop(); err != nil {
			t.Error(err)
		}
	}
}
