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
	reasons     *reasons
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
		Anonymous: t.anonymous, NobodyBefore: t.nobodyBefore,
	}
}

// Reason returns why a delivery stands as it does, "" where its status says all.
func (s *Snapshot) Reason(d Delivery) string { return s.reasons.text(d.reason) }

// NoNumber is the number of a value that no row has.
const NoNumber = ^uint32(0)

// NameNumber returns the number of a name.
func (t *Table) NameNumber(name Name) uint32 { return t.names.numberOf(name) }

// CurrencyNumber returns the number of a currency.
func (t *Table) CurrencyNumber(code string) uint32 { return t.currencies.numberOf(code) }

// First returns the ordinal of the oldest event that is retained, and Next the one of the event that comes next.
func (t *Table) First() uint64 { return t.first }

// Last returns the position of the newest event, 0 where there was none.
func (t *Table) Last() stream.Position { return t.last }
