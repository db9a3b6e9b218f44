package controllers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/collector/stream"
)

const (
	// certificateInterval is how often certificates are looked at, and Redis told to read them again. Renewed ones reach its pod within minutes,
	// and there are weeks until those before them expire.
	certificateInterval = time.Hour
	// certificateRetry is when to look again after a failure, as while the first Redis waits for its first certificate.
	certificateRetry = 5 * time.Second
)

// RedisCertificates keeps the certificates of the operator's own Redis new: it renews those of a Secret, or leaves that to
// somebody else, and has Redis read again what it has been given.
type RedisCertificates struct {
	// Client asks the API server itself: no cache holds Secrets.
	Client client.Client
	// Secret holds the certificates that it makes; it has to be there. The zero value: somebody else makes them.
	Secret types.NamespacedName
	// RedisURL is the Redis, Files what is trusted and shown there where somebody else makes the certificates.
	RedisURL string
	Files    stream.TLSFiles
	Now      func() time.Time
	Logger   *slog.Logger

	mu     sync.Mutex
	bundle string
}

// Read returns what is to be trusted and shown in the operator's own Redis: [stream.ErrCA] until it is known.
func (c *RedisCertificates) Read() (stream.TLS, error) {
	if c.Secret == (types.NamespacedName{}) {
		return c.Files.Read()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bundle == "" {
		return stream.TLS{}, fmt.Errorf("%w: the operator has not made them yet, in the Secret %s", stream.ErrCA, c.Secret)
	}
	return stream.TLS{CA: c.bundle}, nil
}

// Start looks until ctx ends. It is what the manager runs while this operator leads.
func (c *RedisCertificates) Start(ctx context.Context) error {
	said := ""
	for {
		wait := certificateInterval
		err := c.Look(ctx)
		if err != nil && ctx.Err() == nil {
			wait = certificateRetry
			if text := err.Error(); text != said {
				said = text
				c.Logger.WarnContext(ctx, "the certificates of redis", "error", err)
			}
		} else {
			said = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Look renews what is due and has Redis read what it has.
func (c *RedisCertificates) Look(ctx context.Context) error {
	if c.Secret != (types.NamespacedName{}) {
		if err := c.renew(ctx); err != nil {
			return fmt.Errorf("renew the Secret %s: %w", c.Secret, err)
		}
	}
	return c.reload(ctx)
}

func (c *RedisCertificates) renew(ctx context.Context) error {
	hosts, err := certificateHosts(c.RedisURL)
	if err != nil {
		return err
	}
	var secret corev1.Secret
	if err := c.Client.Get(ctx, c.Secret, &secret); err != nil {
		return err
	}
	want, err := renewCertificates(secret.Data, hosts, c.Now())
	if err != nil {
		return err
	}
	if !maps.EqualFunc(secret.Data, want, bytes.Equal) {
		secret.Data = want
		if err := c.Client.Update(ctx, &secret); err != nil {
			return err
		}
		c.Logger.InfoContext(ctx, "certificates of redis made", "secret", c.Secret.String())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bundle = string(want[bundleKey])
	return nil
}

func (c *RedisCertificates) reload(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	known, err := c.Read()
	if err != nil {
		return err
	}
	redis, err := stream.Dial(c.RedisURL, stream.DialOptions{TLS: known})
	if err != nil {
		return stream.Explain(err)
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	if err := redis.ReloadCertificates(ctx); err != nil {
		return fmt.Errorf("have redis read its certificates: %w", stream.Explain(err))
	}
	return nil
}
