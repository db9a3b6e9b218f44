package backup

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func TestARedisThatIsNotReachedYetIsTriedAgainByPods(t *testing.T) {
	t.Parallel()
	from := redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 10)
	tests := map[string]struct {
		patience time.Duration
		code     int
		want     string
	}{
		"a pod tries again":   {time.Minute, 0, "; it is tried again for 1m0s\n"},
		"a person is told so": {0, 1, "reach redis: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said opening
			e := Environment{Stdout: new(bytes.Buffer), Stderr: &said, Getenv: func(string) string { return "" }, Version: "v0", Patience: tt.patience}
			args := []string{"--redis-url", said.door(t, from), "--property", "default/shop", "--to", "-"}
			if code := Command(t.Context(), "collector backup", args, e); code != tt.code || !strings.Contains(said.String(), tt.want) {
				t.Errorf("exit code %d: %s; want %d and %q", code, &said, tt.code, tt.want)
			}
		})
	}
}

// opening is a standard error; once something is written to it, its door lets connections through.
type opening struct {
	bytes.Buffer
	open atomic.Bool
}

func (o *opening) Write(p []byte) (int, error) {
	o.open.Store(true)
	return o.Buffer.Write(p)
}

// door returns a URL that leads to that of a Redis once it is open. Before, connections are closed at once.
func (o *opening) door(t *testing.T, to string) string {
	t.Helper()
	redis, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func(socket string) {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil || !o.open.Load() {
				client.Close()
				continue
			}
			go func() { defer server.Close(); _, _ = io.Copy(server, client) }()
			go func() { defer client.Close(); _, _ = io.Copy(client, server) }()
		}
	}(redis.Path)
	return "redis://" + listener.Addr().String()
}
