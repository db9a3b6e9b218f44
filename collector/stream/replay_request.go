package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	// replayPickup is how long a request for a replay waits for a deliverer, and replayAnswer for how long its answer stays.
	replayPickup, replayAnswer = 10 * time.Second, 2 * time.Minute
	// replayLook is how often whoever asks looks for the answer.
	replayLook = 50 * time.Millisecond
	// replayRequestSize bounds what a deliverer reads of a request, in bytes: who asks may only read besides, and so shall
	// not be able to harm whoever does it.
	replayRequestSize = 4096
)

// The answers to a request beside a number: a deliverer has begun; it could not finish.
const replayBegun, replayFailed = "begun", "failed"

var (
	errNoDeliverer  = errors.New("no deliverer takes requests for replays")
	errReplayFailed = errors.New("the deliverer could not finish the replay")
)

// replayMessage is a request on its way to a deliverer.
type replayMessage struct {
	ID       string `json:"id"`
	Platform string `json:"platform"`
	From     int64  `json:"from"`
	To       int64  `json:"to"`
	Statuses []int  `json:"statuses"` // numbered as in the stream
}

// ReplayRequester has deliverers make replays, for whoever may only read.
type ReplayRequester struct{ Stream *Stream }

// Replay is [Stream.Replay] by one of the property's deliverers. It fails with [ErrUnavailable] where none takes the
// request within ten seconds; then nobody will. Requests that are made at the same time are taken one after the other.
func (r ReplayRequester) Replay(ctx context.Context, request ReplayRequest) (int, error) {
	s, id := r.Stream, uuid.NewString()
	message := replayMessage{
		ID: id, Platform: request.Platform, From: request.From.UnixMilli(), To: request.To.UnixMilli(),
	}
	for _, status := range request.Statuses {
		message.Statuses = append(message.Statuses, int(status))
	}
	text, err := json.Marshal(message)
	if err != nil {
		return 0, err
	}
	ticker := time.NewTicker(replayLook)
	defer ticker.Stop()
	taken, begun := false, false
	for giveUp := time.Now().Add(2 * replayPickup); begun || time.Now().Before(giveUp); {
		if !taken {
			if taken, err = s.redis.SetNX(ctx, s.keys.replayRequest(), text, replayPickup).Result(); err != nil {
				return 0, fmt.Errorf("ask for a replay: %w", err)
			}
			if taken {
				giveUp = time.Now().Add(replayPickup + time.Second)
			}
		}
		answer, err := s.redis.HGet(ctx, s.keys.replayAnswers(), id).Result()
		switch {
		case errors.Is(err, redis.Nil):
		case err != nil:
			return 0, fmt.Errorf("look for the answer to a replay: %w", err)
		case answer == replayBegun:
			begun = true
		case answer == replayFailed:
			return 0, errReplayFailed
		default:
			return strconv.Atoi(answer)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ticker.C:
		}
	}
	return 0, fmt.Errorf("%w: %w", ErrUnavailable, errNoDeliverer)
}

// AnswerReplay takes a request for a replay, where there is one, makes it and answers. The platform must be one of
// platforms; a request for another one, and one that cannot be read, is dropped. An error says what failed; whoever
// asked has been told so. now is when the replay is made: that of who asked is another clock's.
func (s *Stream) AnswerReplay(ctx context.Context, now time.Time, platforms func(name string) bool) error {
	text, err := s.redis.GetRange(ctx, s.keys.replayRequest(), 0, replayRequestSize-1).Result()
	if err != nil || text == "" {
		return describe("look for requests for replays", err)
	}
	if removed, err := s.redis.Unlink(ctx, s.keys.replayRequest()).Result(); err != nil || removed == 0 {
		return describe("take a request for a replay", err) // another deliverer has it
	}
	var message replayMessage
	if err := json.Unmarshal([]byte(text), &message); err != nil || uuid.Validate(message.ID) != nil || !platforms(message.Platform) {
		return errors.New("a request for a replay was dropped: it is none of a query pod of this property")
	}
	if err := s.tellReplay(ctx, message.ID, replayBegun); err != nil {
		return err
	}
	request := ReplayRequest{
		Platform: message.Platform, From: time.UnixMilli(message.From), To: time.UnixMilli(message.To), Now: now,
	}
	for _, status := range []Status{Failed, Expired, Skipped} {
		if slices.Contains(message.Statuses, int(status)) {
			request.Statuses = append(request.Statuses, status)
		}
	}
	replayed, failed := s.Replay(ctx, request)
	answer := strconv.Itoa(replayed)
	if failed != nil {
		answer = replayFailed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return errors.Join(failed, s.tellReplay(ctx, message.ID, answer))
}

// tellReplay notes the answer to a request.
func (s *Stream) tellReplay(ctx context.Context, id, answer string) error {
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HSet(ctx, s.keys.replayAnswers(), id, answer)
		pipe.PExpire(ctx, s.keys.replayAnswers(), replayAnswer)
		return nil
	})
	return describe("answer a request for a replay", err)
}
