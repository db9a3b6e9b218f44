package console

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"
)

// Bounds of the sessions that are kept, each with the groups of its user. Beyond each the oldest ends.
const (
	maxSessions        = 5000
	maxSessionsPerUser = 16
)

// session is somebody who is signed in.
type session struct {
	user *user
	ends time.Time
	// key is the digest of the session's id; place and own are where it stands among all sessions and among the user's.
	key        sessionKey
	place, own *list.Element
}

// sessionKey is the digest of a session's id, which nobody needs to keep.
type sessionKey [sha256.Size]byte

// sessions are those who are signed in, in memory alone: a restart ends all. It is safe for concurrent use.
type sessions struct {
	now func() time.Time
	// lasts is how long after signing in a session ends.
	lasts time.Duration

	mu  sync.Mutex
	all map[sessionKey]*session
	// byAge holds *session, the oldest first, which are those that end first; by has those of each user's name.
	byAge list.List
	by    map[string]*list.List
}

func newSessions(lasts time.Duration, now func() time.Time) *sessions {
	return &sessions{now: now, lasts: lasts, all: map[sessionKey]*session{}, by: map[string]*list.List{}}
}

func keyOf(id string) sessionKey { return sha256.Sum256([]byte(id)) }

// begin signs somebody in and returns the id of the session, 256 random bits.
func (s *sessions) begin(u *user) (id string, begun *session) {
	var random [32]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	id = base64.RawURLEncoding.EncodeToString(random[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if own := s.by[u.name]; own != nil && own.Len() >= maxSessionsPerUser {
		s.remove(own.Front().Value.(*session))
	}
	if len(s.all) >= maxSessions {
		s.remove(s.byAge.Front().Value.(*session))
	}
	begun = &session{user: u, ends: s.now().Add(s.lasts), key: keyOf(id)}
	s.all[begun.key] = begun
	begun.place = s.byAge.PushBack(begun)
	if s.by[u.name] == nil {
		s.by[u.name] = list.New()
	}
	begun.own = s.by[u.name].PushBack(begun)
	return id, begun
}

// find returns the session of an id, nil where there is none any more.
func (s *sessions) find(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[keyOf(id)]
	if found == nil || !s.now().Before(found.ends) {
		return nil
	}
	return found
}

// holds says whether a session goes on.
func (s *sessions) holds(one *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[one.key] == one && s.now().Before(one.ends)
}

// end signs somebody out.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.all[keyOf(id)]; found != nil {
		s.remove(found)
	}
}

// count is how many are signed in.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	return len(s.all)
}

// forget drops the sessions that have ended. The mutex is held.
func (s *sessions) forget() {
	for first := s.byAge.Front(); first != nil; first = s.byAge.Front() {
		oldest := first.Value.(*session)
		if s.now().Before(oldest.ends) {
			return
		}
		s.remove(oldest)
	}
}

// remove drops a session. The mutex is held.
func (s *sessions) remove(one *session) {
	delete(s.all, one.key)
	s.byAge.Remove(one.place)
	own := s.by[one.user.name]
	own.Remove(one.own)
	if own.Len() == 0 {
		delete(s.by, one.user.name)
	}
}
