package stream

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// lookAgain has a cluster's client ask anew which node has which keys when a node does not answer. The library asks when a
// node tells it to; of one that has ended, it would go on calling it for up to a minute after another has taken over.
type lookAgain struct{ cluster *redis.ClusterClient }

// DialHook implements [redis.Hook].
func (lookAgain) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (l lookAgain) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error { return l.after(ctx, next(ctx, command)) }
}

// ProcessPipelineHook implements [redis.Hook].
func (l lookAgain) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error { return l.after(ctx, next(ctx, commands)) }
}

// after returns the error. The asking goes on beside, at most every 200 ms.
func (l lookAgain) after(ctx context.Context, err error) error {
	_, answered := errors.AsType[redis.Error](err)
	if err != nil && !answered && !errors.Is(err, context.Canceled) && !errors.Is(err, redis.ErrClosed) {
		l.cluster.ReloadState(ctx)
	}
	return err
}
