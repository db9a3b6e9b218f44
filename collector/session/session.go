// Package session keeps who is signed in to a property's page in a cookie that only the property's own query processes can
// read or make. They keep nothing of it themselves: each of them, and one that has just started, takes what another has made.
package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/auth"
)

// MaxAge is how long a session lasts at most.
const MaxAge = 12 * time.Hour

// Session is somebody's who has shown an access token, or who sits at the machine.
type Session struct {
	// Token is the access token under which the session reads, and without which it does not; zero where Loopback.
	Token auth.Hash
	// ExpirationTime is when the session ends, in whole seconds.
	ExpirationTime time.Time
	// Loopback says that no token was shown: `weir dev` was asked on its own machine.
	Loopback bool
}

// Until returns when a session ends that begins now under a token, in whole seconds.
func Until(now time.Time, token auth.Credential) time.Time {
	end := now.Add(MaxAge)
	if token.ExpirationTime != nil && token.ExpirationTime.Before(end) {
		end = *token.ExpirationTime
	}
	return end.Truncate(time.Second)
}

// Key seals sessions, and opens them. The zero Key does neither.
type Key struct{ sealing cipher.AEAD }

// keyBytes makes it AES-256.
const keyBytes = 32

// NewKey returns the text of a new key: 43 digits of unpadded base64url, 256 random bits.
func NewKey() string {
	var key [keyBytes]byte
	rand.Read(key[:]) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(key[:])
}

// ParseKeys reads keys, one a line, the one that seals first. The error repeats nothing of them.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, err := base64.RawURLEncoding.Strict().DecodeString(line)
		if err != nil || len(key) != keyBytes {
			return nil, errKey
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, errKey
		}
		sealing, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, errKey
		}
		keys = append(keys, Key{sealing})
	}
	if len(keys) == 0 {
		return nil, errKey
	}
	return keys, nil
}

var errKey = errors.New("must be keys of 43 digits of base64url each, one a line")

// The form that is sealed: version, flags, the end in seconds since 1970, the token's hash.
const (
	version      = 1
	flagLoopback = 1
	sealedBytes  = 1 + 1 + 8 + len(auth.Hash{})
)

// Seal returns the session as a cookie's value. It is good for the property, NAMESPACE/NAME, alone, and no two are alike.
func (k Key) Seal(property string, s Session) string {
	plain := make([]byte, 0, sealedBytes)
	var flags byte
	if s.Loopback {
		flags |= flagLoopback
	}
	plain = append(plain, version, flags)
	plain = binary.BigEndian.AppendUint64(plain, uint64(s.ExpirationTime.Unix()))
	plain = append(plain, s.Token[:]...)
	return base64.RawURLEncoding.EncodeToString(k.sealing.Seal(nil, nil, plain, associated(property))) //nolint:gosec // the AEAD makes its own nonce and takes none
}

// Open reads a cookie's value that one of the keys has sealed for the property. It is false for anything else, and for a
// session that has ended.
func Open(keys []Key, property, value string, now time.Time) (Session, bool) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil {
		return Session{}, false
	}
	for _, key := range keys {
		plain, err := key.sealing.Open(nil, nil, sealed, associated(property))
		if err != nil {
			continue
		}
		if len(plain) != sealedBytes || plain[0] != version {
			return Session{}, false // of another version of Weir's
		}
		s := Session{
			Loopback:       plain[1]&flagLoopback != 0,
			ExpirationTime: time.Unix(int64(binary.BigEndian.Uint64(plain[2:])), 0),
			Token:          auth.Hash(plain[10:]),
		}
		return s, now.Before(s.ExpirationTime)
	}
	return Session{}, false
}

// associated binds what is sealed to its use and its property.
func associated(property string) []byte { return []byte("weir session of " + property) }
