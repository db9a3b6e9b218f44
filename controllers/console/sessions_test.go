package console

import (
	"fmt"
	"testing"
	"time"
)

func TestSessionsAreBoundedAndEnd(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newSessions(time.Hour, func() time.Time { return now })
	ada := newUser("ada", nil)
	first, _ := s.begin(ada)
	for range maxSessionsPerUser - 1 {
		s.begin(ada)
	}
	if s.find(first) == nil || s.count() != maxSessionsPerUser {
		t.Errorf("%d sessions of one person: the first has ended", s.count())
	}
	last, _ := s.begin(ada)
	if s.find(first) != nil || s.find(last) == nil || s.count() != maxSessionsPerUser {
		t.Errorf("one more: there are %d, the first %v", s.count(), s.find(first))
	}
	if s.find("") != nil || s.find(last+"a") != nil {
		t.Error("an id that nobody has is found")
	}
	for n := range maxSessions {
		s.begin(newUser(fmt.Sprint(n), nil))
	}
	if s.count() != maxSessions || s.find(last) != nil || len(s.by) != maxSessions {
		t.Errorf("of many people there are %d", s.count())
	}
	late, begun := s.begin(ada)
	now = now.Add(time.Hour - time.Second)
	if s.find(late) == nil || !s.holds(begun) {
		t.Error("it ends a second early")
	}
	now = now.Add(time.Second)
	if s.find(late) != nil || s.holds(begun) || s.count() != 0 || len(s.by) != 0 || s.byAge.Len() != 0 {
		t.Errorf("after an hour there are %d", s.count())
	}
	again, begun := s.begin(ada)
	s.end(again)
	s.end(again)
	if s.find(again) != nil || s.holds(begun) || s.count() != 0 {
		t.Error("one that was ended goes on")
	}
}
