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

	mu sync.Mutex
	// agreed is the primary that more than half of the Sentinels named last, "" before they did.
	agreed string
	open   map[net.Conn]led
}

// led says of a connection which address it leads to, and which primary was agreed on when it was made.
type led struct{ to, since string }

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

// note keeps a connection to an address in mind, until it is closed; since is the primary that was agreed on before it was made.
func (t *turning) note(connection net.Conn, to, since string) net.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[net.Conn]led{}
	}
	t.open[connection] = led{to, since}
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

// agree notes the primary that Sentinels agree on, and ends the connections that lead elsewhere and were made when it was another, or none.
// Those that were made under the same one stay: they lead to what a Sentinel named that is ahead of the others, as the one is
// that replaces a primary, or spells it otherwise. Who waits for an answer on one that ends learns that it has not come, as when
// the primary dies.
func (t *turning) agree(primary string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.agreed = primary
	for connection, led := range t.open {
		if led.to != primary && led.since != primary {
			connection.Close()
			delete(t.open, connection)
		}
	}
}

// last returns the primary that was agreed on last, "" where none was.
func (t *turning) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agreed
}

// connected says whether there are connections.
func (t *turning) connected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open) > 0
}

// watch looks until ctx ends.
func (s *sentinels) watch(ctx context.Context) {
	asked := s.dial()
	defer closeAll(asked)
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.turning.connected() {
			s.look(ctx, asked)
		}
	}
}

// look asks which primary it is, and turns away from those that are none any more.
func (s *sentinels) look(ctx context.Context, asked []*redis.SentinelClient) {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	// Where they do not agree, or do not answer, everything stays; the next look is soon.
	if primary, agreed, _ := count(ctx, ask(ctx, asked, s.named), len(asked), lookEvery); agreed {
		s.turning.agree(primary)
	}
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
