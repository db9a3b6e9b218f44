package stream

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// startBundled starts a server with the chart's configuration, but for where it listens and keeps its files.
func startBundled(t *testing.T) *redisserver.Server {
	t.Helper()
	text, err := os.ReadFile("../../charts/weir/files/redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || slices.Contains([]string{"#", "bind", "port", "dir", "aclfile", "protected-mode", "appendonly"}, words[0]) {
			continue
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return redistest.Start(t, redisserver.Options{Persist: true, Loopback: true, Extra: append(lines, "maxmemory 640mb")})
}

// TestTheBundledRedisBoundsItsClients looks at each bound of the chart's Redis from a client that goes beyond it.
func TestTheBundledRedisBoundsItsClients(t *testing.T) {
	server := startBundled(t)
	ctx := t.Context()
	admin := dial(t, server.URL())
	for name, want := range map[string]string{
		"maxclients": "10000", "timeout": "600", "tcp-keepalive": "60", "databases": "1", "client-query-buffer-limit": "67108864",
		"proto-max-bulk-len": "8388608", "maxmemory-clients": "40%", "busy-reply-threshold": "1000", "enable-debug-command": "no",
		"enable-module-command": "no", "enable-protected-configs": "no", "maxmemory-policy": "noeviction", "lazyfree-lazy-expire": "yes",
	} {
		if got := admin.redis.ConfigGet(ctx, name).Val()[name]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	buffers := admin.redis.ConfigGet(ctx, "client-output-buffer-limit").Val()["client-output-buffer-limit"]
	if !strings.Contains(buffers, "normal 268435456 67108864 60") || !strings.Contains(buffers, "pubsub 1048576 1048576 10") {
		t.Errorf("client-output-buffer-limit = %q", buffers)
	}

	collect := asUser(t, server, AppendAccess, "collect")
	a := newAppender(t, collect, AppenderOptions{})
	mustAppend(t, a, Addition{Entry: make([]byte, 1<<20), EventID: "large"}, addition("small", "order"))
	const before = 2
	for what, call := range map[string]func() error{
		"an argument of 9 MB": func() error {
			return collect.redis.XAdd(ctx, &redis.XAddArgs{Stream: collect.keys.events(), Values: []any{"e", make([]byte, 9<<20)}}).Err()
		},
		"another database":                   func() error { return admin.redis.Do(ctx, "SELECT", 1).Err() },
		"DEBUG by an administrator":          func() error { return admin.redis.Do(ctx, "DEBUG", "SLEEP", 0).Err() },
		"a protected setting":                func() error { return admin.redis.ConfigSet(ctx, "dir", "/tmp").Err() },
		"a module that somebody brings":      func() error { return admin.redis.Do(ctx, "MODULE", "LOAD", "/tmp/x.so").Err() },
		"memory beyond what is there for it": func() error { return admin.redis.Do(ctx, "SETRANGE", "x", 16<<20, "x").Err() },
	} {
		if err := call(); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if n := len(allEvents(t, admin.Stream("default", "shop"))); n != before {
		t.Errorf("%d events are there, want %d", n, before)
	}
}

// TestAnAnswerThatNobodyFetchesEndsItsConnection asks the chart's Redis for more than its output buffer holds.
func TestAnAnswerThatNobodyFetchesEndsItsConnection(t *testing.T) {
	server := startBundled(t)
	ctx := t.Context()
	admin := dial(t, server.URL())
	s := admin.Stream("default", "shop")
	entry := make([]byte, 1<<20)
	for range 150 {
		if err := s.redis.XAdd(ctx, &redis.XAddArgs{Stream: s.keys.events(), Values: []any{"e", entry}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	query := asUser(t, server, ReadAccess, "query")
	_, err := query.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for range 3 {
			pipe.XRange(ctx, s.keys.events(), "-", "+")
		}
		return nil
	})
	if err == nil {
		t.Error("450 MB were sent")
	}
	if bounds, err := s.Bounds(ctx); err != nil || bounds.Length != 150 {
		t.Errorf("%d events are there, error %v, want 150", bounds.Length, err)
	}
}

var administratorLine = regexp.MustCompile(`(?m)^ +ACL SETUSER weir (.*)$`)

// TestTheDocumentedAdministratorDoesWhatTheOperatorDoes runs what the operator asks of a Redis as the user that the
// documentation gives it, and what it never asks.
func TestTheDocumentedAdministratorDoesWhatTheOperatorDoes(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	line := administratorLine.FindStringSubmatch(string(text))
	if line == nil {
		t.Fatal("docs/operate/redis.md has no line ACL SETUSER weir …")
	}
	server := redistest.Start(t, redisserver.Options{Loopback: true, Persist: true})
	ctx := t.Context()
	root := dial(t, server.URL())
	args := []any{"ACL", "SETUSER", "weir"}
	for word := range strings.FieldsSeq(strings.ReplaceAll(line[1], ">PASSWORD", ">pw")) {
		args = append(args, word)
	}
	if err := root.redis.Do(ctx, args...).Err(); err != nil {
		t.Fatal(err)
	}
	fill(t, root.Stream("default", "shop"), 3)
	_, host, _ := strings.Cut(server.URL(), "@")
	admin := dial(t, "redis://weir:pw@"+host)
	shop, users := admin.Stream("default", "shop"), NewUsers(admin)
	wanted := []User{{Name: "weir:default/shop:query", Password: "x", KeepPasswords: true, Access: ReadAccess, Namespace: "default", Property: "shop"}}
	for what, step := range map[string]func() error{
		"look at it":               func() error { return admin.Check(ctx) },
		"load the functions":       func() error { return admin.Load(ctx) },
		"make users":               func() error { return users.Set(ctx, wanted) },
		"look after users":         func() error { _, err := users.Check(ctx, func() []User { return wanted }); return err },
		"remove users":             func() error { return users.Remove(ctx, "weir:default/gone:query") },
		"give data a last day":     func() error { return shop.Expire(ctx, Ages{time.Hour, time.Hour, time.Hour}, []string{"meta"}) },
		"keep data":                func() error { return shop.Keep(ctx, []string{"meta"}) },
		"read what is paused":      func() error { _, err := shop.PausedPlatforms(ctx, []string{"meta"}); return err },
		"erase a Property's data":  func() error { return admin.Erase(ctx, "default", "other") },
		"say that it is reachable": func() error { return admin.Ping(ctx) },
	} {
		if err := step(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, command := range []string{
		"XRANGE EVENTS - +", "XREAD STREAMS EVENTS 0", "XINFO STREAM DELIVERIES", "XADD EVENTS * e x", "GET RATE", "HGETALL DEDUP", "MGET EVENTS", "SET EVENTS x",
		"UNLINK foreign", "PEXPIRE foreign 1", "MGET foreign", "FCALL weir_trim 3 EVENTS DELIVERIES RETRY 0 0 0 1", "EVAL return 0", "FLUSHALL", "FLUSHDB", "KEYS *",
		"CONFIG REWRITE", "CONFIG SET maxmemory 1", "SHUTDOWN", "FUNCTION FLUSH", "FUNCTION DELETE weir", "SCRIPT LOAD x", "DUMP EVENTS", "MONITOR", "CLIENT LIST",
		"CLIENT KILL TYPE normal", "REPLICAOF NO ONE", "PUBLISH x y", "SUBSCRIBE x", "RENAME EVENTS foreign", "DEL EVENTS",
	} {
		if err := admin.redis.Do(ctx, attack(command)...).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("%s: %v, want NOPERM", command, err)
		}
	}
	if n := len(allEvents(t, root.Stream("default", "shop"))); n != 3 {
		t.Errorf("%d events are left, want 3", n)
	}
}
