package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// MaxRejections is how many rejections of a property are kept: the newest.
	MaxRejections = 1000
	// rejectionsKept is for how long they are kept after the newest.
	rejectionsKept = 31 * 24 * time.Hour
	// maxRejectionSize is how long one may be as it is stored, in bytes. A reader passes over longer ones.
	maxRejectionSize = 16 << 10
	// rejectionsEvery is the least time between two writes, and between attempts where Redis is away.
	rejectionsEvery = 500 * time.Millisecond
	// rejectionsTimeout bounds one write.
	rejectionsTimeout = 2 * time.Second
)

// Rejection is an event, or a request with events, that was refused for what it holds. It has nothing of the event but
// its name and id.
type Rejection struct {
	// ID tells it from others: whoever writes may write it twice.
	ID string    `json:"id"`
	At time.Time `json:"at"`
	// Endpoint is the way by which it came in: "collect", "batch", "sources/shop". APIKey is the name of the API key.
	Endpoint string `json:"endpoint"`
	APIKey   string `json:"api_key,omitempty"`
	// Event and EventID are "" where they were not given, or not valid.
	Event   string `json:"event,omitempty"`
	EventID string `json:"event_id,omitempty"`
	// Answer is what the sender was told, a JSON object with the members message and, for an event, errors.
	Answer json.RawMessage `json:"answer"`
}

// Rejections keeps the newest rejections of a property for those who ask why events are missing. They are written
// behind the requests, together: they delay no request and are lost where Redis is away until the collector ends. It is
// safe for concurrent use.
type Rejections struct {
	stream *Stream
	logger *slog.Logger

	mutex   sync.Mutex
	waiting []Rejection // at most MaxRejections, the oldest first

	added chan struct{} // of capacity 1
	stop  chan struct{}
	ended chan struct{}
}

// NewRejections starts the writer, which tells logger when it cannot write; [Rejections.Close] ends it.
func NewRejections(s *Stream, logger *slog.Logger) *Rejections {
	r := &Rejections{
		stream: s, logger: logger, added: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go r.run()
	return r
}

// Add notes rejections. It never waits for Redis. Where more come than can be kept the oldest are dropped.
func (r *Rejections) Add(rejections ...Rejection) {
	r.mutex.Lock()
	r.waiting = append(r.waiting, rejections...)
	if surplus := len(r.waiting) - MaxRejections; surplus > 0 {
		r.waiting = slices.Delete(r.waiting, 0, surplus)
	}
	r.mutex.Unlock()
	select {
	case r.added <- struct{}{}:
	default: // the writer has been told
	}
}

// Close writes what was added before and ends the writer. It waits no longer than ctx; it is called once.
func (r *Rejections) Close(ctx context.Context) error {
	close(r.stop)
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("write the last rejections: %w", ctx.Err())
	}
}

// run writes what is added, at most so often, until the end.
func (r *Rejections) run() {
	defer close(r.ended)
	failed := false
	for {
		select {
		case <-r.added:
		case <-r.stop:
			if err := r.flush(); err != nil {
				r.logger.Warn("rejections are not listed: redis is unavailable", "error", err)
			}
			return
		}
		err := r.flush()
		if err != nil && !failed {
			r.logger.Warn("rejections are not listed until they can be written", "error", err)
		}
		failed = err != nil
		select {
		case <-r.stop:
		case <-time.After(rejectionsEvery):
		}
	}
}

// flush writes what waits. What cannot be written waits on, and may have been written in part.
func (r *Rejections) flush() error {
	r.mutex.Lock()
	taken := r.waiting
	r.waiting = nil
	r.mutex.Unlock()
	if len(taken) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), rejectionsTimeout)
	defer cancel()
	key := r.stream.keys.rejections()
	_, err := r.stream.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, rejection := range taken {
			text, err := json.Marshal(rejection) //nolint:gosec // of a key there is the name
			if err != nil {
				return err
			}
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, MaxLen: MaxRejections, Values: []any{rejectionField, text}})
		}
		pipe.PExpire(ctx, key, rejectionsKept)
		return nil
	})
	if err == nil {
		return nil
	}
	r.mutex.Lock()
	r.waiting = append(taken, r.waiting...)
	r.mutex.Unlock()
	r.Add() // drops the oldest where there are too many, and has it tried again
	return describe("write rejections", err)
}

// rejectionField is the one field of an entry.
const rejectionField = "r"

// Rejections returns the newest rejections, at most limit, the newest first. What is none, or too long, is passed over.
func (s *Stream) Rejections(ctx context.Context, limit int) ([]Rejection, error) {
	messages, err := s.redis.XRevRangeN(ctx, s.keys.rejections(), "+", "-", int64(limit)).Result()
	if err != nil {
		return nil, describe("read rejections", err)
	}
	rejections, seen := make([]Rejection, 0, len(messages)), map[string]bool{}
	for _, message := range messages {
		text, _ := message.Values[rejectionField].(string)
		var rejection Rejection
		if len(text) > maxRejectionSize || json.Unmarshal([]byte(text), &rejection) != nil || seen[rejection.ID] {
			continue
		}
		seen[rejection.ID] = true
		rejections = append(rejections, rejection)
	}
	return rejections, nil
}
