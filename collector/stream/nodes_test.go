package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// ensemble is a Redis of several servers, one of which takes over where another ends.
type ensemble struct {
	url     string
	servers []*redisserver.Server
	// primary returns the place of the server that has a property's keys, -1 while none does; follows says whether one is a
	// replica that has all.
	primary func(context.Context) int
	follows func(context.Context, int) bool
}

// ensembles are the kinds that there are.
var ensembles = map[string]func(testing.TB) ensemble{
	"a cluster of six": func(t testing.TB) ensemble {
		c := redistest.StartClusterWith(t, redistest.ClusterOptions{Replicas: 1, Persist: true})
		return ensemble{c.URL, c.Servers, func(ctx context.Context) int { return c.Primary(ctx, keysOf("default", "shop").events()) }, c.Follows}
	},
	"three Sentinels": func(t testing.TB) ensemble {
		g := redistest.StartGuarded(t, nil)
		return ensemble{g.URL, g.Servers, g.Primary, g.Follows}
	},
}

// TestEveryNodeHasTheUsersAndTheLibraryThroughFailovers has a primary killed, and come back with nothing.
func TestEveryNodeHasTheUsersAndTheLibraryThroughFailovers(t *testing.T) {
	for name, start := range ensembles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t)
			client := dial(t, e.url)
			user := User{Name: "weir:default/shop:collector", Password: "x", Access: AppendAccess, Namespace: "default", Property: "shop"}
			users := NewUsers(client)
			if err := users.Set(t.Context(), []User{user}); err != nil {
				t.Fatal(err)
			}
			e.have(t, user, "after the start")

			appender := newAppender(t, client.Stream("default", "shop"), AppenderOptions{})
			mustAppend(t, appender, addition("before", ""))
			victim := e.primary(t.Context())
			kept := filepath.Join(directory(t, e.servers[victim]), "appendonlydir")
			if err := e.servers[victim].Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "another takes over", func() bool { return e.primary(t.Context()) >= 0 })
			// Nobody waits for longer than that, however long ago the client has asked where the keys are.
			mustAppend(t, appender, addition("after", ""))
			e.have(t, user, "of those that are left", victim)

			if err := os.RemoveAll(kept); err != nil {
				t.Fatal(err)
			}
			if err := e.servers[victim].Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "what came back with nothing follows", func() bool { return e.follows(t.Context(), victim) })
			repaired := 0
			// Sentinels take a moment to name it again. The operator looks as often as it takes.
			eventually(t, "the users are put back", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				n, err := users.Check(ctx, func() []User { return []User{user} })
				repaired += n
				return err == nil && n == 0 && repaired > 0
			})
			if repaired != 1 {
				t.Errorf("%d users were put back, want one, on the node that came back", repaired)
			}
			e.have(t, user, "after one came back with nothing")
			if n := len(allEvents(t, client.Stream("default", "shop"))); n != 2 {
				t.Errorf("%d events are stored, want 2", n)
			}
		})
	}
}

// have looks for the user and the library on every server but one.
func (e ensemble) have(t *testing.T, user User, when string, but ...int) {
	t.Helper()
	for i, server := range e.servers {
		if len(but) > 0 && but[0] == i {
			continue
		}
		node := redistest.Admin(t, server)
		listed, err := listUsers(t.Context(), node)
		loaded, errLoaded := node.FunctionList(t.Context(), redis.FunctionListQuery{LibraryNamePattern: libraryName}).Result()
		if err := errors.Join(err, errLoaded); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(listed[user.Name], " on ") || len(loaded) != 1 {
			t.Errorf("%s: server %d of %d has the user %q and %d libraries, want both", when, i, len(e.servers), listed[user.Name], len(loaded))
		}
	}
}

// directory returns where a server keeps what it has.
func directory(t testing.TB, server *redisserver.Server) string {
	t.Helper()
	said, err := redistest.Admin(t, server).ConfigGet(t.Context(), "dir").Result()
	if err != nil {
		t.Fatal(err)
	}
	return said["dir"]
}

// TestPropertiesSpreadOverTheNodes counts what the primaries of a cluster do for 60 properties.
func TestPropertiesSpreadOverTheNodes(t *testing.T) {
	const properties, most = 60, 0.45
	for name, cluster := range map[string]struct {
		url   func(testing.TB) (string, []string)
		share float64
	}{
		"one server does all": {func(t testing.TB) (string, []string) {
			address := redistest.URL(t)
			return address, []string{address}
		}, 1},
		"of three primaries none does half": {func(t testing.TB) (string, []string) {
			c := redistest.StartCluster(t)
			return c.URL, c.Nodes
		}, most},
	} {
		t.Run(name, func(t *testing.T) {
			address, nodes := cluster.url(t)
			client := dial(t, address)
			for i := range properties {
				mustAppend(t, newAppender(t, client.Stream("default", fmt.Sprint("shop-", i)), AppenderOptions{}), addition("one", "order"))
			}
			calls, all := make([]int, len(nodes)), 0
			for i, at := range nodes {
				said := dial(t, at).redis.InfoMap(t.Context(), "commandstats").Val()["Commandstats"]["cmdstat_fcall"]
				if said == "" {
					continue
				}
				if _, err := fmt.Sscanf(said, "calls=%d,", &calls[i]); err != nil {
					t.Fatal(err)
				}
				all += calls[i]
			}
			if all != properties {
				t.Errorf("the servers were called %v times, want %d in all, one for each property", calls, properties)
			}
			t.Logf("calls by server: %v", calls)
			for i, n := range calls {
				if share := float64(n) / properties; share > cluster.share {
					t.Errorf("server %d of %v did %.0f %%, want %.0f %% at most", i, calls, 100*share, 100*cluster.share)
				}
			}
		})
	}
}

// TestAClientTurnsAwayFromALivingPrimaryThatIsNoneAnyMore has Sentinels give the place of a primary that works to another, as
// for maintenance. It is told late that it has to follow, as by default.
func TestAClientTurnsAwayFromALivingPrimaryThatIsNoneAnyMore(t *testing.T) {
	t.Parallel()
	const late = 2 * time.Second // a look, and an answer to it
	g := redistest.StartGuarded(t, nil)
	sentinels := make([]*redis.SentinelClient, len(g.Sentinels))
	for i, address := range g.Sentinels {
		sentinels[i] = redis.NewSentinelClient(&redis.Options{Addr: address, Protocol: 2})
		t.Cleanup(func() { _ = sentinels[i].Close() })
	}
	publish := func(period time.Duration) {
		for _, sentinel := range sentinels {
			command := redis.NewStatusCmd(t.Context(), "sentinel", "debug", "publish-period", period.Milliseconds())
			if err := sentinel.Process(t.Context(), command); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(2 * time.Second)
	before := g.Primary(t.Context())
	s := dial(t, g.URL).Stream("default", "shop")
	appender := newAppender(t, s, AppenderOptions{})
	mustAppend(t, appender, addition("before", ""))
	eventually(t, "a Sentinel finds a replica that it takes", func() bool {
		return sentinels[0].Failover(t.Context(), redistest.SentinelName).Err() == nil
	})
	eventually(t, "all Sentinels name another", func() bool {
		return !slices.ContainsFunc(sentinels, func(sentinel *redis.SentinelClient) bool {
			named := sentinel.GetMasterAddrByName(t.Context(), redistest.SentinelName).Val()
			return len(named) != 2 || strings.HasSuffix(g.Nodes[before], ":"+named[1])
		})
	})
	lasting := map[string]bool{}
	for begin := time.Now(); time.Since(begin) < 2*late; {
		id, sent := uuid.NewString(), time.Since(begin)
		if _, err := appender.Append(t.Context(), []Addition{addition(id, "")}); err == nil && sent > late {
			lasting[id] = true
		}
	}
	publish(250 * time.Millisecond)
	eventually(t, "the one before follows", func() bool { return g.Follows(t.Context(), before) })
	for _, entry := range allEvents(t, s) {
		delete(lasting, strings.TrimPrefix(string(entry.Data), "entry of "))
	}
	if len(lasting) > 0 {
		t.Errorf("%d events were acknowledged later than %s after the other took over, and are not stored", len(lasting), late)
	}
}
