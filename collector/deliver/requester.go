package deliver

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/deliver/adapter"
)

// requester makes the requests to one platform.
type requester struct {
	platform *adapter.Platform
	client   *client
	// tokens are those that requests carry; nil where they carry none.
	tokens  *tokens
	tracing tracing
	// count counts the requests.
	count prometheus.Counter
	// wall is this process's clock, which platforms are told.
	wall   func() time.Time
	logger *slog.Logger
}

// attempt makes one request and returns a verdict per event and how long the request took. It counts the
// attempt on the tasks, unless the platform only throttles.
func (r *requester) attempt(sending context.Context, batch []task) ([]adapter.Verdict, time.Duration) {
	payloads := make([]adapter.Payload, len(batch))
	for i, t := range batch {
		payloads[i] = t.payload
	}
	request := r.platform.Build(payloads, r.wall())
	start, end := time.Now(), r.tracing.start(sending, len(batch)) // the monotonic clock: a latency is no point in time
	response, failure := r.exchange(sending, request)
	latency := time.Since(start)
	end(response, failure)
	r.count.Inc()

	var verdicts []adapter.Verdict
	if failure != nil {
		verdicts = slices.Repeat([]adapter.Verdict{*failure}, len(batch))
	} else {
		verdicts = r.platform.Classify(response, len(batch))
	}
	for i := range batch {
		if verdicts[i].Class == adapter.Queued {
			verdicts[i].Ticket = ticketOf(batch, verdicts[i].Ticket)
		}
		batch[i].kind = retries
		if verdicts[i].Class != adapter.Throttle {
			batch[i].attempts++
		}
	}
	return verdicts, latency
}

// exchange makes the request or, for the Log platform, writes its lines.
func (r *requester) exchange(sending context.Context, request adapter.Request) (adapter.Response, *adapter.Verdict) {
	if request.Lines == nil {
		return r.authorized(sending, request)
	}
	for _, line := range request.Lines {
		r.logger.LogAttrs(sending, slog.LevelInfo, "event", line...)
	}
	return adapter.Response{At: r.wall()}, nil
}

// authorized makes an HTTP request with the platform's token, where it has one. A token that is refused is had anew the next time.
func (r *requester) authorized(sending context.Context, request adapter.Request) (adapter.Response, *adapter.Verdict) {
	token, failure := r.tokens.authorize(sending, &request)
	if failure != nil {
		return adapter.Response{}, failure
	}
	response, failure := r.client.exchange(sending, request)
	if failure == nil && response.Status == http.StatusUnauthorized {
		r.tokens.discard(token)
	}
	return response, failure
}
