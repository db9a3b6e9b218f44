package controllers

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/ledger"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// erasureTimeout is how long one look for the erasures of all Properties of a Redis may take. The next one goes on.
	erasureTimeout = 30 * time.Second
	// ledgerBytesPerSecond is how much of a Property's ledger is written in the long run: a Redis that asks without end must not
	// fill the cluster's database with versions of it.
	ledgerBytesPerSecond = 64 << 10
	// heldUpInterval is how long nobody looks at a ledger after something stood in the way that a person has to mend.
	heldUpInterval = 10 * time.Second
)

// ledgerKeeping keeps a Property's ledger of erasures. What is not said to be guarded is used by one look at a time.
type ledgerKeeping struct {
	keeper  *ledger.Keeper
	secrets *ledgerSecrets
	// large says that the ledger was found to be a large one.
	large bool
	// generation is that of the Property for which it was made.
	generation int64
	// problem is what stood in the way the last time.
	problem *conditionReason
	// next is when the ledger may be looked at again. It outlives what is kept here, and so is read while a look goes on.
	next atomic.Pointer[time.Time]
}

// keepLedger has the requests for erasures of a Property written to its ledger, which is in Secrets of some versions, and
// returns what stands in the way of erasures.
func (a *RedisAccess) keepLedger(property *v1alpha1.Property, versions []string, secrets *ledgerSecrets) *conditionReason {
	a.mu.Lock()
	defer a.mu.Unlock()
	desired := a.desired[keyOf(property)]
	if desired == nil || desired.debt != nil {
		return nil
	}
	before := desired.ledger
	if before == nil || before.generation != property.Generation || !slices.Equal(before.secrets.known(), versions) {
		// Somebody else has changed it: the ledger stream is compared with it again.
		secrets.note(versions)
		desired.ledger = &ledgerKeeping{
			keeper: &ledger.Keeper{
				Store: secrets, Retention: time.Duration(property.Spec.Retention.Days) * 24 * time.Hour, Capacity: ledgerCapacity(),
			},
			secrets: secrets, generation: property.Generation,
		}
		if before != nil {
			desired.ledger.next.Store(before.next.Load())
		}
	}
	return desired.erasureProblem
}

// lookAtErasures writes the requests for erasures that wait in a Redis to their Properties' ledgers, appends to the ledger
// streams what they lack, and has the Redis rewrite its files where they have what was erased. Properties are told when what
// stands in the way changes.
func (a *RedisAccess) lookAtErasures(whole context.Context, server *redisServer) {
	if state, looked := server.lastLook(); !looked || !state.reachable() {
		return
	}
	ctx, cancel := context.WithTimeout(whole, erasureTimeout)
	defer cancel()
	link := server.link.Load()
	var properties []types.NamespacedName
	var streams []*stream.Stream
	known := a.desiredIn(server.target)
	for property, desired := range known {
		if desired.ledger != nil {
			properties, streams = append(properties, property), append(streams, link.client.Stream(property.Namespace, property.Name))
		}
	}
	work, err := link.client.ErasureWork(ctx, streams)
	if err != nil && !stream.Denied(err) {
		return // that a Redis does not answer is said by others
	}
	problems := make([]*conditionReason, len(properties))
	var hidden []*stream.Stream
	for _, i := range pressing(work) {
		problems[i] = known[properties[i]].ledger.look(ctx, a.rooms[server.target.own], server.target, streams[i], work[i])
		if work[i].Unpurged() {
			hidden = append(hidden, streams[i])
		}
	}
	purging := erasureProblemOf(server.target, link.purger.Look(ctx, time.Now(), hidden))
	var tell []types.NamespacedName
	for i, property := range properties {
		problem := problems[i]
		switch {
		case err != nil:
			problem = erasureProblemOf(server.target, err)
		case problem == nil && work[i].Hidden > 0:
			problem = purging
		}
		if a.noteErasures(ctx, server.target, property, problem) {
			tell = append(tell, property)
		}
	}
	a.changed.tell(whole, tell...)
}

// pressing returns the places of some work, that with requests first: somebody waits for them.
func pressing(work []stream.ErasureWork) []int {
	first, then := []int(nil), []int(nil)
	for i := range work {
		if work[i].Requests > 0 {
			first = append(first, i)
		} else {
			then = append(then, i)
		}
	}
	return append(first, then...)
}

// ledgerRoom bounds how many ledgers are in memory at a time: of those that are kept in the operator's Redis, and of those in
// tenants', which may all be large.
type ledgerRoom struct{ small, large chan struct{} }

func newLedgerRoom() ledgerRoom {
	const small, large = 8, 1
	return ledgerRoom{make(chan struct{}, small), make(chan struct{}, large)}
}

// enter takes a place for a ledger, where there is one; leave gives it back.
func (r ledgerRoom) enter(isLarge bool) (leave func(), entered bool) {
	places := r.small
	if isLarge {
		places = r.large
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	default:
		return nil, false
	}
}

// look keeps one Property's ledger, and returns what stands in the way.
func (k *ledgerKeeping) look(ctx context.Context, room ledgerRoom, target redisTarget, s *stream.Stream, work stream.ErasureWork) *conditionReason {
	now := time.Now()
	if next := k.next.Load(); next != nil && now.Before(*next) || work.Requests == 0 && k.keeper.Complete(work.Ledger) {
		return k.problem
	}
	leave, entered := room.enter(k.large)
	if !entered {
		return k.problem // until the next look
	}
	defer leave()
	if !target.own {
		limited, cancel := context.WithTimeout(ctx, redisTimeout)
		defer cancel()
		ctx = limited
	}
	k.secrets.most = smallLedgerBytes
	if k.large {
		k.secrets.most = config.MaxLedgerParts * ledgerPartBytes
	}
	k.keeper.Stream = s // by the connection that there is now
	_, err := k.keeper.Look(ctx, now)
	next := now.Add(time.Duration(k.secrets.drop()) * time.Second / ledgerBytesPerSecond)
	switch {
	case errors.Is(err, errLedgerLarge):
		k.large = true // by the next look
	case err == nil, errors.Is(err, errNoLedger), errors.Is(err, ledger.ErrConflict):
		k.problem = nil
	default:
		if problem := erasureProblemOf(target, err); problem != nil {
			k.problem, next = problem, now.Add(heldUpInterval)
		}
	}
	k.next.Store(&next)
	return k.problem
}

// noteErasures notes what stands in the way of a Property's erasures, and says whether that is news.
func (a *RedisAccess) noteErasures(ctx context.Context, target redisTarget, property types.NamespacedName, problem *conditionReason) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	desired := a.desired[property]
	if desired == nil || desired.target != target || desired.erasureProblem == problem ||
		desired.erasureProblem != nil && problem != nil && *desired.erasureProblem == *problem {
		return false
	}
	desired.erasureProblem = problem
	if problem != nil {
		a.logger.WarnContext(ctx, "persons cannot be erased as they should be", "property", property.String(), "reason", problem.reason, "message", problem.message)
	}
	return true
}

// erasureProblems are the conditions for what of Redis may stand in the way of erasures, each with what to do about it.
var erasureProblems = []struct {
	problem        error
	reason, advice string
}{
	{stream.ErrRewriteDenied, v1alpha1.ReasonRedisRewriteDenied, "its files keep what was erased until somebody has them rewritten; give it these commands, or do that yourself"},
	{stream.ErrSnapshots, v1alpha1.ReasonRedisKeepsErased, "its files keep what was erased until then"},
	{stream.ErrRewriteFailed, v1alpha1.ReasonRedisRewriteFailed, "its files keep what was erased until it does; its log says why, such as a lack of memory or disk"},
}

// erasureProblemOf is the condition for why persons cannot be erased as they should be, nil where that passes by itself or is
// said by another condition.
func erasureProblemOf(target redisTarget, err error) *conditionReason {
	field := target.field()
	full, isFull := errors.AsType[*ledger.FullError](err)
	invalid, isInvalid := errors.AsType[*ledgerInvalidError](err)
	_, isObject := errors.AsType[*objectError](err)
	switch {
	case err == nil:
		return nil
	case isFull:
		return reasonf(v1alpha1.ReasonLedgerFull, "the ledger of erasures has room for %d identifiers, and all are taken; who is erased without suppress leaves it "+
			"a day after the retention, so a shorter spec.retention.days makes room; requests wait until then", full.Capacity)
	case isInvalid:
		return reasonf(v1alpha1.ReasonSecretInvalid, "%v; put it back from a backup, by kubectl replace: until then nobody is erased", invalid)
	case isObject:
		problem := failureOf(err)
		return &problem
	case stream.Denied(err):
		return reasonf(v1alpha1.ReasonRedisAdminDenied, "%sthe Redis user may not do what erasures take; give it the commands that docs/operate/redis.md lists", field)
	}
	for _, known := range erasureProblems {
		if errors.Is(err, known.problem) {
			return reasonf(known.reason, "%s%v; %s (see docs/operate/redis.md)", field, stream.Explain(err), known.advice)
		}
	}
	return nil
}
