package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/collector/redisserver"
)

// TestEventsOfClientsMadeElsewhereAreStoredOnce runs clients of Segment's HTTP Tracking API as their makers publish them,
// with the host alone set, and kills collectors and Redis meanwhile.
func TestEventsOfClientsMadeElsewhereAreStoredOnce(t *testing.T) {
	t.Parallel()
	const events = 10_000
	for name, start := range map[string]func(t *testing.T, host string) *exec.Cmd{
		"@segment/analytics-node":      nodeClient("@segment/analytics-node", events),
		"@rudderstack/rudder-sdk-node": nodeClient("@rudderstack/rudder-sdk-node", events),
		"segmentio/analytics-go.v3": func(t *testing.T, host string) *exec.Cmd {
			program := filepath.Join(t.TempDir(), "clients")
			build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
			build.Dir = "../hack/clients"
			if words, err := build.CombinedOutput(); err != nil {
				t.Fatalf("go build: %v: %s", err, words)
			}
			return exec.CommandContext(t.Context(), program, host, shopKey, fmt.Sprint(events))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, redisserver.Options{Persist: true, Fsync: redisserver.FsyncAlways})
			one, other := s.start("collect"), s.start("collect")
			client := start(t, "http://"+balance(t, one, other))
			var answer, words bytes.Buffer
			client.Stdout, client.Stderr = &answer, &words
			if err := client.Start(); err != nil {
				t.Fatal(err)
			}
			await := func(n int) {
				eventually(t, fmt.Sprintf("%d events are stored", n), func() bool { return len(s.events()) >= n })
			}
			await(events / 5)
			one.kill()
			one.launch()
			await(2 * events / 5)
			if err := s.redis.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := s.redis.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			await(3 * events / 5)
			other.kill()
			other.launch()
			if err := client.Wait(); err != nil {
				t.Fatalf("the client: %v: %s", err, words.String())
			}
			if got := strings.TrimSpace(answer.String()); got != `{"failed":0}` {
				t.Errorf("the client says %s", got)
			}
			times := map[string]int{}
			for _, e := range s.events() {
				times[e.UserID+" "+e.OrderID+" "+e.Name+" "+e.Value.String()+e.Currency]++
			}
			for i := range events {
				want := fmt.Sprintf("visitor-%d order-%d purchase 12.5EUR", i, i)
				if times[want] != 1 {
					t.Fatalf("%s is stored %d times", want, times[want])
				}
			}
			if len(times) != events {
				t.Errorf("%d events are stored, want %d", len(times), events)
			}
		})
	}
}

// nodeClient starts a client of hack/clients for Node.
func nodeClient(name string, events int) func(t *testing.T, host string) *exec.Cmd {
	return func(t *testing.T, host string) *exec.Cmd {
		find := exec.CommandContext(t.Context(), "../hack/npm.sh", "hack/clients")
		var words bytes.Buffer
		find.Stderr = &words
		folder, err := find.Output()
		if err != nil {
			t.Fatalf("hack/npm.sh hack/clients: %v: %s", err, words.String())
		}
		installed := strings.TrimSpace(string(folder))
		client := exec.CommandContext(t.Context(), filepath.Join(installed, "node"), "../hack/clients/send.mjs", name, host, shopKey, fmt.Sprint(events))
		client.Env = append(os.Environ(), "NODE_CLIENTS="+installed)
		return client
	}
}

// balance leads connections to collectors in turn, as a cluster's Service does, and passes over those that are away. It
// returns its address.
func balance(t *testing.T, replicas ...*collector) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var turn atomic.Int64
	all.Go(func() {
		for {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer front.Close()
				for range replicas {
					back, err := net.Dial("tcp", replicas[int(turn.Add(1))%len(replicas)].address)
					if err == nil {
						join(front, back)
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}

// join passes on what two connections send each other until one of them ends, and closes both.
func join(front, back net.Conn) {
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // that one of them is gone is what ends it
		to.Close()
		from.Close()
	}
	both.Go(func() { pass(back, front) })
	both.Go(func() { pass(front, back) })
	both.Wait()
}
