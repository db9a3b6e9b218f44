package stream

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// PieceKind says what a [Piece] is of a key.
type PieceKind byte

// The kinds of pieces, numbered as in a backup.
const (
	// PieceText is a string: its value.
	PieceText PieceKind = 1 + iota
	// PieceHash is some fields of a hash: field and value by turns.
	PieceHash
	// PieceScores is some members of a sorted set: member and score by turns.
	PieceScores
	// PieceEntries is some entries of a stream, in order: id, field and value by turns.
	PieceEntries
	// PieceEnds is what a stream knows of itself beside its entries: the last id that it gave, how many entries were ever added,
	// and the highest id that was deleted.
	PieceEnds
	// PieceGroup is a consumer group of a stream: its name, the last id that it handed out, and how many entries it has read, ""
	// where Redis cannot tell.
	PieceGroup
	// PiecePending is what a group has handed out and nobody has settled: the group's name, then id, consumer and how often it was
	// handed out by turns.
	PiecePending
	// PieceCut says that all pieces before it were read in one atomic step: the millisecond of that, by [Clock].
	PieceCut
)

// Piece is a part of what Redis has of a property, for a backup.
type Piece struct {
	Kind PieceKind
	// Key is without what all keys of the property begin with.
	Key string
	// Expires is the millisecond since 1970 at which the key expires, by Redis's clock; 0 for never.
	Expires int64
	Items   []string
}

// errPiece says that a piece cannot be one of a backup.
var errPiece = errors.New("it has something that no backup of a Property has")

// size is how many items belong together in a piece of a kind, and fixed how many stand before those.
func (k PieceKind) size() (fixed, size int) {
	switch k {
	case PieceText, PieceCut:
		return 1, 0
	case PieceHash, PieceScores:
		return 0, 2
	case PieceEntries:
		return 0, 3
	case PieceEnds, PieceGroup:
		return 3, 0
	default:
		return 1, 3
	}
}

// restorable are the keys that a backup may have, by the kind of their pieces. What lives for minutes is not in it, nor who has
// what under way, nor Redis's clock, nor what may stay for less than a day, nor counts.
var restorable = map[PieceKind]*regexp.Regexp{
	PieceText:    regexp.MustCompile(`^(source|writer):[^{}]{1,255}$`),
	PieceHash:    regexp.MustCompile(`^(dedup|join)(:[0-7])?$|^seal:(device|identity|dropped)$|^archive$|^retry:[^{}]{1,255}:attempts$|^order:[^{}]{1,255}:[0-9a-f]{20}$|^erasure:state:[^{}]{1,255}$`),
	PieceScores:  regexp.MustCompile(`^audit:(keys|tokens)$|^erasure:(open|hidden)$|^retry:[^{}]{1,255}:(due|open)$`),
	PieceEntries: regexp.MustCompile(`^(events|deliveries|rejections|erasure:(requests|ledger))$`),
	PieceEnds:    regexp.MustCompile(`^(events|deliveries|erasure:ledger)$`),
	PieceGroup:   regexp.MustCompile(`^events$`),
	PiecePending: regexp.MustCompile(`^events$`),
	PieceCut:     regexp.MustCompile(`^$`),
}

// Check says whether a piece can be one of a backup: whoever restores one has all rights, and the file may be anybody's.
func (p *Piece) Check() error {
	keys, known := restorable[p.Kind]
	if !known || !keys.MatchString(p.Key) || p.Expires < 0 {
		return errPiece
	}
	fixed, size := p.Kind.size()
	rest := len(p.Items) - fixed
	if rest < 0 || size == 0 && rest > 0 || size > 0 && rest%size > 0 {
		return errPiece
	}
	if !p.fit() {
		return errPiece
	}
	return nil
}

// fit says whether Redis would take the items.
func (p *Piece) fit() bool {
	number := func(text string) bool { n, err := strconv.ParseInt(text, 10, 64); return err == nil && n >= 0 }
	score := func(text string) bool { f, err := strconv.ParseFloat(text, 64); return err == nil && !math.IsNaN(f) }
	every := func(items []string, is func(string) bool) bool {
		return !slices.ContainsFunc(items, func(item string) bool { return !is(item) })
	}
	isID := func(id string) bool { _, err := ParsePosition(id); return err == nil }
	switch p.Kind {
	case PieceScores:
		return every(each(p.Items, 1, 2), score)
	case PieceEntries:
		before := Position(0)
		return every(each(p.Items, 0, 3), func(id string) bool {
			at, err := ParsePosition(id)
			later := err == nil && at > before
			before = at
			return later
		})
	case PiecePending:
		return every(each(p.Items, 1, 3), isID) && every(each(p.Items, 3, 3), number)
	case PieceEnds:
		last, err := ParsePosition(p.Items[0])
		deleted, alsoErr := ParsePosition(p.Items[2])
		return err == nil && alsoErr == nil && deleted <= last && number(p.Items[1])
	case PieceGroup:
		return isID(p.Items[1]) && (p.Items[2] == "" || number(p.Items[2]))
	case PieceCut:
		return number(p.Items[0])
	default:
		return true
	}
}

// each returns each n-th item, beginning with one.
func each(items []string, first, n int) []string {
	list := make([]string, 0, len(items)/n)
	for i := first; i < len(items); i += n {
		list = append(list, items[i])
	}
	return list
}

// BackupProgress is how far a backup is, as its pieces tell: those that are in a file already, or have just been written. The zero
// value is that of none.
type BackupProgress struct {
	// whole says that the cut is there, at is when that was, in milliseconds.
	whole bool
	at    int64
	// ends are the last ids of streams at the cut, last those of their entries that are there already.
	ends, last map[string]Position
	// groups are those of events.
	groups map[string]bool
	// buckets are the values of dedup and join at the cut, by the buckets' keys, and open the erasures that were open, by id.
	buckets, open map[string]string
}

// Cut says whether the pieces have all that was read in one step: else there is nothing to go on with.
func (b *BackupProgress) Cut() bool { return b.whole }

// At is the millisecond of the cut.
func (b *BackupProgress) At() int64 { return b.at }

// Note takes note of a piece, which [Piece.Check] finds fit. It keeps nothing of it that is large. It fails where a piece cannot
// follow those before.
func (b *BackupProgress) Note(p *Piece) error {
	if b.ends == nil {
		b.ends, b.last, b.groups = map[string]Position{}, map[string]Position{}, map[string]bool{}
		b.buckets, b.open = map[string]string{}, map[string]string{}
	}
	switch p.Kind {
	case PieceEnds:
		b.ends[p.Key], _ = ParsePosition(p.Items[0])
		if b.last[p.Key] > b.ends[p.Key] {
			return errPiece
		}
	case PieceGroup:
		b.groups[p.Items[0]] = true
	case PiecePending:
		if !b.groups[p.Items[0]] {
			return errPiece
		}
	case PieceEntries:
		return b.noteEntries(p)
	case PieceHash:
		if p.Key == "dedup" || p.Key == "join" {
			for i := 0; i < len(p.Items); i += 2 {
				b.buckets[p.Key+":"+p.Items[i]] = p.Items[i+1]
			}
		}
	case PieceScores:
		if p.Key == "erasure:open" {
			for i := 0; i < len(p.Items); i += 2 {
				b.open[p.Items[i]] = p.Items[i+1]
			}
		}
	case PieceCut:
		if b.whole {
			return errPiece
		}
		b.whole = true
		b.at, _ = strconv.ParseInt(p.Items[0], 10, 64)
	}
	return nil
}

func (b *BackupProgress) noteEntries(p *Piece) error {
	n := len(p.Items)
	if n == 0 {
		return nil
	}
	first, _ := ParsePosition(p.Items[0])
	last, _ := ParsePosition(p.Items[n-3])
	if end, known := b.ends[p.Key]; first <= b.last[p.Key] || known && last > end {
		return errPiece
	}
	b.last[p.Key] = last
	return nil
}

// pieceBytes is about how much a piece has, unless a single item has more.
const pieceBytes = 1 << 20

// pieceEmitter collects items into pieces of about the same size and hands them on.
type pieceEmitter struct {
	piece Piece
	bytes int
	emit  func(*Piece) error
}

func (e *pieceEmitter) add(items ...string) error {
	for _, item := range items {
		e.bytes += len(item) + 2
	}
	e.piece.Items = append(e.piece.Items, items...)
	if e.bytes < pieceBytes {
		return nil
	}
	return e.flush()
}

func (e *pieceEmitter) flush() error {
	if len(e.piece.Items) == 0 {
		return nil
	}
	piece := e.piece
	e.piece.Items, e.bytes = nil, 0
	return e.emit(&piece)
}

// emitAll hands on items that belong to one key, size of them together.
func emitAll(kind PieceKind, key string, expires int64, items []string, emit func(*Piece) error) error {
	_, size := kind.size()
	e := pieceEmitter{piece: Piece{Kind: kind, Key: key, Expires: expires}, emit: emit}
	for some := range slices.Chunk(items, size) {
		if err := e.add(some...); err != nil {
			return err
		}
	}
	return e.flush()
}

// within returns a key without what all keys of the property begin with.
func (k keys) within(key string) string { return strings.TrimPrefix(key, k.prefix) }
