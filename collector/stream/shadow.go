package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// MaxShadow is how many events of a platform in the mode Shadow are kept for a look: the newest.
	MaxShadow = 1000
	// maxShadowSize is how long one may be as it is stored, in bytes; of a longer one the request is left out. A reader passes
	// over longer ones.
	maxShadowSize = 32 << 10
	// positionDigits is how many characters a position has in an entry, so that entries of one millisecond sort by it.
	positionDigits = 16
)

// ShadowEntry is an event that a platform in the mode Shadow was due to get. It has addresses and hashes of persons.
type ShadowEntry struct {
	Event   Position `json:"-"`
	EventID string   `json:"event_id"`
	Name    string   `json:"event"`
	// At is when the event would have been sent.
	At time.Time `json:"at"`
	// Reason is why it would not have been sent; "" where it would.
	Reason string `json:"reason,omitempty"`
	// Request is nil where the event would not have been sent, and where it is too long to be kept.
	Request *ShadowRequest `json:"request,omitempty"`
	// TooLong says that the request was left out because of its length.
	TooLong bool `json:"too_long,omitempty"`
}

// ShadowRequest is a request that was not made. No credential is in it.
type ShadowRequest struct {
	// Method and URL are "" for a platform that gets no requests.
	Method string            `json:"method,omitempty"`
	URL    string            `json:"url,omitempty"`
	Header map[string]string `json:"headers,omitempty"`
	// Body is a JSON value: the body itself where Encoding is "json", else a string that has it as "text" or in "base64".
	Body     json.RawMessage `json:"body,omitempty"`
	Encoding string          `json:"body_encoding,omitempty"`
}

// stored is the entry as the sorted set has it.
func (e *ShadowEntry) stored() (string, error) {
	text, err := json.Marshal(e)
	if err == nil && positionDigits+len(text) > maxShadowSize {
		short := *e
		short.Request, short.TooLong = nil, true
		text, err = json.Marshal(short)
	}
	return fmt.Sprintf("%0*x%s", positionDigits, uint64(e.Event), text), err
}

// KeepShadow keeps entries of a platform for a look, no longer than an age from when their events were received, and of all of
// the platform's the newest [MaxShadow]. now is the time that is believed; see [Clock]. It may be repeated.
func (s *Stream) KeepShadow(ctx context.Context, platform string, entries []ShadowEntry, now time.Time, age time.Duration) error {
	if len(entries) == 0 {
		return nil
	}
	members := make([]redis.Z, len(entries))
	for i := range entries {
		text, err := entries[i].stored()
		if err != nil {
			return fmt.Errorf("write what platform %s would be sent: %w", platform, err)
		}
		members[i] = redis.Z{Score: float64(entries[i].Event.Time().UnixMilli()), Member: text}
	}
	key := s.keys.shadow(platform)
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZAdd(ctx, key, members...)
		pipe.ZRemRangeByScore(ctx, key, "-inf", shadowEnd(now, age))
		pipe.ZRemRangeByRank(ctx, key, 0, -MaxShadow-1)
		pipe.PExpire(ctx, key, age)
		return nil
	})
	return describe("keep what platform "+platform+" would be sent", err)
}

// shadowEnd is the score below which entries are too old.
func shadowEnd(now time.Time, age time.Duration) string {
	return "(" + strconv.FormatInt(now.Add(-age).UnixMilli(), 10)
}

// TrimShadow removes what has been kept of some platforms for a look for longer than an age. Call it as often as [Stream.Trim].
func (s *Stream) TrimShadow(ctx context.Context, now time.Time, age time.Duration, platforms ...string) error {
	if len(platforms) == 0 {
		return nil
	}
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, platform := range platforms {
			pipe.ZRemRangeByScore(ctx, s.keys.shadow(platform), "-inf", shadowEnd(now, age))
		}
		return nil
	})
	return describe("trim what platforms would be sent", err)
}

// DropShadow removes all that is kept of some platforms for a look.
func (s *Stream) DropShadow(ctx context.Context, platforms ...string) error {
	if len(platforms) == 0 {
		return nil
	}
	names := make([]string, len(platforms))
	for i, platform := range platforms {
		names[i] = s.keys.shadow(platform)
	}
	return describe("drop what platforms would be sent", s.redis.Unlink(ctx, names...).Err())
}

// Shadow returns what is kept of a platform for a look, at most limit entries, those of the newest events first. Of an event that
// was kept more than once there is one. What is none, or too long, is passed over.
func (s *Stream) Shadow(ctx context.Context, platform string, limit int) ([]ShadowEntry, error) {
	members, err := s.redis.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: s.keys.shadow(platform), Start: 0, Stop: limit - 1, Rev: true,
	}).Result()
	if err != nil {
		return nil, describe("read what platform "+platform+" would be sent", err)
	}
	entries := make([]ShadowEntry, 0, len(members))
	last := Position(0)
	for _, member := range members {
		if len(member) <= positionDigits || len(member) > maxShadowSize {
			continue
		}
		position, err := strconv.ParseUint(member[:positionDigits], 16, 64)
		if err != nil || Position(position) == last {
			continue
		}
		entry := ShadowEntry{Event: Position(position)}
		if json.Unmarshal([]byte(member[positionDigits:]), &entry) != nil {
			continue
		}
		last = entry.Event
		entries = append(entries, entry)
	}
	return entries, nil
}
