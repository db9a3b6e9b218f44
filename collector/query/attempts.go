package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/stream"
)

// RecordReader reads what became of an event: [StreamRecords] from a stream, the engine on disk from its own records.
type RecordReader interface {
	// RecordsOf returns the records of an event's deliveries that are found, in any order.
	RecordsOf(ctx context.Context, of *analytics.Record) ([]stream.Record, error)
}

const (
	// recordEntriesAtOnce is how many entries with records are had from Redis at a time; recordsBytes is about what they take.
	recordEntriesAtOnce = 50
	recordsBytes        = 8 << 20
	// maxRecordsRead bounds how many records one event's are looked for among, attemptsTimeout for how long.
	maxRecordsRead  = 1_000_000
	attemptsTimeout = 5 * time.Second
	// clockMargin is how far the clocks that positions of events and of records come from may differ.
	clockMargin = time.Minute
)

// attempts are the records of one event's deliveries.
type attempts struct {
	of    *analytics.Record
	found []stream.Record
}

// readAttempts reads the records of an event, oldest first, and says whether every attempt is among them. Some are not where they
// are not found, where several attempts were made before the first was recorded, and where an erasure has written others'
// records anew.
func readAttempts(ctx context.Context, reader RecordReader, of *analytics.Record) (list []stream.Record, complete bool, err error) {
	found, err := reader.RecordsOf(ctx, of)
	if err != nil {
		return nil, false, err
	}
	a := attempts{of, found}
	complete = a.complete()
	a.addLatest()
	slices.SortStableFunc(a.found, func(x, y stream.Record) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Attempts, y.Attempts)) })
	return slices.Compact(a.found), complete || a.complete(), nil
}

// StreamReader reads entries of the deliveries stream. [stream.Stream] is one.
type StreamReader interface {
	// ReadRecords returns the records of some entries behind a position: see [stream.Stream.ReadRecords].
	ReadRecords(ctx context.Context, after stream.Position, count int, block time.Duration) (stream.Records, error)
}

// StreamRecords looks for records in the deliveries stream, which has those of all events one after the other.
type StreamRecords struct{ Stream StreamReader }

// RecordsOf implements [RecordReader]: it reads what stands there up to when the event's newest delivery was decided, as far as it
// gets.
func (s StreamRecords) RecordsOf(ctx context.Context, of *analytics.Record) ([]stream.Record, error) {
	a := attempts{of: of}
	ctx, cancel := context.WithTimeout(ctx, attemptsTimeout)
	defer cancel()
	after, end := stream.At(of.ReceivedAt.Add(-clockMargin)), stream.At(a.decided().Add(clockMargin))
	for read := 0; read < maxRecordsRead && after < end && !a.complete(); {
		records, err := s.Stream.ReadRecords(ctx, after, recordEntriesAtOnce, 0)
		if unreadable := (*stream.RecordsError)(nil); err != nil && !errors.As(err, &unreadable) {
			if read > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				break // what there was time for
			}
			return nil, fmt.Errorf("%w: %s", errNoEntries, err) //nolint:errorlint // a time that is up here is Redis's, not the request's
		}
		if records.Last == after {
			break
		}
		a.take(records.Records)
		read += max(1, len(records.Records))
		after = records.Last
	}
	return a.found, nil
}

// decided is when the newest of the event's deliveries was decided; its reception, where none is. Nothing is looked for then.
func (a *attempts) decided() time.Time {
	newest := a.of.ReceivedAt.Add(-2 * clockMargin)
	for _, d := range a.of.Deliveries {
		if d.Status != stream.Pending && d.UpdatedAt.After(newest) {
			newest = d.UpdatedAt
		}
	}
	return newest
}

// take keeps those of some records that are the event's.
func (a *attempts) take(records []stream.Record) {
	for _, r := range records {
		if r.Event == a.of.Position {
			a.found = append(a.found, r)
		}
	}
}

// complete says that all is found that the view knows of: how each delivery stands, and a record for each attempt.
func (a *attempts) complete() bool {
	return !slices.ContainsFunc(a.of.Deliveries, func(d analytics.Delivery) bool {
		if d.Status == stream.Pending {
			return false
		}
		seen, latest := map[int]bool{}, false
		for i := range a.found {
			if r := &a.found[i]; r.Platform == d.Platform {
				seen[r.Attempts], latest = true, latest || isLatest(r, &d)
			}
		}
		delete(seen, 0)
		return !latest || len(seen) < d.Attempts
	})
}

// isLatest says whether a record is the one by which a delivery stands as it does.
func isLatest(r *stream.Record, d *analytics.Delivery) bool {
	return r.Platform == d.Platform && r.Status == d.Status && r.Attempts == d.Attempts && r.At.Equal(d.UpdatedAt)
}

// addLatest adds the records that the view knows of where they were not found.
func (a *attempts) addLatest() {
	for i := range a.of.Deliveries {
		d := &a.of.Deliveries[i]
		if d.Status == stream.Pending || slices.ContainsFunc(a.found, func(r stream.Record) bool { return isLatest(&r, d) }) {
			continue
		}
		r := stream.Record{Event: a.of.Position, Platform: d.Platform, Status: d.Status, Attempts: d.Attempts, Reason: d.Reason, At: d.UpdatedAt}
		if d.Latency != nil {
			r.Latency = *d.Latency
		}
		a.found = append(a.found, r)
	}
}
