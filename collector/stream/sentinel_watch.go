package stream

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// lookEvery is how often it is looked whether Sentinels name another primary than the one that a client is connected to.
const lookEvery = time.Second

// turning ends a client's connections to a primary that is none any more. One that is dead ends them itself; one that lives,
// as after SENTINEL FAILOVER, or where it is the Sentinels alone that do not reach it, goes on taking what it is given until
// it is told to follow, which can be 18 seconds later, and forgets it then.
type turning struct {
	begin sync.Once
	end   context.CancelFunc // nil before the first connection
	ended sync.WaitGroup

	mu sync.Mutex
	// open are the connections that there are, with the addresses that they lead to.
	open map[net.Conn]string
}

// guarded is a connection to a primary.
type guarded struct {
	net.Conn
	closed func()
}

// Close ends it.
func (g guarded) Close() error {
	g.closed()
	return g.Conn.Close()
}

// bareGuarded is a guarded connection on a socket; see [bareReplies].
type bareGuarded struct {
	guarded
	syscall.Conn
}

// note keeps a connection to the primary at an address in mind, until it is closed.
func (t *turning) note(connection net.Conn, address string) net.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[net.Conn]string{}
	}
	t.open[connection] = address
	noted := guarded{connection, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, connection)
	}}
	if socket, ok := connection.(syscall.Conn); ok {
		return bareGuarded{noted, socket}
	}
	return noted
}

// leave ends the connections that lead elsewhere than to the primary. Who waits for an answer there learns that it has not
// come, as when the primary dies.
func (t *turning) leave(primary string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for connection, address := range t.open {
		if address != primary {
			connection.Close()
			delete(t.open, connection)
		}
	}
}

// connected says whether there are connections.
func (t *turning) connected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open) > 0
}

// watch looks until ctx ends.
func (s *sentinels) watch(ctx context.Context) {
	asked := make([]*redis.SentinelClient, len(s.addresses))
	for i, address := range s.addresses {
		options := s.of
		options.Addr = address
		asked[i] = redis.NewSentinelClient(&options)
	}
	defer func() {
		for _, sentinel := range asked {
			sentinel.Close()
		}
	}()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !s.turning.connected() {
			continue
		}
		if primary, agreed := s.agreed(ctx, asked); agreed {
			s.turning.leave(primary)
		}
	}
}

// agreed returns the primary that more than half of the Sentinels name.
func (s *sentinels) agreed(ctx context.Context, asked []*redis.SentinelClient) (primary string, agreed bool) {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	answers := make(chan string, len(asked))
	for _, sentinel := range asked {
		go func() {
			named, err := s.named(ctx, sentinel)
			if err != nil {
				named = "" // for nobody
			}
			answers <- named
		}()
	}
	votes := map[string]int{}
	for range asked {
		named := <-answers
		if votes[named]++; named != "" && votes[named] > len(asked)/2 {
			primary, agreed = named, true
		}
	}
	return primary, agreed
}

// named returns the address of the primary that a Sentinel names.
func (s *sentinels) named(ctx context.Context, sentinel *redis.SentinelClient) (string, error) {
	answer, err := sentinel.GetMasterAddrByName(ctx, s.name).Result()
	if errors.Is(err, redis.Nil) || err == nil && len(answer) != 2 {
		return "", errNoPrimary
	}
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(answer[0], answer[1]), nil
}
