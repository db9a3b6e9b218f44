package deliver

import (
	"context"
	"sync"
	"time"
)

const (
	// parallelRequests is how many requests one platform of a property gets at a time, at most.
	parallelRequests = 64
	// slowRequests is how many may be open beside those that have not been answered for long; see [occupied].
	slowRequests = 256
	// parallelEvents is how many events those may carry together, so that large batches do not fill the memory; the slow
	// ones may carry as many.
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
	most, mostSlow int

	mu    sync.Mutex
	width int
	// inUse are the slots that are taken, slow the requests that have none any more.
	inUse, slow [shares]int
	change      chan struct{} // closed and replaced when one who waits may look again
}

// newSlots makes slots for requests with so many events each.
func newSlots(events int) *slots {
	room := max(1, parallelEvents/events)
	most := min(parallelRequests, room)
	return &slots{most: most, mostSlow: min(slowRequests, room), width: min(firstRequests, most), change: make(chan struct{})}
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

// occupied is a slot with a request under way. A request that is slow gives its slot to others while the platform takes those:
// an event that a platform never answers says nothing about the platform's speed.
type occupied struct {
	slots *slots
	kind  share
	timer *time.Timer
	// slow says that it has no slot any more, answered that the request has ended.
	slow, answered bool
}

// occupy notes that a request begins in a slot. Once it has taken for longer than slow it gives the slot away, if taken says
// that the platform took others since; a few may without.
func (s *slots) occupy(kind share, slow time.Duration, taken func(since time.Time) bool) *occupied {
	start, o := time.Now(), &occupied{slots: s, kind: kind}
	s.mu.Lock()
	defer s.mu.Unlock()
	o.timer = time.AfterFunc(slow, func() {
		proven := taken(start)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case o.answered:
		case s.roomForSlow(kind, proven):
			o.slow = true
			s.inUse[kind]--
			s.slow[kind]++
			s.announce()
		default:
			o.timer.Reset(slow)
		}
	})
	return o
}

// roomForSlow says whether one more slow request may be open. Events that were attempted before leave half of them to new
// ones, as of the slots; the lock is held.
func (s *slots) roomForSlow(kind share, proven bool) bool {
	open := s.slow[fresh] + s.slow[again]
	return open < s.mostSlow && (kind == fresh || s.slow[again] < s.mostSlow/2) && (proven || open < breakAfter)
}

// end notes that the request has ended: from now on it is not the platform that is waited for.
func (o *occupied) end() {
	o.slots.mu.Lock()
	defer o.slots.mu.Unlock()
	o.answered = true
	o.timer.Stop()
}

// release gives the slot back.
func (o *occupied) release() {
	o.slots.mu.Lock()
	defer o.slots.mu.Unlock()
	if o.slow {
		o.slots.slow[o.kind]--
	} else {
		o.slots.inUse[o.kind]--
	}
	o.slots.announce()
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
