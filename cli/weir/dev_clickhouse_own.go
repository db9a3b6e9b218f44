package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-dev/weir/collector/clickhouseserver"
)

// A ClickHouse of our own that ends of itself is started again, up to mostRestarts times in restartsWithin.
const (
	mostRestarts   = 3
	restartsWithin = time.Minute
)

// privateClickHouse is a ClickHouse of our own, which is started again where it ends of itself, as one does that takes too much memory:
// nothing is lost meanwhile, events wait in Redis and answers say that the history is away.
type privateClickHouse struct {
	*clickhouseserver.Server
	directory string
	logger    *slog.Logger
	// end has nobody start it again, kept is closed when that is so.
	end  context.CancelCauseFunc
	kept chan struct{}
}

// startClickHouse runs one that keeps its data in a directory. The context returned ends with ctx, or when the server is given up; then
// its cause says so.
func startClickHouse(ctx context.Context, directory string, logger *slog.Logger) (*privateClickHouse, context.Context, error) {
	program, err := clickhouseserver.Find()
	if err != nil {
		return nil, nil, fmt.Errorf("--clickhouse: %w", err)
	}
	server, err := clickhouseserver.Start(ctx, program, clickhouseserver.Options{Dir: directory})
	if err != nil {
		return nil, nil, fmt.Errorf("--clickhouse: %w", err)
	}
	alive, end := context.WithCancelCause(ctx)
	c := &privateClickHouse{Server: server, directory: directory, logger: logger, end: end, kept: make(chan struct{})}
	go c.keep(alive)
	return c, alive, nil
}

// keep starts the server again until ctx ends.
func (c *privateClickHouse) keep(ctx context.Context) {
	defer close(c.kept)
	var restarts []time.Time // of late
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Exited():
		}
		now := time.Now()
		for len(restarts) > 0 && now.Sub(restarts[0]) > restartsWithin {
			restarts = restarts[1:]
		}
		if len(restarts) == mostRestarts {
			c.end(fmt.Errorf("the ClickHouse that weir dev runs ends of itself again and again; its log is in %s; start again to go on", c.directory))
			return
		}
		restarts = append(restarts, now)
		c.logger.WarnContext(ctx, "the ClickHouse that weir dev runs has ended of itself and is started again", "log", c.directory)
		if err := c.Restart(ctx); err != nil && ctx.Err() == nil {
			c.end(fmt.Errorf("the ClickHouse that weir dev runs has ended of itself and cannot be started again; its log is in %s: %w", c.directory, err))
			return
		}
	}
}

// stop ends the server, whether ctx has ended or not.
func (c *privateClickHouse) stop(ctx context.Context) error {
	c.end(context.Canceled)
	<-c.kept
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), clickHouseTimeout)
	defer cancel()
	if err := c.Stop(limit); err != nil {
		return errors.Join(errors.New("--clickhouse own"), err)
	}
	return nil
}
