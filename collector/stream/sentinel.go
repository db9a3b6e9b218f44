package stream

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// mostReplicas is how many replicas of what Sentinels name are looked at.
	mostReplicas = 32
	// agreeWithin is how long a new connection waits for more than half of the Sentinels to name the same primary, once one has
	// named any.
	agreeWithin = 500 * time.Millisecond
)

// sentinels ask where the Redis is that they guard, whenever a connection to it is made. The Redis library has a client that
// does, but it ends the process at an answer of fewer words than there should be.
type sentinels struct {
	// of are a client's options for a Sentinel, to are those for the Redis that it names; either lacks the address.
	of, to redis.Options
	name   string

	addresses []string
	every     time.Duration // see lookEvery
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
		primary, agreed, err := s.vote(ctx)
		if err != nil {
			return nil, err
		}
		since := primary
		if !agreed {
			since = s.turning.last()
		}
		connection, err := s.to.Dialer(ctx, network, primary)
		if err != nil {
			return nil, err
		}
		s.turning.begin.Do(s.turn)
		return s.turning.note(connection, primary, since), nil
	}
	return redis.NewClient(&options)
}

// vote returns the primary that a new connection leads to: the one that more than half of the Sentinels name, for one alone may
// be behind, and be the first to answer. Where they do not agree in time, it is the one that most of those who answer name.
func (s *sentinels) vote(ctx context.Context) (primary string, agreed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	asked := s.dial()
	defer closeAll(asked)
	return count(ctx, ask(ctx, asked, s.named), len(asked), agreeWithin)
}

// count counts what Sentinels name, and returns as soon as it is agreed, or patience has come to an end and one has named any.
func count(ctx context.Context, answers <-chan answer[string], of int, patience time.Duration) (primary string, agreed bool, err error) {
	votes, hurry := map[string]int{}, false
	var errs []error
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for left := of; left > 0 && (primary == "" || !hurry); {
		select {
		case a := <-answers:
			left--
			if a.err != nil {
				errs = append(errs, a.err)
				continue
			}
			if votes[a.value]++; votes[a.value] > votes[primary] {
				primary = a.value
			}
			if votes[primary] > of/2 {
				return primary, true, nil
			}
		case <-timer.C:
			hurry = true
		case <-ctx.Done():
			return "", false, errors.Join(append(errs, ctx.Err())...)
		}
	}
	if primary == "" {
		return "", false, errors.Join(errs...)
	}
	return primary, false, nil
}

// replicas returns the addresses of those that work.
func (s *sentinels) replicas(ctx context.Context) ([]string, error) {
	return first(ctx, s, func(ctx context.Context, sentinel *redis.SentinelClient) ([]string, error) {
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

// answer is one Sentinel's.
type answer[T any] struct {
	value T
	err   error
}

// dial prepares a client of each Sentinel.
func (s *sentinels) dial() []*redis.SentinelClient {
	all := make([]*redis.SentinelClient, len(s.addresses))
	for i, address := range s.addresses {
		options := s.of
		options.Addr = address
		all[i] = redis.NewSentinelClient(&options)
	}
	return all
}

// closeAll closes clients; what they wait for ends.
func closeAll(all []*redis.SentinelClient) {
	for _, sentinel := range all {
		sentinel.Close()
	}
}

// ask puts a question to all Sentinels at once. As many answers come; nobody has to wait for them.
func ask[T any](
	ctx context.Context, asked []*redis.SentinelClient, question func(context.Context, *redis.SentinelClient) (T, error),
) <-chan answer[T] {
	answers := make(chan answer[T], len(asked))
	for _, sentinel := range asked {
		go func() {
			value, err := question(ctx, sentinel)
			answers <- answer[T]{value, err}
		}()
	}
	return answers
}

// first returns the first answer to a question.
func first[T any](ctx context.Context, s *sentinels, question func(context.Context, *redis.SentinelClient) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	asked := s.dial()
	defer closeAll(asked)
	answers := ask(ctx, asked, question)
	var errs []error
	for range asked {
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
	primary, _, err := s.vote(ctx)
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
	go s.watch(ctx)
}

// close ends the looking and the connections to the nodes. It waits for no Sentinel.
func (s *sentinels) close() {
	s.turning.begin.Do(func() {}) // from now on nothing begins
	if s.turning.end != nil {
		s.turning.end()
	}
	s.clients(nil)
}
