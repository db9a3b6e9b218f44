package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// sourcePositionKept is for how long it is remembered up to when a source's orders were read: no shop tells of more.
const sourcePositionKept = 31 * 24 * time.Hour

// SourcePosition returns up to when the orders of a source's shop have been read, the zero time where nobody has.
func (s *Stream) SourcePosition(ctx context.Context, source string) (time.Time, error) {
	text, err := s.redis.Get(ctx, s.keys.source(source)).Result()
	if errors.Is(err, redis.Nil) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, describe("read up to when a source has been read", err)
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("up to when source %s has been read is no time", source)
	}
	return time.UnixMilli(ms).UTC(), nil
}

// MoveSource notes up to when the orders of a source's shop have been read.
func (s *Stream) MoveSource(ctx context.Context, source string, to time.Time) error {
	err := s.redis.Set(ctx, s.keys.source(source), to.UnixMilli(), sourcePositionKept).Err()
	return describe("note up to when a source has been read", err)
}

// ArchiveName is what the archive is called among the platforms that are paused, as [SourceName] is what a source is.
const ArchiveName = "history/archive"

// SourceName is what a source is called among the platforms that are paused: no platform's name has a slash.
func SourceName(source string) string { return "source/" + source }
