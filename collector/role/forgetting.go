package role

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/history/forget"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// forgetting is what whoever takes persons and what is too old out of a property's history asks about the property.
type forgetting struct {
	stream *stream.Stream
	ledger *ledger
	// kept returns for how many days the history keeps events, and what tells whose they are: 0 for as long.
	kept func() (days, identifiersDays int)
	// hidden is told when rows were hidden.
	hidden func()
}

const (
	// settleLook is how often it is looked whether the archive has come further, settleFor for how long at most.
	settleLook, settleFor = 100 * time.Millisecond, time.Minute
)

var (
	errNoSalt    = errors.New("the ledger of erasures is not there yet")
	errUnsettled = errors.New("the archive does not come further")
)

// run forgets until ctx ends.
func (f *forgetting) run(ctx context.Context, client *clickhouse.Client, cluster schema.Cluster, logger *slog.Logger) {
	forgetter := forget.New(forget.Options{
		Client: client, Cluster: cluster, Ledger: f, Erasures: f.stream, Settled: f.settled, Hidden: f.hidden, Current: f.current, Limits: f.limits, Logger: logger,
	})
	_ = forgetter.Run(ctx) // it returns when ctx ends
}

// Known returns who stands in the ledger.
func (f *forgetting) Known(ctx context.Context) ([]erasure.Entry, erasure.Salt, error) {
	if err := f.ledger.catchUp(ctx, f.stream); err != nil {
		return nil, erasure.Salt{}, err
	}
	if !f.ledger.usable() {
		return nil, erasure.Salt{}, errNoSalt
	}
	known := f.ledger.known.Load()
	return known.Entries(), known.Salt, nil
}

// settled waits until the archive has brought two blocks to their ends, or has found that there are none: what it reads after that it compares
// with the ledger as it is now.
func (f *forgetting) settled(ctx context.Context) error {
	now, err := f.stream.Now(ctx)
	if err != nil {
		return err
	}
	before, err := f.stream.ArchiveState(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleFor, errUnsettled)
	defer cancel()
	ticker := time.NewTicker(settleLook)
	defer ticker.Stop()
	// Of two blocks the second may have been read while the first was sent.
	for state, blocks := before, 0; blocks < 2 && !state.Current.After(now); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		if state, err = f.stream.ArchiveState(ctx); err != nil {
			return err
		}
		if state.Events != before.Events {
			before, blocks = state, blocks+1
		}
	}
	return nil
}

// current is up to when everything that was received is in the history.
func (f *forgetting) current(ctx context.Context) (time.Time, error) {
	state, err := f.stream.ArchiveState(ctx)
	return state.Current, err
}

// limits go by the clock that is believed.
func (f *forgetting) limits(ctx context.Context) (forget.Limits, error) {
	now, err := f.stream.Now(ctx)
	if err != nil {
		return forget.Limits{}, err
	}
	dropped, err := f.stream.Dropped(ctx)
	if err != nil {
		return forget.Limits{}, err
	}
	return limitsAt(now, dropped, f.kept), nil
}

// limitsAt are the limits at a time, where the keys have been dropped of what tells whose events are that is sealed in Redis.
func limitsAt(now time.Time, dropped stream.Dropped, kept func() (days, identifiersDays int)) forget.Limits {
	days, identifiersDays := kept()
	limits := forget.Limits{Now: now}
	if days > 0 { // it is 0 where the history has just been taken from the property: nothing goes by that
		limits.Oldest = schema.DaysBefore(now, days)
	}
	if !dropped.Identities.IsZero() {
		limits.Anonymous = stream.At(dropped.Identities)
	}
	if identifiersDays > 0 {
		limits.Anonymous = max(limits.Anonymous, schema.DaysBefore(now, identifiersDays))
	}
	return limits
}

// keptFor returns for how long a property's history keeps what; a property without one keeps nothing, and is not asked.
func keptFor(property *config.Property) (days, identifiersDays int) {
	if property.History == nil {
		return 0, 0
	}
	return property.History.RetentionDays, property.Retention.IdentifiersDays
}
