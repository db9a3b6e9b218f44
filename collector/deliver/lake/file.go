package lake

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/weir-dev/weir/collector/stream"
)

const (
	// groupRows is how many rows are a row group: what is held of them before they are compressed is bounded by it.
	groupRows = 16384
	// writtenRows is how many rows are written at a time.
	writtenRows = 64
	// readRows is how many rows are read at a time.
	readRows = 256
	// createdBy stands in every file.
	createdBy = "weir"
)

// Encoder makes a file of rows, in the order in which they come. What it holds is the file so far, compressed, and one row
// group.
type Encoder struct {
	buffer bytes.Buffer
	writer *parquet.GenericWriter[Row]
	group  int
	// Rows is how many rows it has.
	Rows int
	// rows are some that are written together.
	rows []Row
}

// NewEncoder makes one.
func NewEncoder() *Encoder {
	e := &Encoder{rows: make([]Row, 0, writtenRows)}
	e.writer = parquet.NewGenericWriter[Row](&e.buffer,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}),
		parquet.CreatedBy(createdBy, "1", ""), parquet.PageBufferSize(64<<10), parquet.WriteBufferSize(0),
	)
	return e
}

// Add adds a row.
func (e *Encoder) Add(row Row) error {
	e.rows = append(e.rows, row)
	e.Rows++
	if len(e.rows) == cap(e.rows) {
		return e.write()
	}
	return nil
}

func (e *Encoder) write() error {
	if _, err := e.writer.Write(e.rows); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	e.group += len(e.rows)
	clear(e.rows)
	e.rows = e.rows[:0]
	if e.group < groupRows {
		return nil
	}
	e.group = 0
	if err := e.writer.Flush(); err != nil {
		return fmt.Errorf("write a row group: %w", err)
	}
	return nil
}

// Close ends the file and returns it. last is its [Object.Last]. No two files are the same, even of the same rows: what is to be
// written over one is not to be written over another.
func (e *Encoder) Close(last stream.Position) ([]byte, error) {
	if err := e.write(); err != nil {
		return nil, err
	}
	e.writer.SetKeyValueMetadata(lastOf, last.String())
	e.writer.SetKeyValueMetadata(versionOf, uuid.NewString())
	if err := e.writer.Close(); err != nil {
		return nil, fmt.Errorf("end a file: %w", err)
	}
	return e.buffer.Bytes(), nil
}

// versionOf is the name, in a file's own metadata, of what tells it from every other.
const versionOf = "weir-version"

// ErrNotOurs says that an object is no file of rows.
var ErrNotOurs = errors.New("is no Parquet file")

// NotOursError is [ErrNotOurs] of an object.
type NotOursError struct {
	// Key is the object's.
	Key string
}

// Error names the object.
func (e *NotOursError) Error() string { return e.Key + " " + ErrNotOurs.Error() }

// Unwrap returns [ErrNotOurs].
func (e *NotOursError) Unwrap() error { return ErrNotOurs }

// named says of which object an error is that says it is no file of rows.
func named(key string, err error) error {
	if errors.Is(err, ErrNotOurs) {
		return &NotOursError{key}
	}
	return err
}

// lastIn returns the [Object.Last] that a file has in its own metadata.
func lastIn(file io.ReaderAt, size int64) (stream.Position, error) {
	opened, err := parquet.OpenFile(file, size, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	text, _ := opened.Lookup(lastOf)
	last, err := stream.ParsePosition(text)
	if err != nil {
		return 0, fmt.Errorf("%w: its metadata has no %s", ErrNotOurs, lastOf)
	}
	return last, nil
}

// each reads a file's rows, as far as T has columns for them, and calls f with each; the row is f's only until it returns.
func each[T any](file io.ReaderAt, size int64, f func(*T) error) (err error) {
	opened, err := parquet.OpenFile(file, size, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true), parquet.ReadBufferSize(1<<20))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	reader := parquet.NewGenericReader[T](opened)
	defer func() { err = errors.Join(err, reader.Close()) }()
	rows := make([]T, readRows)
	for {
		n, err := reader.Read(rows)
		for i := range rows[:n] {
			if err := f(&rows[i]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: read rows: %w", ErrNotOurs, err)
		}
		clear(rows)
	}
}
