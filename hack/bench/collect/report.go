package main

import (
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// floors and goals of requests a second by the bare handler's, at 64 connections.
var floors = map[string][2]float64{"everysec": {0.38, 0.55}, "always": {0.30, 0.45}}

// median returns the middle one of some figures of things.
func median[T any](things []T, figure func(T) float64) float64 {
	values := make([]float64, len(things))
	for i, thing := range things {
		values[i] = figure(thing)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

// report prints a row for each load, with the medians of its rounds.
func (b *bench) report(cells []cell) error {
	table := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "load\tevents/s\tp50 ms\tp99 ms\tcpu µs/request\tRedis µs/event\tevents/call\trequests/s ÷ bare\tfloor, goal\tcpu ÷ bare\tfloor, goal\t\n")
	for _, c := range slices.SortedFunc(maps.Keys(b.bareRuns), func(x, y cell) int { return x.connections - y.connections }) {
		runs := b.bareRuns[c]
		fmt.Fprintf(table, "bare handler, %d connections\t%.0f\t%s\t%s\t%.1f\t\t\t\t\t\t\t\n", c.connections,
			median(runs, func(r result) float64 { return r.perSecond }), millis(median(runs, func(r result) float64 { return float64(r.p50) })),
			millis(median(runs, func(r result) float64 { return float64(r.p99) })), median(runs, func(r result) float64 { return r.cpu }))
	}
	for _, fsync := range slices.Sorted(maps.Keys(b.xadds)) {
		fmt.Fprintf(table, "pipelined XADD, %s\t%.0f\t\t\t\t%.1f\t\t\t\t\t\t\n", fsync,
			median(b.xadds[fsync], func(x xaddResult) float64 { return x.perSecond }), median(b.xadds[fsync], func(x xaddResult) float64 { return x.redisMicros }))
	}
	for _, c := range cells {
		pairs := b.results[c]
		rate := median(pairs, func(p pair) float64 { return p.perSecond })
		fmt.Fprintf(table, "%s\t%.0f\t%s\t%s\t%.1f\t%.1f\t%.0f\t", c, rate*float64(c.events()),
			millis(median(pairs, func(p pair) float64 { return float64(p.p50) })), millis(median(pairs, func(p pair) float64 { return float64(p.p99) })),
			median(pairs, func(p pair) float64 { return p.cpu }), median(pairs, func(p pair) float64 { return p.redis }),
			median(pairs, func(p pair) float64 { return p.batch }))
		if c.batch > 0 {
			fmt.Fprint(table, "\t\t\t\t\n")
			continue
		}
		rateFloor, cpuFloor := "", "2.2, 1.6"
		if floor, ok := floors[c.fsync]; ok && c.connections == 64 {
			rateFloor = fmt.Sprintf("%.2f, %.2f", floor[0], floor[1])
		}
		fmt.Fprintf(table, "%.2f\t%s\t%.2f\t%s\t\n", median(pairs, func(p pair) float64 { return p.against(func(r result) float64 { return r.perSecond }) }),
			rateFloor, median(pairs, func(p pair) float64 { return p.against(func(r result) float64 { return r.cpu }) }), cpuFloor)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	b.reportBatches(cells)
	return nil
}

// reportBatches prints what batches gain over single events under the same policy.
func (b *bench) reportBatches(cells []cell) {
	for _, batched := range cells {
		single := cell{fsync: batched.fsync, connections: batched.connections}
		if batched.batch == 0 || len(b.results[single]) == 0 {
			continue
		}
		gains := make([]float64, len(b.results[batched]))
		for i, p := range b.results[batched] {
			gains[i] = p.perSecond * float64(batched.batch) / b.results[single][i].perSecond
		}
		fmt.Fprintf(b.out, "events/s in batches of %d ÷ single, %s: %.1f (floor 2, goal 2.5)\n", batched.batch, batched.fsync,
			median(gains, func(gain float64) float64 { return gain }))
	}
}

func millis(nanoseconds float64) string {
	return fmt.Sprintf("%.1f", nanoseconds/float64(time.Millisecond))
}
