package role

import (
	"context"
	"maps"
	"time"
)

// faultInterval is how often the operator is told of platforms that a person has to mend. What it is told holds for
// several times as long.
const faultInterval = time.Second

// reportFaults tells the operator which platforms a person has to mend, by way of Redis: pods have no access to
// the API server. It is told for as long as it is so, by each deliverer for what it has found itself.
func (p *process) reportFaults(ctx context.Context) {
	failing := map[*deliveries]bool{}
	ticker := time.NewTicker(faultInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for d := range maps.Values(p.deliver) {
			err := d.reportFaults(ctx)
			if err != nil && !failing[d] && ctx.Err() == nil {
				d.logger.WarnContext(ctx, "report the platforms' faults", "error", err)
			}
			failing[d] = err != nil
		}
	}
}

func (d *deliveries) reportFaults(ctx context.Context) error {
	for platform, fault := range d.metrics.Misconfigured() {
		if err := d.stream.PausePlatform(ctx, platform, string(fault)); err != nil {
			return err
		}
	}
	return nil
}
