package analytics

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

var (
	// ErrTooCostly says that a query would take more memory than one query may: one about fewer events may not.
	ErrTooCostly = errors.New("the query takes more memory than one query may")
	// ErrBusy says that other queries have the memory that this one needs.
	ErrBusy = errors.New("other queries have the memory that this one needs")
)

// Budget bounds the memory that the queries of a process take together; one of them may take half of it. A query
// takes bytes before it allocates them, and gives all back when it has been answered. What it takes is reckoned, to
// within a few megabytes, not measured. A Budget is safe for concurrent use.
type Budget struct {
	limit int64

	mu   sync.Mutex
	held int64
}

// NewBudget returns a budget of a number of bytes, of as many as there are where that is 0.
func NewBudget(limit int64) *Budget {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	return &Budget{limit: limit}
}

// Hold takes bytes for an answer that is being written; the caller gives them back with release. It fails with
// [ErrTooCostly] or [ErrBusy].
func (b *Budget) Hold(bytes int64) (release func(), err error) {
	a := &reservation{budget: b}
	if err := a.grow(bytes); err != nil {
		return nil, err
	}
	return a.close, nil
}

// reservation is what one query has taken. The budget's mu guards it.
type reservation struct {
	budget *Budget
	held   int64
	// failed is why the query has been given up.
	failed error
}

// grow takes bytes that are allocated next. Where there are not so many for the query its context ends, and all that
// it takes from then on fails as well.
func (a *reservation) grow(bytes int64) error {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	switch {
	case a.failed != nil:
	case bytes > a.budget.limit/2-a.held:
		a.failed = ErrTooCostly
	case bytes > a.budget.limit-a.budget.held:
		a.failed = ErrBusy
	default:
		a.held += bytes
		a.budget.held += bytes
		return nil
	}
	return a.failed
}

// growFor takes bytes for each of a number of things.
func (a *reservation) growFor(count, bytes int) error { return a.grow(int64(count) * int64(bytes)) }

// failure returns why the query has been given up for its cost, nil where it has not.
func (a *reservation) failure() error {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.failed
}

// close gives back what the query has taken.
func (a *reservation) close() {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.budget.held -= a.held
	a.held = 0
}

// budgeted is the context of a query, which ends as well where the query cannot take what it needs.
type budgeted struct {
	context.Context //nolint:containedctx // it is a context itself
	reservation     *reservation
}

// Err returns why the query is to end, nil while it is not.
func (p budgeted) Err() error {
	if err := p.Context.Err(); err != nil {
		return err
	}
	return p.reservation.failure()
}

// runQuery lets a query be answered from the view as it is now. names are those whose numbers it needs. It fails with
// [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context ends.
func runQuery[T any](ctx context.Context, v *View, names []columns.Name, answer func(context.Context, *snapshot) (T, error)) (result T, err error) {
	s, done, err := v.read(names...)
	if err != nil {
		return result, err
	}
	defer done()
	s.reservation = &reservation{budget: v.budget}
	defer s.reservation.close()
	result, err = answer(budgeted{ctx, s.reservation}, s)
	if failure := s.reservation.failure(); failure != nil {
		err = failure
	}
	if err != nil {
		var none T
		return none, err
	}
	return result, nil
}
