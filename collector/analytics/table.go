package analytics

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// row is an event on its way into the table.
type row struct {
	position  stream.Position
	name      string
	visitor   visitorKey
	isSomeone bool
	clientID  string
	value     event.Amount
	currency  string
	touch     Touch
	isTouch   bool
	platforms string
	eventID   string
	orderID   string
}

// platformSeparator stands between the names in a list of platforms; no name contains it.
const platformSeparator = "\x00"

// rowOf takes from an event what the view keeps.
func rowOf(property string, position stream.Position, e *event.Event) row {
	r := row{
		position: position, name: e.Name, clientID: e.ClientID, value: noValue, currency: e.Currency,
		platforms: strings.Join(e.Platforms, platformSeparator), eventID: e.ID, orderID: e.OrderID,
	}
	r.visitor, r.isSomeone = visitorOf(property, e)
	r.touch, r.isTouch = TouchOf(&e.Context)
	if e.Value != nil {
		r.value = *e.Value
	}
	return r
}

// table is what is retained of the two streams. Events are numbered by ordinals that never repeat; chunks[0]
// begins with the ordinal base, and those below first are trimmed though their chunk is still there. It is not
// safe for concurrent use: [View] guards it.
type table struct {
	chunks      []*chunk
	base        uint64
	first, next uint64
	last        stream.Position

	names      *dictionary[string]
	touches    *dictionary[Touch]
	currencies *dictionary[string]
	platforms  *dictionary[string]
	visitors   *visitors
	reasons    *reasons

	// early holds records of events that have not been read yet: the two streams are read independently.
	early map[stream.Position][]stream.Record
	// earlyCount is how many of them there are.
	earlyCount int
	// full is how many bytes the chunks but the last take.
	full int64
}

func newTable() *table {
	t := &table{
		names: newDictionary(lengthOf), touches: newDictionary(textOfTouch), currencies: newDictionary(lengthOf),
		platforms: newDictionary(lengthOf), visitors: newVisitors(), reasons: newReasons(),
		early: map[stream.Position][]stream.Record{},
	}
	// 0 means in these columns that there is nothing; it is never released.
	t.touches.acquire(Touch{})
	t.currencies.acquire("")
	return t
}

// textOfTouch is how many bytes of text a touch has, and the room of its members; channels are ours and shared.
func textOfTouch(t Touch) int { return len(t.Source) + len(t.Medium) + len(t.Campaign) + 64 }

// What the view tells apart. The collector takes the currencies of ISO 4217 and the platforms of the Property, so that
// more can only come from somebody who writes to Redis past it.
const (
	maxCurrencies    = 1024
	maxPlatformLists = 1024
	maxPlatforms     = 64
	// maxEarly is how many delivery records may wait for their event.
	maxEarly = 200_000
)

var (
	errTooVaried        = fmt.Errorf("the retained events name more than %d currencies or %d lists of platforms", maxCurrencies, maxPlatformLists)
	errTooManyPlatforms = fmt.Errorf("the event names more than %d platforms", maxPlatforms)
)

// add appends an event. One that is not newer than the last is known already and passed over.
func (t *table) add(r *row) error {
	if t.next > 0 && r.position <= t.last {
		return nil
	}
	if platformCount(r.platforms) > maxPlatforms {
		return errTooManyPlatforms
	}
	currency := t.currencies.acquire(r.currency)
	platforms := t.platforms.acquire(r.platforms)
	if currency >= maxCurrencies || platforms >= maxPlatformLists {
		t.currencies.release(currency)
		t.platforms.release(platforms)
		return errTooVaried
	}
	at := int((t.next - t.base) & (chunkRows - 1))
	if t.next-t.base == uint64(len(t.chunks))*chunkRows {
		t.chunks = append(t.chunks, &chunk{})
	}
	c := t.chunks[len(t.chunks)-1]
	c.position[at] = r.position
	c.name[at] = t.names.acquire(r.name)
	c.value[at] = r.value
	c.currency[at], c.platforms[at] = uint16(currency), uint16(platforms)
	if r.isSomeone {
		c.visitor[at], c.back[at] = t.visitors.visit(r.visitor, r.clientID, t.next)
	}
	if r.isTouch {
		c.touch[at] = t.touches.acquire(r.touch)
	}
	c.append(at, r)
	if at == chunkRows-1 {
		c.sealed = newSeal(c)
		t.full += c.size()
	}
	t.last = r.position
	t.next++
	t.catchUp(r.position)
	return nil
}

// append writes the parts of a row that mu guards.
func (c *chunk) append(at int, r *row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.details = appendDetail(c.details, r.eventID, r.orderID)
	c.detailEnd[at] = uint32(len(c.details))
	if at == chunkRows-1 {
		c.details = slices.Clip(slices.Clone(c.details))
	}
	for len(c.deliveries) < platformCount(r.platforms) {
		c.deliveries = append(c.deliveries, new([chunkRows]delivery))
	}
}

// platformCount returns how many names a list of platforms has.
func platformCount(list string) int {
	if list == "" {
		return 0
	}
	return strings.Count(list, platformSeparator) + 1
}

// slotOf returns a platform's place in a list of platforms, -1 where it is not in it.
func slotOf(list, platform string) int {
	for slot := 0; list != ""; slot++ {
		name, rest, _ := strings.Cut(list, platformSeparator)
		if name == platform {
			return slot
		}
		list = rest
	}
	return -1
}

// find returns where an event is kept.
func (t *table) find(position stream.Position) (c *chunk, at int, found bool) {
	rows := span{chunks: t.chunks, base: t.base, first: t.first, end: t.next}
	ordinal := rows.search(position)
	if ordinal == t.next {
		return nil, 0, false
	}
	c, at = rows.at(ordinal)
	return c, at, c.position[at] == position
}

// forget hides the events before a position. It says whether whole chunks can be dropped.
func (t *table) forget(before stream.Position) (droppable bool) {
	rows := span{chunks: t.chunks, base: t.base, first: t.first, end: t.next}
	t.first = rows.search(before)
	for position := range t.early {
		if position < before {
			t.dropEarly(position)
		}
	}
	return t.first-t.base >= chunkRows
}

// drop gives back the chunks of which no event is retained. No reader may be at work.
func (t *table) drop() {
	count := int((t.first - t.base) / chunkRows)
	for _, c := range t.chunks[:count] {
		for at := range chunkRows {
			t.names.release(c.name[at])
			t.currencies.release(uint32(c.currency[at]))
			t.platforms.release(uint32(c.platforms[at]))
			if c.touch[at] != 0 {
				t.touches.release(c.touch[at])
			}
			t.visitors.leave(c.visitor[at], t.base+uint64(at))
		}
		t.base += chunkRows
		t.full -= c.size()
	}
	t.chunks = slices.Clone(t.chunks[count:])
}

// earlyBytes is about what a record takes that waits for its event.
const earlyBytes = 160

// size is about how many bytes the table takes.
func (t *table) size() int64 {
	size := t.full + t.names.size() + t.touches.size() + t.currencies.size() + t.platforms.size() + t.visitors.size()
	if count := len(t.chunks); count > 0 && t.chunks[count-1].sealed == nil {
		size += t.chunks[count-1].size()
	}
	return size + int64(earlyBytes*t.earlyCount)
}

// excess returns the position before which events have to be forgotten for the table to take no more than a number of
// bytes: those of its oldest chunk. It is 0 where the table is not larger, or has one chunk alone.
func (t *table) excess(most int64) stream.Position {
	if most <= 0 || len(t.chunks) < 2 || t.size() <= most {
		return 0
	}
	return t.chunks[1].position[0]
}

// span is a run of rows that does not change: a table's at one moment, or those of a range.
type span struct {
	chunks     []*chunk
	base       uint64
	first, end uint64
}

// at returns where the row with an ordinal is kept.
func (s *span) at(ordinal uint64) (c *chunk, row int) {
	offset := ordinal - s.base
	return s.chunks[offset>>chunkBits], int(offset & (chunkRows - 1))
}

// search returns the ordinal of the first row at or behind a position, end where there is none.
func (s *span) search(position stream.Position) uint64 {
	return s.first + uint64(sort.Search(int(s.end-s.first), func(i int) bool {
		c, row := s.at(s.first + uint64(i))
		return c.position[row] >= position
	}))
}
