package stream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Writer returns what the deliverer has written down that writes a platform's files, "" where there is none. That is only a way
// not to do the same twice at once, which would be harmless.
func (s *Stream) Writer(ctx context.Context, platform string) (string, error) {
	text, err := s.redis.GetRange(ctx, s.keys.writer(platform), 0, lockReadable-1).Result()
	return text, describe("look who writes the files of platform "+platform, err)
}

// LockWriter writes down who writes a platform's files. It expires after half a minute, by Redis's clock.
func (s *Stream) LockWriter(ctx context.Context, platform, text string) error {
	if text == "" || len(text) > lockReadable {
		return errors.New("what a deliverer writes down must have 1 to " + fmt.Sprint(lockReadable) + " bytes")
	}
	return describe("note who writes the files of platform "+platform, s.redis.Set(ctx, s.keys.writer(platform), text, 30*time.Second).Err())
}

// UnlockWriter notes that nobody writes a platform's files.
func (s *Stream) UnlockWriter(ctx context.Context, platform string) error {
	return describe("note that nobody writes the files of platform "+platform, s.redis.Unlink(ctx, s.keys.writer(platform)).Err())
}
