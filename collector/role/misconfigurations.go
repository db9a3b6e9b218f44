package role

import (
	"context"
	"maps"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// misconfigurationInterval is how often the operator is told of platforms that a person has to mend. What it is told holds for
// several times as long.
const misconfigurationInterval = time.Second

// reportMisconfigurations tells the operator which platforms and sources a person has to mend, by way of Redis: pods have no access to
// the API server. It is told for as long as it is so, by each deliverer for what it has found itself.
func (p *process) reportMisconfigurations(ctx context.Context) {
	failing := map[*deliveries]bool{}
	ticker := time.NewTicker(misconfigurationInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for d := range maps.Values(p.deliver) {
			err := d.reportMisconfigurations(ctx)
			if err != nil && !failing[d] && ctx.Err() == nil {
				d.logger.WarnContext(ctx, "report misconfigured platforms", "error", err)
			}
			failing[d] = err != nil
		}
	}
}

func (d *deliveries) reportMisconfigurations(ctx context.Context) error {
	for platform, reason := range d.metrics.Misconfigured() {
		if err := d.stream.PausePlatform(ctx, platform, string(reason)); err != nil {
			return err
		}
	}
	d.mu.Lock()
	fetcher := d.fetcher
	d.mu.Unlock()
	if fetcher == nil {
		return nil // nothing runs yet
	}
	for source, problem := range fetcher.Problems() {
		if err := d.stream.PausePlatform(ctx, stream.SourceName(source), string(problem)); err != nil {
			return err
		}
	}
	return nil
}
