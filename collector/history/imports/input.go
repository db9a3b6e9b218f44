package imports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// standardInput is the path that stands for it.
const standardInput = "-"

// endings are those of the files in a folder that are read.
var endings = []string{".json", ".jsonl", ".ndjson", ".gz"}

// files returns the files that paths stand for, in the order of their names within each, each once; and how many files of folders
// are none.
func files(paths []string) (list []string, passedOver int, err error) {
	seen := map[string]bool{}
	add := func(file string) {
		if !seen[file] {
			seen[file] = true
			list = append(list, file)
		}
	}
	for _, path := range paths {
		if path == standardInput {
			add(path)
			continue
		}
		found := []string{path}
		if _, err := os.Stat(path); err != nil {
			if found, err = filepath.Glob(path); err != nil || len(found) == 0 {
				return nil, 0, fmt.Errorf("%w: %s: there is no such file or folder", ErrInput, path)
			}
		}
		for _, one := range found {
			over, err := walk(one, add)
			if err != nil {
				return nil, 0, fmt.Errorf("%w: %s: %w", ErrInput, one, bare(err))
			}
			passedOver += over
		}
	}
	return list, passedOver, nil
}

// walk adds a file, or those in a folder. In a folder that Kubernetes mounts a ConfigMap or a Secret at, the files are links; what begins with
// two dots is where they lie, and would have each twice.
func walk(path string, add func(string)) (passedOver int, err error) {
	if found, err := os.Stat(path); err == nil && found.IsDir() {
		path += string(filepath.Separator) // so that a link to a folder is one
	}
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != path && strings.HasPrefix(entry.Name(), ".."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir():
		case name == path, slices.Contains(endings, strings.ToLower(filepath.Ext(name))):
			add(name)
		default:
			passedOver++
		}
		return nil
	})
	return passedOver, err
}

// bare takes the path out of an error, where the message around it has it.
func bare(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// open opens a file, inflated where it is compressed by gzip, however it is called, behind the mark of the byte order that some
// programs put before UTF-8.
func open(path string, input io.Reader) (*bufio.Reader, io.Closer, error) {
	from, closer, err := inflate(path, input)
	if err != nil {
		return nil, nil, err
	}
	const mark = "\ufeff"
	if begin, _ := from.Peek(len(mark)); string(begin) == mark {
		_, _ = from.Discard(len(mark)) // which are there
	}
	return from, closer, nil
}

// inflate is open, with all that the file has.
func inflate(path string, input io.Reader) (*bufio.Reader, io.Closer, error) {
	raw, closer := input, io.Closer(io.NopCloser(nil))
	if path != standardInput {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrInput, path, bare(err))
		}
		raw, closer = file, file
	}
	if raw == nil {
		raw = bytes.NewReader(nil)
	}
	const size = 256 << 10
	buffered := bufio.NewReaderSize(raw, size)
	if magic, _ := buffered.Peek(2); len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return buffered, closer, nil
	}
	inflated, err := gzip.NewReader(buffered)
	if err != nil {
		closer.Close()
		return nil, nil, fmt.Errorf("%w: %s: it is not compressed as it says", ErrInput, path)
	}
	return bufio.NewReaderSize(inflated, size), closer, nil
}

// maxLine is how many bytes a line may have.
const maxLine = 4 << 20

// errLong says that a line is longer than that. It has been read over.
var errLong = errors.New("must not be longer than 4 MiB")

// skipBlank reads over blank lines, as far as they are in memory, and returns how many these are.
func skipBlank(from *bufio.Reader) uint32 {
	held, _ := from.Peek(from.Buffered())
	blank := held[:len(held)-len(bytes.TrimLeft(held, "\r\n"))]
	blank = blank[:bytes.LastIndexByte(blank, '\n')+1]
	_, _ = from.Discard(len(blank)) // which are there
	return uint32(bytes.Count(blank, []byte("\n")))
}

// readLine appends the next line to b, without its end. It returns [io.EOF] behind the last.
func readLine(from *bufio.Reader, b []byte) ([]byte, error) {
	start, long := len(b), false
	for {
		part, err := from.ReadSlice('\n')
		if long = long || len(b)-start+len(part) > maxLine+len("\n"); !long {
			b = append(b, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(b) == start && !long):
			return b, err
		case long:
			return b[:start], errLong
		}
		end := len(bytes.TrimRight(b[start:], "\r\n"))
		return b[:start+end], nil
	}
}
