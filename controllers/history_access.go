package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/connect"
	"github.com/weir-dev/weir/collector/egress"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/collector/history/schema"
)

const (
	// historyTick is how often it is looked whose turn it is.
	historyTick = time.Second
	// historyInterval is how often each history is looked at: what it lacks, such as a user who was dropped, is back within that.
	historyInterval = 30 * time.Second
	// historyRetry is when one that was not as it should be is looked at again.
	historyRetry = 5 * time.Second
	// historyTimeout is how long a look at the history of one Property may take.
	historyTimeout = 20 * time.Second
	// mostHistoryServers is how many ClickHouse servers the Properties of a namespace may bring.
	mostHistoryServers = 32
	// longestHistoryAnswer is how many bytes are read of what a server answers to one of the operator's questions.
	longestHistoryAnswer = 4 << 20
)

// Errors of [HistoryAccess] beside those of package clickhouse.
var (
	errTooManyHistories = fmt.Errorf("the Properties of this namespace bring more than %d ClickHouse servers", mostHistoryServers)
	errHistoryAddress   = errors.New("the address of ClickHouse is not one that may be connected to")
	errHistoryTables    = errors.New("a table of the history is not as it must be")
)

// HistoryAccess keeps each Property's history at what is desired: a database, a user for each role that reaches it, their rights,
// tables; or nothing of these, of a Property that has none any more. A reconcile says what is desired and gets what the last
// look has found; Start looks, and tells of changes. So no reconcile waits for a ClickHouse. It is the one place of the operator
// that speaks to ClickHouse. It is safe for concurrent use.
type HistoryAccess struct {
	logger *slog.Logger
	// changed is told of Properties whose history is in another state than before.
	changed notices
	// own says what is trusted and shown in the operator's own ClickHouse.
	own TLSSource
	// guard is asked where a tenant's ClickHouse may be.
	guard egress.Guard
	now   func() time.Time
	// wake has somebody look whose turn it is.
	wake chan struct{}

	mu sync.Mutex
	// kept says what shall be of each Property, also when the Secret that says so is gone.
	kept map[types.NamespacedName]*keptHistory
	// resting says where the history of each paused Property is, at which nobody looks.
	resting map[types.NamespacedName]historyTarget
	// busy are the servers that somebody works on: one at a time on each, so that what is removed is gone before it is made anew.
	busy map[historyTarget]bool
}

// historyTarget is a ClickHouse as the operator reaches it.
type historyTarget struct {
	url string
	tls connect.TLS
	// own says that whoever runs the operator has chosen it, not a tenant.
	own bool
}

// keptHistory is what shall be of a Property's history, and what was found of it.
type keptHistory struct {
	target historyTarget
	place  access.Place
	users  []access.User
	// end says that nothing of it shall be there; nil where it shall.
	end *historyEnd
	// rotated are the users of whom no password before is in force any more.
	rotated []access.User
	// looked is when it was looked at last, the zero time for not yet; err is what was wrong then.
	looked time.Time
	err    error
}

// historyState is what is known of a history.
type historyState struct {
	// looked says that somebody has looked since something else was desired.
	looked bool
	err    error
}

// NewHistoryAccess makes it; Start looks. A tenant's ClickHouse may be at a public address, or in one of the allowed ranges.
func NewHistoryAccess(logger *slog.Logger, own TLSSource, allowed []netip.Prefix, now func() time.Time) *HistoryAccess {
	return &HistoryAccess{
		logger: logger, own: own, guard: egress.Guard{Allowed: allowed}, now: now,
		changed: make(notices, mostNotices), wake: make(chan struct{}, 1),
		kept: map[types.NamespacedName]*keptHistory{}, resting: map[types.NamespacedName]historyTarget{}, busy: map[historyTarget]bool{},
	}
}

// keep says what a Property's history shall be.
func (h *HistoryAccess) keep(property types.NamespacedName, target historyTarget, place access.Place, users []access.User) historyState {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.resting, property)
	known := h.kept[property]
	if known == nil || known.end != nil || known.target != target || known.place != place || !slices.Equal(known.users, users) {
		if !target.own && h.brought(property, target) > mostHistoryServers {
			return historyState{looked: true, err: errTooManyHistories}
		}
		next := &keptHistory{target: target, place: place, users: users}
		if known != nil && known.target == target {
			next.rotated = slices.Clone(known.rotated)
		}
		known, h.kept[property] = next, next
		h.hurry()
	}
	return historyState{looked: !known.looked.IsZero(), err: known.err}
}

// brought counts the servers of a namespace's own, with that of one of its Properties; the lock is held.
func (h *HistoryAccess) brought(property types.NamespacedName, target historyTarget) int {
	found := map[string]bool{target.url: true}
	for other, kept := range h.kept {
		if other != property && other.Namespace == property.Namespace && kept.end == nil && !kept.target.own {
			found[kept.target.url] = true
		}
	}
	return len(found)
}

// home returns where a Property's history is, as far as is known.
func (h *HistoryAccess) home(property types.NamespacedName) (target historyTarget, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if kept := h.kept[property]; kept != nil {
		return kept.target, true
	}
	target, known = h.resting[property]
	return target, known
}

// hurry has somebody look whose turn it is without waiting for the next tick.
func (h *HistoryAccess) hurry() {
	select {
	case h.wake <- struct{}{}:
	default: // somebody looks already
	}
}

// Start looks at every history until ctx ends, and waits for no server on account of another. It is what the manager runs while
// this operator leads.
func (h *HistoryAccess) Start(ctx context.Context) error {
	ticker := time.NewTicker(historyTick)
	defer ticker.Stop()
	var works sync.WaitGroup
	for {
		select {
		case <-ctx.Done():
			works.Wait()
			return nil
		case <-ticker.C:
			h.lookAtCertificates(ctx)
		case <-h.wake:
		}
		for target, properties := range h.due() {
			works.Go(func() {
				defer h.free(target)
				h.work(ctx, target, properties)
			})
		}
	}
}

// due returns the Properties whose turn it is, by server, and takes these servers.
func (h *HistoryAccess) due() map[historyTarget][]types.NamespacedName {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, due := h.now(), map[historyTarget][]types.NamespacedName{}
	for property, kept := range h.kept {
		if !h.busy[kept.target] && kept.due(now) {
			due[kept.target] = append(due[kept.target], property)
		}
	}
	for target := range due {
		h.busy[target] = true
	}
	return due
}

// due says whether it is to be looked at.
func (k *keptHistory) due(now time.Time) bool {
	switch {
	case k.end != nil && k.end.done:
		return false
	case k.looked.IsZero():
		return true
	case k.err != nil || k.end != nil:
		return now.Sub(k.looked) >= historyRetry
	default:
		return now.Sub(k.looked) >= historyInterval
	}
}

func (h *HistoryAccess) free(target historyTarget) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.busy, target)
	h.hurry()
}

// work looks at the histories of a server, one after the other. Where it does not answer, the others are not tried.
func (h *HistoryAccess) work(ctx context.Context, target historyTarget, properties []types.NamespacedName) {
	var away error
	for _, property := range properties {
		h.mu.Lock()
		kept := h.kept[property]
		h.mu.Unlock()
		if kept == nil || kept.target != target {
			continue
		}
		err := away
		if err == nil {
			err = h.look(ctx, property, kept)
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, clickhouse.Unreachable) || errors.Is(err, errHistoryAddress) {
			away = err
		}
		if h.found(property, kept, err) {
			h.changed.tell(ctx, property)
		}
	}
}

// found notes what a look has found, and says whether it is another thing than before.
func (h *HistoryAccess) found(property types.NamespacedName, kept *keptHistory, err error) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	news = kept.looked.IsZero() || fmt.Sprint(kept.err) != fmt.Sprint(err)
	if kept.end != nil && err == nil {
		kept.end.done, news = true, true
	}
	kept.looked, kept.err = h.now(), err
	if h.kept[property] != kept {
		return false // something else is desired by now
	}
	if kept.end != nil && kept.end.owed && (kept.end.done || kept.end.overdue(kept.target, h.now())) {
		delete(h.kept, property)
		h.logger.Info("the history of a deleted Property is looked for no longer", "property", property.String(), "removed", kept.end.done)
	}
	return news
}

// look makes the history of a Property what it shall be.
func (h *HistoryAccess) look(ctx context.Context, property types.NamespacedName, kept *keptHistory) error {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	var denied atomic.Bool
	how, err := h.options(kept.target, &denied)
	if err != nil {
		return err
	}
	keeper, err := access.Open(kept.target.url, how, kept.place)
	if err != nil {
		return err
	}
	defer keeper.Close()
	if kept.end != nil {
		err = kept.end.remove(ctx, keeper)
	} else {
		err = h.ensure(ctx, property, kept, keeper, how)
	}
	if err != nil && denied.Load() && errors.Is(err, clickhouse.Unreachable) {
		return errHistoryAddress
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &clickhouse.Problem{Kind: clickhouse.Unreachable, Message: "it does not answer in time"}
	}
	return err
}

// ensure makes what is missing, and puts right what is not as it should be.
func (h *HistoryAccess) ensure(ctx context.Context, property types.NamespacedName, kept *keptHistory, keeper *access.Keeper, how clickhouse.Options) error {
	repaired, err := keeper.Ensure(ctx, kept.users)
	if len(repaired) > 0 && kept.err == nil && !kept.looked.IsZero() {
		h.logger.InfoContext(ctx, "a history is put right", "property", property.String(), "repaired", repaired)
	}
	if err != nil {
		return err
	}
	for _, user := range kept.users {
		if user.KeepPasswords || slices.Contains(kept.rotated, user) {
			continue
		}
		if err := keeper.Rotated(ctx, user); err != nil {
			return err
		}
		h.mu.Lock()
		kept.rotated = append(kept.rotated, user)
		h.mu.Unlock()
	}
	return ensureTables(ctx, kept, how)
}

// ensureTables makes the tables, and what they lack.
func ensureTables(ctx context.Context, kept *keptHistory, how clickhouse.Options) error {
	address, err := url.Parse(kept.target.url)
	if err != nil {
		return clickhouse.ErrURL
	}
	address.Path = "/" + kept.place.Database()
	client, err := clickhouse.Dial(address.String(), how)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = schema.EnsureOn(ctx, client, schema.Cluster(kept.place.Cluster))
	if _, known := errors.AsType[*clickhouse.Problem](err); err != nil && !known && ctx.Err() == nil {
		return errHistoryTables // whose words have the server's
	}
	return err
}

// options say how a server is reached. The certificates of the operator's own are read anew each time.
func (h *HistoryAccess) options(target historyTarget, denied *atomic.Bool) (clickhouse.Options, error) {
	how := clickhouse.Options{TLS: target.tls, LongestAnswer: longestHistoryAnswer}
	if target.own {
		var err error
		how.TLS, err = h.own.Read()
		return how, err
	}
	how.Control = func(network, address string, connection syscall.RawConn) error {
		err := h.guard.Control(network, address, connection)
		if err != nil {
			denied.Store(true)
		}
		return err
	}
	return how, nil
}

// lookAtCertificates tells the Properties in the operator's own ClickHouse when its certificates are others than those that they have.
func (h *HistoryAccess) lookAtCertificates(ctx context.Context) {
	now, err := h.own.Read()
	if err != nil {
		return // the Properties that are reconciled say so, and look again
	}
	h.mu.Lock()
	var tell []types.NamespacedName
	for property, kept := range h.kept {
		if kept.target.own && kept.end == nil && kept.target.tls != now {
			tell = append(tell, property)
		}
	}
	h.mu.Unlock()
	h.changed.tell(ctx, tell...)
}
