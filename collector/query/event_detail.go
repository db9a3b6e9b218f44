package query

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// eventParameter names the path parameter that holds an event's id.
const eventParameter = "event_id"

// deliveryRecord is how an event stands on one platform.
type deliveryRecord struct {
	Platform  string  `json:"platform"`
	Type      *string `json:"type"`
	Status    string  `json:"status"`
	LatencyMS *int64  `json:"latency_ms"`
	Attempts  int     `json:"attempts"`
	UpdatedAt string  `json:"updated_at"`
	Reason    *string `json:"reason"`
	Advice    *string `json:"advice"`
}

// attemptRecord is one record of a delivery.
type attemptRecord struct {
	Platform  string  `json:"platform"`
	Attempt   int     `json:"attempt"`
	At        string  `json:"at"`
	Status    string  `json:"status"`
	Reason    *string `json:"reason"`
	LatencyMS *int64  `json:"latency_ms"`
	Advice    *string `json:"advice"`
}

// event answers GET /properties/{property}/events/{event_id}: the newest event of that id, all that was sent of it, and what became
// of it on each platform. With a view all but how it stands is read from Redis.
func (h *Handler) event(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" {
		return
	}
	q := h.read(r, t, nil)
	if !q.proceed(w) {
		return
	}
	release, err := h.budget.Hold(recordsBytes)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer release()
	page, err := t.Engine.Listing(r.Context(), analytics.ListingQuery{
		Range: analytics.Range{From: earliestInstant, To: q.now}, AnyClass: true, EventIDs: []string{server.PathParameter(r, eventParameter)}, Limit: 1,
	})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if len(page.Records) == 0 {
		notFoundEvent(w)
		return
	}
	record := &page.Records[0]
	whole, err := wholeEvents(r.Context(), t, page.Records)
	if errors.Is(err, ErrCutShort) || err == nil && whole[0] == nil { // it has gone since the view was asked
		notFoundEvent(w)
		return
	}
	var attempts []stream.Record
	complete := false
	if err == nil {
		attempts, complete, err = readAttempts(r.Context(), t.Records, record)
	}
	if r.Method != http.MethodHead {
		h.note(r, t, audit.Entry{
			Act: audit.EventRead, Object: audit.Party{Kind: audit.Event, Name: record.Position.String()}, Details: []slog.Attr{slog.Int("attempts", len(attempts))},
		}, err)
	}
	if errors.Is(err, errNoEntries) {
		h.logger.WarnContext(r.Context(), "an event cannot be read", "property", propertyOf(t), "error", err)
		server.Unavailable(w, "The event cannot be read from Redis at the moment. The list of events needs no Redis.", replayRetryAfter)
		return
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	text, err := appendDetail(nil, t, eventRow{record, whole[0]}, attempts, complete)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	answerText(w, typeJSON, text)
}

func notFoundEvent(w http.ResponseWriter) { server.Message(w, http.StatusNotFound, "Event not found.") }

// appendDetail appends the answer with an event: as an export has it, with more of each delivery, and each attempt.
func appendDetail(b []byte, t *Tenant, row eventRow, attempts []stream.Record, complete bool) ([]byte, error) {
	deliveries := make([]deliveryRecord, len(row.Deliveries))
	for i := range row.Deliveries {
		deliveries[i] = renderDelivery(t, &row.Deliveries[i])
	}
	delivery, err := json.Marshal(deliveries)
	if err != nil {
		return b, err
	}
	b = append(appendReceived(append(b, `{"data":`...), row.Record), `,"delivery":`...)
	b = append(b, delivery...)
	b = appendText(append(b, `,"class":`...), row.Class.String())
	if b, err = appendSent(append(b, ','), row.event); err != nil {
		return b, err
	}
	made, err := json.Marshal(renderAttempts(attempts))
	b = append(append(b, `,"attempts":`...), made...)
	b = strconv.AppendBool(append(b, `,"attempts_complete":`...), complete)
	return append(b, "}}"...), err
}

func renderDelivery(t *Tenant, d *analytics.Delivery) deliveryRecord {
	record := deliveryRecord{
		Platform: d.Platform, Status: d.Status.String(), LatencyMS: milliseconds(d.Latency), Attempts: d.Attempts, UpdatedAt: instant(d.UpdatedAt),
		Reason: optional(d.Reason), Advice: optional(adviceFor(d.Status, d.Reason)),
	}
	if platform := t.Property.Platform(d.Platform); platform != nil {
		record.Type = optional(string(platform.Type))
	}
	return record
}

// renderAttempts takes the records in the order of time.
func renderAttempts(list []stream.Record) []attemptRecord {
	records, before := make([]attemptRecord, len(list)), map[string]int{}
	for i := range list {
		r := &list[i]
		records[i] = attemptRecord{
			Platform: r.Platform, Attempt: r.Attempts, At: instant(r.At), Status: r.Status.String(), Reason: optional(r.Reason),
			Advice: optional(adviceFor(r.Status, r.Reason)),
		}
		if r.Latency > 0 || r.Attempts > before[r.Platform] { // an attempt was made, if a short one
			records[i].LatencyMS = milliseconds(&r.Latency)
		}
		before[r.Platform] = r.Attempts
	}
	return records
}
