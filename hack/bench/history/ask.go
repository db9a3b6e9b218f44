package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history"
)

// ask asks all questions, the engine and the SQL in turns, and prints medians.
func (p *past) ask(ctx context.Context) error {
	engine := history.New(history.Options{Client: p.client, Currency: "EUR", MaxBytes: p.memory})
	fmt.Fprintf(p.out, "%-28s %10s %10s %7s %9s\n", "question", "engine", "SQL", "ratio", "goal")
	for _, q := range p.questions() {
		if p.options.ask != nil && !p.options.ask.MatchString(q.name) {
			continue
		}
		var own, byHand []time.Duration
		for range p.rounds {
			began := time.Now()
			if err := q.ask(ctx, engine); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			own = append(own, time.Since(began))
			if q.sql == "" {
				continue
			}
			began = time.Now()
			parameters := map[string]any{"from": p.from.UnixMilli() << 20, "to": p.to.UnixMilli() << 20}
			maps.Copy(parameters, q.parameters)
			if err := p.client.Exec(ctx, clickhouse.Query{SQL: q.sql + " FORMAT Null", Parameters: parameters, Settings: clickhouse.Settings{"max_memory_usage": p.memory}}); err != nil {
				return fmt.Errorf("%s by hand: %w", q.name, err)
			}
			byHand = append(byHand, time.Since(began))
		}
		line := fmt.Sprintf("%-28s %10s", q.name, median(own).Round(time.Millisecond))
		if len(byHand) > 0 {
			line += fmt.Sprintf(" %10s %7.2f", median(byHand).Round(time.Millisecond), float64(median(own))/float64(median(byHand)))
		} else {
			line += fmt.Sprintf(" %10s %7s", "", "")
		}
		fmt.Fprintf(p.out, "%s %9s\n", line, q.goal)
	}
	return nil
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// size prints what the past takes on the disk.
func (p *past) size(ctx context.Context) error {
	type part struct {
		Name  string `ch:"name"`
		Rows  uint64 `ch:"rows"`
		Bytes uint64 `ch:"bytes"`
	}
	parts, err := clickhouse.Select[part](ctx, p.client, clickhouse.Query{
		SQL: `SELECT table AS name, sum(rows) AS rows, sum(bytes_on_disk) AS bytes FROM system.parts WHERE active AND database = currentDatabase() GROUP BY name
			UNION ALL SELECT concat('  of these ', name), sum(rows), sum(bytes_on_disk) FROM system.projection_parts WHERE active AND database = currentDatabase() GROUP BY name
			UNION ALL SELECT concat('  of these indexes of ', table), sum(rows), sum(secondary_indices_compressed_bytes + secondary_indices_marks_bytes) AS indexes
			FROM system.parts WHERE active AND database = currentDatabase() GROUP BY table HAVING indexes > 0`,
	})
	if err != nil {
		return err
	}
	events := uint64(1)
	for _, one := range parts {
		if one.Name == "events" {
			events = one.Rows
		}
	}
	for _, one := range parts {
		fmt.Fprintf(p.out, "%-28s %12d rows %14d bytes, %6.2f an event\n", one.Name, one.Rows, one.Bytes, float64(one.Bytes)/float64(events))
	}
	return nil
}
