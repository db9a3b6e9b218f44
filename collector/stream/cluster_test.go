package stream

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// newCluster starts a cluster of three nodes and returns its URL, with each node's address in it.
func newCluster(t *testing.T) string {
	t.Helper()
	var nodes []*Client
	var addresses []string
	first := freePort(t)
	for i := range 3 {
		bus := first
		if i > 0 {
			bus = freePort(t)
		}
		server := redistest.Start(t, redisserver.Options{Loopback: true, Extra: []string{
			"cluster-enabled yes", "cluster-port " + bus, `requirepass ""`,
		}})
		parsed, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		node, err := Dial("redis://" + parsed.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { node.Close() })
		nodes, addresses = append(nodes, node), append(addresses, parsed.Host)
	}
	ctx := t.Context()
	for i, node := range nodes {
		if err := node.redis.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*16384/3, (i+1)*16384/3-1).Err(); err != nil {
			t.Fatal(err)
		}
		host, port, _ := net.SplitHostPort(addresses[0])
		if err := node.redis.Do(ctx, "CLUSTER", "MEET", host, port, first).Err(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the cluster is complete", func() bool {
		for _, node := range nodes {
			info := node.redis.ClusterInfo(ctx).Val()
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
		}
		return true
	})
	return "redis://" + addresses[0] + "?addr=" + addresses[1] + "&addr=" + addresses[2]
}

// freePort returns a loopback port for a node's cluster bus, which by default is beyond the highest for some ports.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestClusterSpreadsProperties(t *testing.T) {
	client := dial(t, newCluster(t))
	ctx := t.Context()
	if err := client.Check(ctx); err != nil {
		t.Errorf("Check = %v, want nil", err)
	}
	for i := range 12 {
		s := client.Stream("default", fmt.Sprint("shop-", i))
		a := newAppender(t, s, AppenderOptions{})
		mustAppend(t, a, addition("one", "order"), addition("two", "order"), addition("three", ""))
		if n := len(allEvents(t, s)); n != 2 {
			t.Errorf("property %d has %d events, want 2", i, n)
		}
		if _, err := s.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
			t.Fatal(err)
		}
		taken := mustRead(t, s, "pod-1", 10)
		mustSettle(t, s, decided(taken[0], Delivered, 1), retryAt(taken[1], 1, time.Now()))
		if due := mustDue(t, s, time.Now().Add(time.Second), time.Minute); len(due) != 1 {
			t.Errorf("property %d has %d due events, want 1", i, len(due))
		}
		if records := allRecords(t, s); len(records) != 2 {
			t.Errorf("property %d has %d records, want 2", i, len(records))
		}
		if _, err := s.Allow(ctx, 5, 1); err != nil {
			t.Error(err)
		}
		trimAll(t, s, TrimPolicy{MaxEvents: 1})
		if err := s.Delete(ctx); err != nil {
			t.Error(err)
		}
		if bounds, err := s.Bounds(ctx); err != nil || bounds != (Bounds{}) {
			t.Errorf("property %d after deletion: Bounds = %+v, %v", i, bounds, err)
		}
	}
}
