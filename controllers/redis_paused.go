package controllers

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/collector/stream"
)

// mostArchiveLag is how far an archive may be behind before that is said: an hour of a ClickHouse that was away is copied within it.
const mostArchiveLag = 5 * time.Minute

// lookAtPlatforms reads which platforms the deliverers have paused, and how far archives are, and returns the Properties for which that is
// another answer than before.
func (a *RedisAccess) lookAtPlatforms(ctx context.Context, server *redisServer, properties map[types.NamespacedName]desiredProperty) map[types.NamespacedName]bool {
	changed := map[types.NamespacedName]bool{}
	for property, known := range properties {
		paused, err := server.link.Load().client.Stream(property.Namespace, property.Name).PausedPlatforms(ctx, known.pausable())
		if err != nil {
			return changed
		}
		lags, err := a.lags(ctx, server, property, known)
		if err != nil {
			return changed
		}
		a.mu.Lock()
		if now := a.desired[property]; now != nil && now.target == server.target && (!maps.Equal(now.paused, paused) || now.lags != lags) {
			now.paused, now.lags = paused, lags
			changed[property] = true
		}
		a.mu.Unlock()
	}
	return changed
}

// pausable are the names under which the pods say that something stands still.
func (d *desiredProperty) pausable() []string {
	names := slices.Concat(d.platforms, d.sources)
	if !d.archived.IsZero() {
		names = append(names, stream.ArchiveName)
	}
	return names
}

// lags says whether the archive of a Property is far behind. One that has only just been asked for is not.
func (a *RedisAccess) lags(ctx context.Context, server *redisServer, property types.NamespacedName, known desiredProperty) (bool, error) {
	if known.archived.IsZero() {
		return false, nil
	}
	state, err := server.link.Load().client.Stream(property.Namespace, property.Name).ArchiveState(ctx)
	if err != nil {
		return false, err
	}
	since := known.archived
	if state.Current.After(since) {
		since = state.Current
	}
	return a.now().Sub(since) > mostArchiveLag, nil
}
