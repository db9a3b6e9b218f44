package deliver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/deliver/lake"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// lakeRead is how many events are read at a time, lakeSettle how many outcomes are written at a time.
	lakeRead, lakeSettle = 1000, 512
	// lakeBytes is how many bytes of events a file is made of at most, as they are in the stream.
	lakeBytes = 64 << 20
	// lakeMissing is how many rows are added to a file at a time.
	lakeMissing = 2000
	// lakeRequest is for how long a request to the bucket may go on: it may carry a whole file.
	lakeRequest = 2 * time.Minute
)

// lakeWriter puts a platform's events into the files of its [lake.Lake]. Events stay in the stream until they are due: they are
// taken from the group only when they are in a file, and then settled. Whoever dies before that leaves nothing but a file, in
// which the next one finds them.
type lakeWriter struct {
	stream   *stream.Stream
	platform *adapter.Platform
	settings *platforms.S3
	lake     *lake.Lake
	// name is the platform's, property "NAMESPACE/NAME".
	name, property, consumer string
	// identifiers says that files may have what tells whose an event is.
	identifiers bool
	group       *group
	lease       *lease
	scheduler   scheduler
	pauses      *pauseMetrics
	metrics     *Metrics
	erased      func(e *event.Event, position stream.Position) bool
	timing      timing
	// past reads what a replay has put back from the history.
	past   *pastReader
	logger *slog.Logger

	// checked says that the bucket's server honours conditions.
	checked bool
	// reclaimed is when it was looked last for what others have left, by the monotonic clock.
	reclaimed time.Time
	// failures counts those of the bucket in a row.
	failures int
}

// writeLake writes a platform's files until taking ends.
func (e *Engine) writeLake(taking context.Context, cfg platforms.Platform, opened *adapter.Platform, g *group, pauses *pauseMetrics) {
	o, logger := &e.options, e.options.Logger.With("platform", cfg.Name)
	w := &lakeWriter{
		stream: o.Stream, platform: opened, settings: cfg.S3, name: cfg.Name, property: o.Property.Namespace + "/" + o.Property.Name,
		consumer: o.Consumer, identifiers: cfg.S3.KeepIdentifiers || !o.Property.Retention.SealsIdentity(), group: g,
		scheduler: scheduler{e.timing.backoff, e.clock.Now, e.clock.Latest}, pauses: pauses, metrics: o.Metrics,
		erased: e.erased, timing: e.timing, past: e.pastOf(cfg.Name, logger), logger: logger,
	}
	client := NewHTTPClient(o.Property.Egress, lakeRequest)
	defer client.CloseIdleConnections()
	w.lake = lakeOf(cfg, opened, w.property, client, o.Metrics.attempts.WithLabelValues(cfg.Name).Inc, func(ev *event.Event, received time.Time) bool {
		return e.erased(ev, stream.At(received))
	})
	w.lease = &lease{
		look:  func(ctx context.Context) (string, error) { return o.Stream.Writer(ctx, cfg.Name) },
		write: func(ctx context.Context, text string) error { return o.Stream.LockWriter(ctx, cfg.Name, text) },
		token: uuid.NewString(), monotonic: e.monotonic, patience: e.timing.erasePatience,
		void: func(ctx context.Context, note string) error { return w.ofBucket(w.lake.Void(ctx, note)) },
	}
	w.lake.Begin, w.lake.Done = w.begin, w.lease.done
	sending, cutOff := context.WithCancel(context.WithoutCancel(taking))
	defer cutOff()
	stop := context.AfterFunc(taking, func() { time.AfterFunc(o.DrainTimeout, cutOff) })
	defer stop()
	w.run(taking, sending)
}

// run writes files until taking ends. What is begun is ended, unless sending ends before.
func (w *lakeWriter) run(taking, sending context.Context) {
	for taking.Err() == nil {
		more, err := w.round(sending)
		switch {
		case err != nil:
			if !w.recover(taking, err) {
				return
			}
		case !more && !pause(taking, w.timing.block):
			return
		}
	}
	if mine, err := w.lease.mine(sending); err == nil && mine && w.lease.note == "" {
		if err := w.stream.UnlockWriter(sending, w.name); err != nil {
			w.logger.Warn("others write files when this one's lock has expired", "error", err)
		}
	}
}

// begin notes what is about to be written to the bucket. It fails with [lake.ErrChanged] where another one writes by now.
func (w *lakeWriter) begin(ctx context.Context, note string) error {
	mine, err := w.lease.begin(ctx, note)
	var bucket *bucketError
	switch {
	case errors.As(err, &bucket):
		return bucket.cause
	case err != nil:
		return &unnotedError{err}
	case !mine:
		return lake.ErrChanged
	}
	return nil
}

// recover waits a moment after a failure, longer and longer. It returns false when taking has ended.
func (w *lakeWriter) recover(taking context.Context, err error) bool {
	var bucket *bucketError
	if !errors.As(err, &bucket) {
		return w.group.recover(taking, err)
	}
	if taking.Err() != nil {
		return false
	}
	w.lake.Forget()
	verdict := bucket.verdict(taking)
	w.failures++
	wait := max(w.timing.breaker.jittered(w.failures-1), verdict.After)
	if w.pauses.reason != verdict.Reason {
		attributes := []any{"reason", verdict.Reason, "advice", advice(verdict.Class)}
		if foreign, is := errors.AsType[*lake.NotOursError](err); is {
			attributes = append(attributes, "object", foreign.Key)
		}
		w.logger.Warn("platform paused: its bucket cannot be written to", attributes...)
	}
	w.pauses.pausedFor(verdict.Reason, misconfigurationOf(verdict))
	return pause(taking, wait)
}

// round writes what is due of one kind, and says whether there may be more.
func (w *lakeWriter) round(ctx context.Context) (more bool, err error) {
	if mine, err := w.lease.mine(ctx); err != nil || !mine {
		return false, err
	}
	if !w.checked {
		if err := w.ofBucket(w.lake.Check(ctx)); err != nil {
			return false, err
		}
		w.checked = true
	}
	at, err := w.at(ctx)
	if err != nil {
		return false, err
	}
	w.group.recovered()
	if more, err = w.left(ctx, at); more || err != nil {
		return more, err
	}
	first, err := w.stream.ReadEvents(ctx, at.LastDelivered, 1, 0)
	if err != nil || len(first) == 0 {
		return false, err
	}
	waits := w.scheduler.now().Sub(first[0].Position.Time())
	if waits < cmp.Or(w.timing.flush, w.settings.FlushInterval()) && at.Lag < int64(w.settings.MostRows()) {
		return false, nil
	}
	day := lake.DayOf(first[0].Position)
	end, err := w.lake.End(ctx, day)
	if err != nil {
		return false, w.ofBucket(err)
	}
	if first[0].Position <= end {
		err = w.find(ctx, at.LastDelivered, first[0].Position)
	} else {
		err = w.write(ctx, at.LastDelivered, day, end)
	}
	if errors.Is(err, lake.ErrChanged) {
		w.lake.Forget() // another one has written: what it has is found there
		return true, nil
	}
	return err == nil, err
}

// at is where the platform's group is.
func (w *lakeWriter) at(ctx context.Context) (stream.Group, error) {
	groups, err := w.stream.Groups(ctx)
	if err != nil {
		return stream.Group{}, err
	}
	i := slices.IndexFunc(groups, func(g stream.Group) bool { return g.Platform == w.name })
	if i < 0 {
		return stream.Group{}, stream.ErrNoGroup
	}
	return groups[i], nil
}

// left takes up what was handed out and never settled, and what waits: of a deliverer that has died, of a replay, or of a group
// that was lost.
func (w *lakeWriter) left(ctx context.Context, at stream.Group) (more bool, err error) {
	var list []stream.Delivery
	if at.Waiting > 0 {
		if list, _, err = w.stream.Unsent(ctx, w.name, w.scheduler.now(), w.timing.lease, lakeSettle); err != nil {
			return false, err
		}
		due, _, err := w.stream.Due(ctx, w.name, w.scheduler.now(), w.timing.lease, lakeSettle)
		if err != nil {
			return false, err
		}
		if list, err = w.past.read(ctx, append(list, due...)); err != nil {
			return false, err
		}
	}
	if at.Pending > 0 && len(list) == 0 && time.Since(w.reclaimed) >= w.timing.reclaim {
		if list, _, err = w.stream.Reclaim(ctx, w.name, w.consumer, w.timing.pendingIdle, lakeSettle); err != nil {
			return false, err
		}
		if len(list) < lakeSettle {
			w.reclaimed = time.Now()
		}
	}
	if len(list) == 0 {
		return false, nil
	}
	err = w.again(ctx, list)
	if errors.Is(err, lake.ErrChanged) {
		w.lake.Forget()
		return true, nil // they come again when their lease has ended
	}
	return true, err
}

// filed is what became of an event.
type filed struct {
	position stream.Position
	attempts int
	// ignored says that it is none of the platform's, else verdict is final.
	ignored bool
	verdict adapter.Verdict
}

// judge says what becomes of an event. Its row is to be in a file where the verdict is [adapter.Delivered].
func (w *lakeWriter) judge(entry stream.Entry, replayed time.Time) (filed, lake.Row) {
	f := filed{position: entry.Position}
	e, err := wire.Decode(entry.Data)
	if err != nil {
		w.logger.Error("an entry of the stream cannot be read", "position", entry.Position.String(), "error", err)
		f.verdict = adapter.Verdict{Class: adapter.Permanent, Reason: "undecodable"}
		return f, lake.Row{}
	}
	if !slices.Contains(e.Platforms, w.name) || w.erased(&e, entry.Position) {
		f.ignored = true
		return f, lake.Row{}
	}
	told, verdict := w.platform.Told(&adapter.Event{Event: e, ReceivedAt: entry.Position.Time(), ReplayedAt: replayed})
	if verdict.Class != adapter.Undecided {
		f.verdict = verdict
		return f, lake.Row{}
	}
	row, err := lake.RowOf(&told, entry.Position, w.property, w.identifiers)
	if err != nil {
		f.verdict = adapter.Verdict{Class: adapter.Permanent, Reason: "unrenderable"}
		return f, lake.Row{}
	}
	f.verdict = adapter.Verdict{Class: adapter.Delivered}
	f.attempts = 1
	return f, row
}

// write writes the next file of a day, behind its end, of the events behind after.
func (w *lakeWriter) write(ctx context.Context, after stream.Position, day lake.Day, end stream.Position) error {
	encoder, bytes := lake.NewEncoder(), 0
	var list []filed
	var last stream.Position
	err := w.behind(ctx, after, func(entry stream.Entry) (bool, error) {
		if lake.DayOf(entry.Position) != day || len(list) == w.settings.MostRows() || bytes > lakeBytes {
			return false, nil
		}
		bytes += len(entry.Data)
		f, row := w.judge(entry, time.Time{})
		list = append(list, f)
		if f.verdict.Class != adapter.Delivered {
			return true, nil
		}
		last = entry.Position
		return true, encoder.Add(row)
	})
	if err != nil {
		return err
	}
	began := time.Now() // the monotonic clock
	if encoder.Rows > 0 {
		data, err := encoder.Close(last)
		if err != nil {
			return err
		}
		if err := w.ofBucket(w.lake.Append(ctx, day, end, last, data)); err != nil {
			return err
		}
		w.logger.Debug("file written", "rows", encoder.Rows, "bytes", len(data))
	}
	return w.settle(ctx, list, time.Since(began))
}

// find looks for the events behind after in the file that covers the first of them, and adds those that it has not.
func (w *lakeWriter) find(ctx context.Context, after, first stream.Position) error {
	file, until, err := w.lake.Covering(ctx, first)
	if err != nil {
		return w.ofBucket(err)
	}
	has, err := w.lake.Has(ctx, file.Key)
	if err != nil {
		return w.ofBucket(err)
	}
	var list []filed
	var missing []lake.Row
	day := lake.DayOf(first)
	err = w.behind(ctx, after, func(entry stream.Entry) (bool, error) {
		if entry.Position > until || lake.DayOf(entry.Position) != day || len(list) == w.settings.MostRows() || len(missing) == lakeMissing {
			return false, nil
		}
		f, row := w.judge(entry, time.Time{})
		if f.verdict.Class == adapter.Delivered && !has[lake.Place{Position: entry.Position, EventID: row.EventID}] {
			missing = append(missing, row)
		}
		list = append(list, f)
		return true, nil
	})
	if err != nil {
		return err
	}
	began := time.Now()
	if len(missing) > 0 {
		if err := w.ofBucket(w.lake.Add(ctx, file.Key, missing)); err != nil {
			return err
		}
	}
	return w.settle(ctx, list, time.Since(began))
}

// behind calls f with the events behind a position, in order, until it says that it has enough. It keeps the lease meanwhile:
// where a file takes longer to make than others wait for a word, each would take over from the one before and none would come to
// write. It fails with [lake.ErrChanged] where another one writes by now.
func (w *lakeWriter) behind(ctx context.Context, after stream.Position, f func(stream.Entry) (bool, error)) error {
	for {
		entries, err := w.stream.ReadEvents(ctx, after, lakeRead, 0)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, entry := range entries {
			if mine, err := w.lease.keep(ctx); err != nil || !mine {
				return cmp.Or(err, lake.ErrChanged)
			}
			if more, err := f(entry); err != nil || !more {
				return err
			}
		}
		after = entries[len(entries)-1].Position
	}
}

// ofBucket marks an error as one of the bucket's, and notes that it answers where there is none.
func (w *lakeWriter) ofBucket(err error) error {
	if unnoted, is := errors.AsType[*unnotedError](err); is {
		return unnoted.cause
	}
	if err != nil {
		return &bucketError{err}
	}
	w.failures = 0
	if w.pauses.reason != "" {
		w.pauses.resumed()
		w.logger.Info("platform resumed: its bucket can be written to")
	}
	return nil
}
