package console

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/auth"
)

const (
	// keysInterval is how often the file is looked at.
	keysInterval = 5 * time.Second
	// keySpread is how long a new key takes to be known to all pods, at most; until then the one before it signs.
	keySpread = 15 * time.Minute
)

// signer signs what the console shows the query pods. It reads its keys again when they change. It is safe for concurrent use.
type signer struct {
	file   string
	now    func() time.Time
	logger *slog.Logger

	mu     sync.Mutex
	looked time.Time
	keys   []auth.SigningKey
	failed bool
}

var errNoKeys = errors.New("the console has no keys yet; the operator makes them")

// sign returns a token with which a user may do what scope allows at the Property of a UID, for half a minute.
func (s *signer) sign(u *user, uid string, scope auth.Scope) (string, error) {
	now := s.now()
	key, err := s.key(now)
	if err != nil {
		return "", err
	}
	return key.Sign(u.name, uid, scope, now)
}

// key returns the newest key that the pods know by now, or the oldest there is.
func (s *signer) key(now time.Time) (*auth.SigningKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read(now)
	for i := range s.keys {
		if now.Sub(s.keys[i].Created) >= keySpread {
			return &s.keys[i], nil
		}
	}
	if len(s.keys) == 0 {
		return nil, errNoKeys
	}
	return &s.keys[len(s.keys)-1], nil
}

// read looks at the file. What it had before is used where it cannot be read: its tokens are still taken, or refused by the pods.
// The mutex is held.
func (s *signer) read(now time.Time) {
	if len(s.keys) > 0 && now.Sub(s.looked) < keysInterval {
		return
	}
	s.looked = now
	text, err := os.ReadFile(s.file)
	var keys []auth.SigningKey
	if err == nil {
		keys, err = auth.ParseSigningKeys(text)
	}
	if failed := err != nil; failed != s.failed {
		s.failed = failed
		if failed {
			s.logger.Warn("the signing keys cannot be read", "error", fmt.Sprint(err))
		} else {
			s.logger.Info("the signing keys are read")
		}
	}
	if err == nil {
		s.keys = keys
	}
}
