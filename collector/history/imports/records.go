package imports

import (
	"cmp"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// recordsOf returns the records of a block's imported events, and the positions of those events that were there before.
func recordsOf(b *block) (list []rows.Record, known []uint64) {
	for i := range b.events {
		p := &b.events[i]
		if p.row.At&schema.Imported == 0 {
			continue
		}
		before := len(list)
		for _, d := range p.deliveries {
			if d.at == 0 {
				continue
			}
			record := stream.Record{
				Event: stream.Position(p.row.At), Platform: d.platform, Status: d.status, Attempts: int(min(d.attempts, 1<<20)),
				Latency: time.Duration(min(d.latency, 1<<40)) * time.Millisecond, Reason: d.reason, At: time.UnixMilli(int64(d.at)).UTC(),
			}
			entry := stream.Position(positionOf(int64(d.at)) | schema.Imported | keyOf(p.text()+"\x00"+d.platform)%mostAtOnce)
			list = append(list, rows.FromRecord(entry, 0, &record, p.row.Name))
		}
		if p.there && len(list) > before {
			known = append(known, p.row.At)
		}
	}
	return list, known
}

func compareRecords(a, b rows.Record) int {
	return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Platform, b.Platform), cmp.Compare(a.Entry, b.Entry))
}
