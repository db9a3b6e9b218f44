package controllers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weir-dev/weir/collector/ledger"
	"github.com/weir-dev/weir/collector/stream"
)

// redisLink is a connection to a Redis.
type redisLink struct {
	client *stream.Client
	users  *stream.Users
	// purger is for one look for erasures at a time.
	purger *ledger.Purger
	// denied says that an address was refused since the last look.
	denied atomic.Bool
}

// blame is why the Redis does not do what it is asked, given the error: where one that a cluster names may not be connected to,
// the library goes on with another, and says what came of that.
func (l *redisLink) blame(err error) error {
	if err != nil && l.denied.Load() {
		if known := stream.Explain(err); errors.Is(known, stream.ErrUnreachable) || errors.Is(known, stream.ErrRefused) {
			return stream.ErrAddress
		}
	}
	return err
}

// redisServer is one Redis.
type redisServer struct {
	target redisTarget
	// link is replaced where a tenant's Redis turns out unfit, and all with it that the library has noted for its sake.
	link atomic.Pointer[redisLink]
	// looking is whether somebody looks at it.
	looking atomic.Bool
	// reloading is when it reads its certificates again; whoever looks at it uses this.
	reloading reloading
	// erasing is whether somebody sees to erasures there, which may take longer.
	erasing atomic.Bool

	mu     sync.Mutex
	looked bool
	state  redisState
}

// redisState is what the last look found.
type redisState struct {
	// fitness is nil or why Redis is not fit: unreachable, too old, evicting.
	fitness error
	// library is nil or why the function library is not there.
	library error
}

func (s redisState) String() string {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return stream.Explain(err).Error()
	}
	return text(s.fitness) + "|" + text(s.library)
}

// lastLook returns what the last look found, and whether there was one.
func (s *redisServer) lastLook() (state redisState, looked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.looked
}

// found notes what a look has found.
func (s *redisServer) found(state redisState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.looked = state, true
}

func (s *redisServer) check(ctx context.Context) redisState {
	link := s.link.Load()
	link.denied.Store(false)
	state := redisState{fitness: link.blame(link.client.Check(ctx))}
	if state.reachable() {
		state.library = link.blame(link.client.Load(ctx))
	}
	return state
}

// reachable says whether Redis answers: one that would lose events can be administered all the same.
func (s redisState) reachable() bool {
	return s.fitness == nil || errors.Is(s.fitness, stream.ErrEvictionEnabled) || errors.Is(s.fitness, stream.ErrDefaultUser)
}

// failed notes why a tenant's Redis does not do what it is asked, so that until the next look nobody else waits for it.
func (s *redisServer) failed(err error) error {
	err = s.link.Load().blame(err)
	if err != nil && !s.target.own && !errors.Is(err, stream.ErrDenied) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.state.fitness = err
	}
	return err
}
