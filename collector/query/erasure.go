package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// Eraser has persons erased and knows what has become of that. [stream.ErasureRequester] is one.
type Eraser interface {
	// Erase returns when the request stands in the ledger; it fails with [stream.ErrNotLedgered] where it does not before ctx ends.
	Erase(ctx context.Context, request stream.ErasureRequest) (stream.ErasureState, error)
	// Erasure fails with [stream.ErrNoErasure] where there is none of that id, or none that stands in the ledger.
	Erasure(ctx context.Context, id string) (stream.ErasureState, error)
}

// erasureParameter names the path parameter that holds an erasure's id.
const erasureParameter = "erasure"

const (
	// maxErasureBody bounds a request's body, in bytes.
	maxErasureBody = 16 << 10
	// ledgerTimeout is how long a request waits until it stands in the ledger.
	ledgerTimeout = 8 * time.Second
	// ledgerRetryAfter is when to ask again where it did not.
	ledgerRetryAfter = 10 * time.Second
)

// erasureMembers are those that a request's body may have: the subject's, of which there is one, and two switches.
var erasureMembers = slices.Concat(envelope.SubjectMembers[:], []string{"linked", "suppress"})

// erase takes a request for a person's erasure, and answers once it stands in the ledger, from where nothing is forgotten. It
// holds nothing that others wait for.
func (h *Handler) erase(w http.ResponseWriter, r *http.Request, t *Tenant) {
	body, ok := readBody(w, r, maxErasureBody)
	if !ok {
		return
	}
	object, err := outline.Decode(body)
	if err != nil {
		server.Message(w, http.StatusBadRequest, notObject)
		return
	}
	request, errs := erasureRequest(object, propertyOf(t))
	if len(errs) > 0 {
		server.Invalid(w, errs)
		return
	}
	request.Origin = "api:" + t.reader.Name
	ctx, cancel := context.WithTimeout(r.Context(), ledgerTimeout)
	defer cancel()
	state, err := t.Eraser.Erase(ctx, request)
	h.audit.Write(r.Context(), audit.RequestedErasure(propertyOf(t), request.ID, t.actor(), err))
	switch {
	case errors.Is(err, stream.ErrNotLedgered):
		h.logger.WarnContext(r.Context(), "an erasure is requested, and nobody has written it to the ledger yet", "erasure", request.ID)
		server.Unavailable(w, notLedgered, ledgerRetryAfter)
		return
	case err != nil:
		h.logger.ErrorContext(r.Context(), "an erasure cannot be requested", "error", err)
		server.Unavailable(w, "The erasure cannot be requested at the moment. Please ask again.", replayRetryAfter)
		return
	}
	h.answerErasure(w, http.StatusAccepted, t, state)
}

// erasure answers what has become of a request.
func (h *Handler) erasure(w http.ResponseWriter, r *http.Request, t *Tenant) {
	id := server.PathParameter(r, erasureParameter)
	if len(id) != len(uuid.Nil.String()) || uuid.Validate(id) != nil {
		server.Message(w, http.StatusNotFound, unknownErasure)
		return
	}
	state, err := t.Eraser.Erasure(r.Context(), strings.ToLower(id))
	switch {
	case errors.Is(err, stream.ErrNoErasure):
		server.Message(w, http.StatusNotFound, unknownErasure)
	case err != nil:
		h.logger.ErrorContext(r.Context(), "the state of an erasure cannot be read", "error", err)
		server.Unavailable(w, "The erasure's state cannot be read from Redis at the moment.", replayRetryAfter)
	default:
		h.answerErasure(w, http.StatusOK, t, state)
	}
}

// The answers where there is no erasure to tell of.
const (
	unknownErasure = "Erasure not found."
	notLedgered    = "The erasure is requested, but nobody has written it to the ledger yet. It is carried out once that is done; asking again does no harm."
)

// erasureRequest reads a request's body.
func erasureRequest(object, property string) (stream.ErasureRequest, event.Errors) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		panic(err) // outline.Decode has accepted it
	}
	errs := unknownMembers(members, erasureMembers...)
	var subjects []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(envelope.SubjectMembers[:], name) && !outline.Absent(string(members[name])) {
			subjects = append(subjects, name)
		}
	}
	request := stream.ErasureRequest{ID: uuid.NewString()}
	for name, into := range map[string]*bool{"linked": &request.Linked, "suppress": &request.Suppress} {
		switch string(members[name]) {
		case "", "null", "false":
		case "true":
			*into = true
		default:
			errs.Add(name, fmt.Sprintf("The %s field must be true or false.", name))
		}
	}
	switch len(subjects) {
	case 0:
		errs.Add("email", "One of the fields "+strings.Join(envelope.SubjectMembers[:], ", ")+" is required.")
	case 1:
		ids, wrong := envelope.Subject(object, property)
		request.Identifiers, errs = ids, append(errs, wrong...)
	default:
		errs.Add(subjects[1], "The "+subjects[1]+" field must be absent beside "+subjects[0]+": an erasure is of one subject.")
	}
	slices.SortStableFunc(errs, func(a, b event.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return request, errs
}

// erasureAnswer is an erasure as the API tells of it.
type erasureAnswer struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	// The times are null where it has not come that far.
	RequestedAt *string `json:"requested_at"`
	LedgeredAt  *string `json:"ledgered_at"`
	HiddenAt    *string `json:"hidden_at"`
	PurgeBy     *string `json:"purge_by"`
	PurgedAt    *string `json:"purged_at"`
	// Unhidden is what it waits for where Redis has nothing of the person any more, Unpurged why files still have the person.
	Unhidden    *string `json:"unhidden_reason"`
	Unpurged    *string `json:"unpurged_reason"`
	Events      int64   `json:"events"`
	Records     int64   `json:"delivery_records"`
	Identifiers int64   `json:"identifiers"`
	Linked      int64   `json:"linked_identifiers"`

	Platforms []platformErasure `json:"platforms"`
}

// platformErasure says what the owner has to do at a platform.
type platformErasure struct {
	Platform string `json:"platform"`
	// Type is absent where the Property does not name the platform any more.
	Type string `json:"type,omitempty"`
	// Sent says that erased events were for this platform, as far as they are found yet.
	Sent bool `json:"sent"`
	// Forwarded says whether the platform was asked to erase the person: "done", "failed" or "not_asked".
	Forwarded string `json:"forwarded"`
	// ForwardedAt is when it took that last, ForwardFailure why it has not taken all of it, as a short code.
	ForwardedAt    *string `json:"forwarded_at"`
	ForwardFailure *string `json:"forward_failure"`
	Instruction    string  `json:"instruction"`
	Documentation  *string `json:"documentation"`
}

// answerErasure answers with an erasure's state.
func (h *Handler) answerErasure(w http.ResponseWriter, status int, t *Tenant, state stream.ErasureState) {
	moment := func(at time.Time) *string {
		if at.IsZero() {
			return nil
		}
		return optional(instant(at))
	}
	answer := erasureAnswer{
		ID: state.ID, Status: erasureStatus(state), RequestedAt: moment(state.Requested), LedgeredAt: moment(state.Ledgered),
		HiddenAt: moment(state.Hidden), PurgeBy: moment(state.Ledgered.Add(stream.PurgedWithin)), PurgedAt: moment(state.Purged), Unhidden: optional(state.Unhidden), Unpurged: optional(state.Unpurged),
		Events: state.Events, Records: state.Records, Identifiers: state.Identifiers, Linked: state.Linked,
		Platforms: []platformErasure{},
	}
	for _, platform := range t.Property.Platforms {
		traits, _ := platform.Type.Traits()
		answer.Platforms = append(answer.Platforms, platformErasureOf(state, platform.Name, platform.Type, traits.Erasure))
	}
	for _, name := range state.Platforms {
		if t.Property.Platform(name) == nil {
			answer.Platforms = append(answer.Platforms, platformErasureOf(state, name, "", platforms.Erasure{Instruction: formerPlatform}))
		}
	}
	server.JSON(w, status, struct {
		Data erasureAnswer `json:"data"`
	}{answer})
}

// platformErasureOf says of a platform what has been done there and what is left to do.
func platformErasureOf(state stream.ErasureState, name string, kind platforms.Type, left platforms.Erasure) platformErasure {
	told := platformErasure{
		Platform: name, Type: string(kind), Sent: slices.Contains(state.Platforms, name), Forwarded: "not_asked",
		Instruction: left.Instruction, Documentation: optional(left.URL),
	}
	if at, taken := state.Forwarded[name]; taken {
		told.Forwarded, told.ForwardedAt = "done", optional(instant(at))
	}
	if reason, failed := state.Unforwarded[name]; failed {
		told.Forwarded, told.ForwardFailure = "failed", optional(reason)
	}
	return told
}

// formerPlatform is what is known of a platform that the Property does not name any more.
const formerPlatform = "The Property does not name this platform any more, but events of the person were for it: erase the person there."

// erasureStatus says how far an erasure is, in one word.
func erasureStatus(state stream.ErasureState) string {
	switch {
	case !state.Purged.IsZero():
		return "purged"
	case !state.Hidden.IsZero():
		return "hidden"
	default:
		return "ledgered"
	}
}
