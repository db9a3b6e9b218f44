package analytics

import (
	"context"
	"errors"
	"math"
	"sync"
)

var (
	// ErrTooCostly says that a question would take more memory than one question may: one about fewer events may not.
	ErrTooCostly = errors.New("the question takes more memory than one question may")
	// ErrBusy says that other questions have the memory that this one needs.
	ErrBusy = errors.New("other questions have the memory that this one needs")
)

// Budget bounds the memory that the questions of a process take together; one of them may take half of it. A question
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
	a := &account{budget: b}
	if err := a.take(bytes); err != nil {
		return nil, err
	}
	return a.close, nil
}

// account is what one question has taken. The budget's mu guards it.
type account struct {
	budget *Budget
	held   int64
	// failed is why the question has been given up.
	failed error
}

// take takes bytes that are allocated next. Where there are not so many for the question its context ends, and all that
// it takes from then on fails as well.
func (a *account) take(bytes int64) error {
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

// takeFor takes bytes for each of a number of things.
func (a *account) takeFor(count, bytes int) error { return a.take(int64(count) * int64(bytes)) }

// failure returns why the question has been given up for its cost, nil where it has not.
func (a *account) failure() error {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.failed
}

// close gives back what the question has taken.
func (a *account) close() {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.budget.held -= a.held
	a.held = 0
}

// paid is the context of a question, which ends as well where the question cannot take what it needs.
type paid struct {
	context.Context //nolint:containedctx // it is a context itself
	account         *account
}

// Err returns why the question is to end, nil while it is not.
func (p paid) Err() error {
	if err := p.Context.Err(); err != nil {
		return err
	}
	return p.account.failure()
}

// ask lets a question be answered from the view as it is now. names are those whose numbers it needs. It fails with
// [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context ends.
func ask[T any](ctx context.Context, v *View, names []string, answer func(context.Context, *snapshot) (T, error)) (result T, err error) {
	s, done, err := v.read(names...)
	if err != nil {
		return result, err
	}
	defer done()
	s.account = &account{budget: v.budget}
	defer s.account.close()
	result, err = answer(paid{ctx, s.account}, s)
	if failure := s.account.failure(); failure != nil {
		err = failure
	}
	if err != nil {
		var none T
		return none, err
	}
	return result, nil
}
