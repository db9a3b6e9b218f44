package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/sources/shop"
	"github.com/weir-dev/weir/collector/stream"
)

// maxWebhookBytes bounds a shop's webhook: an order with hundreds of lines is far below.
const maxWebhookBytes = 1 << 20

// sourceTypes are the media types of webhooks. WooCommerce asks with a form whether somebody is there.
var sourceTypes = []string{"application/json", "application/x-www-form-urlencoded"}

// The answers to what a shop may not do.
const (
	unknownSource    = "The property has no source of this name."
	unverified       = "The signature is missing, wrong or too old."
	sourceNotReady   = "The source has no signing secret yet. Please send the webhook again."
	publishableShops = "The API key is publishable, and no shop may use it: take a secret one."
)

// The outcomes of reports, as metrics name them.
const (
	reportStored      = "stored"
	reportDuplicate   = "duplicate"
	reportIgnored     = "ignored"
	reportRejected    = "rejected"
	reportErasure     = "erasure"
	reportUnverified  = "unverified"
	reportUnavailable = "unavailable"
)

// takeWebhook answers POST /sources/{api_key}/{source}: what a shop reports of an order. A webhook that is verified is
// answered 200 whatever becomes of its events, but where they cannot be stored: shops give up those who refuse.
func (h *Handler) takeWebhook(w http.ResponseWriter, r *http.Request) {
	s, found := h.senderOf(viaSources, server.PathParameter(r, "api_key"))
	switch {
	case !found:
		refuseKey(w, viaSources)
		return
	case s.web != nil:
		s.note(w, slog.String("reason", publishableShops))
		server.Message(w, http.StatusForbidden, publishableShops)
		return
	}
	server.Authenticated(r)
	source := s.source(server.PathParameter(r, "source"))
	if source == nil {
		s.note(w, slog.String("reason", unknownSource))
		server.Message(w, http.StatusNotFound, unknownSource)
		return
	}
	s = s.reporting(source)
	coding, refused := negotiate(r, maxWebhookBytes, sourceTypes)
	if refused != nil {
		h.refuse(s, w, refused)
		return
	}
	held, ok := h.admit(s, w, r, coding, maxWebhookBytes)
	if !ok {
		return
	}
	defer h.leave(s, held)
	body, err := h.bodies.read(r, coding, maxWebhookBytes)
	if err != nil {
		h.refuse(s, w, err)
		return
	}
	defer h.bodies.release(body)
	h.answerWebhook(w, r, s, source, body.bytes)
}

// answerWebhook verifies a source's webhook and takes in what it reports.
func (h *Handler) answerWebhook(w http.ResponseWriter, r *http.Request, s *sender, source *sources.Source, body []byte) {
	now := h.now()
	if shop.IsPing(source.Type, body) {
		server.JSON(w, http.StatusOK, taken{OK: true})
		return
	}
	secrets := s.SigningSecrets[source.Name]
	if len(secrets) == 0 {
		s.reported(source, reportUnavailable)
		s.note(w, slog.String("source", source.Name), slog.String("reason", "no signing secret"))
		server.Unavailable(w, sourceNotReady, retryAfter)
		return
	}
	if !shop.Verify(source.Type, r.Header, body, secrets, now) {
		s.reported(source, reportUnverified)
		s.note(w, slog.String("source", source.Name), slog.String("reason", unverified))
		server.Message(w, http.StatusUnauthorized, unverified)
		return
	}
	report, err := shop.Read(source, r.Header, body)
	if err != nil {
		s.reported(source, reportRejected)
		h.refuse(s, w, &refusal{status: http.StatusBadRequest, message: "The request body must be the JSON object that the shop sends for this topic."})
		return
	}
	ctx, cancel := s.deadline(r.Context())
	defer cancel()
	if len(report.Events) > 0 && !s.allow(ctx, w, len(report.Events), now) {
		return
	}
	answer, err := h.take(ctx, s, source, report, now)
	if err != nil {
		s.unavailable(w, now, err, len(report.Events))
		return
	}
	if server.Sampled(w) {
		s.note(w, slog.String("source", source.Name), slog.Int("stored", len(answer.EventIDs)))
	}
	server.JSON(w, http.StatusOK, answer)
}

// taken is the answer to a webhook.
type taken struct {
	OK bool `json:"ok"`
	// Ignored says why there is no event.
	Ignored string `json:"ignored,omitempty"`
	// EventIDs are those of the events that are stored, by this webhook or before. Rejected says of how many nothing is.
	EventIDs []string `json:"event_ids,omitempty"`
	Rejected int      `json:"rejected,omitzero"`
}

// Take stores what a shop was found to have reported, as if it had come by a webhook of the source. It fails where not
// all of it could be stored, and takes nothing twice.
func (h *Handler) Take(ctx context.Context, namespace, property, source string, report shop.Report) error {
	for _, t := range h.served.Load().tenants {
		if t.Property.Namespace != namespace || t.Property.Name != property {
			continue
		}
		if from := t.source(source); from != nil {
			s := &sender{tenant: t, way: viaSources, counters: &t.counters[viaSources.index], fetched: true}
			_, err := h.take(ctx, s.reporting(from), from, report, h.now())
			return err
		}
	}
	return fmt.Errorf("%s/%s has no source %s any more", namespace, property, source)
}

// take stores the events of a report.
func (h *Handler) take(ctx context.Context, s *sender, source *sources.Source, report shop.Report, now time.Time) (taken, error) {
	answer := taken{OK: true, Ignored: report.Ignored}
	if report.Erasure != "" {
		return answer, h.takeErasure(ctx, s, source, report, now)
	}
	var valid []prepared
	for _, reported := range report.Events {
		// An id is remembered for so long: what was reported before that may have been counted.
		if now.Sub(reported.At) > s.Property.DeduplicationWindow() {
			answer.Ignored = "What happened longer ago than deduplication.windowHours may have been counted, and is not counted again."
			continue
		}
		one, rejection, err := h.prepareReported(s, reported, now)
		if err != nil {
			return taken{}, err
		}
		if rejection != nil {
			s.list(*rejection)
			answer.Rejected++
			continue
		}
		valid = append(valid, one)
	}
	outcome := reportIgnored
	if answer.Rejected > 0 {
		outcome = reportRejected
	}
	if len(report.Events) == 0 {
		s.counters.ignored.Inc()
	}
	if len(valid) > 0 {
		added, err := s.append(ctx, additions(valid))
		if err != nil {
			s.reported(source, reportUnavailable)
			return taken{}, err
		}
		if outcome == reportIgnored {
			outcome = reportDuplicate
		}
		for i, a := range added {
			s.count(now, &valid[i], a)
			answer.EventIDs = append(answer.EventIDs, a.EventID)
			if !a.Duplicate && outcome == reportDuplicate {
				outcome = reportStored
			}
		}
	}
	s.reported(source, outcome)
	return answer, nil
}

// prepareReported prepares an event of a shop's. Nobody at the shop can mend what a buyer has typed: what is not needed and
// cannot be read, such as a telephone number, is left out, and the order counts.
func (h *Handler) prepareReported(s *sender, reported shop.Event, now time.Time) (prepared, *stream.Rejection, error) {
	sent := h.envelope()
	defer h.forget(sent)
	var valid prepared
	var errs event.Errors
	for again := true; again; {
		encoded, err := reported.Envelope()
		if err != nil {
			return prepared{}, nil, err
		}
		if err := sent.Decode(encoded); err != nil { // nested deeper than any order
			rejection := s.newRejection(now, map[string]string{"message": err.Error()})
			return prepared{}, &rejection, nil
		}
		valid, errs = h.prepare(s, sent, now)
		fields := make([]string, 0, len(errs))
		for _, fieldErr := range errs {
			fields = append(fields, fieldErr.Field)
		}
		again = reported.Without(fields)
	}
	if len(errs) > 0 {
		s.counters.reject(errs)
		rejection := s.rejectionOf(now, sent, errs, errs)
		return prepared{}, &rejection, nil
	}
	return valid, nil, nil
}

// eraseTimeout is how long a shop waits until a request for an erasure stands in the ledger: Shopify waits for 5 s.
const eraseTimeout = 3500 * time.Millisecond

// takeErasure has a person erased where a shop names them, and tells the owner of what only the owner can see to. It keeps
// nothing of the person.
func (h *Handler) takeErasure(ctx context.Context, s *sender, source *sources.Source, report shop.Report, now time.Time) error {
	told := "The shop asks by " + report.Erasure + " that a person's data be handed out or erased. Weir does not do that by itself: see to it, at the platforms too."
	if request := s.erasureRequest(source, report); len(request.Identifiers) > 0 && s.Eraser != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseTimeout)
		defer cancel()
		_, err := s.Eraser.Erase(ctx, request)
		h.audit.Write(ctx, audit.RequestedErasure(s.id, request.ID, audit.Party{Kind: audit.Source, Name: source.Name}, err))
		if err != nil {
			s.reported(source, reportUnavailable)
			return err
		}
		told = "The shop has asked by " + report.Erasure + " that a person be erased, and Weir does that. See to the platforms: the read API's erasures/" +
			request.ID + " says what is to be done there."
	}
	s.reported(source, reportErasure)
	s.tell(s.newRejection(now, map[string]string{"message": told}))
	return nil
}

// erasureRequest asks for whom a report names, by what of it events would have; it has no identifiers where that is nothing.
// Where the shop asks again it has the same id.
func (s *sender) erasureRequest(source *sources.Source, report shop.Report) stream.ErasureRequest {
	request := stream.ErasureRequest{ID: uuid.NewString(), Origin: viaSources.name + "/" + source.Name}
	if report.Repeat != "" {
		request.ID = uuid.NewSHA1(uuid.Nil, []byte("weir erasure\x00"+s.id+"\x00"+source.Name+"\x00"+report.Repeat)).String()
	}
	for _, name := range slices.Sorted(maps.Keys(report.Subject)) {
		object, err := json.Marshal(map[string]string{name: report.Subject[name]})
		if err != nil {
			continue // what is no text was never an event's
		}
		ids, errs := envelope.Subject(string(object), s.id)
		if len(errs) == 0 { // what cannot be read could not in an event either
			request.Identifiers = append(request.Identifiers, ids...)
		}
	}
	return request
}

// reporting returns the sender as a source, which rejections name.
func (s *sender) reporting(source *sources.Source) *sender {
	reporting, way := *s, *s.way
	way.name += "/" + source.Name
	reporting.way = &way
	return &reporting
}

// source returns the property's source of a name, nil where there is none.
func (t *tenant) source(name string) *sources.Source {
	i := slices.IndexFunc(t.Property.Sources, func(source sources.Source) bool { return source.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Property.Sources[i]
}

// reported counts what became of a report.
func (t *tenant) reported(source *sources.Source, outcome string) {
	t.counters[viaSources.index].sources.WithLabelValues(source.Name, outcome).Inc()
}
