package stream

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxUses is how many API keys, and how many access tokens, of a property are remembered to have been used: the newest. No
// property has that many at a time.
const maxUses = 1024

// useSize is how much of a hash is remembered: enough to tell some from others, too little to be what pods compare with.
const useSize = 8

// Uses remembers which of a property's API keys, or access tokens, have been used.
type Uses struct {
	stream *Stream
	key    string
}

// KeyUses returns those of the API keys, which collectors may touch.
func (s *Stream) KeyUses() *Uses { return &Uses{s, s.keys.usedKeys()} }

// TokenUses returns those of the access tokens, which query pods may touch.
func (s *Stream) TokenUses() *Uses { return &Uses{s, s.keys.usedTokens()} }

// FirstUse notes that what a hash is of was used, to the microsecond, and says whether no use was noted before. A question
// that is asked again, since nobody knows whether Redis has heard it, gets the same answer: the use that stands there is
// the one that is asked about.
func (u *Uses) FirstUse(ctx context.Context, hash [sha256.Size]byte, at time.Time) (bool, error) {
	member, score := string(hash[:useSize]), float64(at.UnixMicro()) // exact until the year 2255
	var noted *redis.FloatCmd
	_, err := u.stream.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZAddNX(ctx, u.key, redis.Z{Score: score, Member: member})
		noted = pipe.ZScore(ctx, u.key, member)
		pipe.ZRemRangeByRank(ctx, u.key, 0, -maxUses-1)
		return nil
	})
	if err != nil {
		return false, describe("note the first use of a key or token", err)
	}
	return noted.Val() == score, nil
}
