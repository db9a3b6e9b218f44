package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/weir-dev/weir/collector/stream"
)

var header = Header{ID: "one", Property: "default/shop", Began: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), Weir: "v1.2.3"}

// somePieces are a few of each kind, the cut among them.
func somePieces() []stream.Piece {
	return []stream.Piece{
		{Kind: stream.PieceEnds, Key: "events", Items: []string{"3-0", "3", "0-0"}},
		{Kind: stream.PieceGroup, Key: "events", Items: []string{"meta", "2-0", ""}},
		{Kind: stream.PiecePending, Key: "events", Items: []string{"meta", "1-0", "pod-1", "1"}},
		{Kind: stream.PieceText, Key: "source:shopify", Expires: 1_700_000_000_000, Items: []string{"17"}},
		{Kind: stream.PieceCut, Items: []string{"1700000000000"}},
		{Kind: stream.PieceEntries, Key: "events", Items: []string{"1-0", "e", "\x00\xff", "2-0", "e", strings.Repeat("x", 5000), "3-0", "e", ""}},
		{Kind: stream.PieceHash, Key: "dedup:3", Items: []string{"\x00\x01", "\xfe"}},
		{Kind: stream.PieceScores, Key: "audit:keys", Items: []string{"\x01", "1.5"}},
	}
}

// written is a whole backup, and where its frames begin.
func written(t testing.TB, pieces []stream.Piece) (file []byte, frames []int) {
	t.Helper()
	var buffer bytes.Buffer
	w, err := NewWriter(&buffer, header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pieces {
		frames = append(frames, buffer.Len())
		if err := w.Piece(&pieces[i]); err != nil {
			t.Fatal(err)
		}
	}
	frames = append(frames, buffer.Len())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes(), append(frames, buffer.Len())
}

// readAll reads a backup to its end.
func readAll(file []byte) ([]stream.Piece, error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	var pieces []stream.Piece
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return pieces, nil
		}
		if err != nil {
			return pieces, err
		}
		pieces = append(pieces, *p)
	}
}

func TestABackupIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	file, _ := written(t, somePieces())
	pieces, err := readAll(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(somePieces(), pieces); diff != "" {
		t.Error(diff)
	}
	r, err := NewReader(bytes.NewReader(file))
	if err != nil || r.Header != header {
		t.Errorf("header %+v, %v", r.Header, err)
	}
	if !bytes.HasPrefix(file, []byte("weir-backup\x00\x01")) {
		t.Errorf("it begins with %q", file[:16])
	}
}

func TestEveryFlippedByteIsFound(t *testing.T) {
	t.Parallel()
	file, _ := written(t, somePieces())
	for i := range file {
		damaged := bytes.Clone(file)
		damaged[i] ^= 1 << (i % 8)
		if pieces, err := readAll(damaged); err == nil {
			t.Errorf("byte %d flipped: %d pieces are read", i, len(pieces))
		}
	}
}

func TestEveryMissingByteIsFound(t *testing.T) {
	t.Parallel()
	file, frames := written(t, somePieces())
	for i := range file {
		pieces, err := readAll(file[:i])
		if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrFormat) {
			t.Errorf("cut off at %d: %v", i, err)
		}
		whole := 0
		for _, end := range frames[1:] {
			if end <= i {
				whole++
			}
		}
		if len(pieces) != whole {
			t.Errorf("cut off at %d: %d pieces are read, %d are whole", i, len(pieces), whole)
		}
	}
	if _, err := readAll(append(bytes.Clone(file), 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte too many: %v", err)
	}
}

func TestFramesThatChangePlacesAreFound(t *testing.T) {
	t.Parallel()
	file, frames := written(t, somePieces())
	a, b, c := frames[2], frames[3], frames[4]
	tests := map[string][]byte{
		"turned round": bytes.Join([][]byte{file[:a], file[b:c], file[a:b], file[c:]}, nil),
		"left out":     bytes.Join([][]byte{file[:a], file[b:]}, nil),
		"twice":        bytes.Join([][]byte{file[:b], file[a:b], file[b:]}, nil),
	}
	for name, file := range tests {
		if _, err := readAll(file); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// forged is a file with a frame that has the right checksum.
func forged(kind byte, body []byte, inflated int) []byte {
	file, frames := written(new(testing.B), nil)
	return bytes.Join([][]byte{file[:frames[0]], head(kind, 1, body, inflated), body}, nil)
}

func TestHostileFilesAreRefusedAndTakeNoMemory(t *testing.T) {
	packed := func(b []byte) []byte {
		encoder, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return encoder.EncodeAll(b, nil)
	}
	huge := head(framePiece, 1, nil, 1000)
	binary.BigEndian.PutUint32(huge[1:], maxFrame)
	claims := func(parts ...[]byte) []byte {
		body := bytes.Join(parts, nil)
		return forged(framePiece, packed(body), len(body))
	}
	start := []byte{byte(stream.PieceHash), 0, 4, 'j', 'o', 'i', 'n'}
	many := binary.AppendUvarint(nil, 1<<60)
	good, frames := written(t, nil)
	tests := map[string]struct {
		file []byte
		want error
	}{
		"an empty file":                          {nil, ErrFormat},
		"another file":                           {[]byte("PK\x03\x04 and something more"), ErrFormat},
		"a version of later":                     {append([]byte(magic), formatVersion+1), ErrVersion},
		"a version that there never was":         {append([]byte(magic), 0), ErrFormat},
		"a frame that is longer than the file":   {append(bytes.Clone(good[:frames[0]]), huge...), ErrTruncated},
		"a frame that is longer than any":        {append(bytes.Clone(good[:frames[0]]), framePiece, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0), ErrDamaged},
		"a body that inflates to more than any":  {forged(framePiece, packed(make([]byte, 1<<30)), 1000), ErrDamaged},
		"a body that inflates to something else": {forged(framePiece, packed([]byte("abc")), 4), ErrDamaged},
		"a body that is not compressed":          {forged(framePiece, []byte("abc"), 3), ErrDamaged},
		"a kind that there is not":               {forged('x', nil, 0), ErrDamaged},
		"a second header":                        {forged(frameHeader, []byte("{}"), 2), ErrDamaged},
		"an end that says nothing":               {forged(frameEnd, []byte("{}"), 2), ErrDamaged},
		"a piece of nothing":                     {claims(), ErrDamaged},
		"a piece with items beyond number":       {claims(start, many), ErrDamaged},
		"a piece with an item beyond size":       {claims(start, []byte{2}, many, []byte("xx")), ErrDamaged},
		"a piece with something behind it":       {claims(start, []byte{0, 0}), ErrDamaged},
		"a piece of a key that is not backed up": {claims([]byte{byte(stream.PieceText), 0, 5}, []byte("clock"), []byte{1, 1, 'x'}), ErrDamaged},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readAll(tt.file)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}

// What is in a file may be anybody's: what --check calls whole has to be what Redis takes.
func TestAFileOfPiecesThatCannotFollowEachOtherIsDamaged(t *testing.T) {
	t.Parallel()
	entries := func(key string, ids ...string) stream.Piece {
		p := stream.Piece{Kind: stream.PieceEntries, Key: key}
		for _, id := range ids {
			p.Items = append(p.Items, id, "e", "")
		}
		return p
	}
	cut := stream.Piece{Kind: stream.PieceCut, Items: []string{"1700000000000"}}
	ends := stream.Piece{Kind: stream.PieceEnds, Key: "events", Items: []string{"2-0", "3", "0-0"}}
	pending := stream.Piece{Kind: stream.PiecePending, Key: "events", Items: []string{"meta", "1-0", "pod-1", "1"}}
	tests := map[string][]stream.Piece{
		"no cut":                           {ends},
		"two cuts":                         {cut, cut},
		"entries out of order":             {cut, entries("events", "2-0", "1-0")},
		"an entry twice":                   {cut, entries("events", "1-0", "1-0")},
		"an entry that no stream has":      {cut, entries("events", "0-0")},
		"pieces of entries out of order":   {cut, entries("events", "2-0"), entries("deliveries", "1-0"), entries("events", "1-0")},
		"an entry beyond the stream's end": {ends, cut, entries("events", "3-0")},
		"an end before an entry":           {entries("events", "3-0"), ends, cut},
		"an end before what is deleted":    {{Kind: stream.PieceEnds, Key: "events", Items: []string{"2-0", "3", "3-0"}}, cut},
		"an end after no number":           {{Kind: stream.PieceEnds, Key: "events", Items: []string{"2-0", "some", "0-0"}}, cut},
		"pending in no group":              {pending, cut},
		"pending no number of times": {
			{Kind: stream.PieceGroup, Key: "events", Items: []string{"meta", "2-0", ""}},
			{Kind: stream.PiecePending, Key: "events", Items: []string{"meta", "1-0", "pod-1", "often"}}, cut,
		},
		"a group that has read no number": {{Kind: stream.PieceGroup, Key: "events", Items: []string{"meta", "2-0", "some"}}, cut},
		"a score that is no number":       {cut, {Kind: stream.PieceScores, Key: "audit:keys", Items: []string{"a", "nan"}}},
	}
	for name, pieces := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, _ := written(t, pieces)
			if report, err := Verify(bytes.NewReader(file)); !errors.Is(err, ErrDamaged) {
				t.Errorf("%v, error %v, want %v", report, err, ErrDamaged)
			}
		})
	}
}

// What a header says is printed, and compared with what somebody has asked for.
func TestAHeaderOfWhatCannotBeAPropertyIsRefused(t *testing.T) {
	t.Parallel()
	for name, property := range map[string]string{
		"nothing": "", "no name": "default/", "no namespace": "/shop", "three": "a/b/c", "folders": "../..", "a name in capitals": "default/Shop",
		"what a terminal obeys": "default/\x1b[2Jshop", "a line more": "default/shop\nbackup: whole", "a name beyond size": "default/" + strings.Repeat("a", 64),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var file bytes.Buffer
			other := header
			other.Property = property
			w, err := NewWriter(&file, other)
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := NewReader(&file); !errors.Is(err, ErrDamaged) {
				t.Errorf("error %v, want %v", err, ErrDamaged)
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	file, frames := written(f, somePieces())
	f.Add(file)
	f.Add(file[:frames[3]])
	f.Add(append([]byte(magic), formatVersion))
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<16 {
			return
		}
		pieces, err := readAll(file)
		for i := range pieces {
			if problem := pieces[i].Check(); problem != nil {
				t.Errorf("piece %d: %v", i, problem)
			}
		}
		if err == nil && len(pieces) == 0 && len(file) < len(magic) {
			t.Error("nothing is a backup")
		}
	})
}

// FuzzPiece reads what stands behind a checksum that is right.
func FuzzPiece(f *testing.F) {
	for _, p := range somePieces() {
		f.Add(appendPiece(nil, &p))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := pieceOf(b)
		if err != nil {
			return
		}
		again, err := pieceOf(appendPiece(nil, p))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(p) {
			t.Errorf("read as %v, written and read again as %v, %v", p, again, err)
		}
	})
}
