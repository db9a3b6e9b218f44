package imports

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	// refSize is about what an item takes of memory beside its bytes.
	refSize = 40
	// mostRuns is how many files are read at once; more are made one before. Each takes some 300 KiB of memory.
	mostRuns = 128
	// windowSize bounds what reading a file takes.
	windowSize = 128 << 10
)

// sorter sorts items by their places. What is more than its memory takes goes to files, which have no names any more once they
// are there, so that nothing of them is left behind by a process that is killed.
type sorter struct {
	dir    string
	memory int

	// chunks have the items that are in memory, in the first used of them. They are used again after each file.
	chunks [][]byte
	used   int
	bytes  int // of the items
	refs   []ref
	runs   []*os.File
}

// chunkSize is what a chunk has room for; a larger item has one of its own.
const chunkSize = 1 << 20

// ref is an item in memory.
type ref struct {
	place
	chunk, from, to int
}

func newSorter(dir string, memory int) *sorter { return &sorter{dir: dir, memory: memory} }

// add takes an encoded item.
func (s *sorter) add(encoded []byte) error {
	if s.used == 0 || cap(s.chunks[s.used-1])-len(s.chunks[s.used-1]) < len(encoded) {
		s.open(len(encoded))
	}
	chunk := &s.chunks[s.used-1]
	from := len(*chunk)
	*chunk = append(*chunk, encoded...)
	s.refs = append(s.refs, ref{placeOf(encoded), s.used - 1, from, len(*chunk)})
	s.bytes += len(encoded)
	if s.bytes+refSize*len(s.refs) < s.memory {
		return nil
	}
	return s.flush()
}

// open begins a chunk that has room for an item.
func (s *sorter) open(size int) {
	if s.used == len(s.chunks) {
		s.chunks = append(s.chunks, nil)
	}
	if cap(s.chunks[s.used]) < size {
		s.chunks[s.used] = make([]byte, 0, max(size, chunkSize))
	}
	s.chunks[s.used] = s.chunks[s.used][:0]
	s.used++
}

// flush writes what is in memory to a file.
func (s *sorter) flush() error {
	if len(s.refs) == 0 {
		return nil
	}
	err := s.writeRun(func(write func([]byte) error) error {
		for encoded := range s.held() {
			if err := write(encoded); err != nil {
				return err
			}
		}
		return nil
	})
	s.used, s.bytes, s.refs = 0, 0, s.refs[:0]
	if err != nil || len(s.runs) < mostRuns {
		return err
	}
	before := s.runs
	s.runs = nil
	err = s.writeRun(func(write func([]byte) error) error { return merge(before, write) })
	return errors.Join(err, closeAll(before))
}

// held are the items in memory, in order.
func (s *sorter) held() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		slices.SortFunc(s.refs, func(a, b ref) int { return a.compare(b.place) })
		for _, r := range s.refs {
			if !yield(s.chunks[r.chunk][r.from:r.to]) {
				return
			}
		}
	}
}

// writeRun writes a file with items in order.
func (s *sorter) writeRun(fill func(write func([]byte) error) error) error {
	file, err := os.CreateTemp(s.dir, "weir-import-*")
	if err != nil {
		return fmt.Errorf("sort the events: %w", err)
	}
	_ = os.Remove(file.Name()) // where a file that is open cannot be removed, close does it
	s.runs = append(s.runs, file)
	packer, err := zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(windowSize))
	if err != nil {
		return fmt.Errorf("sort the events: %w", err)
	}
	buffered := bufio.NewWriterSize(packer, 64<<10)
	var length [binary.MaxVarintLen64]byte
	err = fill(func(encoded []byte) error {
		if _, err := buffered.Write(length[:binary.PutUvarint(length[:], uint64(len(encoded)))]); err != nil {
			return err
		}
		_, err := buffered.Write(encoded)
		return err
	})
	if err = errors.Join(err, buffered.Flush(), packer.Close()); err != nil {
		return fmt.Errorf("sort the events: %w", err)
	}
	return nil
}

// each calls do for every item, in order. What do is given is good until it returns.
func (s *sorter) each(do func(encoded []byte) error) error {
	if len(s.runs) == 0 {
		for encoded := range s.held() {
			if err := do(encoded); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.chunks, s.refs = nil, nil
	return merge(s.runs, do)
}

func (s *sorter) close() { _ = closeAll(s.runs) }

func closeAll(runs []*os.File) error {
	var errs []error
	for _, file := range runs {
		errs = append(errs, file.Close())
		_ = os.Remove(file.Name()) // it has gone already where that could be done
	}
	return errors.Join(errs...)
}

// source is a file that is read on.
type source struct {
	from    *bufio.Reader
	packed  *zstd.Decoder
	encoded []byte
	place   place
}

// next reads the next item, and returns [io.EOF] behind the last.
func (s *source) next() error {
	length, err := binary.ReadUvarint(s.from)
	if err != nil {
		return err
	}
	s.encoded = slices.Grow(s.encoded[:0], int(length))[:length]
	if _, err := io.ReadFull(s.from, s.encoded); err != nil || length < placeSize {
		return errItem
	}
	s.place = placeOf(s.encoded)
	return nil
}

// sources are files, the one with the lowest place first.
type sources []*source

func (s sources) Len() int           { return len(s) }
func (s sources) Less(i, j int) bool { return s[i].place.compare(s[j].place) < 0 }
func (s sources) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *sources) Push(x any)        { *s = append(*s, x.(*source)) }
func (s *sources) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// merge calls do for the items of files, in order over all of them.
func merge(runs []*os.File, do func(encoded []byte) error) error {
	var all sources
	defer func() {
		for _, s := range all {
			s.packed.Close()
		}
	}()
	for _, file := range runs {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("sort the events: %w", err)
		}
		packed, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(windowSize))
		if err != nil {
			return fmt.Errorf("sort the events: %w", err)
		}
		s := &source{from: bufio.NewReaderSize(packed, 32<<10), packed: packed}
		switch err := s.next(); {
		case errors.Is(err, io.EOF):
			packed.Close()
		case err != nil:
			packed.Close()
			return fmt.Errorf("sort the events: %w", err)
		default:
			all = append(all, s)
		}
	}
	heap.Init(&all)
	for len(all) > 0 {
		first := all[0]
		if err := do(first.encoded); err != nil {
			return err
		}
		switch err := first.next(); {
		case err == nil:
			heap.Fix(&all, 0)
		case errors.Is(err, io.EOF):
			first.packed.Close()
			heap.Pop(&all)
		default:
			return fmt.Errorf("sort the events: %w", err)
		}
	}
	return nil
}
