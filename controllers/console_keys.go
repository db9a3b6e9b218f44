package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/collector/auth"
)

const (
	// ConsoleKeysKey is the key of the console's Secret that holds the keys, as [auth.ParseSigningKeys] reads them.
	ConsoleKeysKey = "keys.json"
	// consoleKeyAge is after how long another key takes over, consoleKeyOverlap for how long the one before is trusted beside it: until
	// the console has been given the new one, and what it has signed with the old one has ended.
	consoleKeyAge     = 30 * 24 * time.Hour
	consoleKeyOverlap = 24 * time.Hour
	// consoleKeysInterval is how often the Secret is looked at: whoever deletes it wants what was signed before to be refused soon.
	consoleKeysInterval = 5 * time.Second
)

// ConsoleKeys keeps the keys with which the console signs what it shows the query pods: it makes them, replaces them every month,
// and says what the pods trust.
type ConsoleKeys struct {
	// Client asks the API server itself: no cache holds Secrets.
	Client client.Client
	// Secret holds the keys. It has to be there, empty to begin with.
	Secret types.NamespacedName
	Now    func() time.Time
	Logger *slog.Logger

	// properties are told of through changed when other keys are trusted.
	properties client.Reader
	changed    notices

	mu     sync.Mutex
	public []auth.PublicKey
	// looked says that the Secret was looked for once.
	looked bool
}

// trusted returns what the pods trust, none where there is no console, and whether that is known yet: an operator that has just
// started would tell the pods to trust nobody.
func (c *ConsoleKeys) trusted() (public []auth.PublicKey, known bool) {
	if c == nil {
		return nil, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.public, c.looked
}

// Start looks until ctx ends. It is what the manager runs while this operator leads.
func (c *ConsoleKeys) Start(ctx context.Context) error {
	said := ""
	for {
		err := c.Look(ctx)
		text := ""
		if err != nil && ctx.Err() == nil {
			if text = err.Error(); text != said {
				c.Logger.WarnContext(ctx, "the keys of the console", "error", err)
			}
		}
		said = text
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(consoleKeysInterval):
		}
	}
}

// Look makes the keys that are due, and has the Properties' pods told of what has changed.
func (c *ConsoleKeys) Look(ctx context.Context) error {
	keys, err := c.renew(ctx)
	c.mu.Lock()
	before := c.public
	c.looked = true
	if err == nil || apierrors.IsNotFound(err) || errors.Is(err, errConsoleKeys) { // whoever has deleted it wants nobody to be trusted
		c.public = nil
		for _, key := range keys {
			c.public = append(c.public, key.Public())
		}
	}
	same := slices.EqualFunc(before, c.public, slices.Equal[auth.PublicKey])
	c.mu.Unlock()
	if !same && c.properties != nil {
		err = errors.Join(err, c.changed.tellAll(ctx, c.properties))
	}
	return err
}

// errConsoleKeys says that there is something else in the place of the keys.
var errConsoleKeys = errors.New("delete that key from the Secret, and others are made")

// renew returns the keys that are in the Secret now, after those that are due have been made.
func (c *ConsoleKeys) renew(ctx context.Context) ([]auth.SigningKey, error) {
	var secret corev1.Secret
	if err := c.Client.Get(ctx, c.Secret, &secret); err != nil {
		return nil, fmt.Errorf("read the Secret %s: %w", c.Secret, err)
	}
	keys, made, err := renewConsoleKeys(secret.Data[ConsoleKeysKey], c.Now())
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: key %s %w; %w", c.Secret, ConsoleKeysKey, err, errConsoleKeys)
	}
	if made {
		text, err := json.Marshal(keys)
		if err != nil {
			return nil, err
		}
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[ConsoleKeysKey] = text
		if err := c.Client.Update(ctx, &secret); err != nil {
			return nil, fmt.Errorf("write the Secret %s: %w", c.Secret, err)
		}
		c.Logger.InfoContext(ctx, "a key of the console made", "secret", c.Secret.String(), "kid", keys[0].ID)
	}
	return keys, nil
}

// renewConsoleKeys returns the keys as they shall be at now, the newest first, and whether they are others than in text.
func renewConsoleKeys(text []byte, now time.Time) (keys []auth.SigningKey, made bool, err error) {
	if len(text) > 0 {
		if keys, err = auth.ParseSigningKeys(text); err != nil {
			return nil, false, err
		}
	}
	if len(keys) == 0 || now.Sub(keys[0].Created) >= consoleKeyAge {
		keys, made = append([]auth.SigningKey{auth.NewSigningKey(now)}, keys...), true
	}
	if len(keys) > 1 && now.Sub(keys[0].Created) >= consoleKeyOverlap {
		keys, made = keys[:1], true
	}
	return keys, made, nil
}
