package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// dialled is a client of a Redis that has the library.
func dialled(t testing.TB, address string) *stream.Client {
	t.Helper()
	client, err := stream.Dial(address, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

// fill appends events to a property. Each is about half a KiB that does not compress away.
func fill(t testing.TB, s *stream.Stream, n int) {
	t.Helper()
	a := stream.NewAppender(s, stream.AppenderOptions{Window: 7 * 24 * time.Hour, JoinedFor: 60 * 24 * time.Hour})
	defer a.Close(context.Background())
	for begin := 0; begin < n; begin += 500 {
		var additions []stream.Addition
		for i := begin; i < min(begin+500, n); i++ {
			e := event.Event{ID: fmt.Sprint("id-", i), DeliveryID: uuid.New(), Name: "page_view", Platforms: []string{"meta"}, Context: event.Context{PageURL: uuid.NewString()}}
			additions = append(additions, stream.Addition{Entry: wire.Encode(&e), EventID: e.ID})
		}
		if _, err := a.Append(t.Context(), additions); err != nil {
			t.Fatal(err)
		}
	}
}

// length is how many events a property has.
func length(t testing.TB, address, name string) int64 {
	t.Helper()
	bounds, err := dialled(t, address).Stream("default", name).Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return bounds.Length
}

// run runs a command with its standard input, and returns its exit code and what it has written.
func run(t testing.TB, stdin io.Reader, environment map[string]string, args ...string) (code int, stdout []byte, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	e := Environment{Stdin: stdin, Stdout: &out, Stderr: &said, Getenv: func(name string) string { return environment[name] }, Version: "v0"}
	command := map[string]func(context.Context, string, []string, Environment) int{"backup": Command, "restore": RestoreCommand}[args[0]]
	code = command(t.Context(), "weir "+args[0], args[1:], e)
	return code, out.Bytes(), said.String()
}

// backedUp is the backup of default/shop.
func backedUp(t testing.TB, address string) []byte {
	t.Helper()
	code, whole, said := run(t, nil, nil, "backup", "--redis-url", address, "--property", "default/shop", "--to", "-")
	if code != 0 {
		t.Fatal(said)
	}
	return whole
}

func TestABackupGoesThroughAFileAndThroughPipes(t *testing.T) {
	t.Parallel()
	from := redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 2000)
	secret := map[string]string{"WEIR_REDIS_URL": from}
	file := filepath.Join(t.TempDir(), "shop.weir")
	if code, _, said := run(t, nil, secret, "backup", "--property", "default/shop", "--to", file); code != 0 || !strings.Contains(said, "2000 events") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	code, whole, said := run(t, nil, secret, "backup", "--property", "default/shop", "--to", "-")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if code, out, said := run(t, nil, nil, "restore", "--check", file); code != 0 || !bytes.Contains(out, []byte("the backup is whole: default/shop as of")) {
		t.Errorf("exit code %d, %s %s", code, out, said)
	}
	one, another := redistest.URL(t), redistest.URL(t)
	for address, args := range map[string][]string{one: {file}, another: {"-"}} {
		args = append([]string{"restore", "--redis-url", address, "--property", "default/shop"}, args...)
		if code, out, said := run(t, bytes.NewReader(whole), nil, args...); code != 0 || !bytes.Contains(out, []byte("2000 events")) {
			t.Fatalf("exit code %d: %s %s", code, out, said)
		}
		if n := length(t, address, "shop"); n != 2000 {
			t.Errorf("%d events are there", n)
		}
		if code, _, said := run(t, bytes.NewReader(whole), nil, args...); code != 1 || !strings.Contains(said, "the property has events already") {
			t.Errorf("a second time: exit code %d: %s", code, said)
		}
	}
}

func TestCommandsRefuse(t *testing.T) {
	t.Parallel()
	from, empty := redistest.URL(t), redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 10)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if code, _, said := run(t, nil, nil, "backup", "--redis-url", from, "--property", "default/shop", "--to", path("good")); code != 0 {
		t.Fatal(said)
	}
	good, err := os.ReadFile(path("good"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	later := bytes.Clone(good)
	later[len(magic)]++
	for name, content := range map[string][]byte{"flipped": flipped, "short": good[:len(good)-1], "later": later, "other": []byte("hello")} {
		if err := os.WriteFile(path(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	into := []string{"restore", "--redis-url", empty, "--property", "default/shop"}
	tests := map[string]struct {
		args []string
		code int
		want string
	}{
		"a damaged file":                         {append(into[:5:5], path("flipped")), 1, "the backup is damaged"},
		"one that was broken off":                {append(into[:5:5], path("short")), 1, "the backup's end is missing"},
		"one of a later Weir":                    {append(into[:5:5], path("later")), 1, "a newer Weir has made this backup"},
		"something else":                         {append(into[:5:5], path("other")), 1, "this is no backup"},
		"a file that is not there":               {append(into[:5:5], path("none")), 1, "no such file"},
		"a backup of another Property":           {[]string{"restore", "--redis-url", empty, "--property", "default/other", path("good")}, 1, "the backup is of default/shop, and not of default/other"},
		"two files":                              {append(into[:5:5], "a", "b"), 2, "one FILE is needed"},
		"a restore of no Property":               {[]string{"restore", "--redis-url", empty, path("good")}, 2, "must be NAMESPACE/NAME"},
		"a backup of what is not there":          {[]string{"backup", "--redis-url", from, "--property", "default/none", "--to", path("new")}, 1, "redis has nothing of the Property"},
		"a backup over a file":                   {[]string{"backup", "--redis-url", from, "--property", "default/shop", "--to", path("good")}, 1, "is there already"},
		"a backup to nowhere":                    {[]string{"backup", "--redis-url", from, "--property", "default/shop"}, 2, "say where the backup is written"},
		"a backup of nothing":                    {[]string{"backup", "--redis-url", from, "--to", path("new")}, 2, "name a Property, or give --all"},
		"several Properties in one file":         {[]string{"backup", "--redis-url", from, "--all", "--to", path("new")}, 2, "several Properties go to"},
		"a name with a pattern in it":            {[]string{"backup", "--redis-url", from, "--property", "default/*", "--to", path("new")}, 2, "must be NAMESPACE/NAME"},
		"a name that leads elsewhere":            {[]string{"backup", "--redis-url", from, "--property", "../..", "--to", path("new")}, 2, "must be NAMESPACE/NAME"},
		"a restore of one":                       {[]string{"restore", "--redis-url", empty, "--property", "../..", path("good")}, 2, "must be NAMESPACE/NAME"},
		"a bucket without keys":                  {[]string{"backup", "--redis-url", from, "--all", "--to", "s3://bucket/"}, 1, "AWS_ACCESS_KEY_ID"},
		"to go on in a bucket":                   {[]string{"backup", "--redis-url", from, "--all", "--resume", "--to", "s3://bucket/"}, 2, "is for files alone"},
		"no Redis":                               {[]string{"backup", "--property", "default/shop", "--to", path("new")}, 2, "say where Redis is"},
		"a Redis that is away keeps its secrets": {[]string{"backup", "--redis-url", "redis://weir:hunter2@127.0.0.1:1", "--property", "default/shop", "--to", path("new")}, 1, "connection refused"},
		"a flag that there is not":               {[]string{"backup", "--fast"}, 2, `"weir backup -h" lists the flags`},
		"help":                                   {[]string{"restore", "-h"}, 0, ""},
	}
	t.Run("refused", func(t *testing.T) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				code, _, said := run(t, nil, nil, tt.args...)
				if code != tt.code || !strings.Contains(said, tt.want) || strings.Contains(said, "hunter2") {
					t.Errorf("exit code %d, %q; want %d and %q", code, said, tt.code, tt.want)
				}
			})
		}
	})
	if n := length(t, empty, "shop"); n != 0 {
		t.Errorf("%d events were put where everything was refused", n)
	}
}

// A pipe is only known to be whole at its end. Whatever goes wrong before, the Property has nothing of it, and the whole file goes on.
func TestAPipeThatBreaksOffAnywhereLeavesNothingAndIsGoneOnWith(t *testing.T) {
	t.Parallel()
	from, to := redistest.URL(t), redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 4000)
	whole := backedUp(t, from)
	args := []string{"restore", "--redis-url", to, "--property", "default/shop", "-"}
	for _, end := range append(boundaries(t, whole), len(whole)/2, len(whole)-1) {
		code, _, said := run(t, bytes.NewReader(whole[:end]), nil, args...)
		if code != 1 || !strings.Contains(said, "end is missing") && !strings.Contains(said, "no backup") {
			t.Fatalf("cut off at %d: exit code %d: %s", end, code, said)
		}
		if n := length(t, to, "shop"); n != 0 {
			t.Fatalf("cut off at %d: the Property has %d events", end, n)
		}
	}
	if code, _, said := run(t, bytes.NewReader(whole), nil, args...); code != 0 {
		t.Fatal(said)
	}
	if n := length(t, to, "shop"); n != 4000 {
		t.Errorf("%d events", n)
	}
}

// boundaries are where the frames of a file begin.
func boundaries(t testing.TB, file []byte) (list []int) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	for err == nil {
		list = append(list, int(r.offset))
		_, err = r.Next()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return list
}

func TestAFileThatWasBrokenOffAnywhereIsGoneOnWith(t *testing.T) {
	t.Parallel()
	from, to := redistest.URL(t), redistest.URL(t)
	s := dialled(t, from).Stream("default", "shop")
	fill(t, s, 4000)
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.weir")
	args := []string{"backup", "--redis-url", from, "--property", "default/shop", "--resume", "--to", path}
	if code, _, said := run(t, nil, nil, args...); code != 0 {
		t.Fatal(said)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range append(boundaries(t, whole), 3, len(whole)/2, len(whole)-1, len(whole)) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+partial, append(bytes.Clone(whole[:end]), "torn"[:end%3]...), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, said := run(t, nil, nil, args...); code != 0 {
			t.Fatalf("broken off at %d: %s", end, said)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		report, err := Verify(bytes.NewReader(content))
		if err != nil || report.Events != 4000 {
			t.Fatalf("broken off at %d: %v, %v", end, report, err)
		}
		if _, err := os.Stat(path + partial); err == nil {
			t.Errorf("broken off at %d: there is a part beside the whole", end)
		}
	}
	if code, _, said := run(t, nil, nil, "restore", "--redis-url", to, "--property", "default/shop", path); code != 0 {
		t.Fatal(said)
	}
	if n := length(t, to, "shop"); n != 4000 {
		t.Errorf("%d events", n)
	}
}

func TestAFullRedisIsSaidAndARestoreGoesOnOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	from, to := redistest.URL(t), redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 4000)
	whole := backedUp(t, from)
	options, err := redis.ParseURL(to)
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(options)
	t.Cleanup(func() { _ = admin.Close() })
	args := []string{"restore", "--redis-url", to, "--property", "default/shop", "-"}
	end := boundaries(t, whole)[len(boundaries(t, whole))-2]
	for _, name := range []string{"when it begins", "when it goes on"} {
		if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		code, _, said := run(t, bytes.NewReader(whole), nil, args...)
		if code != 1 || !strings.Contains(said, "redis is out of memory") || !strings.Contains(said, "run it again") || strings.Contains(said, "EXECABORT") {
			t.Errorf("%s: exit code %d: %s", name, code, said)
		}
		if err := admin.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
			t.Fatal(err)
		}
		if code, _, said := run(t, bytes.NewReader(whole[:end]), nil, args...); code != 1 || !strings.Contains(said, "end is missing") {
			t.Fatalf("exit code %d: %s", code, said)
		}
	}
	if code, _, said := run(t, bytes.NewReader(whole), nil, args...); code != 0 || length(t, to, "shop") != 4000 {
		t.Errorf("exit code %d: %s", code, said)
	}
}
