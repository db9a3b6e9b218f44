package query

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// RejectionReader returns the newest rejections, the newest first. [stream.Stream] is one.
type RejectionReader interface {
	Rejections(ctx context.Context, limit int) ([]stream.Rejection, error)
}

type rejectionsAnswer struct {
	Data []rejectionRecord `json:"data"`
}

type rejectionRecord struct {
	ID         string         `json:"id"`
	ReceivedAt string         `json:"received_at"`
	Endpoint   string         `json:"endpoint"`
	APIKey     *string        `json:"api_key"`
	Event      *string        `json:"event"`
	EventID    *string        `json:"event_id"`
	Message    string         `json:"message"`
	Errors     jsontext.Value `json:"errors"`
}

// rejections answers GET /properties/{property}/rejections, from Redis: the view knows nothing of them.
func (h *Handler) rejections(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	p := parameters{pairs: parseQuery(r.URL.RawQuery)}
	p.check([]parameter{{name: "limit"}})
	limit := p.limit(defaultLimit, stream.MaxRejections)
	if len(p.errs) > 0 {
		server.Invalid(w, p.errs)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), redisTimeout)
	defer cancel()
	listed, err := t.Rejections.Rejections(ctx, limit)
	if err != nil {
		h.logger.WarnContext(r.Context(), "rejections cannot be read", "property", t.Property.Namespace+"/"+t.Property.Name, "error", err)
		server.Unavailable(w, "The rejections cannot be read at the moment.", replayRetryAfter)
		return
	}
	answer := rejectionsAnswer{Data: make([]rejectionRecord, 0, len(listed))}
	for _, rejection := range listed {
		if record, ok := renderRejection(rejection); ok {
			answer.Data = append(answer.Data, record)
		}
	}
	if answerIn != typeJSON {
		exportFigures(h, w, r, t, answerIn, &figureTable[rejectionRecord]{act: audit.RejectionsExported, object: audit.Party{Kind: audit.Rejections}, rows: answer.Data})
		return
	}
	server.JSON(w, http.StatusOK, answer)
}

// renderRejection is false where the collector's answer is none of this form: whoever writes to Redis may write anything.
func renderRejection(r stream.Rejection) (rejectionRecord, bool) {
	var answered struct {
		Message string         `json:"message"`
		Errors  jsontext.Value `json:"errors"`
	}
	errors := map[string][]string{}
	if json.Unmarshal(r.Answer, &answered) != nil || answered.Errors != nil && json.Unmarshal(answered.Errors, &errors) != nil {
		return rejectionRecord{}, false
	}
	if len(errors) == 0 {
		answered.Errors = jsontext.Value("{}")
	}
	return rejectionRecord{
		ID: r.ID, ReceivedAt: instant(r.At), Endpoint: r.Endpoint, APIKey: optional(r.APIKey), Event: optional(r.Event), EventID: optional(r.EventID),
		Message: answered.Message, Errors: answered.Errors, // as they were answered, in that order
	}, true
}
