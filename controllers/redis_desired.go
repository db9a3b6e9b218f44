package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/collector/stream"
)

// desiredProperty is what a Redis shall have of a Property, and what it has. The lock of RedisAccess is held to use it.
type desiredProperty struct {
	target redisTarget
	// users are its roles', none where these share the URL's own.
	users     []stream.User
	platforms []string
	// sources are the names under which deliverers tell of those whose orders cannot be read.
	sources []string
	// archived is since when somebody keeps a history of it; zero where nobody does. lags says that its archive is far behind.
	archived time.Time
	lags     bool
	// lasts says that its data has no last day.
	lasts bool
	// paused are the platforms and sources that the deliverers have paused, with the reasons.
	paused map[string]string
	// ledger keeps the ledger of its erasures; nil where there is none yet. erasureProblem is what stands in the way of these.
	ledger         *ledgerKeeping
	erasureProblem *conditionReason
	// debt is what is left of a Property that was let go, and shall not be there; nil of one that there is.
	debt *redisDebt
}

// desire says where a Property shall be kept, no longer where it was before, and changes what shall be there.
func (a *RedisAccess) desire(target redisTarget, property types.NamespacedName, change func(*desiredProperty)) (*redisServer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	desired := a.desired[property]
	if desired == nil || desired.target != target {
		a.drop(property)
		server, err := a.server(target, property.Namespace)
		if err != nil {
			return nil, err
		}
		desired = &desiredProperty{target: target}
		a.desired[property], a.servers[target] = desired, server
	}
	delete(a.resting, property)
	change(desired)
	return a.servers[target], nil
}

// server returns a Redis, which is a new one where no Property is kept in it; the lock is held.
func (a *RedisAccess) server(target redisTarget, namespace string) (*redisServer, error) {
	if server := a.servers[target]; server != nil {
		return server, nil
	}
	if target.brought() && a.brought(namespace) >= mostTenantServers {
		return nil, errTooMany
	}
	link, err := a.dial(target)
	if err != nil {
		return nil, err
	}
	server := &redisServer{target: target}
	server.link.Store(link)
	return server, nil
}

// brought counts the Redis servers of a namespace's own; the lock is held.
func (a *RedisAccess) brought(namespace string) int {
	found := map[redisTarget]bool{}
	for property, desired := range a.desired {
		if property.Namespace == namespace && desired.debt == nil && desired.target.brought() {
			found[desired.target] = true
		}
	}
	return len(found)
}

// desiredOf is what is desired of a Property, the zero value where that is not known.
func (a *RedisAccess) desiredOf(property types.NamespacedName) desiredProperty {
	a.mu.Lock()
	defer a.mu.Unlock()
	if desired := a.desired[property]; desired != nil {
		return *desired
	}
	return desiredProperty{}
}

// desiredIn is what is desired in a Redis.
func (a *RedisAccess) desiredIn(target redisTarget) map[types.NamespacedName]desiredProperty {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[types.NamespacedName]desiredProperty{}
	for property, desired := range a.desired {
		if desired.target == target {
			all[property] = *desired
		}
	}
	return all
}

// usersIn are the users that a Redis shall have.
func (a *RedisAccess) usersIn(target redisTarget) []stream.User {
	var users []stream.User
	for _, desired := range a.desiredIn(target) {
		users = append(users, desired.users...)
	}
	return users
}

// home returns the Redis that the Property is kept in, as far as is known.
func (a *RedisAccess) home(property types.NamespacedName) (target redisTarget, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if desired := a.desired[property]; desired != nil {
		return desired.target, true
	}
	target, known = a.resting[property]
	return target, known
}

// rest leaves a paused Property alone, and remembers where it is kept: it may be deleted after the Secret that says so.
func (a *RedisAccess) rest(property types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if desired := a.desired[property]; desired != nil && desired.debt == nil {
		a.resting[property] = desired.target
		a.drop(property)
	}
}

// paused returns the platforms that the deliverers have paused, with the reasons.
func (a *RedisAccess) paused(property types.NamespacedName) map[string]string {
	return a.desiredOf(property).paused
}

// archiveLags says whether the archive of a Property is far behind.
func (a *RedisAccess) archiveLags(property types.NamespacedName) bool {
	return a.desiredOf(property).lags
}

// forget drops a Property that is gone, but for what is left of it.
func (a *RedisAccess) forget(property types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.resting, property)
	if desired := a.desired[property]; desired != nil && desired.debt == nil {
		a.drop(property)
	}
}

// drop drops a Property, and ends the connections to a Redis in which it was the last one; the lock is held.
func (a *RedisAccess) drop(property types.NamespacedName) {
	dropped := a.desired[property]
	if dropped == nil {
		return
	}
	delete(a.desired, property)
	for _, desired := range a.desired {
		if desired.target == dropped.target {
			return
		}
	}
	server := a.servers[dropped.target]
	delete(a.servers, dropped.target)
	if err := server.link.Load().client.Close(); err != nil {
		a.logger.Warn("close the connections to a Redis", "error", stream.Explain(err))
	}
}
