package stream

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/event/wire"
)

// keyNameSize is how many bytes of what Redis keeps of a key are its name; the others are its secret.
const keyNameSize = 8

// errNoKey says that events were not appended, since a key that they are sealed under is not the one of now.
var errNoKey = errors.New("redis has another key, or none, for sealed parts of events")

// sealKey is the key that a part is sealed under now.
type sealKey struct {
	wire.PeriodKey
	// said is what weir_append is told of it: its name and the number of its period.
	said argument
	// until is when its period is over, by the monotonic clock.
	until time.Time
}

// sealKeys has a key for each part that needs one, else a zero one.
type sealKeys [wire.PartCount]sealKey

// of returns the keys as entries are sealed with them.
func (k *sealKeys) of() (keys [wire.PartCount]wire.PeriodKey) {
	for part := range k {
		keys[part] = k[part].PeriodKey
	}
	return keys
}

// sealer has the keys of now for an appender: it asks Redis for one once a period, where whoever comes first makes it. It is
// safe for concurrent use.
type sealer struct {
	stream  *Stream
	witness func() time.Time
	mutex   sync.Mutex
	current sealKeys
}

// keys returns those of now for the parts that are needed.
func (s *sealer) keys(needed [wire.PartCount]bool) (keys sealKeys, err error) {
	if needed == [wire.PartCount]bool{} {
		return keys, nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for part, is := range needed {
		if !is {
			continue
		}
		if s.current[part].Key == nil || !time.Now().Before(s.current[part].until) {
			if s.current[part], err = s.ask(wire.Part(part)); err != nil {
				return keys, err
			}
		}
		keys[part] = s.current[part]
	}
	return keys, nil
}

// forget has Redis asked again for keys that it does not know.
func (s *sealer) forget(keys sealKeys) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for part := range keys {
		if s.current[part].Key == keys[part].Key {
			s.current[part] = sealKey{}
		}
	}
}

// ask has Redis say what a part is sealed under now.
func (s *sealer) ask(part wire.Part) (sealKey, error) {
	ctx, cancel := context.WithTimeout(context.Background(), appendAttempt)
	defer cancel()
	var offered [keyNameSize + wire.SecretSize]byte
	rand.Read(offered[:]) //nolint:errcheck // it never fails
	asked := time.Now()
	reply, err := s.stream.redis.FCall(ctx, functionSeal, []string{s.stream.keys.clock(), s.stream.keys.seal(part)},
		s.witness().UnixMilli(), offered[:]).Slice()
	if err != nil {
		return sealKey{}, describe("ask for a key of sealed parts", err)
	}
	if len(reply) != 3 {
		return sealKey{}, malformedReply(functionSeal)
	}
	period, _ := reply[0].(int64)
	stored, _ := reply[1].(string)
	left, _ := reply[2].(int64)
	name, key, ok := parseKey(stored)
	if !ok || period < 0 {
		return sealKey{}, malformedReply(functionSeal)
	}
	return sealKey{
		PeriodKey: wire.PeriodKey{Period: uint64(period), Key: key},
		said:      strconv.AppendInt(argument(name), period, 10),
		until:     asked.Add(time.Duration(left) * time.Millisecond),
	}, nil
}

// parseKey reads what Redis keeps of a key.
func parseKey(stored string) (name string, key *wire.Key, ok bool) {
	if len(stored) < keyNameSize {
		return "", nil, false
	}
	key, err := wire.NewKey([]byte(stored[keyNameSize:]))
	return stored[:keyNameSize], key, err == nil
}
