package role

import (
	"context"
	"slices"
	"sync"

	"github.com/weir-dev/weir/collector/config"
)

// reload looks after the properties' configurations until ctx ends and serves what changes in them.
func (p *process) reload(ctx context.Context) {
	var all sync.WaitGroup
	for _, property := range p.properties {
		all.Go(func() {
			property.watcher.Run(ctx, reloadInterval, func() {
				p.publishing.Lock()
				defer p.publishing.Unlock()
				p.reloadOne(property)
			})
		})
		all.Go(func() { property.ledgerWatcher.Run(ctx, reloadInterval, func() { p.reloadLedger(property) }) })
	}
	all.Wait()
}

// reloadOne serves a property as its files have it now. An error in them leaves everything as it was.
func (p *process) reloadOne(property *property) {
	loaded, err := property.load()
	if err != nil {
		p.Logger.Error("the changed configuration cannot be used; the one before goes on being served",
			"property", property.String(), "error", err)
		return
	}
	before, after := property.config, loaded.config
	if after.Namespace != before.Namespace || after.Name != before.Name || (property.engines != nil && after.Currency != before.Currency) {
		// A property never changes its name, and an engine's sums are in its currency: that takes a new process.
		p.Logger.Error("the name or currency of a property that is served cannot change; restart the process", "property", property.String())
		return
	}
	if err := property.client.Authenticate(loaded.redis.URL, loaded.redis.TLS); err != nil {
		p.Logger.Error("the Redis of a property that is served cannot change but for its user, password and certificates; restart the process",
			"property", property.String(), "error", err)
		return
	}
	if property.engines != nil {
		if err := property.changeEngine(&loaded); err != nil {
			p.Logger.Error("the changed history cannot be used; what was before goes on answering", "property", property.String(), "error", err)
			return
		}
	}
	property.settings = loaded
	property.setLogLevel()
	if property.appender != nil {
		property.appender.SetWindow(after.DeduplicationWindow())
		property.appender.SetJoinedFor(after.Retention.JoinedFor())
	}
	p.publish()
	if d := p.deliver[property]; d != nil {
		d.restart(after)
	}
	if a := p.archive[property]; a != nil {
		a.reload(after)
	}
	p.Logger.Info("configuration reloaded", "property", property.String(), "platforms", len(after.Platforms),
		"roles", slices.Clone(p.Roles))
}

// reloadLedger knows of a property's erasures what the ledger's file says now. An error in it leaves everything as it was.
func (p *process) reloadLedger(property *property) {
	erased, err := config.LoadLedger(property.directory)
	if err != nil {
		p.Logger.Error("the changed ledger of erasures cannot be read; what was known before goes on being known",
			"property", property.String(), "error", err)
		return
	}
	property.ledger.replace(erased)
}
