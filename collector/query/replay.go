package query

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// Replayer puts deliveries back that are to be made again.
type Replayer interface {
	Replay(ctx context.Context, request stream.ReplayRequest) (int, error)
}

// Reach says how far back a property's events are there.
type Reach interface {
	// Earliest returns the time from which on no event is missing; zero where none is.
	Earliest(ctx context.Context) (time.Time, error)
}

const (
	// maxReplayBody bounds a replay's body, in bytes.
	maxReplayBody = 16 << 10
	// reachSlack is by how much a period may begin before the earliest time: that moves on, and whoever was told it asks a little later.
	reachSlack = 10 * time.Minute
)

// replayable are the statuses that may be made again, by their spelling.
var replayable = []stream.Status{stream.Failed, stream.Expired, stream.Skipped}

// replayedByDefault are those of them that are made again where nothing is said.
var replayedByDefault = []stream.Status{stream.Failed, stream.Expired}

// replay puts a platform's failed and expired deliveries of a period back, or those that were not made in the mode Shadow.
func (h *Handler) replay(w http.ResponseWriter, r *http.Request, t *Tenant) {
	members, ok := readMembers[any](w, r, maxReplayBody)
	if !ok {
		return
	}
	request, errs := h.replayRequest(members, t)
	if len(errs) > 0 {
		server.Invalid(w, errs)
		return
	}
	earliest, err := earliestOf(r.Context(), t)
	if err != nil {
		h.logger.ErrorContext(r.Context(), "it cannot be told how far back a replay reaches", "platform", request.Platform, "error", err)
		server.Unavailable(w, "The deliveries cannot be put back now. Those that were are not put back again.", replayRetryAfter)
		return
	}
	if request.From.Add(reachSlack).Before(earliest) {
		errs.Add("from", "Events from before "+instant(earliest)+" are not there any more; that is the earliest time from which on deliveries can be put back.")
		server.Invalid(w, errs)
		return
	}
	replayed, err := t.Replayer.Replay(r.Context(), request)
	h.noteReplay(r, t, request, replayed, err)
	if err != nil {
		h.logger.ErrorContext(r.Context(), "deliveries cannot be put back", "platform", request.Platform, "replayed", replayed, "error", err)
		server.Unavailable(w, "The deliveries cannot be put back now. Those that were are not put back again.", replayRetryAfter)
		return
	}
	type answer struct {
		Replayed int `json:"replayed"`
	}
	server.JSON(w, http.StatusAccepted, struct {
		Data answer `json:"data"`
	}{answer{replayed}})
}

// earliestOf returns the earliest time from which on a property's deliveries can be put back.
func earliestOf(ctx context.Context, t *Tenant) (time.Time, error) {
	if t.Reach == nil {
		return time.Time{}, nil
	}
	return t.Reach.Earliest(ctx)
}

// replayRequest reads a replay's body.
func (h *Handler) replayRequest(members map[string]any, t *Tenant) (stream.ReplayRequest, event.Errors) {
	errs := unknownMembers(members, "platform", "from", "to", "status")
	text := func(name string, required bool) string {
		switch value := members[name].(type) {
		case string:
			if value != "" {
				return value
			}
		case nil:
		default:
			errs.Add(name, fmt.Sprintf("The %s field must be a string.", name))
			return ""
		}
		if required {
			errs.Add(name, fmt.Sprintf("The %s field is required.", name))
		}
		return ""
	}
	now := h.now()
	request := stream.ReplayRequest{Platform: text("platform", true)}
	if request.Platform != "" && t.Property.Platform(request.Platform) == nil {
		errs.Add("platform", "The selected platform is invalid.")
	}
	asked := periodQuery{From: text("from", true), To: text("to", false)}
	if asked.From != "" {
		period, wrong := parsePeriod(asked, now, t.Location, lastDay)
		errs = append(errs, wrong...)
		request.From, request.To = period.From, period.To
	}
	var wrong event.Errors
	request.Statuses, wrong = replayStatuses(members["status"])
	return request, append(errs, wrong...)
}

// replayStatuses reads the member status: what failed or expired where it is absent. Of what was skipped it is what a platform
// was not sent in the mode Shadow.
func replayStatuses(member any) ([]stream.Status, event.Errors) {
	var errs event.Errors
	if member == nil {
		return replayedByDefault, nil
	}
	list, ok := member.([]any)
	if !ok {
		errs.Add("status", "The status field must be an array.")
		return nil, errs
	}
	var statuses []stream.Status
	for i, item := range list {
		at := slices.IndexFunc(replayable, func(s stream.Status) bool { return item == s.String() })
		if at < 0 {
			path := fmt.Sprintf("status.%d", i)
			errs.Add(path, fmt.Sprintf("The selected %s is invalid.", path))
			continue
		}
		statuses = append(statuses, replayable[at])
	}
	if len(list) == 0 {
		errs.Add("status", "The status field is required.")
	}
	return statuses, errs
}
