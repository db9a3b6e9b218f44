package imports

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// item is an event between the two passes.
type item struct {
	// ms is when it counts, in milliseconds since 1970, and key stands for its identity: by them items are sorted.
	ms  int64
	key uint64
	// file and line are where it stood.
	file, line uint32
	// entry is the event, as [wire.Encode] writes it.
	entry []byte
	// judged says that a Property has taken it before: then touch is where it says that its visitor came from, "" for nowhere, and
	// deliveries are what became of it.
	judged     bool
	touch      string
	deliveries []delivery
}

// delivery is what became of an event on a platform.
type delivery struct {
	platform, reason  string
	status            stream.Status
	attempts, latency uint64
	// at is when that was decided, in milliseconds since 1970; it is 0 where nothing has been decided.
	at uint64
}

// identity is what tells an event from others of its millisecond. As live, ids of one class are none of another's: a test takes no
// real event's place.
type identity struct {
	id    string
	class event.Class
}

// key stands for the identity. Of events that count it is the id's alone, as in histories of before.
func (i identity) key() uint64 { return keyOf(i.text()) }

// text has an identity be part of a longer one.
func (i identity) text() string {
	if i.class.Counts() {
		return i.id
	}
	return i.id + "\x00" + i.class.String()
}

func (i identity) compare(o identity) int {
	return cmp.Or(strings.Compare(i.id, o.id), cmp.Compare(i.class, o.class))
}

// keyOf is a number that follows from a text.
func keyOf(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:])
}

// place is what items are sorted by, first to last.
type place struct {
	ms         int64
	key        uint64
	file, line uint32
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.ms, o.ms), cmp.Compare(p.key, o.key), cmp.Compare(p.file, o.file), cmp.Compare(p.line, o.line))
}

// placeSize is how many bytes an encoded item's place has, at its beginning.
const placeSize = 8 + 8 + 4 + 4

// append appends the item: its place and then all else.
func (i *item) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(i.ms))
	b = binary.BigEndian.AppendUint64(b, i.key)
	b = binary.BigEndian.AppendUint32(b, i.file)
	b = binary.BigEndian.AppendUint32(b, i.line)
	b = appendText(b, i.entry)
	if !i.judged {
		return append(b, 0)
	}
	b = appendText(append(b, 1), i.touch)
	b = binary.AppendUvarint(b, uint64(len(i.deliveries)))
	for _, d := range i.deliveries {
		b = appendText(appendText(b, d.platform), d.reason)
		for _, n := range [...]uint64{uint64(d.status), d.attempts, d.latency, d.at} {
			b = binary.AppendUvarint(b, n)
		}
	}
	return b
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// placeOf reads the place of an encoded item.
func placeOf(b []byte) place {
	return place{
		int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:]),
	}
}

var errItem = errors.New("what was kept of the events on the disk cannot be read")

// decodeItem reads what append has written. It shares nothing with b.
func decodeItem(b []byte) (item, error) {
	if len(b) < placeSize {
		return item{}, errItem
	}
	p := placeOf(b)
	i := item{ms: p.ms, key: p.key, file: p.file, line: p.line}
	r := reader{b[placeSize:], false}
	i.entry = []byte(r.text())
	if i.judged = r.number(1) == 1; i.judged {
		i.touch = r.text()
		for range r.number(uint64(len(r.rest))) {
			d := delivery{platform: r.text(), reason: r.text(), status: stream.Status(r.number(uint64(stream.Expired)))}
			d.attempts, d.latency, d.at = r.number(1<<63), r.number(1<<63), r.number(1<<63)
			i.deliveries = append(i.deliveries, d)
		}
	}
	if r.failed || len(r.rest) > 0 {
		return item{}, errItem
	}
	return i, nil
}

// reader reads values one behind the other, and remembers that one was none.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) number(most uint64) uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > most {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) text() string {
	n := r.number(uint64(len(r.rest)))
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}
