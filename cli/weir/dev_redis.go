package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// redisTimeout is how long a Redis may take to answer at the start, and to end when we do.
	redisTimeout = 10 * time.Second
	// libraryInterval is how often a Redis is looked at for the function library, which it loses with its data.
	libraryInterval = 2 * time.Second
)

// privateRedis is a redis-server of our own.
type privateRedis struct {
	*redisserver.Server
	directory string
}

// startRedis runs a Redis that loses nothing: append-only, on the disk before it answers.
func startRedis(ctx context.Context, directory string, logger *slog.Logger) (*privateRedis, error) {
	binary, err := redisserver.Find(ctx, logger)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	server, err := redisserver.Start(ctx, binary, redisserver.Options{Dir: directory, Persist: true, Fsync: redisserver.FsyncAlways})
	if err != nil {
		return nil, err
	}
	return &privateRedis{server, directory}, nil
}

// whileAlive returns a context that ends with ctx, or when the server ends of itself; then its cause says so.
func (r *privateRedis) whileAlive(ctx context.Context) context.Context {
	alive, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-r.Exited():
			end(fmt.Errorf("the redis-server that weir dev runs has ended of itself; its log is in %s; start again to go on", r.directory))
		case <-ctx.Done():
			end(nil)
		}
	}()
	return alive
}

// stop ends the server, whether ctx has ended or not.
func (r *privateRedis) stop(ctx context.Context) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisTimeout)
	defer cancel()
	return r.Stop(limit)
}

// redisSet is each Redis that properties live in, by how it is reached. It does for them what the operator does in a
// cluster.
type redisSet struct {
	logger  *slog.Logger
	clients map[config.Redis]*stream.Client
}

// prepare checks that a Redis answers and will not forget, and loads the function library into it.
func (s *redisSet) prepare(ctx context.Context, redis config.Redis) error {
	if s.clients[redis] != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	client, err := stream.Dial(redis.URL, stream.DialOptions{TLS: redis.TLS})
	if err != nil {
		return err
	}
	if s.clients == nil {
		s.clients = map[config.Redis]*stream.Client{}
	}
	s.clients[redis] = client
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("%w; start that Redis or name another, as in redis://127.0.0.1:6379", err)
	}
	if err := client.Check(ctx); err != nil {
		return err
	}
	return client.Load(ctx)
}

// keepLibraries loads the function library again into a Redis that came back without it, until ctx ends. What else
// there is to say of a Redis that is away, the roles say.
func (s *redisSet) keepLibraries(ctx context.Context) {
	ticker := time.NewTicker(libraryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, client := range s.clients {
			if err := client.Load(ctx); err != nil {
				s.logger.Debug("the function library cannot be looked at", "error", err)
			}
		}
	}
}

// close closes the connections.
func (s *redisSet) close() error {
	var errs []error
	for _, client := range s.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
