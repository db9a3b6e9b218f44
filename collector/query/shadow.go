package query

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// ShadowReader returns what is kept of a platform in the mode Shadow, the newest first. [stream.Stream] is one.
type ShadowReader interface {
	Shadow(ctx context.Context, platform string, limit int) ([]stream.ShadowEntry, error)
}

// platformParameter names the path parameter that holds a platform's name.
const platformParameter = "platform"

type shadowAnswer struct {
	Data []shadowRecord `json:"data"`
}

// shadowRecord is an event that the platform was due to get. Reason is null where it would have been sent.
type shadowRecord struct {
	EventID    string         `json:"event_id"`
	Event      string         `json:"event"`
	ReceivedAt string         `json:"received_at"`
	At         string         `json:"at"`
	Verdict    string         `json:"verdict"`
	Reason     *string        `json:"reason"`
	Request    *shadowRequest `json:"request"`
}

type shadowRequest struct {
	Method   *string           `json:"method"`
	URL      *string           `json:"url"`
	Headers  map[string]string `json:"headers"`
	Body     json.RawMessage   `json:"body"`
	Encoding string            `json:"body_encoding"`
}

// shadow answers GET /properties/{property}/platforms/{platform}/shadow, from Redis.
func (h *Handler) shadow(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" {
		return
	}
	p := parameters{pairs: parseQuery(r.URL.RawQuery)}
	p.check([]parameter{{name: "limit"}})
	limit := p.limit(defaultLimit, stream.MaxShadow)
	platform := server.PathParameter(r, platformParameter)
	if t.Property.Platform(platform) == nil {
		p.errs.Add("platform", "The selected platform is invalid.")
	}
	if len(p.errs) > 0 {
		server.Invalid(w, p.errs)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), redisTimeout)
	defer cancel()
	kept, err := t.Shadows.Shadow(ctx, platform, limit)
	if r.Method != http.MethodHead {
		h.note(r, t, audit.Entry{
			Act: audit.ShadowRead, Object: audit.Party{Kind: audit.Platform, Name: platform}, Details: []slog.Attr{slog.Int("events", len(kept))},
		}, err)
	}
	if err != nil {
		h.logger.WarnContext(r.Context(), "what a platform would be sent cannot be read", "property", propertyOf(t), "platform", platform, "error", err)
		server.Unavailable(w, "What the platform would be sent cannot be read at the moment.", replayRetryAfter)
		return
	}
	answer := shadowAnswer{Data: make([]shadowRecord, len(kept))}
	for i := range kept {
		answer.Data[i] = renderShadow(&kept[i])
	}
	server.JSON(w, http.StatusOK, answer)
}

func renderShadow(entry *stream.ShadowEntry) shadowRecord {
	record := shadowRecord{
		EventID: entry.EventID, Event: entry.Name, ReceivedAt: instant(entry.Event.Time()), At: instant(entry.At),
		Verdict: "send", Reason: optional(entry.Reason),
	}
	if entry.Reason != "" {
		record.Verdict = "skip"
	}
	record.Request = renderRequest(entry.Request)
	return record
}

// renderRequest is a request as it is shown; null for none.
func renderRequest(request *stream.ShadowRequest) *shadowRequest {
	if request == nil {
		return nil
	}
	shown := &shadowRequest{
		Method: optional(request.Method), URL: optional(request.URL), Headers: request.Header, Body: request.Body, Encoding: request.Encoding,
	}
	if request.Header == nil {
		shown.Headers = map[string]string{}
	}
	if request.Body == nil {
		shown.Body = json.RawMessage("null")
	}
	return shown
}
