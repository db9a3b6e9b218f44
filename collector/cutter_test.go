package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/collector/config"
)

// cutter stands between collectors and a Redis on a loopback port, and cuts connections.
type cutter struct {
	address  string
	upstream atomic.Value // the address that it leads to, a string
	// refuse makes it close connections as soon as they come.
	refuse atomic.Bool
	// hang makes it swallow what is sent, as a host does that has lost its power. A connection on which that has
	// happened stays as it is: the host's successor knows nothing of it.
	hang atomic.Bool
	mu   sync.Mutex
	open map[net.Conn]bool
	all  sync.WaitGroup
}

// newCutter starts one and makes the site's collectors that are started from now on use it.
func newCutter(t *testing.T, s *site) *cutter {
	t.Helper()
	address, err := url.Parse(s.redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{address: listener.Addr().String(), open: map[net.Conn]bool{}}
	c.upstream.Store(address.Host)
	c.all.Go(func() {
		for {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			c.all.Go(func() { c.serve(front) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		c.cut()
		c.all.Wait()
	})
	address.Host = c.address
	s.writeText(config.RedisURLFile, address.String())
	return c
}

// cut closes every connection that is open.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for connection := range c.open {
		connection.Close()
	}
}

// lead makes it lead elsewhere, with new connections.
func (c *cutter) lead(address string) {
	c.upstream.Store(address)
	c.cut()
}

func (c *cutter) serve(front net.Conn) {
	defer front.Close()
	if c.refuse.Load() {
		return
	}
	back, err := net.Dial("tcp", c.upstream.Load().(string))
	if err != nil {
		return
	}
	defer back.Close()
	c.mu.Lock()
	c.open[front] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, front)
	}()
	go func() {
		_, _ = io.Copy(&mortal{Conn: back, hang: &c.hang}, front) // either side's end is the end of both
		back.Close()
	}()
	_, _ = io.Copy(front, back)
}

// mortal is a connection to a host that may lose its power.
type mortal struct {
	net.Conn
	hang *atomic.Bool
	dead bool
}

// Write swallows what is sent to a dead host.
func (m *mortal) Write(p []byte) (int, error) {
	if m.dead = m.dead || m.hang.Load(); m.dead {
		return len(p), nil
	}
	return m.Conn.Write(p)
}
