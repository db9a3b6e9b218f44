package deliver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/deliver/lake"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// of returns how many rows the client ids have.
func (s *lakeSite) of() map[string]int {
	s.t.Helper()
	got := map[string]int{}
	for _, rows := range s.rows() {
		for _, row := range rows {
			got[row.ClientID]++
		}
	}
	return got
}

// erase asks for the erasure of whom a client id tells, and returns its id.
func (s *lakeSite) erase(client string) string {
	s.t.Helper()
	return s.requestErasure(stream.ErasureRequest{Identifiers: person{client: client}.identifiers()})
}

func TestWhoIsErasedIsTakenOutOfTheFiles(t *testing.T) {
	for name, kept := range map[string]int64{
		"while the stream has the events":      1_000_000,
		"when the events have left the stream": 1,
	} {
		t.Run(name, func(t *testing.T) {
			s := newLakeSite(t, nil)
			s.keepLedger()
			r := s.start("one", quick)
			all := slices.Concat(s.store(20, "ada.1"), s.store(30, "bob.2"), s.store(20, "ada.1"))
			s.eventuallyOnce(all)
			all = append(all, s.store(5, "ada.1")...)
			s.eventuallyOnce(all)
			files := s.rows()
			r.stop()
			s.property.Retention.MaxEvents = kept
			s.start("one", quick)
			if kept == 1 {
				s.await("the events to be trimmed", func() string {
					if n := len(s.positions()); n > 1 {
						return fmt.Sprint(n, " events are left")
					}
					return ""
				})
			}
			s.awaitHidden(s.erase("ada.1"))
			if got := s.of(); got["ada.1"] != 0 || got["bob.2"] != 30 {
				t.Errorf("rows of %v", got)
			}
			if left := s.rows(); len(left) != len(files) {
				t.Errorf("%d files are left of %d: the names of those that have no rows any more are links of a chain", len(left), len(files))
			}
			s.eventuallyOnceAmong(s.store(7, "bob.2")[6:])
		})
	}
}

// eventuallyOnceAmong waits until each event is a row of one file, among others.
func (s *lakeSite) eventuallyOnceAmong(want []stream.Position) {
	s.t.Helper()
	s.await("the rows", func() string {
		got := map[stream.Position]int{}
		for _, rows := range s.rows() {
			for _, row := range rows {
				got[stream.Position(row.Position)]++
			}
		}
		for _, p := range want {
			if got[p] != 1 {
				return fmt.Sprintf("%d rows of %s", got[p], p)
			}
		}
		return ""
	})
}

func TestWhoIsErasedWhileAFileIsWrittenIsNotLeftInIt(t *testing.T) {
	s := newLakeSite(t, nil)
	l := s.keepLedger()
	all := slices.Concat(s.store(20, "ada.1"), s.store(30, "bob.2"))
	begun, goOn, once := make(chan struct{}), make(chan struct{}), new(atomic.Bool)
	s.onRequest(&s.before, func(r *http.Request) bool {
		if isWrite(r) && once.CompareAndSwap(false, true) {
			close(begun)
			<-goOn
		}
		return false
	})
	s.start("one", quick)
	<-begun
	id := s.erase("ada.1")
	ada := person{client: "ada.1"}.event("")
	s.await("the ledger", func() string {
		if !l.Erased(&ada, all[0].Time()) {
			return "she is not in it"
		}
		return ""
	})
	s.awaitHidden(id) // she has no row in any file yet
	close(goOn)
	s.eventuallyOnceAmong(all[20:])
	s.await("her rows to go", func() string {
		if n := s.of()["ada.1"]; n > 0 {
			return fmt.Sprint(n, " rows")
		}
		return ""
	})
}

// heldWrite keeps the first write of a file, as a network may, and answers nobody. late sends it after all, and returns what the
// bucket says of it.
func (s *lakeSite) heldWrite() (held <-chan struct{}, late func() int) {
	var first *http.Request
	reached, once := make(chan struct{}), sync.Once{}
	s.onRequest(&s.before, func(r *http.Request) bool {
		broken := false
		if isWrite(r) {
			once.Do(func() {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					s.t.Error(err)
				}
				first = r.Clone(context.WithoutCancel(r.Context()))
				first.Body = io.NopCloser(bytes.NewReader(body))
				broken = true
				close(reached)
			})
		}
		return broken
	})
	return reached, func() int {
		answer := httptest.NewRecorder()
		s.fake.ServeHTTP(answer, first)
		return answer.Code
	}
}

func TestAWriteThatComesLateBringsNobodyBackWhoIsErased(t *testing.T) {
	patient := func(e *Engine) {
		quick(e)
		e.timing.breaker = backoff{unit: time.Hour, cap: time.Hour, floor: time.Hour} // its next try is not soon
	}
	for name, tt := range map[string]struct{ lives, adds bool }{
		"of a writer that is killed":                          {},
		"of a writer that got no answer":                      {lives: true},
		"that adds to a file, of a writer that is killed":     {adds: true},
		"that adds to a file, of a writer that got no answer": {lives: true, adds: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLakeSite(t, func(p *platforms.Platform) { p.Events = []string{"purchase"} })
			s.keepLedger()
			bob := 0
			if tt.adds {
				r := s.start("before", quick)
				s.accept(`{"event":"pageview","client_id":"ada.1"}`)
				bob = 5
				s.eventuallyOnce(s.store(bob, "bob.2"))
				r.stop()
				s.property.Platforms[0].Events = nil
				if err := s.redis().Del(t.Context(), "weir:{default/shop}:deliveries").Err(); err != nil {
					t.Fatal(err)
				}
				if err := s.stream.DestroyGroup(t.Context(), "lake"); err != nil {
					t.Fatal(err)
				}
			} else {
				s.store(20, "ada.1")
			}
			held, late := s.heldWrite()
			first := s.startVictim("one", patient)
			<-held
			if !tt.lives {
				first.kill()
				s.start("two", quick)
			}
			s.awaitHidden(s.erase("ada.1"))
			if code := late(); code != http.StatusPreconditionFailed {
				t.Errorf("the late write is answered %d", code)
			}
			if got := s.of(); got["ada.1"] != 0 || got["bob.2"] != bob {
				t.Errorf("rows of %v", got)
			}
			if tt.lives {
				first.running.stop()
				s.start("two", quick)
			}
			s.eventuallyOnceAmong(s.store(7, "bob.2"))
			if got := s.of(); got["ada.1"] != 0 || got["bob.2"] != bob+7 {
				t.Errorf("rows of %v", got)
			}
		})
	}
}

func TestAnErasureWaitsForTheBucketAndGoesOnWhenItIsBack(t *testing.T) {
	s := newLakeSite(t, nil)
	s.keepLedger()
	s.start("one", quick)
	all := slices.Concat(s.store(20, "ada.1"), s.store(30, "bob.2"))
	s.eventuallyOnce(all)
	s.fake.FailAlways(fakes.Failure{Status: http.StatusInternalServerError})
	id := s.erase("ada.1")
	s.await("the events to leave the stream", func() string {
		if n := len(s.positions()); n != 30 {
			return fmt.Sprint(n, " events")
		}
		return ""
	})
	if state, err := s.stream.Erasure(t.Context(), id); err != nil || !state.Hidden.IsZero() {
		t.Errorf("the erasure counts as done while the files have her: %+v, %v", state, err)
	}
	s.fake.Heal()
	s.awaitHidden(id)
	if got := s.of(); got["ada.1"] != 0 || got["bob.2"] != 30 {
		t.Errorf("rows of %v", got)
	}
}

func TestFilesDoNotKeepWhatThePropertyDropsBefore(t *testing.T) {
	who := func(row lake.Row) string {
		return strings.Join(slices.Concat([]string{row.ClientID, row.UserID, row.Visitor}, row.EmailSHA256), "")
	}
	for name, tt := range map[string]struct {
		days int
		keep bool
		told bool
	}{
		"identifiers are kept for as long as the event":                        {0, false, true},
		"identifiers are dropped before the event":                             {7, false, false},
		"identifiers are dropped before the event, and files are to have them": {7, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLakeSite(t, func(p *platforms.Platform) { p.S3.KeepIdentifiers = tt.keep })
			s.property.Retention.IdentifiersDays = tt.days
			s.start("one", quick)
			at := s.accept(`{"event":"purchase","client_id":"c.1","user_id":"u-1","user":{"email":"ada@example.com"},
				"context":{"ip":"203.0.113.7","user_agent":"Firefox"},"data":{"value":1,"currency":"EUR"}}`)
			s.eventuallyOnce([]stream.Position{at})
			for _, rows := range s.rows() {
				if got := who(rows[0]) != ""; got != tt.told {
					t.Errorf("the row tells whose it is: %t, want %t", got, tt.told)
				}
			}
			for key, data := range s.fake.Objects() {
				if strings.Contains(string(data), "203.0.113.7") || strings.Contains(string(data), "Firefox") {
					t.Errorf("%s has what tells of the device", key)
				}
			}
		})
	}
}

func TestAnAnonymousEventIsNobodysInFiles(t *testing.T) {
	e := person{client: "ada.1", user: "u-1", email: "ada@example.com"}.event("")
	e.Anonymous = true
	row, err := lake.RowOf(&e, stream.At(time.Now()), "default/shop", true)
	if err != nil {
		t.Fatal(err)
	}
	if row.ClientID+row.UserID+row.Visitor != "" || len(row.EmailSHA256) > 0 {
		t.Error("the row tells whose it is")
	}
	if got, want := row.Event, event.Pageview; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}
