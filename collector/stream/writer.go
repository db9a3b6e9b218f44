package stream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// writerReadable bounds what is read of who writes files: a file's key is part of it.
	writerReadable = 1024
	// writerLasts is for how long a dead writer's note is kept: a write that it had under way reaches nothing later.
	writerLasts = 24 * time.Hour
)

// Writer returns what the deliverer has written down that writes a platform's files, "" where there is none: who it is, which is
// only a way not to do the same twice at once, and which write it has under way.
func (s *Stream) Writer(ctx context.Context, platform string) (string, error) {
	text, err := s.redis.GetRange(ctx, s.keys.writer(platform), 0, writerReadable-1).Result()
	return text, describe("look who writes the files of platform "+platform, err)
}

// LockWriter writes down who writes a platform's files. It expires after a day, by Redis's clock.
func (s *Stream) LockWriter(ctx context.Context, platform, text string) error {
	if text == "" || len(text) > writerReadable {
		return errors.New("what a deliverer writes down must have 1 to " + fmt.Sprint(writerReadable) + " bytes")
	}
	return describe("note who writes the files of platform "+platform, s.redis.Set(ctx, s.keys.writer(platform), text, writerLasts).Err())
}

// UnlockWriter notes that nobody writes a platform's files.
func (s *Stream) UnlockWriter(ctx context.Context, platform string) error {
	return describe("note that nobody writes the files of platform "+platform, s.redis.Unlink(ctx, s.keys.writer(platform)).Err())
}
