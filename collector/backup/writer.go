package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/weir-dev/weir/collector/stream"
)

// Writer writes a backup. It is not safe for concurrent use.
type Writer struct {
	to  io.Writer
	sum hash.Hash
	// number is that of the next frame.
	number  uint64
	bytes   int64
	encoder *zstd.Encoder
	packed  []byte
	body    []byte
}

// NewWriter begins a backup.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	w, err := newWriter(to)
	if err != nil {
		return nil, err
	}
	if err := w.write([]byte(magic), []byte{formatVersion}); err != nil {
		return nil, err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return w, w.frame(frameHeader, text, len(text))
}

// ContinueWriter goes on with a backup that was read up to where it ends: to writes behind that.
func ContinueWriter(to io.Writer, r *Reader) (*Writer, error) {
	w, err := newWriter(to)
	if err != nil {
		return nil, err
	}
	w.sum, w.number, w.bytes = r.sum, r.number, r.offset
	return w, nil
}

func newWriter(to io.Writer) (*Writer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	return &Writer{to: to, sum: sha256.New(), encoder: encoder}, err
}

// Piece writes a piece. What was written before can be gone on with if this fails.
func (w *Writer) Piece(p *stream.Piece) error {
	w.packed = appendPiece(w.packed[:0], p)
	w.body = w.encoder.EncodeAll(w.packed, w.body[:0])
	return w.frame(framePiece, w.body, len(w.packed))
}

// Close writes the end, without which the file is none.
func (w *Writer) Close() error {
	text, err := json.Marshal(end{Pieces: w.Pieces(), SHA256: hex.EncodeToString(w.sum.Sum(nil))})
	if err != nil {
		return err
	}
	return w.frame(frameEnd, text, len(text))
}

// Pieces is how many there are.
func (w *Writer) Pieces() int64 { return int64(w.number) - 1 }

// Bytes is how long the backup is.
func (w *Writer) Bytes() int64 { return w.bytes }

func (w *Writer) frame(kind byte, body []byte, inflated int) error {
	err := w.write(head(kind, w.number, body, inflated), body)
	w.number++
	return err
}

func (w *Writer) write(parts ...[]byte) error {
	for _, part := range parts {
		if _, err := w.to.Write(part); err != nil {
			return err
		}
		w.sum.Write(part) // which never fails
		w.bytes += int64(len(part))
	}
	return nil
}
