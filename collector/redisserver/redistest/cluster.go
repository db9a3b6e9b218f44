package redistest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
)

// Cluster is a Redis Cluster of three nodes, none of them a replica. Its default user needs no password.
type Cluster struct {
	// URL names all nodes.
	URL string
	// Nodes are the nodes' own URLs, Servers the nodes.
	Nodes   []string
	Servers []*redisserver.Server
}

// StartCluster starts a cluster for this test alone and waits until it serves every slot. It ends with the test.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	return startCluster(t, func(lines ...string) (*redisserver.Server, string) {
		server := Start(t, redisserver.Options{Loopback: true, Extra: append(lines, `requirepass ""`)})
		return server, "redis://" + hostOf(t, server.URL())
	})
}

// StartTLSCluster is [StartCluster] for one that speaks TLS alone, its nodes to each other too. It shows certificates of the
// authority, and asks for such.
func StartTLSCluster(t testing.TB, authority *Authority) *Cluster {
	t.Helper()
	return startCluster(t, func(lines ...string) (*redisserver.Server, string) {
		certificate, key := authority.Sign(t, nil)
		server := StartTLS(t, certificate, key, authority.PEM, append(lines, "tls-cluster yes")...)
		return server.Server, server.Address
	})
}

// startCluster makes a cluster of nodes that start returns with their addresses.
func startCluster(t testing.TB, start func(lines ...string) (server *redisserver.Server, address string)) *Cluster {
	t.Helper()
	c := &Cluster{}
	var nodes []*redis.Client
	var addresses []string
	first := freePort(t)
	for i := range 3 {
		bus := first
		if i > 0 {
			bus = freePort(t)
		}
		server, address := start("cluster-enabled yes", "cluster-port "+bus)
		options, err := redis.ParseURL(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		options.Password = "" // the default user needs none
		options.Protocol = 2
		node := redis.NewClient(options)
		t.Cleanup(func() { _ = node.Close() })
		nodes, addresses, c.Nodes = append(nodes, node), append(addresses, hostOf(t, address)), append(c.Nodes, address)
		c.Servers = append(c.Servers, server)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host, port, err := net.SplitHostPort(addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range nodes {
		if err := node.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*16384/3, (i+1)*16384/3-1).Err(); err != nil {
			t.Fatal(err)
		}
		if err := node.Do(ctx, "CLUSTER", "MEET", host, port, first).Err(); err != nil {
			t.Fatal(err)
		}
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !complete(ctx, nodes) {
		select {
		case <-ctx.Done():
			t.Fatal("the cluster is not complete after a minute")
		case <-ticker.C:
		}
	}
	c.URL = fmt.Sprintf("%s?addr=%s&addr=%s", c.Nodes[0], addresses[1], addresses[2])
	return c
}

// hostOf returns the host and port in a URL.
func hostOf(t testing.TB, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Host
}

func complete(ctx context.Context, nodes []*redis.Client) bool {
	for _, node := range nodes {
		info := node.ClusterInfo(ctx).Val()
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
			return false
		}
	}
	return true
}

// freePort returns a loopback port for a node's cluster bus, which by default is beyond the highest for some ports.
func freePort(t testing.TB) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
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
