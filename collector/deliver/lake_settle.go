package deliver

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/deliver/lake"
	"github.com/weir-dev/weir/collector/stream"
)

// settle takes events from the group that are in files or need not be, and writes what became of them. What is handed out and is
// none of these is another's who came before, or came to be behind them; it is put into files now.
func (w *lakeWriter) settle(ctx context.Context, list []filed, latency time.Duration) error {
	for len(list) > 0 {
		deliveries, err := w.stream.Read(ctx, w.name, w.consumer, min(lakeSettle, len(list)), 0)
		if err != nil || len(deliveries) == 0 {
			return err
		}
		var done []filed
		var others []stream.Delivery
		for _, d := range deliveries {
			for len(list) > 0 && list[0].position < d.Position {
				list = list[1:] // handed out to another, or gone
			}
			if len(list) > 0 && list[0].position == d.Position {
				done, list = append(done, list[0]), list[1:]
			} else {
				others = append(others, d)
			}
		}
		if err := w.note(ctx, done, latency); err != nil {
			return err
		}
		if err := w.again(ctx, others); err != nil {
			return err
		}
	}
	return nil
}

// again has events that were handed out in files, and settles them.
func (w *lakeWriter) again(ctx context.Context, deliveries []stream.Delivery) error {
	slices.SortFunc(deliveries, func(a, b stream.Delivery) int { return cmp.Compare(a.Position, b.Position) })
	list := make([]filed, 0, len(deliveries))
	var rows []lake.Row
	var places []stream.Position
	for _, d := range deliveries {
		f, row := w.judge(d.Entry, d.Replayed)
		f.attempts += d.Attempts
		if f.verdict.Class == adapter.Delivered {
			rows, places = append(rows, row), append(places, d.Position)
		}
		list = append(list, f)
	}
	began := time.Now()
	for len(rows) > 0 {
		n, err := w.place(ctx, rows, places)
		if err != nil {
			return w.ofBucket(err)
		}
		rows, places = rows[n:], places[n:]
	}
	return w.note(ctx, list, time.Since(began))
}

// place has the first of some rows in a file, and as many of those behind it as that one file is for. It returns how many.
func (w *lakeWriter) place(ctx context.Context, rows []lake.Row, places []stream.Position) (int, error) {
	day := lake.DayOf(places[0])
	end, err := w.lake.End(ctx, day)
	if err != nil {
		return 0, err
	}
	until, covered := stream.Position(0), places[0] <= end
	var file lake.File
	if covered {
		if file, until, err = w.lake.Covering(ctx, places[0]); err != nil {
			return 0, err
		}
	}
	n := slices.IndexFunc(places, func(p stream.Position) bool { return lake.DayOf(p) != day || covered && p > until })
	if n < 0 {
		n = len(places)
	}
	if covered {
		return n, w.lake.Add(ctx, file.Key, rows[:n])
	}
	encoder := lake.NewEncoder()
	for _, row := range rows[:n] {
		if err := encoder.Add(row); err != nil {
			return 0, err
		}
	}
	data, err := encoder.Close(places[n-1])
	if err != nil {
		return 0, err
	}
	return n, w.lake.Append(ctx, day, end, places[n-1], data)
}

// note writes what became of events that were handed out.
func (w *lakeWriter) note(ctx context.Context, list []filed, latency time.Duration) error {
	var settlements []stream.Settlement
	var ignored []stream.Position
	for _, f := range list {
		if f.ignored {
			ignored = append(ignored, f.position)
			continue
		}
		settlement := w.scheduler.settlement(task{position: f.position, attempts: f.attempts}, f.verdict, 0)
		if f.verdict.Class == adapter.Delivered {
			settlement.Latency = latency
		}
		settlements = append(settlements, settlement)
	}
	if err := w.stream.Settle(ctx, w.name, settlements); err != nil {
		return err
	}
	w.metrics.count(settlements, w.name)
	return w.stream.Acknowledge(ctx, w.name, ignored)
}
