package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/stream"
)

// Ledger says who has been erased. It is safe for concurrent use.
type Ledger interface {
	// Erased says whether an event that was received at a time is an erased person's.
	Erased(e *event.Event, received time.Time) bool
	// Salt is what the ledger's digests are made with; false where it is not known yet.
	Salt() (erasure.Salt, bool)
}

const (
	// maxErasures is how many erasures are done together.
	maxErasures = 5000
	// ledgerRead is how many entries of the ledger stream are read at a time.
	ledgerRead = 1000
	// lockParts is how often whoever erases says so before others think that it has died.
	lockParts = 6
)

// errNoSalt says that erasures are asked for and that the ledger is not there.
var errNoSalt = errors.New("the ledger of erasures is not there yet")

// errFiles says that persons are still in platforms' files.
var errFiles = errors.New("the files of a platform cannot be rewritten")

// eraser removes erased persons from Redis. Of several deliverers one does that at a time; what one leaves undone when it
// dies another finishes, for an erasure is done only when that has been noted, and every step may be taken twice.
type eraser struct {
	stream   *stream.Stream
	ledger   Ledger
	property string
	// token tells this deliverer from others.
	token string
	// monotonic says how long this deliverer runs: no time here is one of Redis's.
	monotonic func() time.Duration
	// interval is how often it looks. grace is for how long an erasure stands in the ledger before its events are looked for,
	// so that collectors know of it and store none any more. patience is how long another's silence, or a request that
	// nobody takes, lasts before this one acts.
	interval, grace, patience time.Duration
	logger                    *slog.Logger
	audit                     *audit.Log
	forwarding                *forwarding
	lakes                     *lakes
	history                   *historyPart

	// entries are what the ledger stream has of the erasures that are open.
	entries map[string][]erasure.Entry
	// since is when an erasure was first seen as it stands, asked when a further part of it was requested.
	since map[stream.OpenErasure]time.Duration
	asked map[string]time.Duration
	// lock is what another has written down, and lockSeen when it was seen first.
	lock     string
	lockSeen time.Duration
}

func (e *Engine) eraser() *eraser {
	var history *historyPart
	if e.options.Property.History != nil {
		history = newHistoryPart(e.options.Stream)
	}
	return &eraser{
		history: history, stream: e.options.Stream, ledger: e.options.Ledger, property: e.options.Property.Namespace + "/" + e.options.Property.Name,
		token: uuid.NewString(), monotonic: e.monotonic, interval: e.timing.erase, grace: e.timing.eraseGrace, patience: e.timing.erasePatience,
		logger: e.options.Logger, audit: e.options.Audit, forwarding: e.forwarding(), lakes: e.lakes(), entries: map[string][]erasure.Entry{}, since: map[stream.OpenErasure]time.Duration{}, asked: map[string]time.Duration{},
	}
}

func (e *Engine) lakes() *lakes {
	o := &e.options
	return &lakes{
		property: o.Property, credentials: o.Credentials, client: NewHTTPClient(o.Property.Egress, lakeRequest),
		count:  func(platform string) func() { return o.Metrics.attempts.WithLabelValues(platform).Inc },
		writer: o.Stream.Writer,
	}
}

func (e *Engine) forwarding() *forwarding {
	o := &e.options
	return &forwarding{
		property: o.Property, credentials: o.Credentials, client: newClient(o.Property.Egress, e.timing.forward, o.Now), wall: o.Now,
		backoff: e.timing.backoff, pass: e.timing.forwardPass, logger: o.Logger,
	}
}

// run erases whoever is to be erased, until taking ends.
func (e *eraser) run(taking context.Context) {
	defer e.forwarding.client.close()
	defer e.lakes.client.CloseIdleConnections()
	failed := false
	for {
		err := e.look(taking)
		if taking.Err() != nil {
			return
		}
		if err != nil && !failed {
			e.logger.Error("persons cannot be erased yet; it is tried again and again", "error", err)
		}
		failed = err != nil
		wait := e.interval
		if errors.Is(err, errFiles) {
			wait = e.patience // each try goes through all events
		}
		if !pause(taking, wait) {
			return
		}
	}
}

// look does the erasures that are to be done now.
func (e *eraser) look(ctx context.Context) error {
	open, err := e.stream.OpenErasures(ctx, maxErasures)
	if err != nil {
		return err
	}
	if len(open) == 0 {
		clear(e.entries)
		clear(e.since)
		clear(e.asked)
		e.history.forget(nil)
		return nil
	}
	e.history.forget(open)
	if err := e.readLedger(ctx, open); err != nil {
		return err
	}
	due := e.due(open)
	due, done, err := e.history.split(ctx, due)
	if err != nil {
		return err
	}
	if err := e.hide(ctx, done); err != nil || len(due) == 0 {
		return err
	}
	mine, err := e.acquire(ctx)
	if err != nil || !mine {
		return err
	}
	release := e.hold(ctx)
	defer release()
	return e.erase(ctx, due)
}

// readLedger learns what the ledger stream has of the open erasures: nothing new where all of them are known as they stand.
// An erasure is open in one step with its entries, and so may be behind any of them.
func (e *eraser) readLedger(ctx context.Context, open []stream.OpenErasure) error {
	if !slices.ContainsFunc(open, func(one stream.OpenErasure) bool { _, known := e.since[one]; return !known }) {
		return nil
	}
	entries := map[string][]erasure.Entry{}
	for _, one := range open {
		entries[one.ID] = nil
	}
	for after := stream.Position(0); ; {
		list, last, err := e.stream.ReadLedger(ctx, after, ledgerRead)
		if err != nil {
			return err
		}
		for _, entry := range list {
			if known, ours := entries[entry.ErasureID]; ours {
				entries[entry.ErasureID] = append(known, entry.Entries...)
			}
		}
		if last == after {
			e.entries = entries
			return nil
		}
		after = last
	}
}

// due returns those of the open erasures that have stood in the ledger for long enough, and wait for nothing.
func (e *eraser) due(open []stream.OpenErasure) []stream.OpenErasure {
	now, since := e.monotonic(), map[stream.OpenErasure]time.Duration{}
	var due []stream.OpenErasure
	for _, one := range open {
		first, known := e.since[one]
		if !known {
			first = now
		}
		since[one] = first
		asked, waits := e.asked[one.ID]
		waits = waits && one.Follow && now-asked < e.patience
		if now-first >= e.grace && !waits {
			due = append(due, one)
		}
	}
	e.since = since
	return due
}

// erase does some erasures. Where what was seen with a subject is to go too, that is only looked for: it has to stand in the
// ledger before anything goes by which it could be found.
func (e *eraser) erase(ctx context.Context, due []stream.OpenErasure) error {
	salt, known := e.ledger.Salt()
	if !known {
		return errNoSalt
	}
	began := e.monotonic()
	s := &sweep{
		stream: e.stream, erasures: newErasures(e.property, salt, due, e.entries), erased: map[stream.Position][]string{},
		linked: map[string]map[event.Identifier]struct{}{}, waiting: map[string]bool{}, texts: map[string]struct{}{},
		forwarders: e.forwarding.open(), platforms: e.forwarding.property.PlatformNames(),
	}
	bounds, err := e.stream.Bounds(ctx)
	if err != nil {
		return err
	}
	if err := s.events(ctx, 0); err != nil {
		return err
	}
	// What has come in meanwhile.
	if err := s.events(ctx, bounds.Newest); err != nil {
		return err
	}
	rows, err := e.files(ctx, s)
	if err != nil {
		return err
	}
	var done []stream.OpenErasure
	for _, one := range due {
		switch {
		case !one.Follow && !s.waiting[one.ID]:
			done = append(done, one)
			continue
		case !one.Follow:
			continue // it shares an event with one that waits for a further part
		}
		known, err := e.history.linked(ctx, one.ID)
		if err != nil {
			return err
		}
		if err := s.request(ctx, one, known); err != nil {
			return err
		}
		e.asked[one.ID] = e.monotonic()
	}
	if len(done) == 0 {
		return nil
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	ready, err := e.history.ready(ctx, done)
	if err != nil {
		return err
	}
	if err := e.hide(ctx, ready); err != nil {
		return err
	}
	e.logger.LogAttrs(ctx, slog.LevelInfo, "persons erased", slog.Int("erasures", len(done)), slog.Int("events", len(s.erased)), slog.Int("rows", rows),
		slog.Int("unreadable", s.unreadable), slog.String("took", (e.monotonic()-began).Round(time.Millisecond).String()))
	return nil
}

// files takes the persons' rows out of the platforms' files, and returns how many those were.
func (e *eraser) files(ctx context.Context, s *sweep) (rows int, err error) {
	list, err := e.lakes.open()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errFiles, err)
	}
	for _, one := range list {
		text, err := e.lakes.writer(ctx, one.platform)
		if err != nil {
			return rows, err
		}
		removed, err := one.erase(ctx, noteOf(text), s.row)
		rows += removed
		if err != nil {
			return rows, fmt.Errorf("%w: platform %s: %w", errFiles, one.platform, err)
		}
	}
	return rows, nil
}

// hide notes that erasures are done, and writes down how much that was.
func (e *eraser) hide(ctx context.Context, done []stream.OpenErasure) error {
	if len(done) == 0 {
		return nil
	}
	entries := make([]audit.Entry, len(done))
	for i, one := range done {
		state, err := e.stream.Erasure(ctx, one.ID)
		if err != nil && !errors.Is(err, stream.ErrNoErasure) {
			return err
		}
		entries[i] = audit.HiddenErasure(e.property, one.ID, audit.ErasureCounts{
			Events: state.Events, Records: state.Records, Identifiers: state.Identifiers, Linked: state.Linked,
		})
	}
	if err := e.stream.HideErasures(ctx, done); err != nil {
		return err
	}
	for _, entry := range entries {
		e.audit.Write(ctx, entry)
	}
	return nil
}

// acquire says whether nobody else erases. Another one is believed for as long as what it writes down changes.
func (e *eraser) acquire(ctx context.Context) (bool, error) {
	lock, err := e.stream.ErasureLock(ctx)
	if err != nil {
		return false, err
	}
	now := e.monotonic()
	if lock != e.lock {
		e.lock, e.lockSeen = lock, now
	}
	return lock == "" || strings.HasPrefix(lock, e.token) || now-e.lockSeen >= e.patience, nil
}

// hold says again and again that this deliverer erases, until release is called.
func (e *eraser) hold(ctx context.Context) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	var holder sync.WaitGroup
	holder.Go(func() {
		for n := 0; ; n++ {
			// Where it cannot be said another one may begin as well, which is harmless.
			if err := e.stream.LockErasures(ctx, e.token+" "+strconv.Itoa(n)); err != nil && ctx.Err() == nil {
				e.logger.Warn("others may erase the same persons", "error", err)
			}
			if !pause(ctx, e.patience/lockParts) {
				return
			}
		}
	})
	return func() {
		cancel()
		holder.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := e.stream.UnlockErasures(ctx); err != nil {
			e.logger.Warn("others erase when this one's lock has expired", "error", err)
		}
	}
}
