package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func TestDialErrorsTellNoPassword(t *testing.T) {
	for name, address := range map[string]string{
		"of another scheme":        "http://user:s3cret@host",
		"with a bad port":          "redis://user:s3cret@host:port",
		"with control characters":  "redis://user:s3cret@ho\x7fst",
		"with a bad database":      "redis://user:s3cret@host/abc",
		"with an unknown option":   "redis://user:s3cret@host/0?s3cret=1",
		"of a cluster, malformed":  "redis://user:s3cret@host?addr=x&dial_timeout=abc",
		"with options of the pool": "redis://user:s3cret@host?pool_size=20000&min_idle_conns=20000",
		"of sentinels, malformed":  "redis://user:s3cret@host?master_name=x&db=abc",
		"with a broken percentage": "redis://user:s3cret%zz@host",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Dial(address, DialOptions{})
			if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "must look like") {
				t.Errorf("Dial = %v, want an error that tells the form and not the password", err)
			}
		})
	}
}

func TestUnreachableRedisErrorsTellNoPassword(t *testing.T) {
	logged := make(lines, 100)
	RouteLogs(slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { RouteLogs(slog.New(slog.DiscardHandler)) })
	client, err := Dial("redis://user:s3cret@127.0.0.1:1", DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	for _, err := range []error{client.Ping(t.Context()), client.Check(t.Context()), client.Load(t.Context())} {
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("error = %v, want one without the password", err)
		}
	}
	// Connections are made beside the command, so that what is said of them may come later.
	select {
	case line := <-logged:
		if !strings.Contains(line, "127.0.0.1:1") || strings.Contains(line, "s3cret") {
			t.Errorf("log = %q, want the address without the password", line)
		}
	case <-time.After(20 * time.Second):
		t.Error("nothing is logged of a connection that fails")
	}
}

// lines is a writer that keeps what is written.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

func TestCheck(t *testing.T) {
	s := redistest.Start(t, redisserver.Options{})
	client := dial(t, s.URL())
	if err := client.Check(t.Context()); err != nil {
		t.Errorf("Check = %v, want nil", err)
	}
	if err := client.redis.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.Check(t.Context()); !errors.Is(err, ErrEvictionEnabled) {
		t.Errorf("Check = %v, want ErrEvictionEnabled", err)
	}
}

func TestCheckOfTheDefaultUser(t *testing.T) {
	tests := map[string]struct {
		user    string
		persist bool
		want    error
	}{
		"may do everything":              {user: "on nopass ~* &* +@all", persist: true},
		"may do everything, but is off":  {user: "off", persist: true},
		"may PING":                       {user: "resetkeys resetchannels -@all +ping", persist: true, want: ErrDefaultUser},
		"may not write":                  {user: "-@write", persist: true, want: ErrDefaultUser},
		"may PING, and there is no file": {user: "resetkeys resetchannels -@all +ping"},
		"has no keys":                    {user: "resetkeys", persist: true, want: ErrDefaultUser},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, redisserver.Options{Persist: tt.persist})
			first := dial(t, s.URL())
			for _, rules := range []string{"administrator on nopass ~* &* +@all", "reader on nopass +info +function", "default " + tt.user} {
				words := []any{"ACL", "SETUSER"}
				for word := range strings.FieldsSeq(rules) {
					words = append(words, word)
				}
				if err := first.redis.Do(t.Context(), words...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			as := func(user string) *Client {
				address, err := url.Parse(s.URL())
				if err != nil {
					t.Fatal(err)
				}
				address.User = url.UserPassword(user, "any")
				return dial(t, address.String())
			}
			if err := as("administrator").Check(t.Context()); !errors.Is(err, tt.want) {
				t.Errorf("Check = %v, want %v", err, tt.want)
			}
			if err := as("reader").Check(t.Context()); err != nil {
				t.Errorf("Check by a user who may not look = %v, want nil", err)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	versioned := func(version int) string {
		return fmt.Sprintf("#!lua name=weir\nlocal VERSION = %d\nredis.register_function('weir_other', function() return 'other' end)\n", version)
	}
	ours, err := versionOf(library)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		loaded string
		want   bool
		bad    bool
	}{
		"into an empty Redis":                             {"", true, false},
		"over an older version":                           {versioned(ours - 1), true, false},
		"over other code of the same version":             {versioned(ours), true, false},
		"not over a newer version":                        {versioned(ours + 1), false, false},
		"not over a library that happens to be called so": {"#!lua name=weir\nredis.register_function('weir_other', function() return 'other' end)\n", false, true},
		"not again where it is there":                     {library, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := Dial(redistest.URL(t), DialOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			if test.loaded != "" {
				if err := client.redis.FunctionLoad(t.Context(), test.loaded).Err(); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := client.Load(t.Context()); (err != nil) != test.bad {
					t.Errorf("Load = %v, want an error: %v", err, test.bad)
				}
			}
			_, err = client.Stream("default", "shop").Allow(t.Context(), Rate{EventsPerSecond: 1}, 1)
			if got := !errors.Is(err, ErrLibrary); got != test.want {
				t.Errorf("the library answers: %v (%v), want %v", got, err, test.want)
			}
		})
	}
}

func TestAllow(t *testing.T) {
	start := time.Date(2026, 9, 9, 9, 9, 9, 0, time.UTC)
	type step struct {
		after time.Duration
		n     int
		want  Allowance
	}
	for name, test := range map[string]struct {
		limit int
		steps []step
	}{
		"a second's events at once, then evenly": {10, []step{
			{0, 10, Allowance{true, 10, 0, 0}},
			{0, 1, Allowance{false, 10, 0, 100 * time.Millisecond}},
			{99 * time.Millisecond, 1, Allowance{false, 10, 0, time.Millisecond}},
			{100 * time.Millisecond, 1, Allowance{true, 10, 0, 0}},
			{600 * time.Millisecond, 2, Allowance{true, 10, 3, 0}},
			{600 * time.Millisecond, 4, Allowance{false, 10, 3, 100 * time.Millisecond}},
			{time.Hour, 1, Allowance{true, 10, 9, 0}},
		}},
		"a batch beyond the limit where the allowance is whole, paid for afterwards": {100, []step{
			{0, 500, Allowance{true, 100, 0, 0}},
			{4 * time.Second, 1, Allowance{false, 100, 0, 10 * time.Millisecond}},
			{4*time.Second + 10*time.Millisecond, 1, Allowance{true, 100, 0, 0}},
			{4*time.Second + 10*time.Millisecond, 500, Allowance{false, 100, 0, time.Second}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newStreamAt(t, start)
			for i, step := range test.steps {
				c.set(start.Add(step.after))
				got, err := s.Allow(t.Context(), Rate{EventsPerSecond: test.limit}, step.n)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
	t.Run("by Redis's clock", func(t *testing.T) {
		s := newStream(t)
		allowed := 0
		for range 20 {
			a, err := s.Allow(t.Context(), Rate{EventsPerSecond: 5}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if a.OK {
				allowed++
			} else if a.RetryAfter <= 0 || a.RetryAfter > time.Second {
				t.Errorf("RetryAfter = %s, want a part of a second", a.RetryAfter)
			}
		}
		if allowed < 5 || allowed > 10 {
			t.Errorf("%d of 20 events allowed, want about 5", allowed)
		}
	})
	t.Run("each key's is its own", func(t *testing.T) {
		s := newStream(t)
		for key := range MaxRatedKeys + 1 {
			for _, want := range []bool{true, false} {
				if a, err := s.Allow(t.Context(), Rate{Key: key, EventsPerSecond: 1}, 1); err != nil || a.OK != want {
					t.Errorf("key %d: got %v, %v, want %v", key, a.OK, err, want)
				}
			}
		}
	})
	t.Run("no limit below one, and no key beyond the last", func(t *testing.T) {
		for _, rate := range []Rate{{}, {Key: -1, EventsPerSecond: 1}, {Key: MaxRatedKeys + 1, EventsPerSecond: 1}} {
			if _, err := newStream(t).Allow(t.Context(), rate, 1); err == nil {
				t.Errorf("Allow of %+v = nil, want an error", rate)
			}
		}
	})
}

// asUser returns the property's stream as seen by a user with the access.
func asUser(t *testing.T, server *redisserver.Server, access Access, user string) *Stream {
	t.Helper()
	admin := dial(t, server.URL())
	args := []any{"ACL", "SETUSER", user}
	for _, rule := range append(access.Rules("default", "shop", 0), ">pw-"+user) {
		args = append(args, rule)
	}
	if err := admin.redis.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	_, host, _ := strings.Cut(server.URL(), "@")
	client, err := Dial("redis://"+user+":pw-"+user+"@"+host, DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client.Stream("default", "shop")
}

func TestAccess(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	collect := asUser(t, server, AppendAccess, "collect")
	deliver := asUser(t, server, DeliverAccess, "deliver")
	query := asUser(t, server, ReadAccess, "query")
	ctx := t.Context()

	answering(t, deliver)
	a := newAppender(t, collect, AppenderOptions{})
	mustAppend(t, a, addition("1", "order-1"), addition("1", ""), addition("2", "order-1"), addition("3", ""), addition("4", ""), sealing(visit("5"), true))
	for key := range MaxRatedKeys + 1 {
		if _, err := collect.Allow(ctx, Rate{Key: key, EventsPerSecond: 10}, 1); err != nil {
			t.Errorf("key %d: %v", key, err)
		}
	}
	for i, step := range []func() error{
		func() error {
			bounds, err := query.Bounds(ctx)
			if err != nil {
				return err
			}
			entries, err := query.Entries(ctx, []Position{bounds.First, bounds.Last})
			if err == nil && len(entries) != 2 {
				t.Errorf("the read access finds %d entries, want 2", len(entries))
			}
			return err
		},
		func() error { _, err := deliver.EnsureGroup(ctx, "meta", GroupState{}); return err },
		func() error {
			taken, err := deliver.Read(ctx, "meta", "pod-1", 3, time.Second)
			if err != nil {
				return err
			}
			return deliver.Settle(ctx, "meta", []Settlement{
				decided(taken[0].Position, Failed, 1), retryAt(taken[1].Position, 1, time.Now()),
			})
		},
		func() error {
			_, _, err := deliver.Due(ctx, "meta", time.Now().Add(time.Second), time.Minute, 10)
			return err
		},
		func() error { _, _, err := deliver.Reclaim(ctx, "meta", "pod-2", 0, 10); return err },
		func() error { _, _, err := deliver.Held(ctx, "meta", "pod-2", 0, 10); return err },
		func() error { _, err := deliver.LastWaiting(ctx, "meta"); return err },
		func() error { return deliver.Release(ctx, "meta", "pod-2", []Position{1}) },
		func() error { return deliver.Acknowledge(ctx, "meta", []Position{1}) },
		func() error { return deliver.Record(ctx, "meta", []Record{decided(1, Skipped, 0).Record}) },
		func() error { _, err := deliver.Groups(ctx); return err },
		func() error { _, err := deliver.Bounds(ctx); return err },
		func() error {
			n, err := ReplayRequester{query}.Replay(ctx, ReplayRequest{Platform: "meta", To: time.Now().Add(time.Hour), Statuses: []Status{Failed}, Now: time.Now()})
			if err == nil && n == 0 {
				return errors.New("nothing was put back")
			}
			return err
		},
		func() error {
			serving(t, deliver, func(context.Context, TestRequest) TestAnswer { return TestAnswer{Verdict: TestAccepted} })
			_, err := TestRequester{query}.Test(ctx, TestRequest{Platform: "meta"})
			return err
		},
		func() error {
			return deliver.ReportPlatforms(ctx, "pod-1", []PlatformState{{Platform: "meta"}}, time.Now())
		},
		func() error {
			states, err := query.PlatformStates(ctx)
			if err == nil && len(states) == 0 {
				return errors.New("no report is read")
			}
			return err
		},
		func() error { _, err := deliver.Trim(ctx, TrimPolicy{Age: time.Nanosecond, MaxEvents: 1}); return err },
		func() error { _, err := realClock(deliver).Look(ctx); return err },
		func() error { return deliver.DestroyGroup(ctx, "meta") },
		func() error { _, err := query.ReadEvents(ctx, 0, 10, 0); return err },
		func() error { _, err := query.ReadEvents(ctx, 1<<62, 10, time.Millisecond); return err },
		func() error { _, err := query.ReadRecords(ctx, 0, 10, 0); return err },
		func() error { _, err := query.Bounds(ctx); return err },
		func() error { _, err := query.Exists(ctx, 1); return err },
		func() error { _, err := both(deliver).ReadEvents(ctx, 0, 10, 0); return err },
		func() error { _, err := query.Opening(wire.Identity).ReadEvents(ctx, 0, 10, 0); return err },
		func() error { _, err := deliver.DropKeys(ctx, time.Hour, time.Hour); return err },
		func() error { _, err := query.Dropped(ctx); return err },
		func() error { _, err := query.Beyond(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Errorf("step %d = %v, want that the role may do it", i, err)
		}
	}
	for name, err := range map[string]error{
		"the collector reads events":            func() error { _, err := collect.ReadEvents(ctx, 0, 1, 0); return err }(),
		"the collector deletes events":          collect.redis.Del(ctx, collect.keys.events()).Err(),
		"query appends an event":                query.redis.XAdd(ctx, &redis.XAddArgs{Stream: query.keys.events(), Values: []any{"e", "x"}}).Err(),
		"query reads the keys of devices":       query.redis.HMGet(ctx, query.keys.seal(wire.Device), "1").Err(),
		"query opens devices":                   func() error { _, err := both(query).ReadEvents(ctx, 0, 1, 0); return err }(),
		"query drops keys":                      query.redis.HDel(ctx, query.keys.seal(wire.Identity), "1").Err(),
		"query forgets a retry":                 query.redis.ZRem(ctx, query.keys.due("meta"), "1-0").Err(),
		"the collector writes another property": collect.redis.Set(ctx, keysOf("default", "shop2").rate(0), 1, 0).Err(),
		"query reads another property": func() error {
			_, err := (&Stream{redis: query.redis, keys: keysOf("default", "sho")}).ReadEvents(ctx, 0, 1, 0)
			return err
		}(),
		"the deliverer evaluates a script":        deliver.redis.Eval(ctx, "return 1", nil).Err(),
		"the deliverer loads a function":          deliver.redis.FunctionLoad(ctx, library).Err(),
		"the collector lists the keys":            collect.redis.Keys(ctx, "*").Err(),
		"the collector changes the configuration": collect.redis.ConfigSet(ctx, "maxmemory", "1").Err(),
	} {
		if err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("%s: %v, want NOPERM", name, err)
		}
	}
}

func TestNewConnectionsAuthenticateAnew(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	admin, ctx := dial(t, server.URL()), t.Context()
	as := func(name, password string) string {
		address, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		address.User = url.UserPassword(name, password)
		return address.String()
	}
	give := func(name, password string) {
		if err := admin.redis.ACLSetUser(ctx, name, "reset", "on", ">"+password, "+ping").Err(); err != nil {
			t.Fatal(err)
		}
	}
	give("pod", "first")
	client, err := Dial(as("pod", "first"), DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ping := func(what string, want bool) {
		t.Helper()
		if err := client.Ping(ctx); (err == nil) != want {
			t.Errorf("%s: Ping = %v", what, err)
		}
	}
	drop := func() {
		for _, name := range []string{"pod", "other"} {
			if err := admin.redis.Do(ctx, "client", "kill", "user", name).Err(); err != nil && !strings.Contains(err.Error(), "No such user") {
				t.Fatal(err)
			}
		}
		_ = client.Ping(ctx) // which notices that its connection is gone
	}
	ping("with the password", true)
	give("pod", "second")
	ping("on a connection from before the password changed", true)
	drop()
	ping("on a new connection with the old password", false)
	if err := client.Authenticate(as("pod", "second"), TLS{}); err != nil {
		t.Fatal(err)
	}
	ping("on a new connection with the new password", true)
	give("other", "third")
	if err := client.Authenticate(as("other", "third"), TLS{}); err != nil {
		t.Fatal(err)
	}
	drop()
	ping("as another user", true)

	for what, address := range map[string]string{
		"another host": "redis://other:s3cret@127.0.0.1:1", "another database": as("other", "s3cret") + "/1", "no URL": "redis://other:s3cret@ho\x7fst",
	} {
		err := client.Authenticate(address, TLS{})
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: Authenticate = %v, want an error without the password", what, err)
		}
	}
	drop()
	ping("as before, after URLs that were refused", true)
}

func TestAPauseHoldsForAsLongAsItIsSaidAgain(t *testing.T) {
	client := dial(t, redistest.URL(t))
	s, ctx := client.Stream("default", "shop"), t.Context()
	paused := func(want map[string]string) {
		t.Helper()
		got, err := s.PausedPlatforms(ctx, []string{"meta", "crm"})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v, paused (-want +got):\n%s", err, diff)
		}
	}
	paused(map[string]string{})
	for _, reason := range []string{"ConfigurationRejected", "CredentialsRejected"} {
		if err := s.PausePlatform(ctx, "crm", reason); err != nil {
			t.Fatal(err)
		}
	}
	paused(map[string]string{"crm": "CredentialsRejected"})
	if ttl := client.redis.PTTL(ctx, s.keys.paused("crm")).Val(); ttl <= 0 || ttl > PausedFor {
		t.Errorf("it holds for %v, want at most %v", ttl, PausedFor)
	}
	if got, err := s.PausedPlatforms(ctx, nil); err != nil || len(got) > 0 {
		t.Errorf("without platforms: %v, %v", got, err)
	}
}
