package controllers

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/collector/history/access"
)

const (
	// mostOwedHistories is how many histories of deleted Properties are remembered whose server is away.
	mostOwedHistories = 1000
	// longestOwed is for how long a tenant's server is looked at for the sake of what is left there: it may be away for good.
	longestOwed = time.Hour
)

// errNamesake says that there is a Property of the name, whose history it would be.
var errNamesake = errors.New("there is a Property of the name")

// historyEnd says that nothing of a history shall be there, or nothing but the data.
type historyEnd struct {
	// drop says that the data go too.
	drop bool
	// done says that it is so.
	done bool
	// owed says that nobody waits for it any more; gone whether there is no Property of the name: another one's would be removed.
	owed  bool
	gone  func(context.Context) bool
	since time.Time
}

// remove removes it.
func (e *historyEnd) remove(ctx context.Context, keeper *access.Keeper) error {
	if e.gone != nil && !e.gone(ctx) {
		return errNamesake // one that has a history makes it its own
	}
	if e.drop {
		return keeper.Drop(ctx)
	}
	return keeper.Remove(ctx)
}

// overdue says whether nobody looks any longer whether the server is back.
func (e *historyEnd) overdue(target historyTarget, now time.Time) bool {
	return !target.own && now.Sub(e.since) >= longestOwed
}

// release has a Property's users removed, and with drop its data. It says whether that is done, and what was in the way last.
func (h *HistoryAccess) release(property types.NamespacedName, target historyTarget, place access.Place, drop bool) (done bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.kept[property]
	if known == nil || known.end == nil || known.end.drop != drop || known.target != target || known.place != place {
		known = &keptHistory{target: target, place: place, end: &historyEnd{drop: drop, since: h.now()}}
		h.kept[property] = known
		h.hurry()
	}
	return known.end.done, known.err
}

// owe remembers what is left of a Property that is let go. It returns false where that cannot be remembered.
func (h *HistoryAccess) owe(property types.NamespacedName, gone func(context.Context) bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.kept[property]
	if known == nil || known.end == nil {
		return false
	}
	others := 0
	for _, other := range h.kept {
		if other.end != nil && other.end.owed {
			others++
		}
	}
	if others >= mostOwedHistories {
		delete(h.kept, property)
		return false
	}
	h.kept[property] = &keptHistory{target: known.target, place: known.place, end: &historyEnd{drop: known.end.drop, owed: true, gone: gone, since: h.now()}}
	return true
}

// forget drops a Property that is gone, but for what is left of it.
func (h *HistoryAccess) forget(property types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.resting, property)
	if kept := h.kept[property]; kept != nil && (kept.end == nil || !kept.end.owed) {
		delete(h.kept, property)
	}
}

// rest leaves the history of a paused Property alone, and remembers where it is: the Property may be deleted after the Secret that
// says so.
func (h *HistoryAccess) rest(property types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if kept := h.kept[property]; kept != nil && (kept.end == nil || !kept.end.owed) {
		h.resting[property] = kept.target
		delete(h.kept, property)
	}
}
