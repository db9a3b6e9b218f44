package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// peer is the user as whom Redis servers, and a Sentinel, speak to each other in tests.
const peer, peerPassword = "peer", "peer-password"

// sentinelPassword is what a Sentinel asks of collectors.
const sentinelPassword = "sentinel-password"

// replicated are options of a server that may replicate another and be replicated.
func replicated(primary string) redisserver.Options {
	options := redisserver.Options{Persist: true, Loopback: true, Extra: []string{
		"user " + peer + " on >" + peerPassword + " ~* &* +@all", "masteruser " + peer, "masterauth " + peerPassword,
		"repl-diskless-sync-delay 0",
	}}
	if primary != "" {
		options.Extra = append(options.Extra, "replicaof "+primary)
	}
	return options
}

// hostAndPort returns where a server listens, with a space between.
func hostAndPort(t *testing.T, server *redisserver.Server) (string, string) {
	t.Helper()
	address, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return address.Hostname(), address.Port()
}

// standby is a replica of a site's Redis.
type standby struct {
	*redisserver.Server
	primary, replica *redis.Client
}

// newStandby starts one and waits until it follows.
func newStandby(t *testing.T, s *site) *standby {
	t.Helper()
	host, port := hostAndPort(t, s.redis)
	r := &standby{Server: redistest.Start(t, replicated(host+" "+port)), primary: connectTo(t, s.redis)}
	r.replica = connectTo(t, r.Server)
	eventually(t, "the replica follows", func() bool {
		info := r.replica.InfoMap(t.Context(), "replication").Val()["Replication"]
		return info["master_link_status"] == "up" && info["master_sync_in_progress"] == "0"
	})
	return r
}

func connectTo(t *testing.T, server *redisserver.Server) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	options.DialerRetries = 1
	c := redis.NewClient(options)
	t.Cleanup(func() { c.Close() })
	return c
}

// isPrimary says whether the replica has taken over.
func (r *standby) isPrimary(ctx context.Context) bool {
	return r.replica.InfoMap(ctx, "replication").Val()["Replication"]["role"] == "master"
}

// takeOver makes the site read what the replica has.
func (r *standby) takeOver(t *testing.T, s *site) {
	t.Helper()
	client, err := stream.Dial(r.URL(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s.stream = client.Stream("default", "shop")
}

// TestAReplicaTakesOverWithoutErrorAndWithoutDouble fails over as for maintenance: the primary lets its replica catch up
// and steps back, and then the address leads to the other.
func TestAReplicaTakesOverWithoutErrorAndWithoutDouble(t *testing.T) {
	t.Parallel()
	s := newSite(t, replicated(""))
	c, replica := newCutter(t, s), newStandby(t, s)
	s.writeText(config.RedisURLFile, (&url.URL{Scheme: "redis", User: url.UserPassword(peer, peerPassword), Host: c.address}).String())
	l := startLoad(t, 8, s.start("collect"))
	l.await(200)
	begin := time.Now()
	if err := replica.primary.Do(t.Context(), "FAILOVER", "TIMEOUT", 10_000).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica has taken over", func() bool { return replica.isPrimary(t.Context()) })
	host, port := hostAndPort(t, replica.Server)
	c.lead(net.JoinHostPort(host, port))
	took := time.Since(begin)
	l.await(200)
	l.end()
	replica.takeOver(t, s)
	missing := l.lost(s.stored())
	t.Logf("%d events acknowledged; the failover took %s", len(l.acknowledged), took)
	if len(l.others) > 0 || l.failures > 0 || len(missing) > 0 {
		t.Errorf("%d answers were not 202, %d requests got none, %d acknowledged events are lost; want none: %v", len(l.others), l.failures, len(missing), l.others)
	}
}

// TestASentinelReplacesAKilledPrimary kills a primary under load and has a Sentinel notice it. The collector has a user of
// its own, as the operator makes them, which Redis does not replicate.
func TestASentinelReplacesAKilledPrimary(t *testing.T) {
	t.Parallel()
	// What a primary acknowledges is on its way to the replica already, but nobody waits for it to arrive.
	const lateness = time.Second
	s := newSite(t, replicated(""))
	replica := newStandby(t, s)
	address := startSentinel(t, s)
	admin, err := stream.Dial(address.String(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	tenant := stream.User{Name: "weir:default/shop:collect", Password: "tenant-password", Access: stream.AppendAccess, Namespace: "default", Property: "shop"}
	if err := stream.NewUsers(admin).Set(t.Context(), []stream.User{tenant}); err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(tenant.Name, tenant.Password)
	s.writeText(config.RedisURLFile, address.String())
	l := startLoad(t, 8, s.start("collect"))
	l.await(200)
	if err := s.redis.Kill(); err != nil {
		t.Fatal(err)
	}
	end := time.Now()
	eventually(t, "the replica has taken over", func() bool { return replica.isPrimary(t.Context()) })
	took := time.Since(end)
	l.await(200)
	l.end()
	replica.takeOver(t, s)
	missing := l.lost(s.stored())
	t.Logf("%d events acknowledged, %d of them lost; the failover took %s; %d requests refused", len(l.acknowledged), len(missing), took, len(l.others))
	if cost := l.toll(missing, []ending{{end, end}}); cost.earliest > lateness {
		t.Errorf("what was acknowledged %s before the end is not stored", cost.earliest)
	}
	for _, r := range l.others {
		if r.status != http.StatusServiceUnavailable || r.retryAfter != "2" {
			t.Errorf("got %d %s, Retry-After %q; want 202, or 503 after the time", r.status, r.body, r.retryAfter)
		}
	}
	if l.failures > 0 {
		t.Errorf("%d requests got no answer", l.failures)
	}
}

// startSentinel starts a Sentinel that watches the site's Redis and returns the URL by which it is asked.
func startSentinel(t *testing.T, s *site) *url.URL {
	t.Helper()
	host, port := hostAndPort(t, s.redis)
	address := redistest.StartSentinel(t, net.JoinHostPort(host, port), sentinelPassword,
		"sentinel auth-user shop "+peer, "sentinel auth-pass shop "+peerPassword)
	return &url.URL{
		Scheme: "redis", User: url.UserPassword(peer, peerPassword), Host: address,
		RawQuery: url.Values{"master_name": {redistest.SentinelName}, "sentinel_password": {sentinelPassword}}.Encode(),
	}
}
