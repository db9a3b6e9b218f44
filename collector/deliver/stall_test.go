package deliver

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// backlogs are events that wait when a deliverer starts, by their number, and what a receiver does with the attempt at one.
var backlogs = map[string]struct {
	events int
	// refused says what is answered to the attempt, from 1 on, at an event; 0 where it is taken.
	refused func(i, attempt int) int
	// never is how many events are never taken.
	never int
}{
	"each event is failed at the first time":  {events: 300, refused: func(_, attempt int) int { return when(attempt == 1, 500) }},
	"each event is refused the first time":    {events: 300, refused: func(_, attempt int) int { return when(attempt == 1, 404) }},
	"every second is refused the first time":  {events: 300, refused: func(i, attempt int) int { return when(attempt == 1 && i%2 == 0, 404) }},
	"each event is failed at the first twice": {events: 100, refused: func(_, attempt int) int { return when(attempt <= 2, 500) }},
	"a run of ten is refused":                 {events: 50, refused: func(i, _ int) int { return when(i >= 20 && i < 30, 404) }, never: 10},
	"a run of sixty is refused":               {events: 100, refused: func(i, _ int) int { return when(i >= 20 && i < 80, 404) }, never: 60},
	"a run of sixty is failed":                {events: 100, refused: func(i, _ int) int { return when(i >= 20 && i < 80, 500) }, never: 60},
	"a run of twenty has its credential refused": {
		events: 60, refused: func(i, _ int) int { return when(i >= 20 && i < 40, 401) }, never: 20,
	},
}

func when(is bool, status int) int {
	if is {
		return status
	}
	return 0
}

// However a receiver refuses the events of a backlog for a time or for their own sake, the others reach it soon: what is
// waited is measured in first pauses.
func TestABacklogIsNotStalled(t *testing.T) {
	for name, backlog := range backlogs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			attempts, numbers := map[string]int{}, map[string]int{}
			hook := newReceiver(t, func(r *http.Request) *answer {
				mu.Lock()
				defer mu.Unlock()
				id := r.Header.Get("webhook-id")
				attempts[id]++
				if status := backlog.refused(numbers[id], attempts[id]); status != 0 {
					return &answer{status: status}
				}
				return nil
			})
			h := newHarness(t, hook.platform("crm"))
			for i := range backlog.events {
				id := uuid.New()
				numbers[id.String()] = i
				h.acceptAs(id)
			}
			h.start("one", func(e *Engine) {
				e.timing.gate = backoff{unit: 20 * time.Millisecond, cap: 30 * time.Second, floor: 10 * time.Millisecond}
				e.timing.backoff = e.timing.gate
			})
			h.await(strconv.Itoa(backlog.events)+" events", func() string {
				return cmp.Diff(backlog.events-backlog.never, len(hook.acceptances()))
			})
		})
	}
}
