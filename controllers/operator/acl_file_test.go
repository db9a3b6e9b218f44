package operator

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// TestACLFileOfAServer starts a real Redis from the file, as the chart does: without a file Redis would not start.
func TestACLFileOfAServer(t *testing.T) {
	folder := t.TempDir()
	path, urlFile := filepath.Join(folder, "users.acl"), filepath.Join(folder, "url")
	prepare := func(password string) {
		t.Helper()
		writeFile(t, urlFile, "redis://weir:"+password+"@weir-redis:6379\n")
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), "v0.0.0", []string{"acl-file", "--redis-url-file", urlFile, "--acl-file", path}, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Fatalf("exit code %d: %s", code, stderr.String())
		}
	}
	prepare("first%2Fpassword")
	server := redistest.Start(t, redisserver.Options{Persist: true, Extra: []string{"aclfile " + path}})
	dial := func(user, password string) *stream.Client {
		t.Helper()
		address, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		address.User = url.UserPassword(user, password)
		client, err := stream.Dial(address.String(), stream.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
		return client
	}
	role := stream.User{Name: "weir:default/shop:query", Password: "p", Access: stream.ReadAccess, Namespace: "default", Property: "shop"}
	if err := stream.NewUsers(dial("weir", "first/password")).Set(t.Context(), []stream.User{role}); err != nil {
		t.Fatalf("the administrator makes a user: %v", err)
	}
	nobody, err := stream.Dial(server.URL(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	if err := nobody.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("PING without a user: %v, want it refused", err)
	}
	if err := dial("probe", "any").Ping(t.Context()); err != nil {
		t.Errorf("a probe: %v", err)
	}
	if err := dial("probe", "any").Check(t.Context()); !errors.Is(err, stream.ErrInfoDenied) {
		t.Errorf("INFO of a probe: %v, want it refused", err)
	}
	if err := dial("default", "").Ping(t.Context()); err == nil {
		t.Error("the default user can be used")
	}
	// What was written in a transaction is what a restart must not forget: Redis replays it as the default user.
	database := redis.NewClient(&redis.Options{Network: "unix", Addr: strings.TrimPrefix(server.URL(), "unix://"), Username: "weir", Password: "first/password"})
	defer database.Close()
	if _, err := database.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Set(t.Context(), "one", "1", 0)
		pipe.Set(t.Context(), "two", "2", 0)
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	prepare("second")
	if err := errors.Join(server.Kill(), server.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	again := dial("probe", "any")
	await(t, "Redis has loaded its file", func() bool { return again.Ping(t.Context()) == nil })
	restarted := redis.NewClient(&redis.Options{Network: "unix", Addr: strings.TrimPrefix(server.URL(), "unix://"), Username: "weir", Password: "second"})
	defer restarted.Close()
	if values, err := restarted.MGet(t.Context(), "one", "two").Result(); err != nil || !slices.Equal(values, []any{"1", "2"}) {
		t.Errorf("what a transaction wrote before the crash is now %v, %v", values, err)
	}
	if err := dial("weir", "second").Check(t.Context()); err != nil {
		t.Errorf("the administrator with the new password: %v", err)
	}
	if err := dial("weir", "first/password").Ping(t.Context()); err == nil {
		t.Error("the old password still holds")
	}
	if err := dial(role.Name, role.Password).Ping(t.Context()); err != nil {
		t.Errorf("the role's user after the restart: %v", err)
	}
}

func TestACLLines(t *testing.T) {
	const weir = "user weir on sanitize-payload #5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8 ~* &* +@all\n"
	const others = "user default off resetpass sanitize-payload ~* &* +@all\nuser probe on nopass sanitize-payload resetkeys resetchannels -@all +ping\n"
	tests := map[string]struct{ before, want string }{
		"a new file has the administrator, and PING for the probe": {"", others + weir},
		"others' users stay": {
			"user weir:default/shop:query on #aa ~x -@all +get\nuser backup on #bb ~* +@all\n",
			others + weir + "user weir:default/shop:query on #aa ~x -@all +get\nuser backup on #bb ~* +@all\n",
		},
		"what was the administrator's password, and what everybody might do, goes": {
			"user default on nopass -@all +ping\nuser probe on nopass +@all\nuser weir on #00 ~* +@all\n\n", others + weir,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, string(aclLines([]byte(tt.before), url.UserPassword("weir", "password")))); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACLFileRefuses(t *testing.T) {
	tests := map[string]struct {
		url, want string
	}{
		"a URL without a password":      {"redis://weir@host:6379", "must name a user other than default and probe"},
		"a URL without a user":          {"redis://:hunter2@host:6379", "must name a user other than default and probe"},
		"the default user":              {"redis://default:hunter2@host:6379", "must name a user other than default and probe"},
		"the probe's user":              {"redis://probe:hunter2@host:6379", "must name a user other than default and probe"},
		"a user with a space":           {"redis://a%20b:hunter2@host:6379", "without spaces or quotes"},
		"a URL that is none":            {"redis://weir:hunter2@ho st:6379", "must hold a URL with user and password"},
		"a host in the place of a URL":  {"weir-redis:6379", "must hold a URL with user and password"},
		"a file with nothing in it":     {"", "must hold a URL with user and password"},
		"a URL that breaks out of line": {"redis://weir%0Auser:hunter2@host:6379", "without spaces or quotes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path, urlFile := filepath.Join(folder, "users.acl"), filepath.Join(folder, "url")
			writeFile(t, urlFile, tt.url)
			var stdout, stderr bytes.Buffer
			code := Run(t.Context(), "v0.0.0", []string{"acl-file", "--redis-url-file", urlFile, "--acl-file", path}, &stdout, &stderr)
			if code != 2 || !strings.Contains(stderr.String(), tt.want) || strings.Contains(stderr.String(), "hunter2") {
				t.Errorf("exit code %d, %q; want 2 and %q, without the password", code, stderr.String(), tt.want)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("there is a file all the same")
			}
		})
	}
}

func TestACLFileNamesWhatIsMissing(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), "v0.0.0", []string{"acl-file"}, &stdout, &stderr)
	if code != 2 || !strings.Contains(stderr.String(), "--acl-file") || !strings.Contains(stderr.String(), "--redis-url-file") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
