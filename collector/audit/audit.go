// Package audit writes down who did what with a property's keys, tokens and events, for whoever has to account for it: a
// line of JSON for each act. docs/reference/audit-log.md is the schema. A line names keys, tokens, platforms and
// sources, as the Property does, and nobody whom an event is about.
package audit

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// Act is what was done.
type Act string

// The acts, by what they are done to.
const (
	// CredentialAdded is an API key or access token that pods accept from now on, made by Weir or brought by its owner.
	CredentialAdded Act = "credential.added"
	// CredentialReplaced is another value under the same name: the one before is refused.
	CredentialReplaced Act = "credential.replaced"
	// CredentialChanged is the same value with other rights.
	CredentialChanged Act = "credential.changed"
	// CredentialRevoked is one that pods refuse from now on.
	CredentialRevoked Act = "credential.revoked"
	// CredentialFirstUsed is the first request with one that was let in.
	CredentialFirstUsed Act = "credential.first_used"
	// EventsExported is an answer of the read API with events as rows, DaysExported one with days, FiguresExported one with other
	// figures.
	EventsExported  Act = "events.exported"
	DaysExported    Act = "days.exported"
	FiguresExported Act = "figures.exported"
	// RejectionsExported is an answer with rejections as rows.
	RejectionsExported Act = "rejections.exported"
	// EventRead is a look at one event, all that was sent of it.
	EventRead Act = "event.read"
	// ShadowRead is a look at what a platform in the mode Shadow would have been sent.
	ShadowRead Act = "shadow.read"
	// PlatformTested is a made-up event that was sent to a platform in its test mode, or was to be.
	PlatformTested Act = "platform.tested"
	// DeliveriesReplayed is deliveries that were put back, to be made again.
	DeliveriesReplayed Act = "deliveries.replayed"
	// ErasureRequested is somebody's wish to have a person erased, ErasureHidden that the person is in no answer any more, and
	// ErasurePurged that the person is in no file any more.
	ErasureRequested Act = "erasure.requested"
	ErasureHidden    Act = "erasure.hidden"
	ErasurePurged    Act = "erasure.purged"
	// UserSignedIn is a person's sign-in at the console.
	UserSignedIn Act = "user.signed_in"
	// CredentialMade is a key or token that a person has made at the console, and CredentialDeleted one that a person has deleted
	// there. Pods accept it, or refuse it, from CredentialAdded and CredentialRevoked on.
	CredentialMade    Act = "credential.made"
	CredentialDeleted Act = "credential.deleted"
)

// Kind is what acts, or what is acted on.
type Kind string

// The kinds of actors and objects. What is named by them has its name in the Property.
const (
	APIKey         Kind = "api_key"
	PublishableKey Kind = "publishable_key"
	AccessToken    Kind = "access_token"
	Platform       Kind = "platform"
	Source         Kind = "source"
	// Erasure is named by its id.
	Erasure Kind = "erasure"
	// Event is named by its place in the stream.
	Event Kind = "event"
	// Events and Days are the property's own, and have no name.
	Events Kind = "events"
	Days   Kind = "days"
	// Rejections are the property's own, too.
	Rejections Kind = "rejections"
	// Figures are named by the read API's call that has them.
	Figures Kind = "figures"
	// User is a person whom the cluster knows by a name, and who asks through the console.
	User Kind = "user"
	// These act without a name: the operator and the deliverer in a cluster, `weir dev` on a person's machine.
	Operator  Kind = "operator"
	Deliverer Kind = "deliverer"
	Developer Kind = "developer"
	// Console is the cluster's page for people, of which there is one.
	Console Kind = "console"
)

// Party is who acts, or what is acted on.
type Party struct {
	Kind Kind
	// Name is "" for a kind that has one alone.
	Name string
	// Scope is an access token's, or what a user may do at the property, else "".
	Scope string
}

// LogValue writes the members that there are.
func (p Party) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("kind", string(p.Kind))}
	if p.Name != "" {
		attrs = append(attrs, slog.String("name", p.Name))
	}
	if p.Scope != "" {
		attrs = append(attrs, slog.String("scope", p.Scope))
	}
	return slog.GroupValue(attrs...)
}

// Outcome is whether what was begun was done.
type Outcome string

// The outcomes.
const (
	Success Outcome = "success"
	// Failure is an act that ended early; the details say how far it came.
	Failure Outcome = "failure"
)

// Entry is one line.
type Entry struct {
	// Time is when it was done; the zero time is now.
	Time time.Time
	Act  Act
	// Property is NAMESPACE/NAME, "" for an act that is of none.
	Property string
	Actor    Party
	Object   Party
	Outcome  Outcome
	// Details are what an act has beside these, as the schema lists them. Nothing that came with an event stands here.
	Details []slog.Attr
}

// Log writes entries. It is safe for concurrent use. A nil one keeps nothing.
type Log struct {
	lines  slog.Handler
	logger *slog.Logger
	now    func() time.Time
}

// New returns a log that writes to w a line at a time, and tells logger of acts that cannot be written.
func New(w io.Writer, logger *slog.Logger, now func() time.Time) *Log {
	return &Log{slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: line}), logger, now}
}

// timeFormat is RFC 3339 in UTC, to the millisecond.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// line leaves out what a log of acts has no use for, and writes times in one way.
func line(groups []string, attr slog.Attr) slog.Attr {
	switch {
	case len(groups) == 0 && (attr.Key == slog.LevelKey || attr.Key == slog.MessageKey):
		return slog.Attr{}
	case attr.Value.Kind() == slog.KindTime:
		return slog.String(attr.Key, attr.Value.Time().UTC().Format(timeFormat))
	}
	return attr
}

// Write writes an entry.
func (l *Log) Write(ctx context.Context, entry Entry) {
	if l == nil {
		return
	}
	at := entry.Time
	if at.IsZero() {
		at = l.now()
	}
	record := slog.NewRecord(at, slog.LevelInfo, "", 0)
	record.AddAttrs(slog.String("log", "audit"), slog.String("act", string(entry.Act)))
	if entry.Property != "" {
		record.AddAttrs(slog.String("property", entry.Property))
	}
	record.AddAttrs(slog.Any("actor", entry.Actor), slog.Any("object", entry.Object), slog.String("outcome", string(entry.Outcome)))
	if len(entry.Details) > 0 {
		record.AddAttrs(slog.GroupAttrs("details", entry.Details...))
	}
	if err := l.lines.Handle(ctx, record); err != nil {
		l.logger.ErrorContext(ctx, "an act is missing in the audit log", "act", string(entry.Act), "property", entry.Property, "error", err)
	}
}
