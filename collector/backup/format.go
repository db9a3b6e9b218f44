// Package backup writes what Redis has of a Property into one file, and puts it back. docs/internals/backup-format.md describes the
// file: a few bytes that say what it is, and then frames, each with a checksum of its own.
package backup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// magic begins every backup. Its last byte is the format's version.
const (
	magic         = "weir-backup\x00"
	formatVersion = 1
)

// The kinds of frames.
const (
	frameHeader byte = 'h'
	framePiece  byte = 'p'
	frameEnd    byte = 'e'
)

const (
	// frameHead is how many bytes stand before a frame's body: its kind, how long its body is and how long that is when it is
	// inflated, and the checksum.
	frameHead = 1 + 4 + 4 + 4
	// maxFrame is how many bytes a frame's body may have, inflated or not: several times the largest piece there is. A file that
	// claims more is refused, and takes no memory.
	maxFrame = 16 << 20
)

// Errors of a file that callers tell apart.
var (
	// ErrFormat says that it is no backup.
	ErrFormat = errors.New("this is no backup of Weir's")
	// ErrVersion says that a newer Weir has made it.
	ErrVersion = errors.New("a newer Weir has made this backup; restore it with that")
	// ErrDamaged says that it is not as it was written.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrTruncated says that its end is missing: it was broken off, or is still being written.
	ErrTruncated = errors.New("the backup's end is missing")
)

// Header is what a backup says of itself.
type Header struct {
	// ID tells this backup from all others.
	ID string `json:"id"`
	// Property is NAMESPACE/NAME.
	Property string `json:"property"`
	// Began is when it was begun, by the clock of the machine that made it.
	Began time.Time `json:"began"`
	// Weir is the version that made it.
	Weir string `json:"weir"`
}

// end is what the last frame says.
type end struct {
	// Pieces is how many there are, SHA256 that of all bytes before this frame, in hexadecimal.
	Pieces int64  `json:"pieces"`
	SHA256 string `json:"sha256"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head returns a frame's first bytes. The checksum covers them, the frame's number, and the body: so no frame can be left out, or
// stand in another's place.
func head(kind byte, number uint64, body []byte, inflated int) []byte {
	b := make([]byte, 0, frameHead)
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(inflated))
	return binary.BigEndian.AppendUint32(b, checksum(b, number, body))
}

func checksum(before []byte, number uint64, body []byte) uint32 {
	sum := crc32.Update(0, castagnoli, binary.BigEndian.AppendUint64(append([]byte(nil), before...), number))
	return crc32.Update(sum, castagnoli, body)
}

// appendPiece appends a piece: its kind, when it expires, its key, and its items, all texts with their lengths before them.
func appendPiece(b []byte, p *stream.Piece) []byte {
	b = append(b, byte(p.Kind))
	b = binary.AppendUvarint(b, uint64(p.Expires))
	b = appendText(b, p.Key)
	b = binary.AppendUvarint(b, uint64(len(p.Items)))
	for _, item := range p.Items {
		b = appendText(b, item)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// pieceOf reads a piece. It takes no more memory than a few times what it reads.
func pieceOf(b []byte) (*stream.Piece, error) {
	if len(b) == 0 {
		return nil, ErrDamaged
	}
	p := &stream.Piece{Kind: stream.PieceKind(b[0])}
	r := texts{rest: b[1:]}
	p.Expires = int64(r.number())
	p.Key = r.text()
	count := r.number()
	if count > uint64(len(r.rest)) { // each has a byte for its length
		return nil, ErrDamaged
	}
	p.Items = make([]string, 0, count)
	for range count {
		p.Items = append(p.Items, r.text())
	}
	if r.bad || len(r.rest) > 0 {
		return nil, ErrDamaged
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return p, nil
}

// texts reads numbers and texts one after the other, as long as they are good.
type texts struct {
	rest []byte
	bad  bool
}

func (t *texts) number() uint64 {
	n, size := binary.Uvarint(t.rest)
	if size <= 0 {
		t.bad, t.rest = true, nil
		return 0
	}
	t.rest = t.rest[size:]
	return n
}

func (t *texts) text() string {
	n := t.number()
	if n > uint64(len(t.rest)) {
		t.bad, t.rest = true, nil
		return ""
	}
	text := string(t.rest[:n])
	t.rest = t.rest[n:]
	return text
}

// short makes of the errors of a file that ends too early our own.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	return err
}
