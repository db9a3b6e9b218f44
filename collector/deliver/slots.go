package deliver

import (
	"context"
	"sync"
)

const (
	// parallelRequests is how many requests one platform of a property gets at a time, at most.
	parallelRequests = 64
	// parallelEvents is how many events those may carry together, so that large batches do not fill the memory.
	parallelEvents = 10_000
	// firstRequests is how many a platform gets at a time until it has answered: with every answer that is not a
	// failure it gets one more.
	firstRequests = 4
)

// share says who takes events; each has slots of its own kind in use.
type share int

const (
	fresh share = iota // new events
	again              // those that were attempted before
	shares
)

// slots bounds the requests that are under way. The bound grows from firstRequests with every success and begins
// anew when the platform was paused, so that a platform that is down costs a few requests and not all of them.
// Events that were attempted before get at most half of it: new ones are not starved by them.
type slots struct {
	most int

	mu     sync.Mutex
	width  int
	inUse  [shares]int
	change chan struct{} // closed and replaced when one who waits may look again
}

func newSlots(most int) *slots {
	return &slots{most: most, width: min(firstRequests, most), change: make(chan struct{})}
}

// acquire waits for one slot and takes as many of the free ones as it is allowed to, at most most. It returns 0
// when the context has ended.
func (s *slots) acquire(ctx context.Context, kind share, most int) int {
	for {
		s.mu.Lock()
		free := s.width - s.inUse[fresh] - s.inUse[again]
		switch kind {
		case again:
			free = min(free, max(1, s.width/2)-s.inUse[again])
		default:
			// The last one is theirs: who takes new events holds what it got while it waits for some.
			free = min(free, max(1, s.width-1)-s.inUse[fresh])
		}
		if n := min(free, most); n > 0 && ctx.Err() == nil {
			s.inUse[kind] += n
			s.mu.Unlock()
			return n
		}
		change := s.change
		s.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return 0
		}
	}
}

func (s *slots) release(kind share, n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse[kind] -= n
	s.announce()
}

// widen allows one more request at a time.
func (s *slots) widen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.width < s.most {
		s.width++
		s.announce()
	}
}

// halve lets half as many requests run at a time, but no fewer than at the beginning: a platform that takes some requests and
// asks for patience with others is found the rate that it takes.
func (s *slots) halve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width = max(min(firstRequests, s.most), s.width/2)
}

// narrow begins anew.
func (s *slots) narrow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width = min(firstRequests, s.most)
}

func (s *slots) announce() {
	close(s.change)
	s.change = make(chan struct{})
}
