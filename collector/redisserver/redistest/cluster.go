package redistest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
)

// Cluster is a Redis Cluster of three primaries, and of replicas where it was asked for. Its default user needs no password.
type Cluster struct {
	// URL names all nodes.
	URL string
	// Nodes are the nodes' own URLs, Servers the nodes. The first three begin as primaries.
	Nodes   []string
	Servers []*redisserver.Server
	clients []*redis.Client
}

// primaries is how many of a cluster's nodes begin as such.
const primaries = 3

// ClusterOptions say what kind of cluster it is. The zero value is three nodes in the clear that keep nothing on a disk.
type ClusterOptions struct {
	// Replicas is how many of the other nodes follow each primary from the beginning, one of which takes over a second
	// after its primary is gone.
	Replicas int
	// Authority, where there is one, has the nodes speak TLS alone, to each other too: they show certificates of it, and
	// ask for such.
	Authority *Authority
	// Persist keeps what the nodes have, which [redisserver.Options] explains.
	Persist bool
	// Extra are further lines of the nodes' configuration.
	Extra []string
}

// StartCluster starts a cluster of three nodes for this test alone. It ends with the test.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	return StartClusterWith(t, ClusterOptions{})
}

// StartClusterWith starts a cluster for this test alone and waits until it serves every slot, and replicas follow. It ends
// with the test.
func StartClusterWith(t testing.TB, options ClusterOptions) *Cluster {
	t.Helper()
	c := &Cluster{}
	size := primaries * (1 + options.Replicas)
	first := freePort(t)
	var hosts []string
	for i := range size {
		bus := first
		if i > 0 {
			bus = freePort(t)
		}
		lines := []string{"cluster-enabled yes", "cluster-port " + bus, "tls-cluster " + yesOrNo(options.Authority != nil)}
		if options.Replicas > 0 {
			// A replica to which nothing has been sent is named to no client: so something is.
			lines = append(lines, "cluster-node-timeout 1000", "repl-ping-replica-period 1")
		}
		server, address := startMember(t, options.Authority, options.Persist, append(lines, options.Extra...))
		c.Servers, c.Nodes, hosts = append(c.Servers, server), append(c.Nodes, address), append(hosts, hostOf(t, address))
		c.clients = append(c.clients, Admin(t, server))
	}
	c.join(t, hosts[0], first)
	c.URL = c.Nodes[0] + "?addr=" + strings.Join(hosts[1:], "&addr=")
	return c
}

// join makes a cluster of the nodes, the first of which is reached at an address and the port of its bus.
func (c *Cluster) join(t testing.TB, first, bus string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host, port, err := net.SplitHostPort(first)
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range c.clients {
		if i < primaries {
			if err := node.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*16384/primaries, (i+1)*16384/primaries-1).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := node.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
			t.Fatal(err)
		}
	}
	known := fmt.Sprint("cluster_known_nodes:", len(c.clients))
	await(ctx, t, "every node knows all slots", func() bool {
		return !slices.ContainsFunc(c.clients, func(node *redis.Client) bool {
			info := node.ClusterInfo(ctx).Val()
			return !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, known)
		})
	})
	for i, node := range c.clients[primaries:] {
		id, err := c.clients[i%primaries].Do(ctx, "CLUSTER", "MYID").Text()
		if err != nil {
			t.Fatal(err)
		}
		if err := node.Do(ctx, "CLUSTER", "REPLICATE", id).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range c.clients[primaries:] {
		await(ctx, t, "every replica follows", func() bool { return follows(ctx, node) })
	}
	// One that a node does not name yet takes over from nobody, and clients do not know of it.
	await(ctx, t, "every node names all replicas", func() bool {
		return !slices.ContainsFunc(c.clients, func(node *redis.Client) bool { return c.named(ctx, node) != len(c.clients) })
	})
}

// named returns how many nodes one names to clients.
func (c *Cluster) named(ctx context.Context, node *redis.Client) (nodes int) {
	ranges, err := node.Do(ctx, "CLUSTER", "SLOTS").Slice()
	if err != nil {
		return 0
	}
	for _, slots := range ranges {
		const bounds = 2 // behind which the nodes are
		if named, isList := slots.([]any); isList {
			nodes += len(named) - bounds
		}
	}
	return nodes
}

// Primary returns the place in Servers of the node that serves a key; -1 while there is none.
func (c *Cluster) Primary(ctx context.Context, key string) int {
	return which(ctx, c.clients, func(ctx context.Context, node *redis.Client) bool { return node.Exists(ctx, key).Err() == nil })
}

// Follows says whether a node is a replica that has what its primary had when it asked.
func (c *Cluster) Follows(ctx context.Context, node int) bool { return follows(ctx, c.clients[node]) }

// hostOf returns the host and port in a URL.
func hostOf(t testing.TB, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Host
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
