package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weir-dev/weir/collector/stream"
)

// partial is behind a file's name until the backup in it is whole.
const partial = ".partial"

// pipe writes to the standard output, or to anything else that takes nothing back.
type pipe struct {
	to    io.Writer
	begun bool
}

func (p *pipe) begin(context.Context) (io.Writer, error) {
	if p.begun {
		return nil, errTaken
	}
	p.begun = true
	return p.to, nil
}

func (p *pipe) finish(context.Context) error  { return nil }
func (p *pipe) discard(context.Context) error { return nil }

// file writes to a file, which has its name once it is whole. Only its owner may read it, and only one backup writes it.
type file struct {
	path string
	// open is the part, as long as its lock is held.
	open *os.File
}

func (f *file) begin(context.Context) (io.Writer, error) {
	if err := f.free(); err != nil {
		return nil, err
	}
	if f.open != nil {
		_, err := f.open.Seek(0, io.SeekStart)
		return f.open, errors.Join(f.open.Truncate(0), err)
	}
	opened, err := createPartial(f.path + partial)
	if err != nil {
		return nil, err
	}
	// Another backup may have come to its end before this one had the lock.
	if err := f.free(); err != nil {
		return nil, errors.Join(err, os.Remove(opened.Name()), opened.Close())
	}
	f.open = opened
	return opened, nil
}

// free fails where the file is there.
func (f *file) free() error {
	if _, err := os.Lstat(f.path); err == nil {
		return fmt.Errorf("%s is there already", f.path)
	}
	return nil
}

func (f *file) finish(context.Context) error {
	if err := f.open.Sync(); err != nil {
		return err
	}
	if same, err := stillThere(f.open); err != nil || !same {
		return errors.Join(fmt.Errorf("somebody has put something else in place of %s, so that there is no backup", f.open.Name()), err)
	}
	if err := errors.Join(os.Rename(f.open.Name(), f.path), f.close()); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// discard leaves what there is: --resume goes on with it.
func (f *file) discard(context.Context) error { return f.close() }

func (f *file) close() error {
	if f.open == nil {
		return nil
	}
	err := f.open.Close()
	f.open = nil
	return err
}

// resume goes on with what a backup has written to the file that was broken off: it cuts off what is not whole. begun is false where
// there is nothing to go on with.
func (f *file) resume(property string) (w *Writer, progress *stream.BackupProgress, events int64, begun bool, err error) {
	opened, err := openPartial(f.path + partial)
	if err != nil || opened == nil {
		return nil, nil, 0, false, err
	}
	f.open = opened
	if err := f.free(); err != nil {
		return nil, nil, 0, false, err
	}
	r, err := NewReader(opened)
	if errors.Is(err, ErrFormat) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrDamaged) {
		return nil, nil, 0, false, f.close()
	}
	if err != nil {
		return nil, nil, 0, false, err
	}
	if r.Header.Property != property {
		return nil, nil, 0, false, &OtherError{Has: r.Header.Property, Wanted: property}
	}
	for {
		p, err := r.Next()
		if err != nil {
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrDamaged) && !errors.Is(err, io.EOF) {
				return nil, nil, 0, false, err
			}
			break
		}
		events += eventsIn(p)
	}
	if !r.Progress.Cut() || r.ended {
		return nil, nil, 0, false, f.close()
	}
	if err := errors.Join(opened.Chmod(0o600), opened.Truncate(r.offset)); err != nil {
		return nil, nil, 0, false, err
	}
	if _, err := opened.Seek(r.offset, io.SeekStart); err != nil {
		return nil, nil, 0, false, err
	}
	w, err = ContinueWriter(opened, r)
	return w, &r.Progress, events, true, err
}
