package query

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// PlatformReader returns how it stands with a property's platforms, as its deliverers have reported. [stream.Stream] is one.
type PlatformReader interface {
	PlatformStates(ctx context.Context, now time.Time) (map[string]stream.PlatformState, error)
}

// circuitOpen is why a platform is paused that will be tried again by itself.
const circuitOpen = "circuit_open"

type platformsAnswer struct {
	Data []platformState `json:"data"`
}

// platformState is a platform of the Property. What deliverers report is null where none has within a minute.
type platformState struct {
	Platform   string         `json:"platform"`
	Type       platforms.Type `json:"type"`
	Mode       string         `json:"mode"`
	Suspended  bool           `json:"suspended"`
	Beta       bool           `json:"beta"`
	LagEvents  *int64         `json:"lag_events"`
	LagSeconds *float64       `json:"lag_seconds"`
	Waiting    *int64         `json:"waiting"`
	Paused     *pauseRecord   `json:"paused"`
	TestMode   *string        `json:"test_mode"`
	ReportedAt *string        `json:"reported_at"`
}

// pauseRecord is why a platform gets nothing: Reason is what a person has to mend, or circuitOpen; LastReason is the answer that led
// to the pause.
type pauseRecord struct {
	Reason     string  `json:"reason"`
	LastReason string  `json:"last_reason"`
	Since      *string `json:"since"`
	Advice     *string `json:"advice"`
}

// platforms answers GET /properties/{property}/platforms, from the configuration and from Redis.
func (h *Handler) platforms(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" || !withoutParameters(w, r) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), redisTimeout)
	defer cancel()
	states, err := t.States.PlatformStates(ctx, h.now())
	if err != nil {
		h.logger.WarnContext(r.Context(), "the platforms' states cannot be read", "property", propertyOf(t), "error", err)
		server.Unavailable(w, "The platforms' states cannot be read at the moment.", replayRetryAfter)
		return
	}
	answer := platformsAnswer{Data: make([]platformState, len(t.Property.Platforms))}
	for i := range t.Property.Platforms {
		platform := &t.Property.Platforms[i]
		state, reported := states[platform.Name]
		answer.Data[i] = renderPlatform(platform, state, reported)
	}
	server.JSON(w, http.StatusOK, answer)
}

func renderPlatform(platform *platforms.Platform, state stream.PlatformState, reported bool) platformState {
	traits, _ := platform.Type.Traits()
	record := platformState{
		Platform: platform.Name, Type: platform.Type, Mode: modeName(platform.Mode), Suspended: platform.Suspend, Beta: traits.Proof.Beta(),
	}
	if traits.TestMode.Sends {
		record.TestMode = &traits.TestMode.Text
	}
	if !reported {
		return record
	}
	at := instant(state.ReportedAt)
	record.LagSeconds, record.Waiting, record.ReportedAt = &state.LagSeconds, &state.Waiting, &at
	if state.LagEvents >= 0 {
		record.LagEvents = &state.LagEvents
	}
	if pause := state.Pause; pause != nil && !platform.Suspend {
		record.Paused = renderPause(pause)
	}
	return record
}

// modeName is a mode as the API spells it: an event that is delivered is live.
func modeName(mode platforms.Mode) string {
	if mode == platforms.Shadow {
		return string(platforms.Shadow)
	}
	return "Live"
}

func renderPause(pause *stream.Pause) *pauseRecord {
	since := instant(pause.Since)
	return &pauseRecord{
		Reason: cmp.Or(pause.Misconfiguration, circuitOpen), LastReason: pause.Reason, Since: &since,
		Advice: optional(adviceFor(stream.Retrying, cmp.Or(pause.Misconfiguration, pause.Reason))),
	}
}
