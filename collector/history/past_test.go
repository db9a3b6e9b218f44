package history_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// hear makes up some records of the newest event and of older ones.
func (p *past) hear(count int) {
	for range count {
		h := &p.events[len(p.events)-1]
		if p.IntN(3) == 0 {
			h = &p.events[p.IntN(len(p.events))]
		}
		if len(h.Platforms) > 0 {
			p.note(p.record(&h.Event, h.at))
		}
	}
}

// hearAgain has some records said again, as an erasure does.
func (p *past) hearAgain() {
	if p.IntN(3) > 0 {
		return
	}
	for _, r := range p.records[:p.IntN(len(p.records)+1)] {
		if p.IntN(3) == 0 {
			p.note(r)
		}
	}
}

// note adds a record to both pasts.
func (p *past) note(r stream.Record) {
	name := ""
	for i := range p.events {
		if p.events[i].at == r.Event {
			name = p.events[i].Name
		}
	}
	p.records = append(p.records, r)
	entry := p.last + stream.Position(len(p.records)/3)<<30
	row := rows.FromRecord(entry, len(p.records)%3, &r, name)
	if slices.ContainsFunc(p.recordTable, func(other rows.Record) bool { return other.At == row.At && other.Platform == row.Platform }) {
		row.Again = 1
	}
	p.recordTable = append(p.recordTable, row)
}

// record makes up what became of an event on one of its platforms.
func (p *past) record(e *event.Event, at stream.Position) stream.Record {
	r := stream.Record{
		Event: at, Platform: pick(p.Rand, e.Platforms...), Status: stream.Status(p.IntN(int(stream.Expired) + 1)), Attempts: p.IntN(4),
		At: at.Time().Add(time.Duration(p.IntN(20)-3) * 100 * time.Millisecond), Reason: pick(p.Rand, "", "http_500", "timeout"),
	}
	if r.Attempts > 0 {
		r.Latency = time.Duration(p.IntN(3)*p.IntN(700)) * time.Millisecond
	}
	switch p.IntN(40) {
	case 0:
		r.Status = stream.Expired + 1 // of a later Weir
	case 1:
		r.Latency = 20 * time.Hour // more than is kept
	case 2:
		r.At = at.Time().Add(time.Duration(p.IntN(3)-1) * 500 * 24 * time.Hour) // by a clock that is wrong
	}
	return r
}

// lose takes some events out of both pasts: some that were erased, and the oldest.
func (p *past) lose(t *testing.T, client *clickhouse.Client) {
	t.Helper()
	newest := p.table[len(p.table)-1]
	if p.IntN(4) == 0 {
		who := p.table[p.IntN(len(p.table))].Visitor
		var positions []stream.Position
		for i := range p.table {
			row := &p.table[i]
			if row.At != newest.At && (row.Visitor == who && who != newest.Visitor || row.Visitor == 0 && p.IntN(5) == 0) {
				positions = append(positions, stream.Position(row.At))
			}
		}
		p.erase(t, client, positions)
	}
	if p.IntN(4) == 0 {
		before := stream.At(stream.Position(p.table[p.IntN(len(p.table))].At).Time())
		p.view.Forget(before)
		p.forgotten = before
		p.events = slices.DeleteFunc(p.events, func(h happened) bool { return h.at < before })
		if uint64(before) > p.table[0].At {
			bounds := strconv.FormatUint(uint64(before), 10)
			run(t, client, "INSERT INTO gaps VALUES (0, "+bounds+"), (0, "+bounds+" - 1048577)")
			run(t, client, "ALTER TABLE events DELETE WHERE at < "+bounds+" SETTINGS mutations_sync = 2")
			run(t, client, "ALTER TABLE records DELETE WHERE at < "+bounds+" SETTINGS mutations_sync = 2")
		}
	}
}

// erase takes events out of both pasts.
func (p *past) erase(t *testing.T, client *clickhouse.Client, positions []stream.Position) {
	t.Helper()
	if len(positions) == 0 {
		return
	}
	if err := p.view.Erase(positions); err != nil {
		t.Fatal(err)
	}
	p.erased = append(p.erased, positions...)
	texts := make([]string, len(positions))
	for i, position := range positions {
		texts[i] = strconv.FormatUint(uint64(position), 10)
	}
	p.events = slices.DeleteFunc(p.events, func(h happened) bool { return slices.Contains(positions, h.at) })
	for _, table := range []string{"events", "records"} {
		run(t, client, "ALTER TABLE "+table+" DELETE WHERE at IN ("+strings.Join(texts, ", ")+") SETTINGS mutations_sync = 2")
	}
}

func run(t *testing.T, client *clickhouse.Client, sql string) {
	t.Helper()
	if err := client.Exec(t.Context(), clickhouse.Query{SQL: sql}); err != nil {
		t.Fatal(err)
	}
}
