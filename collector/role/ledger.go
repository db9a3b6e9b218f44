package role

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/stream"
)

// ledgerInterval is how often the ledger stream is looked at.
const ledgerInterval = time.Second

// ledgerAtOnce is how many entries of the ledger stream are read at once.
const ledgerAtOnce = 1000

// ledger is who of a property's persons has been erased, as far as this process knows: what the file has and what the ledger
// stream has told since. It is safe for concurrent use.
type ledger struct {
	property string
	known    atomic.Pointer[knownLedger]
	// complete is closed once the file and the stream have both been read.
	complete chan struct{}

	mu sync.Mutex
	// file is nil where there is none; told is what the stream has told.
	file *erasure.Ledger
	told erasure.Ledger
	// restored is the time of the latest erasure that an older backup has undone: what Redis has of before may be of persons
	// who were erased since.
	restored time.Time

	// reading is held while the stream is read. read is how far it has been, and anew what it has where it is read from its
	// beginning.
	reading sync.Mutex
	read    stream.Position
	anew    *erasure.Ledger
}

// knownLedger is a ledger that does not change any more.
type knownLedger struct {
	erasure.Ledger
	// suppresses says that there is anybody in it whose later events are to be nobody's.
	suppresses bool
}

// newLedger begins with what the file has.
func newLedger(property string, file *erasure.Ledger) *ledger {
	l := &ledger{property: property, complete: make(chan struct{}), anew: &erasure.Ledger{}}
	l.replace(file)
	return l
}

// replace puts what the file has now in place of what it had. A file that has gone is no reason to forget whom it had.
func (l *ledger) replace(file *erasure.Ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if file != nil {
		l.file = file
	}
	l.merge()
}

// add adds what the stream has told.
func (l *ledger) add(list []stream.LedgerEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, read := range list {
		for _, entry := range read.Entries {
			l.told.Add(entry)
			if strings.HasPrefix(read.ErasureID, stream.RestoredErasure) {
				l.restore(entry)
			}
			if l.anew != nil {
				l.anew.Add(entry)
			}
		}
	}
	l.merge()
}

// restore notes that what was erased may be back.
func (l *ledger) restore(entry erasure.Entry) {
	if entry.At.After(l.restored) {
		l.restored = entry.At
	}
}

// compare notes whom a stream does not have that was read from its beginning: the Redis behind it is older than their
// erasures, which the keeper of the ledger has not seen to yet.
func (l *ledger) compare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.anew == nil {
		return
	}
	known := l.known.Load()
	for _, entry := range known.Entries() {
		if !l.anew.Has(entry.Digest) {
			l.restore(entry)
		}
	}
	l.anew = nil
}

// restoredUntil returns the time of the latest erasure that an older backup has undone, zero where none has.
func (l *ledger) restoredUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restored
}

// merge makes one of both. Without a file there is no salt by which anybody could be told.
func (l *ledger) merge() {
	known := &knownLedger{}
	if l.file != nil {
		known.Salt = l.file.Salt
		for _, part := range []*erasure.Ledger{l.file, &l.told} {
			for _, entry := range part.Entries() {
				known.Add(entry)
				known.suppresses = known.suppresses || entry.Suppress
			}
		}
	}
	l.known.Store(known)
}

// usable says whether what is known suffices: a stream that tells of erasures is of no use without the file's salt.
func (l *ledger) usable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file != nil || l.told.Len() == 0
}

// Suppresses says whether there is anybody whose later events are to be nobody's.
func (l *ledger) Suppresses() bool { return l.known.Load().suppresses }

// Suppressed says whether an event that arrives now is to be nobody's.
func (l *ledger) Suppressed(ids event.Identifiers) bool { return l.known.Load().Suppressed(ids) }

// Erased says whether an event that was received at a time is an erased person's.
func (l *ledger) Erased(e *event.Event, received time.Time) bool {
	known := l.known.Load()
	if known.Len() == 0 {
		return false
	}
	var buffer [12]event.Identifier
	return known.Erased(e.Identifiers(l.property, buffer[:0]), received)
}

// Salt is what the digests are made with; false where there is no file yet.
func (l *ledger) Salt() (erasure.Salt, bool) {
	salt := l.known.Load().Salt
	return salt, salt != erasure.Salt{}
}

// await waits until the ledger has been read once, or until ctx ends.
func (l *ledger) await(ctx context.Context) error {
	select {
	case <-l.complete:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ready says whether it has been read once.
func (l *ledger) ready(context.Context) error {
	select {
	case <-l.complete:
		return nil
	default:
		return errors.New("the ledger of erasures has not been read yet")
	}
}

// follow reads the ledger stream, and what comes to it, until ctx ends. A Redis that is away is asked again; that it is, others
// say.
func (l *ledger) follow(ctx context.Context, s *stream.Stream) {
	ticker := time.NewTicker(ledgerInterval)
	defer ticker.Stop()
	done := sync.OnceFunc(func() { close(l.complete) })
	for {
		if err := l.catchUp(ctx, s); err == nil && l.usable() {
			done()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// catchUp reads the ledger stream to its end. Nothing is ever taken out of that stream: where the last entry that was read is
// gone, it is another stream, and is read from its beginning.
func (l *ledger) catchUp(ctx context.Context, s *stream.Stream) error {
	l.reading.Lock()
	defer l.reading.Unlock()
	for {
		before := l.read
		if before > 0 {
			before-- // so that the last entry is read again
		}
		list, last, err := s.ReadLedger(ctx, before, ledgerAtOnce)
		switch {
		case err != nil:
			return err
		case last == before && l.read > 0:
			l.read, l.anew = 0, &erasure.Ledger{} // what the stream tells from now on is compared with what is known
			continue
		case last == l.read || last == before:
			l.compare()
			return nil
		}
		l.add(list)
		l.read = last
	}
}

// readers read what a property's stream has that may have an id of somebody who was erased since a backup: after a restore, what is
// older than the last erasure is left out, of which what is erased by then has no sign.
type readers struct {
	stream *stream.Stream
	ledger *ledger
}

// clockMargin is how far the clocks of collectors, who date rejections, may differ from that of erasures.
const clockMargin = time.Minute

// Rejections returns the newest rejections, at most limit, the newest first.
func (r readers) Rejections(ctx context.Context, limit int) ([]stream.Rejection, error) {
	if err := r.ledger.catchUp(ctx, r.stream); err != nil {
		return nil, err
	}
	list, err := r.stream.Rejections(ctx, limit)
	return sinceRestored(r.ledger, list, func(one stream.Rejection) time.Time { return one.At }), err
}

// Shadow returns what a platform in the mode Shadow would have been sent, at most limit entries, the newest first.
func (r readers) Shadow(ctx context.Context, platform string, limit int) ([]stream.ShadowEntry, error) {
	if err := r.ledger.catchUp(ctx, r.stream); err != nil {
		return nil, err
	}
	list, err := r.stream.Shadow(ctx, platform, limit)
	return sinceRestored(r.ledger, list, func(one stream.ShadowEntry) time.Time { return one.At }), err
}

// sinceRestored leaves out what a restore may have brought back.
func sinceRestored[T any](l *ledger, list []T, at func(T) time.Time) []T {
	until := l.restoredUntil()
	if until.IsZero() {
		return list
	}
	until = until.Add(clockMargin)
	return slices.DeleteFunc(list, func(one T) bool { return at(one).Before(until) })
}
