package role

import (
	"context"
	"maps"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// faultMetric is 1 while a platform is paused, with the reason as a label.
	faultMetric = "weir_platform_fault"
	// faultInterval is how often the operator is told; there is nothing to send where nothing has changed.
	faultInterval = 2 * time.Second
)

// reportFaults tells the operator which platforms a person has to mend, by way of Redis: pods have no access to
// the API server. It goes by the metrics that an alert would go by.
func (p *process) reportFaults(ctx context.Context) {
	told := map[*deliveries]map[string]string{}
	ticker := time.NewTicker(faultInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		families, err := p.registry.Gather()
		if err != nil {
			p.Logger.WarnContext(ctx, "gather the platforms' faults", "error", err)
			continue
		}
		for _, d := range p.deliver {
			property := d.property()
			now := faultsOf(families, property.Namespace, property.Name)
			for _, platform := range property.PlatformNames() {
				if _, known := now[platform]; !known {
					now[platform] = "" // what an earlier process may have reported is over
				}
			}
			if maps.Equal(now, told[d]) {
				continue
			}
			if err := tell(ctx, d.stream, now, told[d]); err != nil {
				d.logger.WarnContext(ctx, "report the platforms' faults", "error", err)
				continue
			}
			told[d] = now
		}
	}
}

// property returns the configuration in force.
func (d *deliveries) property() config.Property {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}

func tell(ctx context.Context, s *stream.Stream, now, before map[string]string) error {
	for platform, reason := range now {
		if was, known := before[platform]; known && was == reason {
			continue
		}
		if err := s.PausePlatform(ctx, platform, reason); err != nil {
			return err
		}
	}
	return nil
}

// faultsOf returns why the property's platforms are paused, in the words of the condition PlatformsReady, as far
// as somebody has to mend it.
func faultsOf(families []*dto.MetricFamily, namespace, name string) map[string]string {
	faults := map[string]string{}
	for _, family := range families {
		if family.GetName() != faultMetric {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if metric.GetGauge().GetValue() == 0 || labels["namespace"] != namespace || labels["property"] != name {
				continue
			}
			if reason := conditionReason(labels["reason"]); reason != "" {
				faults[labels["platform"]] = reason
			}
		}
	}
	return faults
}

// conditionReason is "" for what passes by itself: a platform that wants a pause or is down.
func conditionReason(reason string) string {
	switch {
	case reason == "unauthorized":
		return "CredentialsRejected"
	case reason == "misconfigured":
		return "SecretInvalid"
	case reason == "http_408", reason == "http_425", reason == "http_429":
		return ""
	case reason == "redirected", strings.HasPrefix(reason, "http_4"), strings.HasPrefix(reason, "code_"):
		return "ConfigurationRejected"
	default:
		return ""
	}
}
