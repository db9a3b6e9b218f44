package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/weir-dev/weir/collector/stream"
)

// Reader reads a backup. It takes little memory whatever the file claims, and is not safe for concurrent use.
type Reader struct {
	// Header is what the backup says of itself.
	Header Header
	// Progress is how far the backup is that was read.
	Progress stream.BackupProgress

	from *bufio.Reader
	// sum is of the frames that were read, number that of the next one, and offset where it begins.
	sum    hash.Hash
	number uint64
	offset int64
	// ended says that nothing can be gone on with: the last frame was the end, or what nobody writes.
	ended   bool
	decoder *zstd.Decoder
	raw     bytes.Buffer
	packed  []byte
}

// NewReader begins to read a backup. It fails with [ErrFormat], [ErrVersion], [ErrDamaged] or [ErrTruncated].
func NewReader(from io.Reader) (*Reader, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
	if err != nil {
		return nil, err
	}
	r := &Reader{from: bufio.NewReaderSize(from, 256<<10), sum: sha256.New(), decoder: decoder}
	begin := make([]byte, len(magic)+1)
	if _, err := io.ReadFull(r.from, begin); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, ErrFormat
		}
		return nil, err
	}
	switch version := begin[len(magic)]; {
	case string(begin[:len(magic)]) != magic || version == 0:
		return nil, ErrFormat
	case version > formatVersion:
		return nil, ErrVersion
	}
	r.note(begin)
	kind, body, err := r.frame()
	if err != nil {
		return nil, err
	}
	if kind != frameHeader || json.Unmarshal(body, &r.Header) != nil || r.Header.ID == "" || !stream.IsProperty(r.Header.Property) {
		return nil, ErrDamaged
	}
	return r, nil
}

// Next returns the next piece; [io.EOF] once the end has been read, which makes the whole file sure. It fails with [ErrDamaged] or
// [ErrTruncated]; everything before that frame can be gone on with.
func (r *Reader) Next() (*stream.Piece, error) {
	before := append([]byte(nil), r.sum.Sum(nil)...)
	kind, body, err := r.frame()
	if err != nil {
		return nil, err
	}
	switch kind {
	case framePiece:
		p, err := pieceOf(body)
		if err == nil {
			if err = r.Progress.Note(p); err != nil {
				err = fmt.Errorf("%w: %w", ErrDamaged, err)
			}
		}
		r.ended = err != nil
		return p, err
	case frameEnd:
		r.ended = true
		var said end
		if json.Unmarshal(body, &said) != nil || said.SHA256 != hex.EncodeToString(before) || said.Pieces != int64(r.number)-2 || !r.Progress.Cut() {
			return nil, ErrDamaged
		}
		if _, err := r.from.ReadByte(); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: there is something behind its end", ErrDamaged)
		}
		return nil, io.EOF
	default:
		return nil, ErrDamaged
	}
}

// frame reads a frame. Where that fails, offset is where it begins, and nothing else of the reader has changed.
func (r *Reader) frame() (kind byte, body []byte, err error) {
	first := make([]byte, frameHead)
	if _, err := io.ReadFull(r.from, first); err != nil {
		return 0, nil, short(err)
	}
	kind, length, inflated := first[0], binary.BigEndian.Uint32(first[1:]), binary.BigEndian.Uint32(first[5:])
	if length > maxFrame || inflated > maxFrame {
		return 0, nil, ErrDamaged
	}
	// The buffer grows by what comes, not by what is claimed.
	r.raw.Reset()
	if _, err := io.CopyN(&r.raw, r.from, int64(length)); err != nil {
		return 0, nil, short(err)
	}
	body = r.raw.Bytes()
	if checksum(first[:frameHead-4], r.number, body) != binary.BigEndian.Uint32(first[frameHead-4:]) {
		return 0, nil, fmt.Errorf("%w: frame %d, at byte %d, is not what was written", ErrDamaged, r.number, r.offset)
	}
	packed := body
	if kind == framePiece {
		if r.packed, err = r.decoder.DecodeAll(body, r.packed[:0]); err != nil || len(r.packed) != int(inflated) {
			return 0, nil, ErrDamaged
		}
		packed = r.packed
	}
	r.note(first, body)
	r.number++
	return kind, packed, nil
}

func (r *Reader) note(parts ...[]byte) {
	for _, part := range parts {
		r.sum.Write(part) // which never fails
		r.offset += int64(len(part))
	}
}
