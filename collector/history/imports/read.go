package imports

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/weir-dev/weir/collector/ingest"
)

// A batch has so many lines, or bytes, at most: what a worker takes at a time.
const (
	batchLines = 256
	batchBytes = 512 << 10
)

// batch is some lines of a file, and what became of them.
type batch struct {
	file   uint32
	path   string
	format Format
	// text has the lines one behind the other, but for blank ones; ends is where each ends, and numbers is which it is.
	text    []byte
	ends    []int
	numbers []uint32
	// first is the number of the first line, lines how many there are, with blank ones; long has those that were left out as too long.
	first, lines uint32
	long         []uint32
	// done is closed when the rest is there.
	done     chan struct{}
	items    [][]byte
	outcomes [bad + 1]int64
	bad      []Bad
}

// read is the first pass.
func (r *run) read(ctx context.Context) error {
	paths, passedOver, err := files(r.Paths)
	if err != nil {
		return err
	}
	r.report.PassedOver = passedOver
	r.descending = make([]bool, len(paths))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work, order := make(chan *batch), make(chan *batch, 2*r.Workers)
	var workers sync.WaitGroup
	for range r.Workers {
		workers.Go(func() { r.work(work) })
	}
	defer workers.Wait()
	var reading error
	go func() {
		defer close(order)
		defer close(work)
		reading = r.split(ctx, paths, func(b *batch) error {
			for _, to := range []chan *batch{order, work} {
				select {
				case to <- b:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})
	}()
	var failed error
	for b := range order {
		if failed != nil {
			continue // the splitter ends soon
		}
		select {
		case <-b.done:
			failed = r.take(b)
		case <-ctx.Done():
			failed = context.Cause(ctx)
		}
		if failed != nil {
			cancel(failed)
		}
	}
	if failed == nil {
		failed = reading
	}
	r.progress.Sorted = true
	r.tell()
	return failed
}

// split cuts files into batches.
func (r *run) split(ctx context.Context, paths []string, to func(*batch) error) error {
	for number, path := range paths {
		from, closer, err := open(path, r.Input)
		if err != nil {
			return err
		}
		err = r.splitFile(ctx, from, path, uint32(number), to)
		_ = closer.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) splitFile(ctx context.Context, from *bufio.Reader, path string, number uint32, to func(*batch) error) error {
	format, line := r.Format, uint32(0)
	b := &batch{file: number, path: path, first: 1, done: make(chan struct{})}
	send := func() error {
		if b.format = format; b.format == "" {
			b.format = Segment
		}
		sent := b
		b = &batch{file: number, path: path, first: line + 1, done: make(chan struct{})}
		if sent.lines == 0 {
			return nil
		}
		return to(sent)
	}
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		blank := skipBlank(from)
		line, b.lines = line+blank, b.lines+blank
		start := len(b.text)
		text, err := readLine(from, b.text)
		switch {
		case errors.Is(err, io.EOF):
			return send()
		case errors.Is(err, errLong):
			b.long = append(b.long, line+1)
		case err != nil:
			broken := fmt.Errorf("%w: %s: it breaks off behind line %d", ErrInput, path, line)
			return cmp.Or(send(), broken) // what was read before is judged, and counted
		}
		line, b.lines = line+1, b.lines+1
		if err == nil && len(text) == start {
			continue
		}
		b.text, b.ends, b.numbers = text, append(b.ends, len(text)), append(b.numbers, line)
		if format == "" && len(text) > start {
			format = formatOf(text[start:])
		}
		if len(b.ends) >= batchLines || len(b.text) >= batchBytes {
			if err := send(); err != nil {
				return err
			}
		}
	}
}

// work makes items of batches.
func (r *run) work(batches <-chan *batch) {
	l := lines{past: ingest.NewPast(r.Property, r.Bots), times: r.Times, now: r.now, oldest: r.oldest(), before: r.Before}
	for b := range batches {
		l.readBatch(b)
		close(b.done)
	}
}

func (l *lines) readBatch(b *batch) {
	start := 0
	for n, end := range b.ends {
		line, number := b.text[start:end], b.numbers[n]
		start = end
		if len(b.long) > 0 && b.long[0] == number {
			b.long = b.long[1:]
			b.outcomes[bad]++
			b.bad = append(b.bad, Bad{File: b.path, Line: int(number), Message: "The line " + errLong.Error() + "."})
			continue
		}
		encoded, outcome, err := l.read(b.format, b.file, number, line)
		b.outcomes[outcome]++
		switch outcome {
		case kept:
			b.items = append(b.items, append([]byte(nil), encoded...))
		case bad:
			b.bad = append(b.bad, badOf(b.path, int(number), err)...)
		}
	}
}

// take sorts in what a batch has brought.
func (r *run) take(b *batch) error {
	for _, encoded := range b.items {
		if err := r.sorted.add(encoded); err != nil {
			return err
		}
		r.newest = max(r.newest, placeOf(encoded).ms)
	}
	r.direct(b)
	r.report.NoEvents += b.outcomes[noEvent]
	r.report.TooOld += b.outcomes[tooOld]
	r.report.NotBefore += b.outcomes[notBefore]
	r.report.Bad += b.outcomes[bad]
	if r.Bad != nil {
		for _, one := range b.bad {
			r.Bad(one)
		}
	}
	r.report.Files = int(b.file) + 1
	r.report.Lines += int64(b.lines)
	r.progress.Files, r.progress.Lines = r.report.Files, r.report.Lines
	r.progress.Bytes += int64(len(b.text))
	r.tell()
	return nil
}

// direct notes whether a file's newest events come first, as they do in exports that were asked for nothing else: events of the
// same millisecond are then in that order too.
func (r *run) direct(b *batch) {
	if len(b.items) == 0 {
		return
	}
	first, last := placeOf(b.items[0]).ms, placeOf(b.items[len(b.items)-1]).ms
	switch {
	case first != last:
		r.descending[b.file] = first > last
	case b.first == 1:
		r.descending[b.file] = b.format == Weir
	}
}
