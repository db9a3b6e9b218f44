package columns

import (
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// Snapshot is a table at one moment. The values of its columns by number may be read at numbers that stand in a column of
// the rows; as long as it is in use, nothing may be dropped from the table.
type Snapshot struct {
	RowRange
	Names       []Name
	Touches     []Touch
	Currencies  []string
	Platforms   []PlatformList
	VisitorKeys []event.Person
	ClientIDs   []string
	Pages       []string
	Products    []string
	reasons     *reasons
	// freeNames and freeTouches are numbers that no row uses: what stands there may change.
	freeNames, freeTouches []uint32
	// Anonymous is the ordinal below which no row is of a visitor, though those behind it may lead back to there.
	Anonymous uint64
	// NobodyBefore is the position before which events are nobody's, whoever sent them.
	NobodyBefore stream.Position
}

// Snapshot returns the table as it is now.
func (t *Table) Snapshot() Snapshot {
	return Snapshot{
		RowRange: t.Rows(),
		Names:    t.names.values, Touches: t.touches.values, Currencies: t.currencies.values, Platforms: t.platforms.values,
		VisitorKeys: t.visitors.keys, ClientIDs: t.visitors.clientIDs, reasons: t.reasons,
		Pages: t.pages.values, Products: t.products.values, freeNames: t.names.free, freeTouches: t.touches.free,
		Anonymous: t.anonymous, NobodyBefore: t.nobodyBefore,
	}
}

// Reason returns why a delivery stands as it does, "" where its status says all.
func (s *Snapshot) Reason(d Delivery) string { return s.reasons.text(d.reason) }

// ReasonText returns the reason with a number.
func (s *Snapshot) ReasonText(number uint16) string { return s.reasons.text(number) }

// NoNumber is the number of a value that no row has.
const NoNumber = ^uint32(0)

// NameNumber returns the number of a name.
func (t *Table) NameNumber(name Name) uint32 { return t.names.numberOf(name) }

// CurrencyNumber returns the number of a currency.
func (t *Table) CurrencyNumber(code string) uint32 { return t.currencies.numberOf(code) }

// PageNumber returns the number of a page.
func (t *Table) PageNumber(page string) uint32 { return t.pages.numberOf(page) }

// ProductNumber returns the number of a product.
func (t *Table) ProductNumber(id string) uint32 { return t.products.numberOf(id) }

// EachName calls visit for each name that a row has, with its number.
func (s *Snapshot) EachName(visit func(number uint32, name Name)) {
	eachUsed(s.Names, s.freeNames, visit)
}

// EachTouch calls visit for each touch that a row has, with its number.
func (s *Snapshot) EachTouch(visit func(number uint32, touch Touch)) {
	eachUsed(s.Touches, s.freeTouches, visit)
}

// eachUsed calls visit for the values of a dictionary but the first, which stands for nothing, and those of free numbers. It
// takes a byte for each number meanwhile.
func eachUsed[K any](values []K, free []uint32, visit func(number uint32, value K)) {
	isFree := make([]bool, len(values))
	for _, number := range free {
		isFree[number] = true
	}
	for number := 1; number < len(values); number++ {
		if !isFree[number] {
			visit(uint32(number), values[number])
		}
	}
}

// First returns the ordinal of the oldest event that is retained, and Next the one of the event that comes next.
func (t *Table) First() uint64 { return t.first }

// Last returns the position of the newest event, 0 where there was none.
func (t *Table) Last() stream.Position { return t.last }
