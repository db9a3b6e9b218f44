package stream

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// mostReplicas is how many replicas of what Sentinels name are looked at.
const mostReplicas = 32

// sentinels ask where the Redis is that they guard, whenever a connection to it is made. The Redis library has a client that
// does, but it ends the process at an answer of fewer words than there should be.
type sentinels struct {
	// of are a client's options for a Sentinel, to are those for the Redis that it names; either lacks the address.
	of, to redis.Options
	name   string

	addresses []string
	turning   turning

	mu    sync.Mutex
	nodes map[string]*redis.Client
}

// errNoPrimary says that Sentinels know no Redis of the name, or name none that is one.
var errNoPrimary = &Problem{ErrUnreachable, "no Sentinel says where it is"}

// client returns one of the primary.
func (s *sentinels) client() *redis.Client {
	options := s.to
	options.Addr = "the primary of " + s.name
	options.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		primary, err := s.primary(ctx)
		if err != nil {
			return nil, err
		}
		connection, err := s.to.Dialer(ctx, network, primary)
		if err != nil {
			return nil, err
		}
		s.turning.begin.Do(s.turn)
		return s.turning.note(connection, primary), nil
	}
	return redis.NewClient(&options)
}

// primary returns its address.
func (s *sentinels) primary(ctx context.Context) (string, error) {
	return ask(ctx, s, s.named)
}

// replicas returns the addresses of those that work.
func (s *sentinels) replicas(ctx context.Context) ([]string, error) {
	return ask(ctx, s, func(ctx context.Context, sentinel *redis.SentinelClient) ([]string, error) {
		answer, err := sentinel.Replicas(ctx, s.name).Result()
		if err != nil {
			return nil, err
		}
		var addresses []string
		for _, replica := range answer {
			if replica["ip"] != "" && replica["port"] != "" && !isDown(replica["flags"]) && len(addresses) < mostReplicas {
				addresses = append(addresses, net.JoinHostPort(replica["ip"], replica["port"]))
			}
		}
		return addresses, nil
	})
}

// isDown reads what a Sentinel thinks of a replica.
func isDown(flags string) bool {
	return slices.ContainsFunc(strings.Split(flags, ","), func(flag string) bool {
		return flag == "s_down" || flag == "o_down" || flag == "disconnected"
	})
}

// ask puts a question to all Sentinels at once, and returns the first answer.
func ask[T any](ctx context.Context, s *sentinels, question func(context.Context, *redis.SentinelClient) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	answers := make(chan answer, len(s.addresses))
	for _, address := range s.addresses {
		go func() {
			options := s.of
			options.Addr = address
			sentinel := redis.NewSentinelClient(&options)
			defer sentinel.Close()
			value, err := question(ctx, sentinel)
			answers <- answer{value, err}
		}()
	}
	var errs []error
	for range s.addresses {
		a := <-answers
		if a.err == nil {
			return a.value, nil
		}
		errs = append(errs, a.err)
	}
	var none T
	return none, errors.Join(errs...)
}

// eachNode calls do for the primary and for each replica that works.
func (s *sentinels) eachNode(ctx context.Context, do func(context.Context, *redis.Client) error) error {
	primary, err := s.primary(ctx)
	if err != nil {
		return err
	}
	replicas, err := s.replicas(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	nodes := s.clients(append(replicas, primary))
	errs := make([]error, len(nodes))
	for i, node := range nodes {
		all.Go(func() { errs[i] = do(ctx, node) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// clients returns those of the nodes at some addresses, and closes those of nodes that are no more.
func (s *sentinels) clients(addresses []string) []*redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	for address, client := range s.nodes {
		if !slices.Contains(addresses, address) {
			client.Close()
			delete(s.nodes, address)
		}
	}
	for _, address := range addresses {
		if s.nodes[address] == nil {
			options := s.to
			options.Addr = address
			s.nodes[address] = redis.NewClient(&options)
		}
	}
	return slices.Collect(maps.Values(s.nodes))
}

// turn begins to look whether there is another primary.
func (s *sentinels) turn() {
	ctx, end := context.WithCancel(context.Background())
	s.turning.end = end
	s.turning.ended.Go(func() { s.watch(ctx) })
}

// close ends the looking and the connections to the nodes.
func (s *sentinels) close() {
	s.turning.begin.Do(func() {}) // from now on nothing begins
	if s.turning.end != nil {
		s.turning.end()
		s.turning.ended.Wait()
	}
	s.clients(nil)
}
