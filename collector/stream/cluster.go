package stream

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// reloadEvery is how long a cluster is not asked anew after it has been.
const reloadEvery = 200 * time.Millisecond

// lookAgain has a cluster's client ask anew which node has which keys when a node does not answer. The library asks when a
// node tells it to; of one that has ended, it would go on calling it for up to a minute after another has taken over.
type lookAgain struct {
	reload func(context.Context)
	now    func() time.Time
	last   atomic.Pointer[time.Time] // nil before the first
}

// DialHook implements [redis.Hook].
func (*lookAgain) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (l *lookAgain) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error { return l.after(ctx, next(ctx, command)) }
}

// ProcessPipelineHook implements [redis.Hook].
func (l *lookAgain) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error { return l.after(ctx, next(ctx, commands)) }
}

// after returns the error. The asking goes on beside, at most every 200 ms, whatever comes of it: the library pauses only after
// it has got an answer. That the client's own connections are all in use says nothing of a node.
func (l *lookAgain) after(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, redis.ErrClosed) || errors.Is(err, redis.ErrPoolTimeout) {
		return err
	}
	if _, answered := errors.AsType[redis.Error](err); answered {
		return err
	}
	now, last := l.now(), l.last.Load()
	if (last == nil || now.Sub(*last) >= reloadEvery) && l.last.CompareAndSwap(last, &now) {
		l.reload(ctx)
	}
	return err
}
