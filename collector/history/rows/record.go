package rows

import (
	"math"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// Record is a row of the table records.
type Record struct {
	At       uint64 `ch:"at"`
	Entry    uint64 `ch:"entry"`
	Nth      uint16 `ch:"nth"`
	Platform string `ch:"platform"`
	Status   uint8  `ch:"status"`
	Attempts uint16 `ch:"attempts"`
	Latency  uint32 `ch:"latency"`
	Reason   string `ch:"reason"`
	// Decided is how many milliseconds after its entry the record was decided: mostly a few before, and hence below 0.
	Decided int64  `ch:"decided"`
	Name    string `ch:"name"`
	// Again is 1 where an earlier record of the same event and platform is in the table too.
	Again uint8 `ch:"again"`
}

// FromRecord returns the row of the nth record of an entry of the deliveries stream; name is that of the record's event.
func FromRecord(entry stream.Position, nth int, r *stream.Record, name string) Record {
	return Record{
		At: uint64(r.Event), Entry: uint64(entry), Nth: uint16(nth), Platform: r.Platform, Status: uint8(r.Status),
		Attempts: uint16(min(max(r.Attempts, 0), math.MaxUint16)), Latency: uint32(min(max(r.Latency.Milliseconds(), 0), math.MaxUint32)),
		Reason: r.Reason, Decided: r.At.UnixMilli() - entry.Milliseconds(), Name: name,
	}
}

// Restore returns the record.
func (r *Record) Restore() stream.Record {
	return stream.Record{
		Event: stream.Position(r.At), Platform: r.Platform, Status: stream.Status(r.Status), Attempts: int(r.Attempts),
		Latency: time.Duration(r.Latency) * time.Millisecond, Reason: r.Reason, At: time.UnixMilli(stream.Position(r.Entry).Milliseconds() + r.Decided).UTC(),
	}
}
