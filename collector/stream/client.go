package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// minimumMajor is the first major version of Redis with Function libraries.
const minimumMajor = 7

// Errors of this package that callers tell apart.
var (
	// ErrEvictionEnabled says that Redis would throw accepted events away when its memory is full.
	ErrEvictionEnabled = errors.New("redis must run with maxmemory-policy noeviction")
	// ErrVersion says that Redis is too old.
	ErrVersion = fmt.Errorf("redis must be version %d.0 or newer, or Valkey", minimumMajor)
	// ErrUnavailable says that Redis did not acknowledge in time; whether it has the events is not known.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrNoGroup says that the platform has no consumer group (any more); see [Stream.EnsureGroup].
	ErrNoGroup = errors.New("the platform has no consumer group")
	// ErrLibrary says that Redis lacks the function library; see [Client.Load].
	ErrLibrary = errors.New("redis lacks Weir's function library")
)

// Client is a connection pool to one Redis, Redis Cluster or Sentinel-guarded Redis. It is safe for concurrent
// use.
type Client struct {
	redis redis.UniversalClient
}

// Dial prepares a client for a URL; it connects at the first command. The forms are redis:// and rediss://
// (user:password@host:port/db), unix:///path, redis://host:port?addr=host2:port for a cluster, and
// redis://host:port?master_name=NAME&addr=… for Sentinels. An error repeats nothing of the URL.
func Dial(address string) (*Client, error) {
	malformed := errors.New("the Redis URL must look like redis://user:password@host:6379/0, rediss://… or unix:///path; see the documentation for clusters and Sentinel")
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, malformed
	}
	switch query := parsed.Query(); {
	case query.Has("master_name"):
		options, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, malformed
		}
		options.Protocol, options.MaxRetries, options.DialerRetries = 2, -1, 1
		options.ContextTimeoutEnabled, options.DisableIdentity = true, true
		return &Client{redis.NewFailoverClient(options)}, nil
	case query.Has("addr"):
		options, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, malformed
		}
		options.Protocol, options.MaxRetries, options.DialerRetries = 2, -1, 1
		options.ContextTimeoutEnabled, options.DisableIdentity = true, true
		options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return &Client{redis.NewClusterClient(options)}, nil
	default:
		options, err := redis.ParseURL(address)
		if err != nil {
			return nil, malformed
		}
		// Callers decide about resending: only some commands may run twice.
		options.Protocol, options.MaxRetries, options.DialerRetries = 2, -1, 1
		options.ContextTimeoutEnabled, options.DisableIdentity = true, true
		options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return &Client{redis.NewClient(options)}, nil
	}
}

// Close closes the connections; blocked reads end with an error.
func (c *Client) Close() error { return c.redis.Close() }

// Ping says whether Redis answers.
func (c *Client) Ping(ctx context.Context) error {
	if err := c.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("reach redis: %w", err)
	}
	return nil
}

// Check says whether every primary node answers, is new enough ([ErrVersion]) and keeps what it is given
// ([ErrEvictionEnabled]). The user needs the INFO command.
func (c *Client) Check(ctx context.Context) error {
	return c.eachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
		server, err := node.Info(ctx, "server").Result()
		if err != nil {
			return fmt.Errorf("reach redis: %w", err)
		}
		version := infoField(server, "redis_version")
		major, _, _ := strings.Cut(version, ".")
		if number, err := strconv.Atoi(major); err != nil || number < minimumMajor {
			return fmt.Errorf("%w, not %q", ErrVersion, version)
		}
		memory, err := node.Info(ctx, "memory").Result()
		if err != nil {
			return fmt.Errorf("reach redis: %w", err)
		}
		if policy := infoField(memory, "maxmemory_policy"); policy != "noeviction" {
			return fmt.Errorf("%w, not %s", ErrEvictionEnabled, policy)
		}
		return nil
	})
}

// eachPrimary calls do for the one server, or for each primary of a cluster.
func (c *Client) eachPrimary(ctx context.Context, do func(context.Context, redis.Cmdable) error) error {
	if cluster, ok := c.redis.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return do(ctx, node) })
	}
	return do(ctx, c.redis)
}

// infoField returns a field of an INFO reply, "" where it is missing.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Stream is one property's streams and what belongs to them. It is safe for concurrent use.
type Stream struct {
	redis redis.UniversalClient
	keys  keys
}

// Stream returns the streams of the property namespace/name. Nothing is created until something is written.
func (c *Client) Stream(namespace, name string) *Stream {
	return &Stream{redis: c.redis, keys: keysOf(namespace, name)}
}

// RouteLogs sends what the Redis library has to say (connections that fail, mostly) to logger at level debug,
// instead of the process's standard error. It holds for the whole process, so main calls it, before [Dial].
func RouteLogs(logger *slog.Logger) { redis.SetLogger(libraryLog{logger}) }

type libraryLog struct{ logger *slog.Logger }

// Printf implements the Redis library's logger.
func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	l.logger.DebugContext(ctx, "redis library", "says", fmt.Sprintf(format, args...))
}

// await runs a read that may block and returns at once when ctx ends. What the read brings after that goes to
// late, where that is not nil.
func await[T any](ctx context.Context, read func(context.Context) (T, error), late func(T)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	done := make(chan outcome)
	go func() {
		value, err := read(context.WithoutCancel(ctx))
		select {
		case done <- outcome{value, err}:
		case <-ctx.Done():
			if err == nil && late != nil {
				late(value)
			}
		}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// blockFor is BLOCK's argument for go-redis, in which a negative duration means not to block; Redis itself
// takes 0 for ever.
func blockFor(block time.Duration) time.Duration {
	if block <= 0 {
		return -1
	}
	return max(block, time.Millisecond)
}

// describe turns Redis's own words into this package's errors.
func describe(action string, err error) error {
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "NOGROUP"):
		return fmt.Errorf("%s: %w", action, ErrNoGroup)
	case redis.HasErrorPrefix(err, "Function not found"):
		return fmt.Errorf("%s: %w", action, ErrLibrary)
	default:
		return fmt.Errorf("%s: %w", action, err)
	}
}
