package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/egress"
	"github.com/weir-dev/weir/collector/ledger"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	// redisInterval is how often each Redis is looked at: what it forgot, such as its users after a restart
	// without an ACL file, is back within that.
	redisInterval = 3 * time.Second
	// redisTimeout is how long one look, or one reconcile's change, may take.
	redisTimeout = 5 * time.Second
	// tenantTimeout is how long a reconcile's change of a tenant's Redis may take: one that does not answer keeps a worker
	// from other Properties.
	tenantTimeout = 2 * time.Second
	// mostTenantServers is how many Redis servers the Properties of a namespace may bring.
	mostTenantServers = 32
)

// errTooMany says that a namespace has more of its own than it may.
var errTooMany = fmt.Errorf("the Properties of this namespace bring more than %d Redis servers", mostTenantServers)

// RedisFiles are the files with the certificates of the operator's Redis.
type RedisFiles = stream.TLSFiles

// RedisAccess keeps each Redis at what is desired of the Properties there: the function library, a user for each role,
// data that lasts; or nothing, of a Property that was let go. A reconcile says what is desired and has it made so at
// once, as far as Redis answers; Start keeps it so, and tells of changes. It is the one place of the operator that
// speaks Redis. It is safe for concurrent use.
type RedisAccess struct {
	logger *slog.Logger
	// audit is told which erasures are purged; nil for none.
	audit *audit.Log
	// changed is told of Properties whose Redis, or whose platforms, are in another state than before.
	changed notices
	// own says what is trusted and shown in the operator's own Redis.
	own TLSSource
	// guard is asked where a tenant's Redis may be, inside where one that is made for a Property.
	guard, inside egress.Guard
	now           func() time.Time

	// rooms bound the ledgers of erasures that are in memory: those in the operator's own Redis, and those in others.
	rooms map[bool]ledgerRoom

	mu sync.Mutex
	// desired says where each Property is kept and what shall be there, also when the Secret that says so is gone.
	desired map[types.NamespacedName]*desiredProperty
	// resting says where each paused Property is kept, at which nobody looks.
	resting map[types.NamespacedName]redisTarget
	// servers are the Redis servers of those that are desired, and no others.
	servers map[redisTarget]*redisServer
}

// TLSSource says what is trusted and shown in a Redis now; it changes when certificates are rotated. Errors are those of [stream.TLSFiles].
type TLSSource interface {
	Read() (stream.TLS, error)
}

// redisTarget is a Redis as the operator reaches it; two that differ share no connection.
type redisTarget struct {
	url string
	tls stream.TLS
	// own says that whoever runs the operator has chosen it, not a tenant.
	own bool
	// dedicated is the name of one that the operator has made for one Property, in the tenant's namespace.
	dedicated string
}

// brought says whether a tenant has chosen it.
func (t redisTarget) brought() bool { return !t.own && t.dedicated == "" }

// field begins what conditions say of it.
func (t redisTarget) field() string {
	switch {
	case t.own:
		return ""
	case t.dedicated != "":
		return redisDedicatedField + ": "
	default:
		return redisURLField + ": "
	}
}

// dialOptions say how it is reached.
func (a *RedisAccess) dialOptions(target redisTarget) stream.DialOptions {
	if target.own {
		return stream.DialOptions{TLS: target.tls}
	}
	guard := &a.guard
	if target.dedicated != "" {
		guard = &a.inside
	}
	return stream.DialOptions{Control: guard.Control, Untrusted: true, TLS: target.tls}
}

// check says whether the URL is one, as far as can be told without connecting.
func (a *RedisAccess) check(target redisTarget) error {
	return stream.CheckURL(target.url, a.dialOptions(target))
}

// NewRedisAccess makes it; Start keeps looking. A tenant's Redis may be at a public address, or in one of the allowed ranges.
func NewRedisAccess(logger *slog.Logger, own TLSSource, allowed []netip.Prefix, now func() time.Time) *RedisAccess {
	return &RedisAccess{
		logger: logger, own: own, guard: egress.Guard{Allowed: allowed}, inside: egress.Guard{Allowed: slices.Concat(insideRanges(), allowed)}, now: now, changed: make(notices, mostNotices),
		desired: map[types.NamespacedName]*desiredProperty{}, resting: map[types.NamespacedName]redisTarget{}, servers: map[redisTarget]*redisServer{},
		rooms: map[bool]ledgerRoom{true: newLedgerRoom(), false: newLedgerRoom()},
	}
}

// Start looks at every Redis until ctx ends, and waits for none on account of another. It is what the manager runs while this
// operator leads.
func (a *RedisAccess) Start(ctx context.Context) error {
	ticker := time.NewTicker(redisInterval)
	defer ticker.Stop()
	var looks sync.WaitGroup
	for {
		select {
		case <-ctx.Done():
			looks.Wait()
			return a.close()
		case <-ticker.C:
		}
		a.lookAtCertificates(ctx)
		for _, server := range a.list() {
			if server.looking.CompareAndSwap(false, true) {
				looks.Go(func() {
					defer server.looking.Store(false)
					a.look(ctx, server)
				})
			}
			if server.erasing.CompareAndSwap(false, true) {
				looks.Go(func() {
					defer server.erasing.Store(false)
					a.lookAtErasures(ctx, server)
				})
			}
		}
	}
}

// lookAtCertificates tells the Properties in the operator's own Redis when its certificates are others than those that they
// have. What is left of a Property that is gone, whom nobody could tell, is looked for by the new ones from then on.
func (a *RedisAccess) lookAtCertificates(ctx context.Context) {
	now, err := a.own.Read()
	if err != nil {
		return // the Properties that are reconciled say so, and look again
	}
	a.mu.Lock()
	var tell []types.NamespacedName
	for property, desired := range a.desired {
		switch {
		case !desired.target.own || desired.target.tls == now:
		case desired.debt == nil:
			tell = append(tell, property)
		default:
			a.moveDebt(property, redisTarget{url: desired.target.url, tls: now, own: true})
		}
	}
	a.mu.Unlock()
	a.changed.tell(ctx, tell...)
}

func (a *RedisAccess) list() []*redisServer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.servers))
}

func (a *RedisAccess) close() error {
	var errs []error
	for _, server := range a.list() {
		errs = append(errs, server.link.Load().client.Close())
	}
	return errors.Join(errs...)
}

func (a *RedisAccess) dial(target redisTarget) (*redisLink, error) {
	link, how := &redisLink{}, a.dialOptions(target)
	if control := how.Control; control != nil {
		how.Control = func(network, address string, connection syscall.RawConn) error {
			err := control(network, address, connection)
			if err != nil {
				link.denied.Store(true)
			}
			return err
		}
	}
	client, err := stream.Dial(target.url, how)
	if err != nil {
		return nil, err
	}
	link.client, link.users, link.purger = client, stream.NewUsers(client), ledger.NewPurger(client)
	link.purger.Audit = a.audit
	return link, nil
}

// renew begins anew with a Redis of a tenant's: what it has had the library note, such as nodes by other and other names, goes.
func (a *RedisAccess) renew(server *redisServer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers[server.target] != server {
		return // it has been closed meanwhile
	}
	link, err := a.dial(server.target)
	if err != nil {
		return // not with the URL of a link that there is
	}
	if err := server.link.Swap(link).client.Close(); err != nil {
		a.logger.Warn("close the connections to a Redis", "error", stream.Explain(err))
	}
}

// look checks a Redis and puts back what it forgot. Properties are told when the state changes.
func (a *RedisAccess) look(whole context.Context, server *redisServer) {
	ctx, cancel := context.WithTimeout(whole, redisTimeout)
	defer cancel()
	before, _ := server.lastLook()
	properties := a.desiredIn(server.target)

	after := server.check(ctx)
	tell := map[types.NamespacedName]bool{}
	if after.reachable() {
		mended, err := server.link.Load().users.Check(ctx, func() []stream.User { return a.usersIn(server.target) })
		if err != nil && !errors.Is(err, stream.ErrDenied) {
			after.fitness = server.link.Load().blame(err)
		} else if mended > 0 {
			a.logger.InfoContext(ctx, "redis users put back", "users", mended)
		}
		for property := range a.lookAtPlatforms(ctx, server, properties) {
			tell[property] = true
		}
	}
	if !server.target.own && !after.reachable() {
		a.renew(server)
	}
	a.reloadCertificates(ctx, server, after.reachable())
	if !slices.Contains(a.list(), server) {
		return // it has been closed meanwhile: nobody is kept there any more
	}
	server.found(after)
	if after.String() != before.String() {
		if err := errors.Join(after.fitness, after.library); err != nil {
			a.logger.WarnContext(ctx, "redis is not as it should be", "error", stream.Explain(err))
		}
		for property := range properties {
			tell[property] = true
		}
	}
	a.changed.tell(whole, slices.Collect(maps.Keys(tell))...)
	a.pay(whole, server, after.reachable())
}

// reach says how a Property's Redis is; nothing of the Property is made there. Where it was found unreachable less than an interval
// ago it is not asked again, so that one dead Redis does not hold up the others' Properties.
func (a *RedisAccess) reach(ctx context.Context, target redisTarget, property *v1alpha1.Property) (redisState, error) {
	a.cancel(keyOf(property))
	server, err := a.desire(target, keyOf(property), func(desired *desiredProperty) {
		desired.platforms, desired.sources = platformNames(property), sourceNames(property)
		switch {
		case !property.Spec.HasHistory():
			desired.archived, desired.lags = time.Time{}, false
		case desired.archived.IsZero():
			desired.archived = a.now()
		}
	})
	if err != nil {
		return redisState{}, err
	}
	state, looked := server.lastLook()
	if looked {
		return state, nil
	}
	ctx, cancel := context.WithTimeout(ctx, target.timeout())
	defer cancel()
	state = server.check(ctx)
	server.found(state)
	return state, nil
}

// ensure makes the Property's users what they shall be and its data last, in a Redis that answers.
func (a *RedisAccess) ensure(ctx context.Context, target redisTarget, property *v1alpha1.Property, users []roleUser) error {
	all, fetches := make([]stream.User, len(users)), slices.ContainsFunc(property.Spec.Sources, readsOrders)
	for i, user := range users {
		all[i] = stream.User{
			Name: user.name, Password: user.password, KeepPasswords: user.rolling, Access: accessOf(user.role, fetches),
			Namespace: property.Namespace, Property: property.Name,
		}
	}
	var lasts bool
	server, err := a.desire(target, keyOf(property), func(desired *desiredProperty) { desired.users, lasts = all, desired.lasts })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, target.timeout())
	defer cancel()
	link := server.link.Load()
	if err := link.users.Set(ctx, all); err != nil || lasts {
		return server.failed(err)
	}
	if err := link.client.Stream(property.Namespace, property.Name).Keep(ctx, platformNames(property)); err != nil {
		return server.failed(err)
	}
	_, err = a.desire(target, keyOf(property), func(desired *desiredProperty) { desired.lasts = true })
	return err
}

// timeout is how long a reconcile waits for it.
func (t redisTarget) timeout() time.Duration {
	if t.own {
		return redisTimeout
	}
	return tenantTimeout
}

// share says that the Property's pods share the URL's own user: there is nobody to put back.
func (a *RedisAccess) share(target redisTarget, property *v1alpha1.Property) error {
	_, err := a.desire(target, keyOf(property), func(desired *desiredProperty) { desired.users = nil })
	return err
}

// removeUser removes the user of a role of which the Property has no pods any more.
func (a *RedisAccess) removeUser(ctx context.Context, property *v1alpha1.Property, role resources.Role) error {
	a.mu.Lock()
	desired := a.desired[keyOf(property)]
	if desired == nil {
		a.mu.Unlock()
		return stream.ErrUnreachable
	}
	server := a.servers[desired.target]
	a.mu.Unlock()
	if state, looked := server.lastLook(); !looked || !state.reachable() {
		return stream.ErrUnreachable
	}
	ctx, cancel := context.WithTimeout(ctx, server.target.timeout())
	defer cancel()
	if err := server.link.Load().users.Remove(ctx, redisUserName(property, role)); err != nil && !errors.Is(err, stream.ErrDenied) {
		return server.failed(err)
	}
	return nil
}

// release removes the Property's users and then, by the deletion policy, its data or what keeps it for ever.
func (a *RedisAccess) release(ctx context.Context, target redisTarget, property *v1alpha1.Property) error {
	server, err := a.desire(target, keyOf(property), func(desired *desiredProperty) { desired.users = nil })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, target.timeout())
	defer cancel()
	state, _ := server.lastLook()
	if !target.own && !state.reachable() {
		return state.fitness
	}
	if err := server.clear(ctx, property); err != nil {
		return server.failed(err)
	}
	a.forget(keyOf(property))
	return nil
}

// readsOrders says whether a deliverer reads the orders of a source's shop, and stores those that are missing.
func readsOrders(source v1alpha1.Source) bool { return source.APISecretRef != nil }

// accessOf returns what a role may do; fetches says whether its Property has a source whose orders are read.
func accessOf(role resources.Role, fetches bool) stream.Access {
	switch role {
	case resources.Collector:
		return stream.AppendAccess
	case resources.Deliverer:
		if fetches {
			return stream.FetchAccess
		}
		return stream.DeliverAccess
	case resources.Archive:
		return stream.ArchiveAccess
	default:
		return stream.ReadAccess
	}
}
