package controllers

import (
	"context"
	"errors"
	"maps"
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
	// properties are those that are kept there.
	properties map[types.NamespacedName]residentProperty
}

// residentProperty is what a Redis shall have of a Property, and what it has.
type residentProperty struct {
	// users are its roles', none where these share the URL's own.
	users     []stream.User
	platforms []string
	// lasts says that its data has no last day.
	lasts bool
	// paused are the platforms that the deliverers have paused, with the reasons.
	paused map[string]string
}

// note changes what is known of a Property.
func (s *redisServer) note(property types.NamespacedName, change func(*residentProperty)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.properties[property]
	change(&known)
	s.properties[property] = known
}

// property is what is known of one.
func (s *redisServer) property(name types.NamespacedName) residentProperty {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.properties[name]
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

// allUsers are the users of all Properties that are kept there, as they shall be now.
func (s *redisServer) allUsers() []stream.User {
	s.mu.Lock()
	defer s.mu.Unlock()
	var users []stream.User
	for _, property := range s.properties {
		users = append(users, property.users...)
	}
	return users
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
func (s *redisServer) lookAtPlatforms(ctx context.Context, properties map[types.NamespacedName]residentProperty) map[types.NamespacedName]bool {
	changed := map[types.NamespacedName]bool{}
	for property, known := range properties {
		paused, err := s.link.Load().client.Stream(property.Namespace, property.Name).PausedPlatforms(ctx, known.platforms)
		if err != nil {
			return changed
		}
		s.mu.Lock()
		if now, there := s.properties[property]; there && !maps.Equal(now.paused, paused) {
			now.paused = paused
			s.properties[property] = now
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
