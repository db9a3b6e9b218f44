package analytics

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// deliveries lists what became of every event of each range, and of all ranges together.
func (o *oracle) deliveries(q DeliveriesQuery) Deliveries {
	var result Deliveries
	all := map[string][]Delivery{}
	for _, r := range q.Ranges {
		own := map[string][]Delivery{}
		for _, e := range o.within(r) {
			if len(q.Events) > 0 && !slices.Contains(q.Events, e.Name) {
				continue
			}
			for _, platform := range e.Platforms {
				if len(q.Platforms) == 0 || slices.Contains(q.Platforms, platform) {
					d := o.delivery(e, platform)
					own[platform], all[platform] = append(own[platform], d), append(all[platform], d)
				}
			}
		}
		result.Ranges = append(result.Ranges, statsByPlatform(own))
	}
	result.Totals = statsByPlatform(all)
	return result
}

func statsByPlatform(deliveries map[string][]Delivery) (result []DeliveryStats) {
	for _, platform := range sortedKeys(deliveries) {
		result = append(result, deliveryStats(platform, deliveries[platform]))
	}
	return result
}

func deliveryStats(platform string, deliveries []Delivery) DeliveryStats {
	s := DeliveryStats{Platform: platform}
	var latencies []time.Duration
	for _, d := range deliveries {
		s.Counts[d.Status]++
		if d.Reason != "" {
			if s.Reasons[d.Status] == nil {
				s.Reasons[d.Status] = map[string]int{}
			}
			s.Reasons[d.Status][d.Reason]++
		}
		if d.Status == stream.Delivered && d.Latency != nil {
			latencies = append(latencies, *d.Latency)
		}
	}
	slices.Sort(latencies)
	smallest := func(percent int) *time.Duration {
		for _, candidate := range latencies {
			covered := 0
			for _, l := range latencies {
				if l <= candidate {
					covered++
				}
			}
			if covered*100 >= percent*len(latencies) {
				return &candidate
			}
		}
		return nil
	}
	s.LatencyP50, s.LatencyP95 = smallest(50), smallest(95)
	return s
}
