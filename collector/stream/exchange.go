package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	// pickup is how long a request waits for a deliverer, and answered for how long its answer stays.
	pickup, answered = 10 * time.Second, 2 * time.Minute
	// lookForAnswer is how often whoever asks looks for the answer.
	lookForAnswer = 50 * time.Millisecond
	// requestSize bounds what a deliverer reads of a request, in bytes: who asks may only read besides, and so shall not be able
	// to harm whoever does it.
	requestSize = 4096
)

// The answers to a request beside one of its own: a deliverer has begun; it could not finish.
const begun, unfinished = "begun", "failed"

var (
	errNoDeliverer = errors.New("no deliverer takes the request")
	errUnfinished  = errors.New("the deliverer could not finish what it was asked for")
)

// exchange is how whoever may only read has a deliverer do something: a request waits under a key, one deliverer takes it, and
// its answer stands in a hash by the request's id.
type exchange struct {
	redis redis.UniversalClient
	// what is asked for, for errors: "a replay".
	what string
	// request is the key of the request that waits, answers that of the hash.
	request, answers string
	// busy is the key of the mark of whoever does one while no other is to be done, lasting for as long as one takes at most; ""
	// where several may be done at a time.
	busy  string
	lasts time.Duration
}

// ask leaves a request, which has the id as its member id, and returns a deliverer's answer. It fails with [ErrUnavailable] where
// none takes the request within ten seconds; then nobody will. Requests that are made at the same time are taken one after the
// other.
func (x *exchange) ask(ctx context.Context, id string, message any) (string, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return "", err
	}
	ticker := time.NewTicker(lookForAnswer)
	defer ticker.Stop()
	left, taken := false, false
	for giveUp := time.Now().Add(2 * pickup); taken || time.Now().Before(giveUp); {
		if !left {
			if left, err = x.redis.SetNX(ctx, x.request, text, pickup).Result(); err != nil {
				return "", fmt.Errorf("ask for %s: %w", x.what, err)
			}
			if left {
				giveUp = time.Now().Add(pickup + time.Second)
			}
		}
		answer, err := x.redis.HGet(ctx, x.answers, id).Result()
		switch {
		case errors.Is(err, redis.Nil):
		case err != nil:
			return "", fmt.Errorf("look for the answer to %s: %w", x.what, err)
		case answer == begun:
			taken = true
		case answer == unfinished:
			return "", errUnfinished
		default:
			return answer, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-ticker.C:
		}
	}
	return "", fmt.Errorf("%w: %w", ErrUnavailable, errNoDeliverer)
}

// work is what a request asks for.
type work struct {
	// id is the request's.
	id string
	// do does it and returns the answer.
	do func(ctx context.Context) (string, error)
}

// serve takes a request, where there is one, does it and answers. One that read makes nothing of, or that has no id, is dropped. An
// error says what failed; whoever asked has been told so.
func (x *exchange) serve(ctx context.Context, read func(text []byte) (work, bool)) error {
	text, err := x.redis.GetRange(ctx, x.request, 0, requestSize-1).Result()
	if err != nil || text == "" {
		return describe("look for requests for "+x.what, err)
	}
	if x.busy == "" {
		return x.take(ctx, text, read)
	}
	alone, err := x.redis.SetNX(ctx, x.busy, "1", x.lasts).Result()
	if err != nil || !alone {
		return describe("take a request for "+x.what, err) // another deliverer does one, and this one waits
	}
	return errors.Join(x.take(ctx, text, read), x.tidy(ctx, func(ctx context.Context) error {
		return describe("end "+x.what, x.redis.Unlink(ctx, x.busy).Err())
	}))
}

// take takes a request that waits, does it and answers.
func (x *exchange) take(ctx context.Context, text string, read func(text []byte) (work, bool)) error {
	if removed, err := x.redis.Unlink(ctx, x.request).Result(); err != nil || removed == 0 {
		return describe("take a request for "+x.what, err) // another deliverer has it
	}
	asked, ok := read([]byte(text))
	if !ok || uuid.Validate(asked.id) != nil {
		return errors.New("a request for " + x.what + " was dropped: it is none of a query pod of this property")
	}
	if err := x.tell(ctx, asked.id, begun); err != nil {
		return err
	}
	answer, failed := asked.do(ctx)
	if failed != nil {
		answer = unfinished
	}
	return errors.Join(failed, x.tidy(ctx, func(ctx context.Context) error { return x.tell(ctx, asked.id, answer) }))
}

// tidy does what is still to be done when ctx has ended, for a second at most.
func (x *exchange) tidy(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return do(ctx)
}

// tell notes the answer to a request.
func (x *exchange) tell(ctx context.Context, id, answer string) error {
	_, err := x.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HSet(ctx, x.answers, id, answer)
		pipe.PExpire(ctx, x.answers, answered)
		return nil
	})
	return describe("answer a request for "+x.what, err)
}
