package controllers

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	// mostDebts is how much is remembered of what is left in the operator's own Redis, mostTenantDebts for each namespace of what is
	// left in Redis servers that its Properties brought.
	mostDebts       = 1000
	mostTenantDebts = mostTenantServers
	// mostLooks is how often a tenant's Redis is looked at for the sake of what is left there: an hour. It may be away for good.
	mostLooks = int(time.Hour / redisInterval)
	// mostPaid is how much is removed between two looks at a Redis.
	mostPaid = 16
)

// redisDebt is what is left of a Property that was let go while its Redis was away. It is removed when that Redis is back.
type redisDebt struct {
	property *v1alpha1.Property
	// gone says whether there is no Property of the name: another one's users and data would be removed.
	gone func(context.Context) bool

	// paying is held while somebody removes it, or decides that nobody shall.
	paying    sync.Mutex
	cancelled bool
	// looks is how often its Redis has been looked at in vain. The lock of RedisAccess is held to use it.
	looks int
}

// overdue says whether nobody looks any longer whether the Redis is back.
func (d *redisDebt) overdue(target redisTarget) bool { return !target.own && d.looks >= mostLooks }

// owe remembers what is left of a Property that is let go, and forgets the Property otherwise. It returns false where that cannot be
// remembered: where its Redis is not known, or too much is left already.
func (a *RedisAccess) owe(property *v1alpha1.Property, gone func(context.Context) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	desired := a.desired[keyOf(property)]
	if desired == nil {
		return false
	}
	others, most := 0, mostTenantDebts
	if desired.target.own {
		most = mostDebts
	}
	for key, other := range a.desired {
		if other.debt != nil && other.target.own == desired.target.own && (other.target.own || key.Namespace == property.Namespace) {
			others++
		}
	}
	if others >= most {
		a.drop(keyOf(property))
		return false
	}
	a.desired[keyOf(property)] = &desiredProperty{target: desired.target, debt: &redisDebt{property: property.DeepCopy(), gone: gone}}
	return true
}

// moveDebt has what is left of a Property removed from the same Redis by another way to it; the lock is held.
func (a *RedisAccess) moveDebt(property types.NamespacedName, target redisTarget) {
	server, err := a.server(target, property.Namespace)
	if err != nil {
		return // it is looked for as before, and moved at the next look
	}
	debt := a.desired[property].debt
	a.drop(property)
	a.desired[property], a.servers[target] = &desiredProperty{target: target, debt: debt}, server
}

// cancel has what is left of a Property stay: there is one of the name again, and it is its.
func (a *RedisAccess) cancel(property types.NamespacedName) {
	debt := a.desiredOf(property).debt
	if debt == nil {
		return
	}
	debt.paying.Lock() // whoever has begun to remove it ends first
	defer debt.paying.Unlock()
	debt.cancelled = true
	a.settled(debt)
}

// pay removes what is left in a Redis that answers; where it does not, it counts that somebody has looked.
func (a *RedisAccess) pay(ctx context.Context, server *redisServer, reachable bool) {
	paid := 0
	for _, desired := range a.desiredIn(server.target) {
		debt := desired.debt
		if debt == nil {
			continue
		}
		if !reachable {
			if a.lookedInVain(debt) {
				a.logger.WarnContext(ctx, "nobody looks any longer for the Redis in which a deleted Property has left users", "property", keyOf(debt.property).String())
			}
			continue
		}
		if paid++; paid > mostPaid {
			return
		}
		if err := a.payOne(ctx, server, debt); err != nil {
			a.logger.WarnContext(ctx, "clear redis of a deleted Property", "property", keyOf(debt.property).String(), "error", stream.Explain(err))
			return
		}
	}
}

func (a *RedisAccess) payOne(ctx context.Context, server *redisServer, debt *redisDebt) error {
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	debt.paying.Lock()
	defer debt.paying.Unlock()
	if debt.cancelled || !debt.gone(ctx) {
		return nil
	}
	if err := server.clear(ctx, debt.property); err != nil {
		return err
	}
	a.settled(debt)
	a.logger.InfoContext(ctx, "redis is back, and cleared of a deleted Property", "property", keyOf(debt.property).String())
	return nil
}

// lookedInVain counts a look at a Redis that is away, and drops the debt where nobody looks any longer: it says so.
func (a *RedisAccess) lookedInVain(debt *redisDebt) (dropped bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	desired := a.desired[keyOf(debt.property)]
	if desired == nil || desired.debt != debt {
		return false
	}
	if debt.looks++; !debt.overdue(desired.target) {
		return false
	}
	a.drop(keyOf(debt.property))
	return true
}

// settled drops a debt, and the Redis that was looked at for its sake alone.
func (a *RedisAccess) settled(debt *redisDebt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if desired := a.desired[keyOf(debt.property)]; desired != nil && desired.debt == debt {
		a.drop(keyOf(debt.property))
	}
}

// clear removes a Property's users and then, by the deletion policy, its data or what keeps it for ever.
func (s *redisServer) clear(ctx context.Context, property *v1alpha1.Property) error {
	link := s.link.Load()
	if err := link.users.Remove(ctx, redisUserNames(property)...); err != nil && !errors.Is(err, stream.ErrDenied) {
		return err
	}
	if property.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete {
		return link.client.Erase(ctx, property.Namespace, property.Name)
	}
	kept := resources.RetentionConfig(&property.Spec.Retention)
	ages := stream.Ages{Events: time.Duration(kept.Days) * 24 * time.Hour, Devices: kept.DeviceAge(), Identities: kept.IdentityAge()}
	return link.client.Stream(property.Namespace, property.Name).Expire(ctx, ages, platformNames(property))
}
