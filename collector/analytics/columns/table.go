package columns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// Row is an event on its way into the table.
type Row struct {
	Position stream.Position
	Name     string
	// Class is who the event counts for.
	Class event.Class
	// Visitor is whose event it is where IsSomeone says that it is somebody's.
	Visitor   event.Person
	IsSomeone bool
	ClientID  string
	// Value is NoValue where the event has none, Currency "".
	Value    event.Amount
	Currency string
	// Touch is where the visitor came from where IsTouch says that the event tells.
	Touch   Touch
	IsTouch bool
	// Page is "" where the event names none.
	Page string
	// Products are those of the event, each once. IsSale says that their amounts and quantities are kept.
	Products  []Product
	IsSale    bool
	Platforms PlatformList
	EventID   string
	OrderID   string
}

// Name is what a chunk's column of names has a number for: an event's name, and the class of those events that have it.
// So what is asked of a name is asked of one class, and the others cost no column of their own.
type Name struct {
	Event string
	Class event.Class
}

// noName is the number of the name that rows of erased events have. Its class is none that can be asked for.
const noName = 0

// Touch is where a visitor came from.
type Touch struct {
	// Source is never "". Medium and Campaign may be.
	Source   string
	Medium   string
	Campaign string
	// Channel is one of those in docs/reference/channels.md.
	Channel string
}

// Table is what is retained of the two streams. Events are numbered by ordinals that never repeat; chunks[0]
// begins with the ordinal base, and those below first are trimmed though their chunk is still there. It is not
// safe for concurrent use, save that rows and a [Snapshot] may be read while events and records are added.
type Table struct {
	chunks      []*Chunk
	base        uint64
	first, next uint64
	last        stream.Position

	names      *dictionary[Name]
	touches    *dictionary[Touch]
	currencies *dictionary[string]
	platforms  *dictionary[PlatformList]
	pages      *dictionary[string]
	products   *dictionary[string]
	visitors   *visitors
	reasons    *reasons

	// nobodyBefore is the position before which events are nobody's: see [Table.AnonymizeBefore]. Those that were somebody's
	// when they were added are nobody's up to the ordinal anonymous.
	nobodyBefore stream.Position
	anonymous    uint64
	// erased is how many of the retained rows are of erased events, unread are the positions of erased events that have
	// not been read yet.
	erased int
	unread map[stream.Position]struct{}

	// early holds records of events that have not been read yet: the two streams are read independently.
	early map[stream.Position][]stream.Record
	// earlyCount is how many of them there are.
	earlyCount int
	// full is how many bytes the chunks but the last take.
	full int64
	// begun is what new values and visitors had taken when the last chunk was begun.
	begun int64
}

// NewTable returns an empty table.
func NewTable() *Table {
	t := &Table{
		names: newDictionary(textOfName), touches: newDictionary(textOfTouch), currencies: newDictionary(lengthOf[string]),
		platforms: newDictionary(lengthOf[PlatformList]), pages: newDictionary(lengthOf[string]), products: newDictionary(lengthOf[string]),
		visitors: newVisitors(), reasons: newReasons(),
		unread: map[stream.Position]struct{}{}, early: map[stream.Position][]stream.Record{},
	}
	// 0 means in these columns that there is nothing; it is never released.
	t.names.acquire(Name{Class: event.Class(event.Classes)})
	t.touches.acquire(Touch{})
	t.currencies.acquire("")
	t.pages.acquire("")
	t.products.acquire("")
	return t
}

// textOfName is how many bytes of text a name has.
func textOfName(n Name) int { return lengthOf(n.Event) }

// textOfTouch is how many bytes of text a touch has; channels are ours and shared.
func textOfTouch(t Touch) int { return lengthOf(t.Source) + lengthOf(t.Medium) + lengthOf(t.Campaign) }

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

// Add appends an event. One that is not newer than the last is known already and passed over, as is an erased one.
func (t *Table) Add(r *Row) error {
	if t.last > 0 && r.Position <= t.last {
		return nil
	}
	if _, erased := t.unread[r.Position]; erased {
		t.last = r.Position
		return nil
	}
	if r.Position < t.nobodyBefore {
		r.IsSomeone = false
	}
	if r.Platforms.Count() > maxPlatforms {
		return errTooManyPlatforms
	}
	currency := t.currencies.acquire(r.Currency)
	platforms := t.platforms.acquire(r.Platforms)
	if currency >= maxCurrencies || platforms >= maxPlatformLists {
		t.currencies.release(currency)
		t.platforms.release(platforms)
		return errTooVaried
	}
	at := int((t.next - t.base) & (ChunkRows - 1))
	if t.next-t.base == uint64(len(t.chunks))*ChunkRows {
		t.chunks = append(t.chunks, &Chunk{})
		t.begun = t.taken()
	}
	c := t.chunks[len(t.chunks)-1]
	c.Position[at] = r.Position
	c.Name[at] = t.names.acquire(Name{r.Name, r.Class})
	c.Value[at] = r.Value
	c.Currency[at], c.Platforms[at] = uint16(currency), uint16(platforms)
	if r.IsSomeone {
		c.Visitor[at], c.Back[at] = t.visitors.visit(r.Visitor, r.ClientID, t.next)
	}
	if r.IsTouch {
		c.Touch[at] = t.touches.acquire(r.Touch)
	}
	if r.Page != "" {
		c.Page[at] = t.pageNumber(r.Page)
	}
	t.setOrigin(c, at, t.next)
	c.append(at, r, t.visitors.clientIDs[c.Visitor[at]], t.products)
	if at == ChunkRows-1 {
		c.index = newChunkIndex(c, t.names.values)
		t.full += c.size()
	}
	t.last = r.Position
	if r.Position < t.nobodyBefore && t.anonymous == t.next {
		t.anonymous++
	}
	t.next++
	t.catchUp(r.Position)
	return nil
}

// pageNumber counts one more row of a page. The text is a part of a longer one that is not to stay in memory.
func (t *Table) pageNumber(page string) uint32 {
	if t.pages.numberOf(page) == NoNumber {
		page = strings.Clone(page)
	}
	return t.pages.acquire(page)
}

// append writes the parts of a row that the lock guards; visitor is the client id that the row's visitor has.
func (c *Chunk) append(at int, r *Row, visitor string, products *dictionary[string]) {
	c.Lock()
	defer c.Unlock()
	c.products.add(uint16(at), r, products)
	c.details = appendDetail(c.details, r, visitor)
	c.detailEnd[at] = uint32(len(c.details))
	if at == ChunkRows-1 {
		c.clip()
	}
	for len(c.Deliveries) < r.Platforms.Count() {
		c.Deliveries = append(c.Deliveries, new([ChunkRows]Delivery))
	}
}

// clip gives back what a full chunk's lists have of room. The caller holds the lock.
func (c *Chunk) clip() {
	c.details = slices.Clip(slices.Clone(c.details))
	c.products = c.products.clone()
}

// find returns where an event is kept; an erased one has its row.
func (t *Table) find(position stream.Position) (c *Chunk, at int, found bool) {
	rows := t.Rows()
	ordinal := rows.Search(position)
	if ordinal == t.next {
		return nil, 0, false
	}
	c, at = rows.At(ordinal)
	return c, at, c.Position[at] == position
}

// Forget hides the events before a position. It says whether whole chunks can be dropped.
func (t *Table) Forget(before stream.Position) (droppable bool) {
	rows := t.Rows()
	first := rows.Search(before)
	t.erased -= t.erasedIn(t.first, first)
	t.first = first
	for position := range t.unread {
		if position < before {
			delete(t.unread, position)
		}
	}
	for position := range t.early {
		if position < before {
			t.dropEarly(position)
		}
	}
	return t.first-t.base >= ChunkRows
}

// Drop gives back the chunks of which no event is retained, and numbers of values that no other row has. No reader may be at work.
func (t *Table) Drop() {
	count := int((t.first - t.base) / ChunkRows)
	for _, c := range t.chunks[:count] {
		for at := range ChunkRows {
			t.release(c, at)
			t.visitors.leave(c.Visitor[at], t.base+uint64(at))
		}
		c.products.release(t.products)
		t.base += ChunkRows
		t.full -= c.size()
	}
	t.chunks = slices.Clone(t.chunks[count:])
	t.renumber()
}

// release gives back what a row has of the dictionaries.
func (t *Table) release(c *Chunk, at int) {
	t.names.release(c.Name[at])
	t.currencies.release(uint32(c.Currency[at]))
	t.platforms.release(uint32(c.Platforms[at]))
	if c.Touch[at] != 0 {
		t.touches.release(c.Touch[at])
	}
	if c.Page[at] != 0 {
		t.pages.release(c.Page[at])
	}
}

// earlyBytes is about what a record takes that waits for its event.
const earlyBytes = 160

// Size is about how many bytes the table takes.
func (t *Table) Size() int64 {
	size := t.full + t.names.size() + t.touches.size() + t.currencies.size() + t.platforms.size() + t.visitors.size() +
		t.pages.size() + t.products.size()
	if count := len(t.chunks); count > 0 && t.chunks[count-1].index == nil {
		size += t.chunks[count-1].size()
	}
	return size + int64(earlyBytes*t.earlyCount)
}

// Excess returns the position before which events have to be forgotten for the table to take no more than a number of
// bytes: those of its oldest chunk. It is 0 where the table is not larger, or has one chunk alone.
func (t *Table) Excess(most int64) stream.Position {
	if most <= 0 || len(t.chunks) < 2 || t.Size() <= most {
		return 0
	}
	return t.chunks[1].Position[0]
}
