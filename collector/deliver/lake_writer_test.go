package deliver

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

func TestEventsBecomeRowsOfFilesThatFollowOneAnother(t *testing.T) {
	s := newLakeSite(t, nil)
	first := s.store(2500, "c.1")
	s.start("one", quick)
	s.eventuallyOnce(first)
	second := s.store(10, "c.1")
	s.eventuallyOnce(slices.Concat(first, second))
	if n := len(s.rows()); n < 4 {
		t.Errorf("%d files, want more than one for what is above the rows of a file, and one for what came later", n)
	}
	if got := s.group("lake"); got.Pending != 0 || got.Waiting != 0 || got.Lag != 0 {
		t.Errorf("the group has something left: %+v", got)
	}
}

func TestAFileIsWrittenWhenEventsHaveWaitedOrAreMany(t *testing.T) {
	s := newLakeSite(t, nil)
	s.start("one", nil)
	few := s.store(10, "c.1")
	s.await("that nothing is written yet", func() string { return "" })
	many := s.store(1000, "c.1")
	s.awaitFor(10*time.Second, "a file of as many as a file has", func() string {
		if len(s.rows()) == 0 {
			return "no file"
		}
		return ""
	})
	s.advance(6 * time.Minute)
	s.eventuallyOnce(slices.Concat(few, many))
}

func TestTwoWritersAtOnceWriteEachEventOnce(t *testing.T) {
	s := newLakeSite(t, nil)
	all := s.store(4000, "c.1")
	reckless := func(e *Engine) {
		quick(e)
		e.timing.erasePatience = 0 // whoever asks has the lease
	}
	for _, name := range []string{"one", "two", "three"} {
		s.start(name, reckless)
	}
	for range 5 {
		all = append(all, s.store(700, "c.1")...)
	}
	s.eventuallyOnce(all)
}

func TestALostAnswerIsFoundOut(t *testing.T) {
	s := newLakeSite(t, nil)
	lost := 0
	s.onRequest(&s.after, func(r *http.Request) bool {
		if isWrite(r) && lost < 3 {
			lost++
			return true
		}
		return false
	})
	all := s.store(3000, "c.1")
	s.start("one", quick)
	s.eventuallyOnce(all)
	if lost != 3 {
		t.Errorf("%d answers were lost", lost)
	}
}

func TestADelivererThatIsKilledAtAnyRequestLosesAndRepeatsNothing(t *testing.T) {
	for name, hooked := range map[string]bool{"before the bucket has it": true, "before the answer comes": false} {
		t.Run(name, func(t *testing.T) {
			s := newLakeSite(t, nil)
			all := s.store(1500, "c.1")
			for nth := 1; nth <= 12; nth++ {
				n, reached := 0, make(chan struct{})
				hook := func(*http.Request) bool {
					if n++; n == nth {
						close(reached)
						return true
					}
					return n > nth
				}
				if hooked {
					s.onRequest(&s.before, hook)
				} else {
					s.onRequest(&s.after, hook)
				}
				v := s.startVictim("one", quick)
				select {
				case <-reached:
				case <-time.After(2 * time.Second): // it had less to do
				}
				v.kill()
				s.onRequest(&s.before, nil)
				s.onRequest(&s.after, nil)
				all = append(all, s.store(300, "c.1")...)
			}
			s.start("two", quick)
			s.eventuallyOnce(all)
		})
	}
}

func TestEventsOfBothSidesOfMidnightAreInTheirDays(t *testing.T) {
	s := newLakeSite(t, nil)
	var all []stream.Position
	s.start("one", quick)
	for range 32 { // no more at once than clocks may differ by, or the step would not be believed
		all = append(all, s.store(5, "c.1")...)
		s.eventuallyOnce(all)
		s.advance(50 * time.Minute)
	}
	days := map[string]bool{}
	for key := range s.rows() {
		days[strings.Split(key, "/")[2]] = true
	}
	if len(days) < 2 {
		t.Errorf("the files are of %v", days)
	}
}
