package deliver

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/stream"
)

// maxShadowAge is for how long what a platform in the mode Shadow would be sent is kept for a look, at most.
const maxShadowAge = 24 * time.Hour

// shadowAge is for how long it is kept of a property, counted from an event's receipt: no longer than what it has of devices and
// of persons lives in the events.
func shadowAge(retention config.Retention) time.Duration {
	return min(maxShadowAge, retention.DeviceAge(), retention.IdentityAge())
}

// shadower keeps what a platform in the mode Shadow would be sent, in place of sending it.
type shadower struct {
	platform *adapter.Platform
	stream   *stream.Stream
	name     string
	age      time.Duration
	// now is the clock by which events are dated, wall this process's, which platforms would be told.
	now, wall func() time.Time
	// backoff is between attempts while Redis fails.
	backoff backoff
	logger  *slog.Logger
}

// keep keeps tasks that would be sent and those that would not, but for events that the owner excluded, and says whether it has. It
// tries until it succeeds or the context ends; erased says of which persons nothing is to be kept.
func (s *shadower) keep(ctx context.Context, tasks, judged []task, erased func(task) bool) bool {
	for failures := 0; ; failures++ {
		var entries []stream.ShadowEntry
		for _, t := range tasks {
			if !erased(t) {
				entries = append(entries, s.sent(t))
			}
		}
		for _, t := range judged {
			if t.event != nil && t.verdict.Reason != adapter.ReasonExcluded && !erased(t) {
				entries = append(entries, s.entry(t, t.verdict.Reason))
			}
		}
		err := s.stream.KeepShadow(ctx, s.name, entries, s.now(), s.age)
		if err == nil {
			return true
		}
		if failures == 0 && ctx.Err() == nil {
			s.logger.Error("what would be sent cannot be kept yet", "events", len(entries), "error", err)
		}
		if !pause(ctx, s.backoff.jittered(failures)) {
			return false
		}
	}
}

func (s *shadower) entry(t task, reason string) stream.ShadowEntry {
	return stream.ShadowEntry{Event: t.position, EventID: t.event.ID, Name: t.event.Name, At: s.now(), Reason: reason}
}

// sent is the entry of an event that would be sent: with its request, made for it alone.
func (s *shadower) sent(t task) stream.ShadowEntry {
	entry := s.entry(t, "")
	shown, err := s.platform.Show(t.payload, s.wall())
	if err != nil {
		s.logger.Error("a request cannot be shown", "position", t.position.String(), "error", err)
		return entry
	}
	entry.Request = &stream.ShadowRequest{
		Method: shown.Method, URL: shown.URL, Header: shown.Header, Body: json.RawMessage(shown.Body), Encoding: shown.Encoding,
	}
	return entry
}
