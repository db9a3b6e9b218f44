// Package lake keeps events as rows of Parquet files in a bucket: each event is in one file, in one row, however many write
// and whenever one of them dies.
//
// The bucket itself says how far it is. The files of a day are a chain: each is named for the last position of the one before,
// the first for 0. Two writers that both go on from the same place want the same name, and the server lets one of them have it
// (If-None-Match). So the files of a day cover all of its positions from the beginning to the end of the last one, and none
// twice. What is at or before that end is looked for in the file that covers it, and added there where it is missing; what is
// behind it makes the next file. A file that has been written is changed in one way only: as a whole, provided that it is what
// was read (If-Match).
package lake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// wholeFile is up to which size a file is read as a whole where some of its columns would do.
	wholeFile = 4 << 20
	// parallelReads is how many files are looked through at a time.
	parallelReads = 8
	// rewriteTries is how often a file is read anew that somebody else changes meanwhile.
	rewriteTries = 20
)

// Lake is the files of a platform. It is not safe for concurrent use.
type Lake struct {
	bucket *Bucket
	prefix string
	// erased says whether an event that was received at a time is an erased person's.
	erased func(e *event.Event, received time.Time) bool
	// Begin is called with what is about to be written, before it is said of whom that may be; nil for nothing. Whatever is written
	// of whoever is erased after that, [Lake.Void] keeps from the bucket. Done is called when nothing of it can come any more.
	Begin func(ctx context.Context, note string) error
	Done  func()
	// ends are what is known of days' ends.
	ends map[Day]stream.Position
}

// New makes the lake that lies below a prefix, which is "" or ends in a slash.
func New(bucket *Bucket, prefix string, erased func(e *event.Event, received time.Time) bool) *Lake {
	return &Lake{bucket: bucket, prefix: prefix, erased: erased, ends: map[Day]stream.Position{}}
}

// Check is [Bucket.Check].
func (l *Lake) Check(ctx context.Context) error { return l.bucket.Check(ctx, l.prefix) }

// File is a file of a day: it covers the positions behind Start, up to the Start of the next one.
type File struct {
	Key   string
	Start stream.Position
}

// files returns the files below a folder, in order.
func (l *Lake) files(ctx context.Context, folder string) ([]File, error) {
	keys, err := l.bucket.List(ctx, folder)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, key := range keys {
		if start, ours := startOf(key); ours {
			files = append(files, File{key, start})
		}
	}
	return files, nil
}

// End returns how far a day's files reach, 0 where it has none. Where that is not known yet the last of them is also looked
// through for persons who have been erased: whoever wrote it may have died before it could do so.
func (l *Lake) End(ctx context.Context, day Day) (stream.Position, error) {
	if end, known := l.ends[day]; known {
		return end, nil
	}
	files, err := l.files(ctx, day.folder(l.prefix))
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		l.ends[day] = 0
		return 0, nil
	}
	last := files[len(files)-1]
	object, err := l.bucket.Head(ctx, last.Key)
	if err != nil {
		return 0, err
	}
	if err := l.Verify(ctx, last.Key); err != nil {
		return 0, err
	}
	l.ends[day] = object.Last
	return object.Last, nil
}

// Forget has all ends looked for anew: something went wrong, or another one may have written.
func (l *Lake) Forget() { clear(l.ends) }

// Append writes the file behind a day's end, which ends at last. It fails with [ErrChanged] where somebody else has written there.
func (l *Lake) Append(ctx context.Context, day Day, end, last stream.Position, data []byte) error {
	key := Key(l.prefix, day, end)
	erased := func() (map[Place]bool, error) {
		return l.erasedIn(func(f func(*Identity) error) error { return each(bytes.NewReader(data), int64(len(data)), f) })
	}
	if err := l.begin(ctx, anyVersion, key); err != nil {
		return err
	}
	doomed, err := erased()
	if err != nil {
		return err
	}
	if len(doomed) > 0 {
		if data, err = remove(data, doomed, last); err != nil {
			return err
		}
	}
	if err := l.done(l.bucket.Create(ctx, key, data, last)); err != nil {
		delete(l.ends, day)
		return err
	}
	// Who has been erased while it was written: whoever erases has looked for files before this one was there.
	doomed, err = erased()
	if err == nil && len(doomed) > 0 {
		err = l.Remove(ctx, key, doomed)
	}
	if err != nil {
		delete(l.ends, day)
		return err
	}
	l.ends[day] = last
	return nil
}

// Covering returns the file that covers a position at or before the end of its day, and up to where it covers positions.
func (l *Lake) Covering(ctx context.Context, p stream.Position) (file File, until stream.Position, err error) {
	day := DayOf(p)
	files, err := l.files(ctx, day.folder(l.prefix))
	if err != nil {
		return File{}, 0, err
	}
	i, _ := slices.BinarySearchFunc(files, p, func(f File, p stream.Position) int { return cmp.Compare(f.Start, p) })
	if i == 0 { // somebody has deleted it
		delete(l.ends, day)
		return File{}, 0, fmt.Errorf("%w: %w", ErrChanged, ErrGone)
	}
	if i < len(files) {
		return files[i-1], files[i].Start, nil
	}
	object, err := l.bucket.Head(ctx, files[i-1].Key)
	return files[i-1], object.Last, err
}

// Place is where a row is: of two events that have been at the same position, as after the loss of a Redis, the id tells.
type Place struct {
	Position stream.Position
	EventID  string
}

// Has returns which rows a file has.
func (l *Lake) Has(ctx context.Context, key string) (map[Place]bool, error) {
	return find(func(f func(*Identity) error) error { return l.look(ctx, key, f) }, func(*Identity) bool { return true })
}

// Add adds rows to the file that covers them, in their order; those that it has are left as they are.
func (l *Lake) Add(ctx context.Context, key string, rows []Row) error {
	err := l.rewrite(ctx, key, func(old []byte, object Object) ([]byte, error) {
		if err := l.begin(ctx, object.ETag, key); err != nil {
			return nil, err
		}
		living := slices.DeleteFunc(slices.Clone(rows), func(row Row) bool {
			person, received := row.identity().Person()
			return l.erased(&person, received)
		})
		return add(old, living, object.Last)
	})
	if err != nil {
		return err
	}
	return l.Verify(ctx, key)
}

// Verify takes the rows of erased persons out of a file.
func (l *Lake) Verify(ctx context.Context, key string) error {
	doomed, err := l.erasedIn(func(f func(*Identity) error) error { return l.look(ctx, key, f) })
	if err != nil || len(doomed) == 0 {
		return err
	}
	return l.Remove(ctx, key, doomed)
}

// erasedIn returns the rows of erased persons.
func (l *Lake) erasedIn(rows func(func(*Identity) error) error) (map[Place]bool, error) {
	return find(rows, func(row *Identity) bool {
		person, received := row.Person()
		return l.erased(&person, received)
	})
}

// find returns which rows are wanted.
func find(rows func(func(*Identity) error) error, wanted func(*Identity) bool) (map[Place]bool, error) {
	places := map[Place]bool{}
	err := rows(func(row *Identity) error {
		if wanted(row) {
			// What is read of a file may lie in memory that is used again.
			places[Place{stream.Position(row.Position), strings.Clone(row.EventID)}] = true
		}
		return nil
	})
	return places, err
}

// Remove takes rows out of a file. The file stays where none is left: its name is a link of the day's chain.
func (l *Lake) Remove(ctx context.Context, key string, doomed map[Place]bool) error {
	return l.rewrite(ctx, key, func(old []byte, object Object) ([]byte, error) { return remove(old, doomed, object.Last) })
}

// Search looks through all files and calls wanted with each row, one at a time and in no order across files; it then takes the
// rows out that are wanted. It returns how many those were.
func (l *Lake) Search(ctx context.Context, wanted func(*Identity) bool) (removed int, err error) {
	files, err := l.files(ctx, l.prefix)
	if err != nil {
		return 0, err
	}
	var one sync.Mutex
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(parallelReads)
	for _, file := range files {
		readers.Go(func() error {
			doomed, err := find(func(f func(*Identity) error) error { return l.look(ctx, file.Key, f) }, func(row *Identity) bool {
				one.Lock()
				defer one.Unlock()
				return wanted(row)
			})
			if errors.Is(err, ErrGone) {
				return nil // its owner has deleted it since
			}
			if err != nil || len(doomed) == 0 {
				return err
			}
			one.Lock()
			removed += len(doomed)
			one.Unlock()
			if err := l.Remove(ctx, file.Key, doomed); err != nil && !errors.Is(err, ErrGone) {
				return err
			}
			return nil
		})
	}
	return removed, readers.Wait()
}

// look reads of a file's rows what tells whose they are. What is read is one state of the file, however often it is read for.
func (l *Lake) look(ctx context.Context, key string, f func(*Identity) error) error {
	object, err := l.bucket.Head(ctx, key)
	if err != nil {
		return err
	}
	if object.Size <= wholeFile {
		data, _, err := l.bucket.Get(ctx, key)
		if err != nil {
			return err
		}
		return named(key, each(bytes.NewReader(data), int64(len(data)), f))
	}
	file := l.bucket.at(ctx, key, object)
	err = each(file, object.Size, f)
	if file.failed != nil {
		return file.failed
	}
	return named(key, err)
}

// rewrite writes a file anew as a whole: what change makes of it, nil for nothing. Where somebody else has written it since it was
// read it is read again.
func (l *Lake) rewrite(ctx context.Context, key string, change func(old []byte, object Object) ([]byte, error)) error {
	for range rewriteTries {
		old, object, err := l.bucket.Get(ctx, key)
		if err != nil {
			return err
		}
		changed, err := change(old, object)
		if err != nil || changed == nil {
			return named(key, err)
		}
		if err := l.done(l.bucket.Replace(ctx, key, changed, object)); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("%w: it changes faster than it is read", ErrChanged)
}

// add returns a file with further rows, nil where it has them all.
func add(old []byte, rows []Row, last stream.Position) ([]byte, error) {
	has, err := find(
		func(f func(*Identity) error) error { return each(bytes.NewReader(old), int64(len(old)), f) },
		func(*Identity) bool { return true },
	)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row Row) bool { return has[row.place()] })
	if len(rows) == 0 {
		return nil, nil
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Position, b.Position) })
	encoder := NewEncoder()
	err = each(bytes.NewReader(old), int64(len(old)), func(row *Row) error {
		for len(rows) > 0 && rows[0].Position < row.Position {
			if err := encoder.Add(rows[0]); err != nil {
				return err
			}
			rows = rows[1:]
		}
		return encoder.Add(*row)
	})
	for i := 0; err == nil && i < len(rows); i++ {
		err = encoder.Add(rows[i])
	}
	if err != nil {
		return nil, err
	}
	return encoder.Close(last)
}

func (r *Row) place() Place { return Place{stream.Position(r.Position), r.EventID} }

// remove returns a file without some rows, nil where it has none of them.
func remove(old []byte, doomed map[Place]bool, last stream.Position) ([]byte, error) {
	encoder, found := NewEncoder(), false
	err := each(bytes.NewReader(old), int64(len(old)), func(row *Row) error {
		if doomed[row.place()] {
			found = true
			return nil
		}
		return encoder.Add(*row)
	})
	if err != nil || !found {
		return nil, err
	}
	return encoder.Close(last)
}
