package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event/wire"
)

const (
	// appendBudget is how long an addition waits for Redis's acknowledgement: a failover of two seconds, and the time
	// to reach Redis again after it.
	appendBudget = 2500 * time.Millisecond
	// appendAttempt is how long one call may take before it is sent again. An attempt is not shortened for callers
	// whose time is up before: after a long outage there are some in every batch, and Redis would be given up each time
	// before it can answer.
	appendAttempt = 500 * time.Millisecond
	// batchCap is the most additions of one call; Redis serves nobody else meanwhile, and weir.lua takes no more.
	batchCap = 512
	// batchBytes are the most bytes of entries of one call, unless a caller brings more at once.
	batchBytes = 4 << 20
	// flushers is how many calls are under way at a time: while one waits the other's batch fills.
	flushers = 2
	// appendKeys is how many keys weir_append takes.
	appendKeys = 7
)

// AppenderOptions configure an [Appender].
type AppenderOptions struct {
	// Window is for how long an event_id or order_id is remembered; see [Appender.SetWindow].
	Window time.Duration
	// JoinedFor is for how long identifiers stand for a person after they were seen; see [Appender.SetJoinedFor].
	JoinedFor time.Duration
	// Logger is told when Redis goes and when it is back; nil tells no one.
	Logger *slog.Logger
	// Metrics record each batch; nil records none.
	Metrics *Metrics
}

// Appender appends events to one stream. Additions that are made at the same time are committed together, in one
// call to Redis; when none is under way an addition goes at once. It is safe for concurrent use.
type Appender struct {
	stream *Stream
	// witness is this process's clock as it was at the start, told by the monotonic one: where Redis runs on the same
	// machine it is not set together with Redis's.
	witness func() time.Time
	logger  *slog.Logger
	metrics *Metrics
	window  atomic.Int64
	// joinedFor, as window, is in milliseconds.
	joinedFor atomic.Int64
	// sealer has the keys of now.
	sealer sealer
	// outage is why the last call failed, nil after one that did not.
	outage atomic.Pointer[error]

	mutex  sync.Mutex
	filled sync.Cond
	queue  []*appendCall
	// queued and underway are how many additions wait and how many are being sent.
	queued, underway int
	closed           bool
	ended            sync.WaitGroup
}

// NewAppender starts an appender; [Appender.Close] ends it.
func NewAppender(s *Stream, options AppenderOptions) *Appender {
	a := &Appender{stream: s, logger: options.Logger, metrics: options.Metrics}
	started := time.Now()
	a.witness = func() time.Time { return started.Add(time.Since(started)) }
	a.sealer = sealer{stream: s, witness: a.witness}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	a.filled.L = &a.mutex
	a.SetWindow(options.Window)
	a.SetJoinedFor(options.JoinedFor)
	for range flushers {
		a.ended.Go(a.flushUntilClosed)
	}
	return a
}

// SetWindow changes for how long ids are remembered. A shorter window holds at once, to a 10,000th of half the one
// before. A longer one holds for ids that are recorded from now on; those recorded before may be forgotten from the end
// of the window on that they were recorded under.
func (a *Appender) SetWindow(window time.Duration) {
	a.window.Store(max(window.Milliseconds(), 1))
}

// SetJoinedFor changes for how long identifiers stand for a person after they were seen, to half as long again.
func (a *Appender) SetJoinedFor(period time.Duration) {
	a.joinedFor.Store(max(period.Milliseconds(), 1))
}

// Append appends the additions in order and answers each, in the same order, after Redis has acknowledged.
// There are at most 512 of them, with 8 MiB of entries.
//
// The error is [ErrUnavailable] where Redis does not acknowledge within two and a half seconds, and comes up to half a
// second later where Redis hangs; the events may or may not be stored then. Calls that Redis did not answer clearly are
// sent again within that time without storing anything twice. A deadline of ctx that is earlier counts, but no earlier
// than those of the additions that were handed in before; that ctx is cancelled changes nothing any more.
func (a *Appender) Append(ctx context.Context, additions []Addition) ([]Added, error) {
	if len(additions) == 0 {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	deadline := time.Now().Add(appendBudget)
	if own, limited := ctx.Deadline(); limited && own.Before(deadline) {
		deadline = own
	}
	call := newAppendCall(additions, deadline)
	if !a.enqueue(call) {
		return nil, fmt.Errorf("%w: the collector is stopping", ErrUnavailable)
	}
	// A timer and ctx to wait for as well would cost each request more than handing it over does. The flushers keep to
	// the deadlines: what waits in the queue came later than what they are sending, and its time is up later too.
	<-call.done
	return call.added, call.err
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

func (a *Appender) enqueue(call *appendCall) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.closed {
		return false
	}
	a.queue = append(a.queue, call)
	a.queued += len(call.added)
	if a.due() {
		a.filled.Signal()
	}
	return true
}

// due says whether a batch is to be sent now: at once where none is under way; beside another one only when it is twice
// as large as that, for a few large batches cost less than many small ones. The mutex is held.
func (a *Appender) due() bool {
	return len(a.queue) > 0 && (a.queued >= 2*a.underway || a.closed)
}

// take waits until a batch is due and returns its calls and how many additions they are, nil when the appender is closed
// and empty. sent is how many additions the flusher has sent before.
func (a *Appender) take(sent int) ([]*appendCall, int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.underway -= sent
	for {
		for !a.due() {
			if a.closed {
				return nil, 0
			}
			a.filled.Wait()
		}
		a.gather()
		if !a.due() {
			continue // the other flusher has taken them meanwhile
		}
		if batch, size := a.cut(); size > 0 {
			a.underway += size
			return batch, size
		}
	}
}

// gather lets requests that can run go first, as long as some of them add to the batch: a larger one costs less for
// each event, and where nobody else can run no time passes. The mutex is held.
func (a *Appender) gather() {
	for before := -1; before < a.queued && a.queued < batchCap; {
		before = a.queued
		a.mutex.Unlock()
		runtime.Gosched()
		a.mutex.Lock()
	}
}

// cut takes as many calls from the queue as fit a batch, without those whose time is up, and returns how many additions
// they are. The mutex is held.
func (a *Appender) cut() ([]*appendCall, int) {
	var batch []*appendCall
	size, bytes, used, now := 0, 0, 0, time.Now()
	for _, call := range a.queue {
		if size > 0 && (size+len(call.added) > batchCap || bytes+call.bytes > batchBytes) {
			break
		}
		used++
		a.queued -= len(call.added)
		if a.late(call, now) {
			continue
		}
		batch = append(batch, call)
		size, bytes = size+len(call.added), bytes+call.bytes
	}
	rest := copy(a.queue, a.queue[used:])
	clear(a.queue[rest:])
	a.queue = a.queue[:rest]
	if a.queued >= 2*(a.underway+size) && rest > 0 {
		a.filled.Signal()
	}
	return batch, size
}

// late answers a call whose time is up, and says whether it is.
func (a *Appender) late(call *appendCall, now time.Time) bool {
	if now.Before(call.deadline) {
		return false
	}
	cause := context.DeadlineExceeded
	if outage := a.outage.Load(); outage != nil {
		cause = *outage
	}
	call.err = fmt.Errorf("%w: %w", ErrUnavailable, cause)
	call.answer()
	return true
}

func (a *Appender) flushUntilClosed() {
	for batch, size := a.take(0); batch != nil; batch, size = a.take(size) {
		begin := time.Now()
		reply, committed := a.commit(batch)
		a.metrics.committed(size, time.Since(begin))
		if committed {
			distribute(batch, reply)
		}
	}
}

// commit sends a batch until Redis acknowledges it, or until all of its callers have been told that their time is up.
func (a *Appender) commit(batch []*appendCall) (reply []any, committed bool) {
	id := uuid.New()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		reply, err := a.attempt(batch, id)
		if err == nil {
			if a.outage.Swap(nil) != nil {
				a.logger.Info("redis takes events again")
			}
			return reply, true
		}
		if a.outage.Swap(&err) == nil {
			a.logger.Warn("redis does not take events", "error", err)
		}
		if !a.inTime(batch) {
			return nil, false
		}
		<-time.After(pause/2 + rand.N(pause/2))
		if !a.inTime(batch) {
			return nil, false
		}
	}
}

// attempt seals a batch under the keys of now and sends it once; and once more where Redis has another key meanwhile: the
// period is over, or Redis has come back without the key. Nothing has been stored then.
func (a *Appender) attempt(batch []*appendCall, id uuid.UUID) (reply []any, err error) {
	var needed [wire.PartCount]bool
	for _, call := range batch {
		for part, is := range call.sealed {
			needed[part] = needed[part] || is
		}
	}
	for range 2 {
		var keys sealKeys
		if keys, err = a.sealer.keys(needed); err != nil {
			return nil, err
		}
		for _, call := range batch {
			call.seal(keys.of())
		}
		reply, err = a.send(a.arguments(batch, id, &keys))
		if !errors.Is(err, errNoKey) {
			break
		}
		a.sealer.forget(keys)
	}
	return reply, err
}

// inTime answers those of a batch whose time is up, and says whether others still wait.
func (a *Appender) inTime(batch []*appendCall) bool {
	now, waiting := time.Now(), false
	for _, call := range batch {
		if !call.answered && !a.late(call, now) {
			waiting = true
		}
	}
	return waiting
}

// arguments are those of the call of weir_append for a batch that is sealed under keys.
func (a *Appender) arguments(batch []*appendCall, id uuid.UUID, keys *sealKeys) []any {
	size, digests := 0, 0
	for _, call := range batch {
		size += len(call.added)
		digests += len(call.digests)
	}
	k := a.stream.keys
	args := make([]any, 0, appendKeys+11+2*digests+3*size)
	args = append(args, "fcall", functionAppend, appendKeys, k.events(), k.dedup(), k.batches(), k.clock(), k.join(),
		k.seal(wire.Device), k.seal(wire.Identity), a.window.Load(), a.witness().UnixMilli(), id[:], repeated(batch, digests), a.joinedFor.Load(), digests,
		&keys[wire.Device].said, &keys[wire.Identity].said)
	for _, call := range batch {
		for i := range call.digests {
			args = append(args, &call.digests[i].field)
		}
	}
	for _, call := range batch {
		for i := range call.digests {
			args = append(args, &call.digests[i].rest)
		}
	}
	for _, call := range batch {
		for i := range call.arguments {
			args = append(args, &call.arguments[i])
		}
	}
	return args
}

func (a *Appender) send(args []any) (reply []any, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), appendAttempt)
	defer cancel()
	command := redis.NewCmd(ctx, args...)
	command.SetFirstKeyPos(3)
	if err = a.stream.redis.Process(ctx, command); err == nil {
		reply, err = command.Slice()
	}
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return reply, describe("append events", err)
}
