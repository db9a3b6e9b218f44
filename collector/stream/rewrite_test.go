package stream

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// persistent are a Redis with an append-only file of commands, and lines more.
func persistent(t testing.TB, lines ...string) redisserver.Options {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-redis-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return redisserver.Options{Dir: dir, Persist: true, Extra: append([]string{"aof-use-rdb-preamble no"}, lines...)}
}

// holds says whether a file below a directory has some bytes.
func holds(t testing.TB, dir string, searched []byte) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		found = found || bytes.Contains(content, searched)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// rewritten waits until all nodes have rewritten their files.
func rewritten(ctx context.Context, r *Rewriter) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if done, err := r.Done(ctx); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func TestARewrittenFileHasNothingOfDeletedEntries(t *testing.T) {
	options := persistent(t)
	client := dial(t, redistest.Start(t, options).URL())
	add := func(value string) string {
		id, err := client.redis.XAdd(t.Context(), &redis.XAddArgs{Stream: "s", Values: []string{"e", value}}).Result()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	add("a neighbour")
	gone := add("somebody who is erased")
	add("another neighbour")
	if err := client.redis.XDel(t.Context(), "s", gone).Err(); err != nil {
		t.Fatal(err)
	}
	if !holds(t, options.Dir, []byte("somebody who is erased")) {
		t.Fatal("there is nothing to be rid of")
	}
	rewriter := NewRewriter(client)
	if begun, err := rewriter.Begin(t.Context()); !begun || err != nil {
		t.Fatalf("begun %v, error %v", begun, err)
	}
	if err := rewritten(t.Context(), rewriter); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"somebody who is erased": false, "a neighbour": true, "another neighbour": true} {
		eventually(t, "the file that was before is gone", func() bool { return holds(t, options.Dir, []byte(text)) == want })
	}
}

func TestWhatARedisDoesNotRewrite(t *testing.T) {
	user := func(rights string) func(testing.TB, *Client) string {
		return func(t testing.TB, admin *Client) string {
			rules := []any{"acl", "setuser", "weir", "on", ">secret", "+ping", "+info"}
			for right := range strings.FieldsSeq(rights) {
				rules = append(rules, right)
			}
			if err := admin.redis.Do(t.Context(), rules...).Err(); err != nil {
				t.Fatal(err)
			}
			return "weir"
		}
	}
	memory := redisserver.Options{}
	for name, row := range map[string]struct {
		lines  []string
		memory bool
		// user returns as whom it is asked; nil for the administrator.
		user func(testing.TB, *Client) string
		want error
	}{
		"a Redis without files has nothing to rewrite": {memory: true},
		"a Redis that keeps snapshots alone keeps what was deleted": {
			memory: true, lines: []string{"save 3600 1"}, want: ErrSnapshots,
		},
		"snapshots beside the append-only file keep it too": {lines: []string{"save 3600 1"}, want: ErrSnapshots},
		"a snapshot at the head of the file keeps it too":   {lines: []string{"aof-use-rdb-preamble yes"}, want: ErrSnapshots},
		"a user who may do both is enough":                  {user: user("+bgrewriteaof +config|get")},
		"a user who may not rewrite is told":                {user: user("+config|get"), want: ErrRewriteDenied},
		"a user who may not look at the settings is told":   {user: user("+bgrewriteaof"), want: ErrRewriteDenied},
		"a Redis without the command is told":               {lines: []string{`rename-command bgrewriteaof ""`}, want: ErrRewriteDenied},
	} {
		t.Run(name, func(t *testing.T) {
			options := persistent(t, row.lines...)
			if row.memory {
				options = memory
				options.Extra = row.lines
			}
			options.Loopback = true
			address := redistest.Start(t, options).URL()
			client := dial(t, address)
			if row.user != nil {
				as, err := url.Parse(address)
				if err != nil {
					t.Fatal(err)
				}
				as.User = url.UserPassword(row.user(t, client), "secret")
				if client, err = Dial(as.String(), DialOptions{}); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = client.Close() })
			}
			rewriter := NewRewriter(client)
			begun, err := rewriter.Begin(t.Context())
			if !errors.Is(err, row.want) || begun != (row.want == nil) {
				t.Fatalf("begun %v, error %v, want %v", begun, err, row.want)
			}
			if row.want != nil {
				if !errors.Is(Explain(err), row.want) {
					t.Errorf("it is explained as %v", Explain(err))
				}
				return
			}
			if err := rewritten(t.Context(), rewriter); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARewriteThatIsUnderWayIsWaitedFor(t *testing.T) {
	server := redistest.Start(t, persistent(t))
	client := dial(t, server.URL())
	set := func(arguments ...any) {
		t.Helper()
		if err := client.redis.Do(t.Context(), arguments...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("set", "key", "value")
	set("config", "set", "rdb-key-save-delay", 60_000_000)
	set("bgrewriteaof")
	rewriter := NewRewriter(client)
	if begun, err := rewriter.Begin(t.Context()); begun || err != nil {
		t.Fatalf("beside another's: begun %v, error %v, want false", begun, err)
	}
	if err := server.Restart(t.Context()); err != nil { // which ends that one
		t.Fatal(err)
	}
	eventually(t, "Redis is back", func() bool { return client.Ping(t.Context()) == nil })
	set("config", "set", "rdb-key-save-delay", 60_000_000)
	if begun, err := rewriter.Begin(t.Context()); !begun || err != nil {
		t.Fatalf("begun %v, error %v", begun, err)
	}
	if done, err := rewriter.Done(t.Context()); done || err != nil {
		t.Fatalf("while it rewrites: done %v, error %v", done, err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Redis is back", func() bool { return client.Ping(t.Context()) == nil })
	if done, err := rewriter.Done(t.Context()); done || !errors.Is(err, ErrRewriteFailed) {
		t.Fatalf("after a restart: done %v, error %v, want %v", done, err, ErrRewriteFailed)
	}
}

func TestEveryNodeOfAClusterRewrites(t *testing.T) {
	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes {
		client := dial(t, node)
		for _, line := range [][]any{{"config", "set", "aof-use-rdb-preamble", "no"}, {"config", "set", "appendonly", "yes"}} {
			if err := client.redis.Do(t.Context(), line...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	client := dial(t, cluster.URL)
	rewriter := NewRewriter(client)
	eventually(t, "all nodes have begun", func() bool {
		begun, err := rewriter.Begin(t.Context()) // each begins by rewriting for itself
		if err != nil {
			t.Fatal(err)
		}
		return begun
	})
	if err := rewritten(t.Context(), rewriter); err != nil {
		t.Fatal(err)
	}
	if len(rewriter.begun) != len(cluster.Nodes) {
		t.Errorf("%d nodes have rewritten, want %d", len(rewriter.begun), len(cluster.Nodes))
	}
}
