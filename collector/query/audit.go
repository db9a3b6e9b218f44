package query

import (
	"log/slog"
	"net/http"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/stream"
)

// exportAct is what the audit log is told of an answer in rows.
type exportAct struct {
	act    audit.Act
	object audit.Party
	format format
	// asked is the period, zero for what has none.
	asked analytics.Range
	rows  int
	err   error
}

// noteExport writes down who has exported what. Filters are left out: they hold what a caller likes.
func (h *Handler) noteExport(r *http.Request, t *Tenant, e exportAct) {
	details := []slog.Attr{slog.String("format", string(e.format))}
	if !e.asked.To.IsZero() {
		details = append(details, slog.Time("from", e.asked.From), slog.Time("to", e.asked.To))
	}
	h.note(r, t, audit.Entry{Act: e.act, Object: e.object, Details: append(details, slog.Int("rows", e.rows))}, e.err)
}

// noteReplay writes down who has had which deliveries made again.
func (h *Handler) noteReplay(r *http.Request, t *Tenant, request stream.ReplayRequest, replayed int, err error) {
	statuses := make([]string, len(request.Statuses))
	for i, status := range request.Statuses {
		statuses[i] = status.String()
	}
	h.note(r, t, audit.Entry{
		Act: audit.DeliveriesReplayed, Object: audit.Party{Kind: audit.Platform, Name: request.Platform},
		Details: []slog.Attr{
			slog.Time("from", request.From), slog.Time("to", request.To), slog.Any("statuses", statuses), slog.Int("deliveries", replayed),
		},
	}, err)
}

// propertyOf returns NAMESPACE/NAME.
func propertyOf(t *Tenant) string { return t.Property.Namespace + "/" + t.Property.Name }

// actor is who asks, as the audit log names them.
func (t *Tenant) actor() audit.Party {
	if t.atTheMachine {
		return audit.Party{Kind: audit.Developer}
	}
	if t.byConsole {
		return audit.Party{Kind: audit.User, Name: t.reader.Name, Scope: string(t.reader.Scope)}
	}
	return audit.CredentialOf(t.reader)
}

// note writes down what an access token was used for.
func (h *Handler) note(r *http.Request, t *Tenant, entry audit.Entry, err error) {
	entry.Property, entry.Actor, entry.Outcome = propertyOf(t), t.actor(), audit.Success
	if err != nil {
		entry.Outcome = audit.Failure
	}
	h.audit.Write(r.Context(), entry)
}
