package controllers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/collector/stream"
)

// redisLink is a connection to a Redis.
type redisLink struct {
	client *stream.Client
	users  *stream.Users
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

	mu     sync.Mutex
	looked bool
	state  redisState
	wanted map[types.NamespacedName][]stream.User
	kept   map[types.NamespacedName]bool
	// platforms are those of each Property, pausing the ones of them that the deliverers have paused.
	platforms map[types.NamespacedName][]string
	pausing   map[types.NamespacedName]map[string]string
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

// allUsers are the users of all Properties that are kept there, as they shall be now.
func (s *redisServer) allUsers() []stream.User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Values(s.wanted))...)
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

// lookAtPlatforms reads which platforms the deliverers have paused and returns the Properties for which that is
// another answer than before.
func (s *redisServer) lookAtPlatforms(ctx context.Context, platforms map[types.NamespacedName][]string) map[types.NamespacedName]bool {
	changed := map[types.NamespacedName]bool{}
	for property, names := range platforms {
		paused, err := s.link.Load().client.Stream(property.Namespace, property.Name).PausedPlatforms(ctx, names)
		if err != nil {
			return changed
		}
		s.mu.Lock()
		if !maps.Equal(s.pausing[property], paused) {
			s.pausing[property] = paused
			changed[property] = true
		}
		s.mu.Unlock()
	}
	return changed
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
