package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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
	// ErrDefaultUser says that Redis would leave out accepted events when it reads its append-only file back.
	ErrDefaultUser = errors.New("redis's default user must keep its rights, though it may be off: Redis replays its append-only file as that user, and leaves out what it may not run")
	// ErrVersion says that Redis is too old.
	ErrVersion = fmt.Errorf("redis must be version %d.0 or newer, or Valkey", minimumMajor)
	// ErrUnavailable says that Redis did not acknowledge in time; whether it has the events is not known.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrNoGroup says that the platform has no consumer group (any more); see [Stream.EnsureGroup].
	ErrNoGroup = errors.New("the platform has no consumer group")
	// ErrLibrary says that Redis lacks the function library; see [Client.Load].
	ErrLibrary = errors.New("redis lacks Weir's function library")
	// ErrOtherRedis says that a URL differs from the one dialled in more than its user and password.
	ErrOtherRedis = errors.New("the URL is that of another Redis")
)

// Client is a connection pool to one Redis, Redis Cluster or Sentinel-guarded Redis. It is safe for concurrent
// use.
type Client struct {
	redis redis.UniversalClient
	// sentinels say where the Redis is; nil without them.
	sentinels *sentinels
	// place is the URL without user and password.
	place string
	// user is what new connections authenticate as; nil for nobody.
	user atomic.Pointer[url.Userinfo]
	// tls is what new connections trust and show; nil for connections in the clear.
	tls atomic.Pointer[tls.Config]
}

// Dial prepares a client for a URL; it connects at the first command. The forms are redis:// and rediss://
// (user:password@host:port/db), unix:///path, redis://host:port?addr=host2:port for a cluster, and
// redis://host:port?master_name=NAME&addr=… for Sentinels. User and password are Redis's in all of them; what Sentinels
// ask for stands in sentinel_username and sentinel_password behind the question mark; db and skip_verify may stand there
// too, and nothing else. The error is [ErrURL], [ErrCA] or [ErrClientCertificate], and repeats nothing of what it is about.
func Dial(address string, how DialOptions) (*Client, error) {
	parsed, err := parseURL(address, how.Untrusted)
	if err != nil {
		return nil, err
	}
	client := &Client{place: withoutUser(parsed)}
	if err := client.identify(parsed, how.TLS); err != nil {
		return nil, err
	}
	switch query := parsed.Query(); {
	case query.Has("master_name"):
		if client.sentinels, err = newSentinels(parsed, how, &client.tls, client.credentials); err != nil {
			return nil, ErrURL
		}
		client.redis = client.sentinels.client()
	case query.Has("addr"):
		options, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, ErrURL
		}
		options.Protocol, options.MaxRetries, options.DialerRetries = 2, -1, 1
		options.ContextTimeoutEnabled, options.DisableIdentity = true, true
		options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		options.Dialer = (&dialer{DialOptions: how, tls: &client.tls}).dial
		options.CredentialsProvider = client.credentials
		cluster := redis.NewClusterClient(options)
		cluster.AddHook(&lookAgain{reload: cluster.ReloadState, now: time.Now})
		client.redis = cluster
	default:
		options, err := redis.ParseURL(address)
		if err != nil {
			return nil, ErrURL
		}
		prepare(options, how, &client.tls, client.credentials)
		client.redis = redis.NewClient(options)
	}
	return client, nil
}

// prepare completes the options of a client of one server.
func prepare(options *redis.Options, how DialOptions, secure *atomic.Pointer[tls.Config], credentials func() (string, string)) {
	// Callers decide about resending: only some commands may run twice.
	options.Protocol, options.MaxRetries, options.DialerRetries = 2, -1, 1
	options.ContextTimeoutEnabled, options.DisableIdentity = true, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.Dialer = (&dialer{DialOptions: how, tls: secure}).dial
	options.CredentialsProvider = credentials
}

// Authenticate makes the client use the user and password of a URL, and what it trusts and shows, for the connections
// that it makes from now on. Those that it has stay: nobody is asked again. The error is [ErrOtherRedis] where the URL
// differs from the one dialled in anything else, [ErrCA] or [ErrClientCertificate]; then nothing changes.
func (c *Client) Authenticate(address string, identity TLS) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return ErrURL
	}
	if withoutUser(parsed) != c.place {
		return ErrOtherRedis
	}
	return c.identify(parsed, identity)
}

// identify notes what new connections authenticate with, and what they trust and show.
func (c *Client) identify(address *url.URL, identity TLS) error {
	settings, err := tlsFor(address, identity)
	if err != nil {
		return err
	}
	c.user.Store(address.User)
	c.tls.Store(settings)
	return nil
}

// credentials are what a new connection authenticates with.
func (c *Client) credentials() (name, password string) {
	user := c.user.Load()
	password, _ = user.Password()
	return user.Username(), password
}

// Close closes the connections; blocked reads end with an error.
func (c *Client) Close() error {
	if c.sentinels != nil {
		c.sentinels.close()
	}
	return c.redis.Close()
}

// Ping says whether Redis answers.
func (c *Client) Ping(ctx context.Context) error {
	if err := c.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("reach redis: %w", err)
	}
	return nil
}

// Check says whether every primary node answers, is new enough ([ErrVersion]) and keeps what it is given
// ([ErrEvictionEnabled], [ErrDefaultUser]). The user needs the INFO command ([ErrInfoDenied]), and ACL for the last.
func (c *Client) Check(ctx context.Context) error {
	return c.eachPrimary(ctx, func(ctx context.Context, node redis.Cmdable) error {
		version, err := info(ctx, node, "server", "redis_version")
		if err != nil {
			return err
		}
		major, _, _ := strings.Cut(version, ".")
		if number, err := strconv.Atoi(major); err != nil {
			return ErrVersion
		} else if number < minimumMajor {
			return &Problem{ErrVersion, fmt.Sprintf("it is version %d", number)}
		}
		policy, err := info(ctx, node, "memory", "maxmemory_policy")
		if err != nil {
			return err
		}
		if policy != "noeviction" {
			if slices.Contains(evictionPolicies, policy) {
				return &Problem{ErrEvictionEnabled, "it is " + policy}
			}
			return ErrEvictionEnabled
		}
		return checkReplay(ctx, node)
	})
}

// evictionPolicies are Redis's, except the one under which nothing is evicted.
var evictionPolicies = []string{
	"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "volatile-lrm",
	"allkeys-lru", "allkeys-lfu", "allkeys-random", "allkeys-lrm",
}

// info returns a field of a section of INFO, "" where it is missing.
func info(ctx context.Context, node redis.Cmdable, section, field string) (string, error) {
	text, err := node.Info(ctx, section).Result()
	if redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command") {
		return "", ErrInfoDenied
	}
	if err != nil {
		return "", fmt.Errorf("reach redis: %w", err)
	}
	return infoField(text, field), nil
}

// checkReplay says whether a node that has an append-only file gets everything back from it: [ErrDefaultUser]. Transactions
// in the file, which is how Redis writes what a function does, are run as the default user. A user without ACL cannot look.
func checkReplay(ctx context.Context, node redis.Cmdable) error {
	enabled, err := info(ctx, node, "persistence", "aof_enabled")
	if err != nil || enabled != "1" {
		return err
	}
	verdict, err := node.ACLDryRun(ctx, "default", "XADD", keysOf("any", "any").events(), "*", "e", "").Result()
	if _, refused := errors.AsType[redis.Error](err); refused {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reach redis: %w", err)
	}
	if verdict != "OK" {
		return ErrDefaultUser
	}
	return nil
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
	// opener opens sealed parts of what is read; nil where they stay sealed.
	opener *opener
}

// Stream returns the streams of the property namespace/name. Nothing is created until something is written.
func (c *Client) Stream(namespace, name string) *Stream {
	return &Stream{redis: c.redis, keys: keysOf(namespace, name)}
}

// Property returns NAMESPACE/NAME.
func (s *Stream) Property() string { return s.keys.property() }

// RouteLogs sends what the Redis library has to say (connections that fail, mostly) to logger at level debug,
// instead of the process's standard error, without what servers have answered. It holds for the whole process, so main calls it, before [Dial].
func RouteLogs(logger *slog.Logger) { redis.SetLogger(libraryLog{logger}) }

type libraryLog struct{ logger *slog.Logger }

// Printf implements the Redis library's logger. What it says of an error is said in our own words, and of the texts in it
// nothing at all: they may be what somebody's server has answered.
func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	own := make([]any, len(args))
	for i, arg := range args {
		switch value := arg.(type) {
		case error:
			own[i] = Explain(value)
			if operation, ok := errors.AsType[*net.OpError](value); ok && operation.Addr != nil {
				own[i] = fmt.Errorf("%s: %w", operation.Addr, Explain(value))
			}
		case int, int64, uint64, bool, time.Duration:
			own[i] = value
		default:
			own[i] = "…"
		}
	}
	l.logger.DebugContext(ctx, "redis library", "says", fmt.Sprintf(format, own...))
}

// lateWait is how long a read whose context has ended waits for what Redis hands out meanwhile to be given back: a process that
// ends in between would leave it behind. It is longer than a deliverer's reads block.
const lateWait = 2 * time.Second

// await runs a read that may block. When ctx ends it returns at once, unless there is a late: what the read brings after that
// goes there, and await waits for that, though no longer than [lateWait].
func await[T any](ctx context.Context, read func(context.Context) (T, error), late func(T)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	done, finished := make(chan outcome), make(chan struct{})
	go func() {
		defer close(finished)
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
		if late != nil {
			select {
			case <-finished:
			case <-time.After(lateWait):
			}
		}
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
	case redis.HasErrorPrefix(err, "NOKEY"):
		return fmt.Errorf("%s: %w", action, errNoKey)
	case redis.HasErrorPrefix(err, "Function not found"):
		return fmt.Errorf("%s: %w", action, ErrLibrary)
	default:
		return fmt.Errorf("%s: %w", action, err)
	}
}
