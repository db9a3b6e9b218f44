package stream

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	// appendBudget is how long an addition waits for Redis's acknowledgement.
	appendBudget = 2 * time.Second
	// appendAttempt is how long one call may take before it is sent again.
	appendAttempt = 800 * time.Millisecond
	// batchCap is the most additions of one call, unless a caller brings more at once.
	batchCap = 512
	// flushers is how many calls are under way at a time: while one waits the other's batch fills.
	flushers = 2
	// digestSize is how much of a SHA-256 identifies an id.
	digestSize = 16
)

// AppenderOptions configure an [Appender].
type AppenderOptions struct {
	// Window is for how long an event_id or order_id is remembered; see [Appender.SetWindow].
	Window time.Duration
	// Now is the clock of windows and stream ids; nil means Redis's own, which all collectors share.
	Now func() time.Time
	// Logger is told when Redis goes and when it is back; nil tells no one.
	Logger *slog.Logger
}

// Appender appends events to one stream. Additions that are made at the same time are committed together, in one
// call to Redis; when none is under way an addition goes at once. It is safe for concurrent use.
type Appender struct {
	stream *Stream
	now    func() time.Time
	logger *slog.Logger
	window atomic.Int64
	// outage is why the last call failed, nil after one that did not.
	outage atomic.Pointer[error]

	mutex  sync.Mutex
	filled sync.Cond
	queue  []*appendCall
	closed bool
	ended  sync.WaitGroup
}

// NewAppender starts an appender; [Appender.Close] ends it.
func NewAppender(s *Stream, options AppenderOptions) *Appender {
	a := &Appender{stream: s, now: options.Now, logger: options.Logger}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	a.filled.L = &a.mutex
	a.SetWindow(options.Window)
	for range flushers {
		a.ended.Go(a.flushUntilClosed)
	}
	return a
}

// SetWindow changes for how long ids are remembered. A shorter window holds at once. A longer one holds for ids
// that are claimed from now on; those claimed before are forgotten after the window they were claimed under.
func (a *Appender) SetWindow(window time.Duration) {
	a.window.Store(max(window.Milliseconds(), 1))
}

// Append appends the additions in order and answers each, in the same order, after Redis has acknowledged. An
// EventID that is DeliveryID's text was generated and is not claimed, since no caller can repeat it.
//
// The error is [ErrUnavailable] where Redis does not acknowledge within two seconds or ctx ends before; the events
// may or may not be stored then. Calls that Redis did not answer clearly are sent again within that time without
// storing anything twice.
func (a *Appender) Append(ctx context.Context, additions []Addition) ([]Added, error) {
	if len(additions) == 0 {
		return nil, nil
	}
	call := newAppendCall(additions, time.Now().Add(appendBudget))
	ctx, cancel := context.WithDeadline(ctx, call.deadline)
	defer cancel()
	if !a.enqueue(call) {
		return nil, fmt.Errorf("%w: the collector is stopping", ErrUnavailable)
	}
	select {
	case <-call.done:
		return call.added, call.err
	case <-ctx.Done():
		call.state.CompareAndSwap(callQueued, callAbandoned)
		cause := ctx.Err()
		if outage := a.outage.Load(); outage != nil {
			cause = *outage
		}
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, cause)
	}
}

// Close commits what was handed in before and ends the appender; later additions fail. It waits for at most
// [Appender.Append]'s time limit, and no longer than ctx.
func (a *Appender) Close(ctx context.Context) error {
	a.mutex.Lock()
	a.closed = true
	a.filled.Broadcast()
	a.mutex.Unlock()
	ended := make(chan struct{})
	go func() {
		a.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("commit the last events: %w", ctx.Err())
	}
}

// The states of an appendCall.
const (
	callQueued int32 = iota
	// callTaken: it is in a batch that has been or is being sent.
	callTaken
	// callAbandoned: its caller has gone before it was sent.
	callAbandoned
)

// appendCall is one caller's additions on their way.
type appendCall struct {
	// args are four arguments of weir_append for each addition.
	args     []any
	added    []Added
	err      error
	deadline time.Time
	done     chan struct{}
	state    atomic.Int32
}

func newAppendCall(additions []Addition, deadline time.Time) *appendCall {
	call := &appendCall{
		args: make([]any, 0, 4*len(additions)), added: make([]Added, len(additions)),
		deadline: deadline, done: make(chan struct{}),
	}
	for i, addition := range additions {
		call.added[i].EventID = addition.EventID
		var event, order []byte
		if !generated(addition) {
			event = digest('e', addition.EventID)
		}
		if addition.OrderID != "" {
			order = digest('o', addition.OrderID)
		}
		call.args = append(call.args, addition.Entry, event, order, addition.EventID)
	}
	return call
}

// generated says whether the event id is the delivery id's text.
func generated(addition Addition) bool {
	if len(addition.EventID) != len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
		return addition.EventID == ""
	}
	return addition.EventID == addition.DeliveryID.String()
}

// digest stands for an id in the claims; kind parts event ids from order ids.
func digest(kind byte, id string) []byte {
	var buffer [256]byte
	sum := sha256.Sum256(append(append(buffer[:0], kind), id...))
	return append([]byte(nil), sum[:digestSize]...)
}

func (a *Appender) enqueue(call *appendCall) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.closed {
		return false
	}
	a.queue = append(a.queue, call)
	a.filled.Signal()
	return true
}

// take waits for calls and returns as many as fit a batch, nil when the appender is closed and empty.
func (a *Appender) take() []*appendCall {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for {
		for len(a.queue) == 0 && !a.closed {
			a.filled.Wait()
		}
		if len(a.queue) == 0 {
			return nil
		}
		var batch []*appendCall
		size, used := 0, 0
		for _, call := range a.queue {
			if size > 0 && size+len(call.added) > batchCap {
				break
			}
			used++
			if call.state.CompareAndSwap(callQueued, callTaken) {
				batch = append(batch, call)
				size += len(call.added)
			}
		}
		rest := copy(a.queue, a.queue[used:])
		clear(a.queue[rest:])
		a.queue = a.queue[:rest]
		if rest > 0 {
			a.filled.Signal()
		}
		if len(batch) > 0 {
			return batch
		}
	}
}

func (a *Appender) flushUntilClosed() {
	for batch := a.take(); batch != nil; batch = a.take() {
		reply, err := a.commit(batch)
		if err == nil {
			err = distribute(batch, reply)
		}
		for _, call := range batch {
			if err != nil {
				call.err = err
			}
			close(call.done)
		}
	}
}

// commit sends a batch until Redis acknowledges it or the last of its callers has given up.
func (a *Appender) commit(batch []*appendCall) ([]any, error) {
	size, deadline := 0, time.Time{}
	for _, call := range batch {
		size += len(call.added)
		if call.deadline.After(deadline) {
			deadline = call.deadline
		}
	}
	id := uuid.New()
	var now any = ""
	if a.now != nil {
		now = a.now().UnixMilli()
	}
	args := make([]any, 0, 3+4*size)
	args = append(args, a.window.Load(), now, id[:])
	for _, call := range batch {
		args = append(args, call.args...)
	}

	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	var before error
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		reply, err := a.send(ctx, args)
		if err != nil && ctx.Err() != nil && before != nil {
			err = before // that the time was up explains less than why it passed in vain
		}
		before = err
		if err == nil {
			if a.outage.Swap(nil) != nil {
				a.logger.Info("redis takes events again")
			}
			return reply, nil
		}
		if a.outage.Swap(&err) == nil {
			a.logger.Warn("redis does not take events", "error", err)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
}

func (a *Appender) send(ctx context.Context, args []any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, appendAttempt)
	defer cancel()
	k := a.stream.keys
	reply, err := a.stream.redis.FCall(ctx, functionAppend, []string{k.events(), k.claims(), k.batches()}, args...).Slice()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return reply, describe("append events", err)
}

// distribute hands weir_append's exceptions to the calls that they belong to. It fails where the reply is not one
// of weir_append.
func distribute(batch []*appendCall, reply []any) error {
	for len(reply) > 0 {
		if len(reply) < 3 {
			return fmt.Errorf("%w: %s replied with a cut list", ErrUnavailable, functionAppend)
		}
		number, numbered := reply[0].(int64)
		kind, kinded := reply[1].(string)
		text, texted := reply[2].(string)
		call, index := locate(batch, number)
		if !numbered || !kinded || !texted || call == nil {
			return fmt.Errorf("%w: %s replied with something else than exceptions", ErrUnavailable, functionAppend)
		}
		reply = reply[3:]
		if kind != "d" {
			call.err = fmt.Errorf("%w: append event: %s", ErrUnavailable, text)
			continue
		}
		call.added[index].Duplicate = true
		if text != "" {
			call.added[index].EventID = text
		}
	}
	return nil
}

// locate finds the batch's n-th addition.
func locate(batch []*appendCall, n int64) (*appendCall, int64) {
	for _, call := range batch {
		if size := int64(len(call.added)); n >= size {
			n -= size
			continue
		}
		if n < 0 {
			break
		}
		return call, n
	}
	return nil, 0
}
