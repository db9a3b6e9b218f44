package ingest

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// The limits of a batch. An event in it has the limit of a single one besides.
const (
	maxBatchEvents = 500
	maxBatchBytes  = 1 << 20
)

// collectBatch answers POST /collect/{api_key}/batch: each event by itself, in order.
func (h *Handler) collectBatch(w http.ResponseWriter, r *http.Request) {
	s, ok := h.authenticate(w, r, viaBatch)
	if !ok {
		return
	}
	coding, refused := negotiate(r, maxBatchBytes, s.mediaTypes())
	if refused != nil {
		h.refuse(s, w, refused)
		return
	}
	held, ok := h.admit(s, w, r, coding, maxBatchBytes)
	if !ok {
		return
	}
	defer h.leave(s, held)
	body, err := h.bodies.read(r, coding, maxBatchBytes)
	if err != nil {
		h.refuse(s, w, err)
		return
	}
	release := sync.OnceFunc(func() { h.bodies.release(body) })
	defer release()

	items, err := envelope.DecodeBatch(body.bytes, maxBatchEvents)
	if err != nil {
		h.refuse(s, w, err)
		return
	}
	ctx, cancel := s.deadline(r.Context())
	defer cancel()
	now := h.now()
	if !s.allow(ctx, w, len(items), now) {
		return
	}
	batch := h.prepareBatch(s, items, now)
	release() // up to a megabyte that nobody needs while Redis is waited for
	var added []stream.Added
	if len(batch.valid) > 0 {
		if added, err = s.append(ctx, additions(batch.valid)); err != nil {
			s.unavailable(w, now, err, len(items))
			return
		}
	}
	for _, errs := range batch.errs {
		if len(errs) > 0 {
			s.counters.reject(errs)
		}
	}
	s.list(batch.rejections...)
	for i, a := range added {
		s.count(now, &batch.valid[i], a)
	}
	if server.Sampled(w) {
		s.note(w, slog.Int("events", len(items)), slog.Int("stored", len(added)))
	}
	answer := h.bodies.buffer()
	defer h.bodies.release(answer)
	answer.bytes = batch.appendAnswer(answer.bytes, added)
	accept(w, answer.bytes)
}

// preparedBatch is a batch between validation and storage.
type preparedBatch struct {
	// errors has an entry for every event, nil for those that are valid.
	errs []event.Errors
	// valid are the valid events, in order; rejections are the others.
	valid      []prepared
	rejections []stream.Rejection
}

func (h *Handler) prepareBatch(s *sender, items []envelope.BatchItem, now time.Time) preparedBatch {
	p := preparedBatch{errs: make([]event.Errors, len(items)), valid: make([]prepared, 0, len(items))}
	sent := h.envelope()
	defer h.forget(sent)
	for i, item := range items {
		valid, errs := h.prepareItem(s, item, sent, now)
		if len(errs) > 0 {
			p.errs[i] = errs
			p.rejections = append(p.rejections, s.rejectionOf(now, sent, errs, errs))
			continue
		}
		p.valid = append(p.valid, valid)
	}
	return p
}

// prepareItem prepares an event, which it reads into sent.
func (h *Handler) prepareItem(s *sender, item envelope.BatchItem, sent *envelope.Envelope, now time.Time) (prepared, event.Errors) {
	sent.Reset() // which may go on holding the event before
	if limit := s.Property.Limits.MaxBodyBytes; int64(len(item.Raw)) > limit {
		field := "events." + strconv.Itoa(item.Index)
		return prepared{}, event.Errors{{Field: field, Message: fmt.Sprintf("The %s field must not be larger than %d bytes.", field, limit)}}
	}
	if errs := item.Decode(sent); len(errs) > 0 {
		return prepared{}, errs
	}
	return h.prepare(s, sent, now)
}

// appendAnswer appends the answer to a batch: totals, and a result for every event in order.
func (p *preparedBatch) appendAnswer(b []byte, added []stream.Added) []byte {
	duplicates := 0
	for _, a := range added {
		if a.Duplicate {
			duplicates++
		}
	}
	b = fmt.Appendf(b, `{"ok":true,"accepted":%d,"duplicates":%d,"rejected":%d,"results":[`,
		len(added)-duplicates, duplicates, len(p.errs)-len(added))
	next := 0
	for i, errs := range p.errs {
		if i > 0 {
			b = append(b, ',')
		}
		if len(errs) == 0 {
			b = appendAdded(b, added[next])
			next++
			continue
		}
		b = appendRejected(b, errs)
	}
	return append(b, "]}"...)
}

// appendRejected appends {"ok": false, "message": …, "errors": …}.
func appendRejected(b []byte, errs event.Errors) []byte {
	into := bytes.NewBuffer(append(b, `{"ok":false,`...))
	start := into.Len()
	if err := json.MarshalWrite(into, errs); err != nil {
		// Errors are texts of our own; only a programming error gets here, and the recoverer answers 500.
		panic(err)
	}
	b = into.Bytes()
	return append(b[:start], b[start+1:]...) // the brace is there already
}
