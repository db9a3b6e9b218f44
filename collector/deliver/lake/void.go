package lake

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strings"

	"github.com/weir-dev/weir/collector/stream"
)

// anyVersion stands for the version of a file that is not there yet.
const anyVersion = "*"

// begin says that a file is about to be written where it is of a version.
func (l *Lake) begin(ctx context.Context, version, key string) error {
	if l.Begin == nil {
		return nil
	}
	return l.Begin(ctx, version+" "+key)
}

// done passes on what became of a write. Where that is not known the write may reach the bucket yet.
func (l *Lake) done(err error) error {
	if known := err == nil || errors.Is(err, ErrChanged) && !errors.Is(err, errConflict); known && l.Done != nil {
		l.Done()
	}
	return err
}

// Void keeps a write from the bucket that is noted as under way and has not reached it. What it would make is made by somebody
// else: the next file of the day, which then has no rows, or another version of a file, of the same rows. Where it has reached the
// bucket, or cannot any more, nothing is done.
func (l *Lake) Void(ctx context.Context, note string) error {
	version, key, _ := strings.Cut(note, " ")
	start, ours := startOf(key)
	if !ours || !strings.HasPrefix(key, l.prefix) {
		return nil // of other settings
	}
	var err error
	if version == anyVersion {
		err = l.take(ctx, key, start)
	} else {
		err = l.touch(ctx, key, version)
	}
	if errors.Is(err, ErrChanged) && !errors.Is(err, errConflict) || errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// take takes the name of a day's next file, for one that covers no more than the next position.
func (l *Lake) take(ctx context.Context, key string, start stream.Position) error {
	folder, _ := path.Split(key)
	day := Day(strings.TrimSuffix(strings.TrimPrefix(folder, l.prefix+"date="), "/"))
	delete(l.ends, day)
	end, err := l.End(ctx, day)
	delete(l.ends, day)
	if err != nil || end != start {
		return err // the name has been given, or is of another bucket's chain
	}
	data, err := NewEncoder().Close(start + 1)
	if err != nil {
		return err
	}
	return l.bucket.Create(ctx, key, data, start+1)
}

// touch makes another version of a file of the same rows.
func (l *Lake) touch(ctx context.Context, key, version string) error {
	old, object, err := l.bucket.Get(ctx, key)
	if err != nil || object.ETag != version {
		return err
	}
	encoder := NewEncoder()
	if err := each(bytes.NewReader(old), int64(len(old)), func(row *Row) error { return encoder.Add(*row) }); err != nil {
		return named(key, err)
	}
	data, err := encoder.Close(object.Last)
	if err != nil {
		return err
	}
	return l.bucket.Replace(ctx, key, data, object)
}
