package stream

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// replays is how replays are asked for.
func (s *Stream) replays() *exchange {
	return &exchange{redis: s.redis, what: "a replay", request: s.keys.replayRequest(), answers: s.keys.replayAnswers()}
}

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
	message := replayMessage{
		ID: uuid.NewString(), Platform: request.Platform, From: request.From.UnixMilli(), To: request.To.UnixMilli(),
	}
	for _, status := range request.Statuses {
		message.Statuses = append(message.Statuses, int(status))
	}
	answer, err := r.Stream.replays().ask(ctx, message.ID, message)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(answer)
}

// AnswerReplay takes a request for a replay, where there is one, makes it and answers. The platform must be one of
// platforms; a request for another one, and one that cannot be read, is dropped. An error says what failed; whoever
// asked has been told so. now is when the replay is made: that of who asked is another clock's; past is the property's history, nil for none.
func (s *Stream) AnswerReplay(ctx context.Context, now time.Time, past Past, platforms func(name string) bool) error {
	return s.replays().serve(ctx, func(text []byte) (work, bool) {
		var message replayMessage
		if err := json.Unmarshal(text, &message); err != nil || !platforms(message.Platform) {
			return work{}, false
		}
		request := ReplayRequest{
			Platform: message.Platform, From: time.UnixMilli(message.From), To: time.UnixMilli(message.To), Now: now, Past: past,
		}
		for _, status := range []Status{Failed, Expired, Skipped} {
			if slices.Contains(message.Statuses, int(status)) {
				request.Statuses = append(request.Statuses, status)
			}
		}
		return work{message.ID, func(ctx context.Context) (string, error) {
			replayed, err := s.Replay(ctx, request)
			return strconv.Itoa(replayed), err
		}}, true
	})
}
