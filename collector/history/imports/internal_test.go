package imports

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/stream"
)

// CheckLine reads a line as each format, and checks what comes of it.
func CheckLine(t *testing.T, property config.Property, now time.Time, line []byte) {
	t.Helper()
	for _, format := range []Format{Weir, Segment, formatOf(line)} {
		for _, times := range []Times{Received, Happened} {
			l := lines{past: ingest.NewPast(property, nil), times: times, now: now, oldest: now.AddDate(-3, 0, 0)}
			encoded, outcome, err := l.read(format, 1, 2, line)
			if (err != nil) != (outcome == bad) {
				t.Fatalf("outcome %d, %v", outcome, err)
			}
			if outcome == kept {
				if i, err := decodeItem(encoded); err != nil || i.file != 1 || i.line != 2 || i.ms > now.UnixMilli() {
					t.Fatalf("the item is %+v, %v", i, err)
				}
				continue
			}
			if err == nil {
				continue
			}
			for _, one := range badOf("FILE", 1, err) {
				if strings.Contains(one.String(), "secret") {
					t.Fatalf("%s repeats what stands there", one)
				}
			}
		}
	}
}

func TestAnItemComesBack(t *testing.T) {
	want := item{
		ms: 1795176000123, key: 7, file: 1, line: 2, entry: []byte("entry"), judged: true, touch: "a\x1fb",
		deliveries: []delivery{{"meta", "http_500", stream.Failed, 3, 41, 1795176000999}, {platform: "crm"}},
	}
	encoded := want.append(nil)
	got, err := decodeItem(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(item{}, delivery{})); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
	for n := range encoded {
		if _, err := decodeItem(encoded[:n]); err == nil {
			t.Errorf("%d of %d bytes are read as one", n, len(encoded))
		}
	}
}

func FuzzAnItem(f *testing.F) {
	f.Add((&item{ms: 1, entry: []byte("e"), judged: true, touch: "t", deliveries: []delivery{{platform: "p"}}}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, err := decodeItem(b); err == nil {
			if again, err := decodeItem(i.append(nil)); err != nil || again.ms != i.ms {
				t.Errorf("%+v does not come back: %v", i, err)
			}
		}
	})
}

func TestItemsComeInOrderHoweverLittleMemoryThereIs(t *testing.T) {
	for name, memory := range map[string]int{"in memory": 1 << 30, "in a few files": 64 << 10, "in more files than are read at once": 600} {
		t.Run(name, func(t *testing.T) {
			s := newSorter(t.TempDir(), memory)
			defer s.close()
			r := rand.New(rand.NewPCG(1, 2))
			var want []place
			for n := range 4000 {
				i := item{ms: r.Int64N(500), key: r.Uint64N(50), file: r.Uint32N(3), line: uint32(n), entry: []byte(strings.Repeat("x", r.IntN(99)))}
				want = append(want, place{i.ms, i.key, i.file, i.line})
				if err := s.add(i.append(nil)); err != nil {
					t.Fatal(err)
				}
			}
			slices.SortFunc(want, place.compare)
			var got []place
			if err := s.each(func(b []byte) error { got = append(got, placeOf(b)); return nil }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(place{})); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinesAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	from := bufio.NewReaderSize(bytes.NewReader([]byte("a\r\n\n"+long+"y\n"+long+"\nz")), 16<<10)
	var got []string
	for {
		line, err := readLine(from, nil)
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case errors.Is(err, errLong):
			got = append(got, "too long")
		case err != nil:
			t.Fatal(err)
		case len(line) > 9:
			got = append(got, "long")
		default:
			got = append(got, string(line))
		}
	}
	if diff := cmp.Diff([]string{"a", "", "too long", "long", "z"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestTheSameMillisecondHasRoom: positions that collide move on, and what is taken stays.
func TestTheSameMillisecondHasRoom(t *testing.T) {
	events := []pending{
		{identity: identity{id: "a"}, ms: 5, key: 9}, {identity: identity{id: "b"}, ms: 5, key: 9}, {identity: identity{id: "there"}, ms: 5, key: 9},
		{identity: identity{id: "c"}, ms: 5, key: mostAtOnce - 1},
	}
	base := positionOf(5) | schema.Imported
	m := &millisecond{at: map[identity]uint64{{id: "there"}: positionOf(5) + 1}, taken: map[uint64]bool{positionOf(5) + 1: true, base | (mostAtOnce - 1): true}}
	if err := settle(events, m); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, p := range events {
		got = append(got, p.row.At-positionOf(5))
	}
	if diff := cmp.Diff([]uint64{schema.Imported, schema.Imported | 9, 1, schema.Imported | 10}, got); diff != "" {
		t.Errorf("positions in the millisecond (-want +got):\n%s", diff)
	}
}
