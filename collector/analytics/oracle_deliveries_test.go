package analytics

import (
	"fmt"
	"slices"
	"testing"
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

// checkDeliveries asks for some parts of a range.
func (w *world) checkDeliveries(t testing.TB, r Range) {
	t.Helper()
	q := DeliveriesQuery{
		Platforms: pick(w.Rand, nil, nil, []string{"meta"}, []string{"crm", "unknown"}),
		Events:    pick(w.Rand, nil, nil, []string{"purchase"}, []string{"pageview", "lead", "unknown"}),
	}
	parts := time.Duration(1 + w.IntN(5))
	for from := r.From; from.Before(r.To); from = from.Add(r.To.Sub(r.From)/parts + 1) {
		if to := from.Add(r.To.Sub(r.From)/parts + 1); w.IntN(4) > 0 {
			q.Ranges = append(q.Ranges, Range{from, to})
		}
	}
	want := w.oracle.deliveries(q)
	want.CompleteFrom = w.view.Status(t.Context()).CompleteFrom
	got, err := w.view.Deliveries(t.Context(), q)
	mustNot(t, err)
	if len(got.Ranges) == 0 {
		got.Ranges = nil
	}
	sameAs(t, fmt.Sprintf("deliveries %+v", q), got, want)
}
