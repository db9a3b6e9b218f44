package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// ensemble is a Redis of one server or several, with what is needed to end the one that has the property.
type ensemble struct {
	config.Redis
	servers []*redisserver.Server
	// primary returns the place of the server that serves the property, -1 while there is none.
	primary func(context.Context) int
	// follows says whether a server is a replica that has all; nil where there are none.
	follows func(context.Context, int) bool
}

// late is how long before the end of a primary an event was acknowledged at most that is lost with it: what a primary
// acknowledges is on its way to the replicas already, but nobody waits for it to arrive. And it is for how long one that stood
// still answers what has waited for it, until it learns that it is none any more.
const late = time.Second

// ensembles are the kinds of Redis, by what makes them with certificates of an authority, or in the clear without one.
var ensembles = map[string]struct {
	private bool
	start   func(*testing.T, *redistest.Authority) ensemble
}{
	"of one, TLS with a private authority": {true, startOne},
	"of a cluster of six":                  {false, startSix},
	"of a cluster of six, TLS likewise":    {true, startSix},
	"behind three Sentinels":               {false, startBehindSentinels},
	"behind three Sentinels, TLS likewise": {true, startBehindSentinels},
}

func startOne(t *testing.T, authority *redistest.Authority) ensemble {
	certificate, key := authority.Sign(t, nil)
	server := redistest.StartTLS(t, certificate, key, authority.PEM,
		"appendonly yes", "appendfsync always", "aof-use-rdb-preamble no", "aof-load-truncated no")
	return ensemble{
		Redis: config.Redis{URL: server.Address}, servers: []*redisserver.Server{server.Server},
		primary: func(context.Context) int { return 0 },
	}
}

func startSix(t *testing.T, authority *redistest.Authority) ensemble {
	c := redistest.StartClusterWith(t, redistest.ClusterOptions{Replicas: 1, Authority: authority, Persist: true})
	return ensemble{
		Redis: config.Redis{URL: c.URL}, servers: c.Servers, follows: c.Follows,
		primary: func(ctx context.Context) int { return c.Primary(ctx, "weir:{default/shop}:events") },
	}
}

func startBehindSentinels(t *testing.T, authority *redistest.Authority) ensemble {
	g := redistest.StartGuarded(t, authority, "min-replicas-to-write 1", "min-replicas-max-lag 2")
	return ensemble{Redis: config.Redis{URL: g.URL}, servers: g.Servers, follows: g.Follows, primary: g.Primary}
}

// TestWhatIsAcknowledgedSurvivesFailovers is [TestWhatIsAcknowledgedSurvivesCrashes] for Redis of other kinds. A primary
// is killed, or stands still until a replica has taken over; it comes back as a replica, without users if it was killed.
func TestWhatIsAcknowledgedSurvivesFailovers(t *testing.T) {
	for name, kind := range ensembles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var authority *redistest.Authority
			if kind.private {
				authority = redistest.NewAuthority(t)
			}
			e := kind.start(t, authority)
			if kind.private {
				e.TLS.CA = authority.PEM
				e.TLS.Certificate, e.TLS.Key = authority.Sign(t, nil)
			}
			client := dialAndLoad(t, e.Redis)
			tenant := stream.User{Name: "weir:default/shop:collector", Password: "tenant-password", Access: stream.AppendAccess, Namespace: "default", Property: "shop"}
			users := stream.NewUsers(client)
			if err := users.Set(t.Context(), []stream.User{tenant}); err != nil {
				t.Fatal(err)
			}
			s := newSiteAt(t, client, as(t, e.Redis, tenant))
			l := startLoad(t, 16, s.start("collect"), s.start("collect"))
			var ends []ending
			var away time.Duration
			for n := range *kills {
				l.await(100 + rand.Int64N(200))
				if n%2 == 1 {
					victim := l.replicas[n/2%2]
					victim.kill()
					victim.launch()
					continue
				}
				end, took := e.fail(t, n%4 == 2, users, tenant)
				ends, away = append(ends, end), max(away, took)
			}
			l.await(100)
			l.end()
			missing := l.lost(s.stored())
			cost := l.toll(missing, ends)
			t.Logf("%d kills, %d events acknowledged; %d requests without an answer, %d not accepted; a failover took %s at most",
				*kills, len(l.acknowledged), l.failures, len(l.others), away.Round(10*time.Millisecond))
			t.Logf("%d events lost by %d of %d ends of Redis, at most %d by one, acknowledged at most %s before it",
				len(missing), cost.ends, len(ends), cost.most, cost.earliest.Round(time.Millisecond))
			if len(missing) > 0 && (e.follows == nil || cost.earliest > late) {
				t.Errorf("%d events were acknowledged and are not stored: %v", len(missing), missing)
			}
			for _, r := range l.others {
				if r.status != http.StatusServiceUnavailable || r.retryAfter != "2" {
					t.Errorf("got %d %s, Retry-After %q; want 202, or 503 after the time", r.status, r.body, r.retryAfter)
				}
			}
		})
	}
}

// dialAndLoad returns a client of a Redis that has the library.
func dialAndLoad(t *testing.T, redis config.Redis) *stream.Client {
	t.Helper()
	client, err := stream.Dial(redis.URL, stream.DialOptions{TLS: redis.TLS})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

// as returns how a user reaches a Redis.
func as(t *testing.T, redis config.Redis, user stream.User) config.Redis {
	t.Helper()
	address, err := url.Parse(redis.URL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(user.Name, user.Password)
	redis.URL = address.String()
	return redis
}

// fail ends the primary and brings it back when another has taken over, with the users that it has forgotten, as the operator
// does. It returns when the primary ended, and how long it took until there was one again.
func (e ensemble) fail(t *testing.T, frozen bool, users *stream.Users, tenant stream.User) (end ending, took time.Duration) {
	t.Helper()
	var victim int
	eventually(t, "there is a primary", func() bool { victim = e.primary(t.Context()); return victim >= 0 })
	server := e.servers[victim]
	frozen = frozen && e.follows != nil
	var process *os.Process
	if frozen {
		process = processOf(t, server)
		if err := process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	} else if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	end = endedNow()
	if e.follows != nil {
		eventually(t, "another takes over", func() bool {
			now := e.primary(t.Context())
			return now >= 0 && now != victim
		})
		took = time.Since(end.begun)
	}
	if frozen {
		if err := process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		end.over = time.Now().Add(late)
	} else if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.follows != nil {
		eventually(t, "what comes back follows", func() bool { return e.follows(t.Context(), victim) })
	}
	repaired := 0
	eventually(t, "every node has the users", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		n, err := users.Check(ctx, func() []stream.User { return []stream.User{tenant} })
		repaired += n
		return err == nil && (frozen || repaired > 0)
	})
	return end, took
}

// processOf finds a server's process.
func processOf(t *testing.T, server *redisserver.Server) *os.Process {
	t.Helper()
	id, err := strconv.Atoi(redistest.Admin(t, server).InfoMap(t.Context(), "server").Val()["Server"]["process_id"])
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(id)
	if err != nil {
		t.Fatal(err)
	}
	return process
}
