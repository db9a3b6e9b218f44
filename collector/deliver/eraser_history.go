package deliver

import (
	"context"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// historyPart is the history's part of a property's erasures: the archive does it, and an erasure is hidden when both are done.
// It is nil where the property has no history.
type historyPart struct {
	stream *stream.Stream
	// swept are the erasures of which Redis has nothing any more.
	swept map[stream.OpenErasure]bool
	// told are those of which it is noted that they wait for the history.
	told map[stream.OpenErasure]bool
}

func newHistoryPart(s *stream.Stream) *historyPart {
	return &historyPart{stream: s, swept: map[stream.OpenErasure]bool{}, told: map[stream.OpenErasure]bool{}}
}

// split returns which of the erasures that are due have to be done in Redis, and which of them are done there and in the history.
// What was seen with a subject is looked for in Redis when the history has said what it knows: by then it has whatever may be trimmed
// meanwhile. The others wait, and say so.
func (h *historyPart) split(ctx context.Context, due []stream.OpenErasure) (sweep, done []stream.OpenErasure, err error) {
	if h == nil {
		return due, nil, nil
	}
	var waiting []stream.OpenErasure
	for _, one := range due {
		if !one.Follow && !h.swept[one] {
			sweep = append(sweep, one)
			continue
		}
		state, err := h.stream.Erasure(ctx, one.ID)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case one.Follow && state.History.Found:
			sweep = append(sweep, one)
		case !one.Follow && state.History.Hidden:
			done = append(done, one)
		default:
			waiting = append(waiting, one)
		}
	}
	return sweep, done, h.tell(ctx, waiting)
}

// tell notes that erasures wait for the history.
func (h *historyPart) tell(ctx context.Context, waiting []stream.OpenErasure) error {
	var ids []string
	for _, one := range waiting {
		if !h.told[one] {
			ids = append(ids, one.ID)
		}
	}
	if err := h.stream.NoteUnhidden(ctx, ids, stream.UnhiddenHistory); err != nil {
		return err
	}
	for _, one := range waiting {
		h.told[one] = true
	}
	return nil
}

// ready returns those of the erasures that are done in Redis which are done in the history too; the others are next time's.
func (h *historyPart) ready(ctx context.Context, done []stream.OpenErasure) ([]stream.OpenErasure, error) {
	if h == nil {
		return done, nil
	}
	for _, one := range done {
		h.swept[one] = true
	}
	_, ready, err := h.split(ctx, done)
	return ready, err
}

// linked returns what the history knows of what was seen with an erasure's subject.
func (h *historyPart) linked(ctx context.Context, id string) ([]event.Identifier, error) {
	if h == nil {
		return nil, nil
	}
	state, err := h.stream.Erasure(ctx, id)
	return state.History.Linked, err
}

// forget forgets erasures that are not open any more, as they stood.
func (h *historyPart) forget(open []stream.OpenErasure) {
	if h == nil {
		return
	}
	still := map[stream.OpenErasure]bool{}
	for _, one := range open {
		still[one] = true
	}
	for _, list := range []map[stream.OpenErasure]bool{h.swept, h.told} {
		for one := range list {
			if !still[one] {
				delete(list, one)
			}
		}
	}
}
