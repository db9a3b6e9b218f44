package redisserver_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// leaveBehind names the directory in which a child process of the test starts a server, says so and waits to
// be killed.
const leaveBehind = "REDISSERVER_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(leaveBehind); dir != "" {
		server, err := redisserver.Start(context.Background(), find(), redisserver.Options{Dir: dir, Persist: true})
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(server.URL() + "\n")
		select {}
	}
	os.Exit(m.Run())
}

func find() redisserver.Binary {
	binary, err := redisserver.Find(context.Background(), slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	return binary
}

func client(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	options.DialerRetries = 1
	c := redis.NewClient(options)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestServerListens(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	for name, test := range map[string]struct {
		options redisserver.Options
		want    string
	}{
		"on a Unix socket in its directory":                        {redisserver.Options{}, "unix://"},
		"on a loopback port where it is told to":                   {redisserver.Options{Loopback: true}, "redis://:"},
		"on a loopback port where the socket's path were too long": {redisserver.Options{Dir: long}, "redis://:"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, test.options)
			if !strings.HasPrefix(server.URL(), test.want) {
				t.Errorf("URL = %q, want %s…", server.URL(), test.want)
			}
			policy, err := client(t, server.URL()).ConfigGet(t.Context(), "maxmemory-policy").Result()
			if err != nil || policy["maxmemory-policy"] != "noeviction" {
				t.Errorf("maxmemory-policy = %v, %v, want noeviction", policy, err)
			}
		})
	}
}

func TestServerWithLoopbackPortRefusesWhoHasNoPassword(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	_, address, _ := strings.Cut(server.URL(), "@")
	if err := client(t, "redis://"+address).Ping(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("PING without password = %v, want NOAUTH", err)
	}
}

func TestPersistedDataSurvive(t *testing.T) {
	for name, end := range map[string]func(*redisserver.Server) error{
		"a stop":  func(s *redisserver.Server) error { return nil },
		"a crash": (*redisserver.Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redisserver.Options{Persist: true})
			c := client(t, server.URL())
			if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if err := end(server); err != nil {
				t.Fatal(err)
			}
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := c.Get(t.Context(), "k").Result(); got != "v" {
				t.Errorf("after a restart k = %q, %v, want v", got, err)
			}
		})
	}
}

func TestDirectoryBelongsToOneRunningProcess(t *testing.T) {
	dir := t.TempDir()
	redistest.Start(t, redisserver.Options{Dir: dir})
	_, err := redisserver.Start(t.Context(), find(), redisserver.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use by another running process") {
		t.Errorf("a second Start = %v, want that the directory is in use", err)
	}
}

func TestServerOfAKilledProcessGivesItsDirectoryFree(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir-redis-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), leaveBehind+"="+dir)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, err := output.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	left := client(t, strings.TrimSpace(string(line[:n])))
	if err := left.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the killed process ended well")
	}

	server := redistest.Start(t, redisserver.Options{Dir: dir, Persist: true})
	if got, err := client(t, server.URL()).Get(t.Context(), "k").Result(); got != "v" {
		t.Errorf("k = %q, %v, want v", got, err)
	}
}

func TestServerThatWasLeftOverIsEnded(t *testing.T) {
	// A server started by hand with the directory's lock stands for one whose parent died on a system that
	// cannot bind children to parents.
	binary := find()
	dir, err := os.MkdirTemp("", "weir-redis-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	lock, err := os.Create(filepath.Join(dir, "server.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "old.sock")
	cmd := exec.Command(binary.Path, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "")
	cmd.Env = binary.Environment()
	cmd.ExtraFiles = []*os.File{lock}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	if err := os.WriteFile(filepath.Join(dir, "redis.url"), []byte("unix://"+socket+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := client(t, "unix://"+socket)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for c.Ping(ctx).Err() != nil {
		if ctx.Err() != nil {
			t.Fatal("the old server does not answer")
		}
	}

	redistest.Start(t, redisserver.Options{Dir: dir})
	select {
	case <-ended:
	case <-ctx.Done():
		t.Error("the server that was left over still runs")
	}
}

func TestStartTellsWhyAServerDidNotComeUp(t *testing.T) {
	_, err := redisserver.Start(t.Context(), find(), redisserver.Options{Dir: t.TempDir(), Extra: []string{"no-such-directive yes"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-directive") {
		t.Errorf("Start = %v, want the log's last lines", err)
	}
}

func TestFindWithoutPackageManagerNamesWhatHelps(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := redisserver.Find(t.Context(), slog.New(slog.DiscardHandler))
	var missing *redisserver.MissingError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "install") {
		t.Errorf("Find = %v, want a MissingError that says what to install", err)
	}
}

func TestFindRefusesAnOldServer(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'Redis server v=6.0.16 sha=00000000:0'\n"
	if err := os.WriteFile(filepath.Join(dir, "redis-server"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	_, err := redisserver.Find(t.Context(), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "6.0.16") {
		t.Errorf("Find = %v, want that version 6.0.16 is too old", err)
	}
}

func TestFindUnpacksOnceForSeveralCallers(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err == nil {
		t.Log("this machine has a redis-server, so nothing is unpacked")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			binary, err := redisserver.Find(t.Context(), slog.New(slog.DiscardHandler))
			if err != nil || binary.Version == "" {
				t.Errorf("Find = %+v, %v", binary, err)
			}
		})
	}
	group.Wait()
}

// TestATornEndTakesNothingWithIt appends to a server's append-only file what is there of a write in the middle of which
// it was killed. The server that is started on it is killed with the first write that it acknowledges.
func TestATornEndTakesNothingWithIt(t *testing.T) {
	const half = "*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$4\r\ndone\r\n"
	for name, torn := range map[string]string{
		"in a command":                        half[:20],
		"in a transaction":                    "*1\r\n$5\r\nMULTI\r\n" + half,
		"in a command of a transaction":       "*1\r\n$5\r\nMULTI\r\n" + half + half[:20],
		"in the command before a transaction": "*1\r\n$5\r\nMUL",
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redisserver.Options{Persist: true, Loopback: true, Fsync: redisserver.FsyncAlways})
			c := client(t, server.URL())
			dir := c.ConfigGet(t.Context(), "dir").Val()["dir"]
			if err := c.Set(t.Context(), "before", "kept", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			tear(t, dir, torn)

			var killed sync.WaitGroup
			killed.Go(func() { killAtFirstWrite(t, c, "after") })
			_ = server.Restart(t.Context()) // fails where it is killed sooner than it is seen to answer
			killed.Wait()
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]string{"before": "kept", "half": "", "after": "kept"} {
				if got := c.Get(t.Context(), key).Val(); got != want {
					t.Errorf("%s = %q, want %q", key, got, want)
				}
			}
		})
	}
}

// tear appends to the append-only file that the server in a directory writes to.
func tear(t *testing.T, dir, end string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("append-only files %v, %v, want one", files, err)
	}
	file, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(end); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// killAtFirstWrite sets a key as soon as there is a server that takes it, and kills that one at once.
func killAtFirstWrite(t *testing.T, c *redis.Client, key string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ticker := time.NewTicker(time.Millisecond); c.Set(ctx, key, "kept", 0).Err() != nil; <-ticker.C {
		if ctx.Err() != nil {
			t.Error("no server takes a write")
			return
		}
	}
	info, err := c.InfoMap(ctx, "server").Result()
	if err != nil {
		t.Error(err)
		return
	}
	id, err := strconv.Atoi(info["Server"]["process_id"])
	if err == nil {
		err = syscall.Kill(id, syscall.SIGKILL)
	}
	if err != nil {
		t.Error(err)
	}
}
