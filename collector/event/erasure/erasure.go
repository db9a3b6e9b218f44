// Package erasure is what of a person's erasure is pure: the ledger, a list of digests that says who has been erased and
// whose later events are to be nobody's. It has no identifier in it, and no hash of one that somebody could make again
// without the property's salt.
package erasure

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/event"
)

// Salt keys the digests of one property's ledger.
type Salt [32]byte

// Digest stands for an identifier in a ledger.
type Digest [8]byte

// Digest returns what stands for an identifier: the first bytes of its HMAC-SHA256.
func (s *Salt) Digest(id event.Identifier) Digest { return s.Digester().Digest(id) }

// Digester returns what makes digests one after the other, at less than half of what [Salt.Digest] costs.
func (s *Salt) Digester() *Digester { return &Digester{mac: hmac.New(sha256.New, s[:])} }

// Digester makes digests. It is not safe for concurrent use.
type Digester struct {
	mac hash.Hash
	sum [sha256.Size]byte
	id  event.Identifier
}

// Digest is [Salt.Digest].
func (d *Digester) Digest(id event.Identifier) Digest {
	d.id = id // so that it is no memory of its own
	d.mac.Reset()
	d.mac.Write(d.id[:])
	return Digest(d.mac.Sum(d.sum[:0]))
}

// Entry is what a ledger says of one identifier.
type Entry struct {
	Digest Digest
	// At is when it was erased, to the millisecond: events that were received until then are gone, whatever backup they
	// come back from.
	At time.Time
	// Suppress says that later events that have the identifier are to be nobody's too.
	Suppress bool
}

// Ledger is what a property's erasures leave behind. It is not safe for concurrent use while it is added to.
type Ledger struct {
	// Salt stays what it was before the first question.
	Salt    Salt
	entries map[Digest]Entry
	// digesters are those that are not in use: questions come from many sides at once.
	digesters sync.Pool
}

// Add adds an entry; of two for one digest the later time counts, and suppression lasts.
func (l *Ledger) Add(entry Entry) {
	if l.entries == nil {
		l.entries = map[Digest]Entry{}
	}
	if known, found := l.entries[entry.Digest]; found {
		entry.Suppress = entry.Suppress || known.Suppress
		if known.At.After(entry.At) {
			entry.At = known.At
		}
	}
	l.entries[entry.Digest] = entry
}

// Has says whether the ledger has an identifier.
func (l *Ledger) Has(digest Digest) bool {
	_, found := l.entries[digest]
	return found
}

// Len is how many identifiers the ledger has.
func (l *Ledger) Len() int { return len(l.entries) }

// Entries returns them in no order.
func (l *Ledger) Entries() []Entry {
	list := make([]Entry, 0, len(l.entries))
	for _, entry := range l.entries {
		list = append(list, entry)
	}
	return list
}

// Erased says whether an event that was received at a time is an erased person's: one of its identifiers was erased then or
// later, or is suppressed.
func (l *Ledger) Erased(ids event.Identifiers, received time.Time) bool {
	return l.any(ids, func(entry Entry) bool { return entry.Suppress || !received.After(entry.At) })
}

// Suppressed says whether an event that arrives now must not be anybody's.
func (l *Ledger) Suppressed(ids event.Identifiers) bool {
	return l.any(ids, func(entry Entry) bool { return entry.Suppress })
}

func (l *Ledger) any(ids event.Identifiers, holds func(Entry) bool) bool {
	if l == nil || len(l.entries) == 0 {
		return false
	}
	digester, ok := l.digesters.Get().(*Digester)
	if !ok {
		digester = l.Salt.Digester()
	}
	defer l.digesters.Put(digester)
	for _, id := range ids.List {
		if entry, found := l.entries[digester.Digest(id)]; found && holds(entry) {
			return true
		}
	}
	return false
}

// A ledger's bytes: a version, the salt, and for each entry the digest, 48 bits of milliseconds since 1970 with the highest
// first, and a byte of flags.
const (
	version    = 1
	headSize   = 1 + len(Salt{})
	entrySize  = len(Digest{}) + 6 + 1
	suppressed = 1
)

// Capacity is how many entries a ledger has whose bytes are no more than size.
func Capacity(size int) int { return max(0, size-headSize) / entrySize }

// ErrMalformed says that bytes are no ledger.
var ErrMalformed = errors.New("is no ledger of erasures")

// Encode returns the ledger's bytes.
func (l *Ledger) Encode() []byte {
	b := append(make([]byte, 0, headSize+entrySize*len(l.entries)), version)
	b = append(b, l.Salt[:]...)
	for _, entry := range l.entries {
		b = entry.Append(b)
	}
	return b
}

// Append appends the entry's bytes, as [DecodeEntries] reads them.
func (e Entry) Append(b []byte) []byte {
	b = append(b, e.Digest[:]...)
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(e.At.UnixMilli()))
	b = append(b, ms[2:]...)
	flags := byte(0)
	if e.Suppress {
		flags |= suppressed
	}
	return append(b, flags)
}

// Decode reads what [Ledger.Encode] wrote. It fails with [ErrMalformed].
func Decode(b []byte) (*Ledger, error) {
	if len(b) < headSize || b[0] != version {
		return nil, fmt.Errorf("a file of %d bytes %w", len(b), ErrMalformed)
	}
	entries, err := DecodeEntries(b[headSize:])
	if err != nil {
		return nil, err
	}
	l := &Ledger{Salt: Salt(b[1:headSize])}
	for _, entry := range entries {
		l.Add(entry)
	}
	return l, nil
}

// DecodeEntries reads entries that stand one behind the other. It fails with [ErrMalformed].
func DecodeEntries(b []byte) ([]Entry, error) {
	if len(b)%entrySize != 0 {
		return nil, fmt.Errorf("a list of %d bytes %w", len(b), ErrMalformed)
	}
	entries := make([]Entry, 0, len(b)/entrySize)
	for rest := b; len(rest) > 0; rest = rest[entrySize:] {
		var ms [8]byte
		copy(ms[2:], rest[len(Digest{}):])
		entries = append(entries, Entry{
			Digest: Digest(rest), At: time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC(), Suppress: rest[entrySize-1]&suppressed != 0,
		})
	}
	return entries, nil
}
