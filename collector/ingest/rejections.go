package ingest

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/stream"
)

// maxListedErrors is how many errors of an event are listed.
const maxListedErrors = 20

// RejectionList keeps what was refused for those who ask why events are missing. It never waits.
// [stream.Rejections] is one.
type RejectionList interface {
	Add(rejections ...stream.Rejection)
}

// list counts rejections, and notes them where somebody keeps them.
func (s *sender) list(rejections ...stream.Rejection) {
	if s.Tally != nil {
		for i := range rejections {
			s.Tally.Refused(rejections[i].At, rejections[i].Event)
		}
	}
	s.tell(rejections...)
}

// tell notes rejections where somebody keeps them.
func (s *sender) tell(rejections ...stream.Rejection) {
	if s.Rejections == nil || len(rejections) == 0 {
		return
	}
	for i := range rejections {
		rejections[i].APIKey = s.key
	}
	s.Rejections.Add(rejections...)
}

// refuse answers a request with what is wrong with it as a whole, and lists that: a [*refusal], an
// [*outline.SyntaxError] or [event.Errors].
func (h *Handler) refuse(s *sender, w http.ResponseWriter, err error) {
	if errs := (event.Errors)(nil); errors.As(err, &errs) {
		s.list(s.newRejection(h.now(), errs))
		s.invalid(w, errs)
		return
	}
	refused := &refusal{status: http.StatusBadRequest, message: err.Error()}
	errors.As(err, &refused)
	if refused.status != http.StatusRequestTimeout { // which is sent again
		s.list(s.newRejection(h.now(), map[string]string{"message": refused.message}))
	}
	s.note(w, slog.String("reason", refused.message))
	if refused.header != "" {
		w.Header().Set(refused.header, refused.value)
	}
	s.way.message(w, refused.status, refused.message)
}

// rejectionOf tells of an event that the envelope has not been valid for, with the errors as the sender is told them.
func (s *sender) rejectionOf(now time.Time, sent *envelope.Envelope, errs, told event.Errors) stream.Rejection {
	rejection := s.newRejection(now, told.First(maxListedErrors))
	if slices.Contains(errs, suppressed) {
		return rejection // an id could tell whose it was
	}
	rejection.Event, rejection.EventID = sent.Identify(errs)
	return rejection
}

// newRejection tells what a sender is answered.
func (s *sender) newRejection(now time.Time, answer any) stream.Rejection {
	text, err := json.Marshal(answer)
	if err != nil {
		// Errors are texts of our own; only a programming error gets here, and the recoverer answers 500.
		panic(err)
	}
	return stream.Rejection{ID: uuid.NewString(), At: now.UTC(), Endpoint: s.way.name, Answer: text}
}
