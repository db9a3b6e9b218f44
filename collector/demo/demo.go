// Package demo makes a shop's past: visitors who come from somewhere, look around, fill baskets, buy and send
// back, and what has become of the deliveries of it all. It is made up from a seed and looks like what the
// collector and the deliverer would have left in the streams. `weir dev` shows it to newcomers, the benchmarks
// measure with it.
//
// The same options give the same past, bit by bit: everything is drawn with integers from one generator of
// random numbers, in one order. Nobody real is in it: e-mail addresses are of example.com, telephone numbers of
// a country that does not exist, IP addresses of the ranges that are set aside for documentation.
package demo

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// The bounds of [Options].
const (
	MaxEvents = 100_000_000
	MaxDays   = 366
)

// Options say which past is made.
type Options struct {
	// Property gives the currency, the time zone by which people sleep and shop, and the platforms in force.
	Property *config.Property
	// Events is how many there are, 1 to [MaxEvents].
	Events int
	// Days is how long the past is, 1 to [MaxDays].
	Days int
	// Seed tells one past from another.
	Seed uint64
	// End is when the past ends; it is cut to the millisecond. No event and no record is later.
	End time.Time
}

// Past is a past that has not been told yet.
type Past struct {
	options  Options
	location *time.Location
}

// New checks the options.
func New(o Options) (*Past, error) {
	if o.Events < 1 || o.Events > MaxEvents {
		return nil, fmt.Errorf("a past must have 1 to %d events, not %d", MaxEvents, o.Events)
	}
	if o.Days < 1 || o.Days > MaxDays {
		return nil, fmt.Errorf("a past must have 1 to %d days, not %d", MaxDays, o.Days)
	}
	location, err := time.LoadLocation(o.Property.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("time zone of the property: %w", err)
	}
	o.End = o.End.Truncate(time.Millisecond)
	return &Past{options: o, location: location}, nil
}

// Batch is a part of the past, at most an hour of it.
type Batch struct {
	// Entries are the events received in it, in order, as the events stream keeps them; Events are the same, not
	// encoded.
	Entries []stream.Entry
	Events  []event.Event
	// Records are the delivery records of its time, by when they were decided. Each event has one per platform in
	// force, in its own batch or a later one, and all are final: nothing of a past is left to deliver.
	Records []stream.Record
}

// Batches tells the past from its beginning to its end, anew at each call. A batch's slices are used again for the
// next one; what their elements point to may be kept.
func (p *Past) Batches() iter.Seq[Batch] {
	return func(yield func(Batch) bool) {
		g := newGenerator(p.options, p.location)
		var batch Batch
		for i, slot := range g.slots {
			g.plan(slot, i == len(g.slots)-1)
			batch.Entries, batch.Events = g.happen(slot.end, batch.Entries[:0], batch.Events[:0])
			batch.Records = g.settle(slot.end, i == len(g.slots)-1, batch.Records[:0])
			if len(batch.Events)+len(batch.Records) > 0 && !yield(batch) {
				return
			}
		}
	}
}

// generator is one telling of a past.
type generator struct {
	options Options
	end     int64 // in ms
	random  *rand.Rand
	uuids   *rand.ChaCha8
	slots   []slot
	people  people
	shop    shop
	// planned counts the events that have happened or are planned.
	planned int
	// ahead are the planned events that have not happened yet.
	ahead []step
	last  stream.Position
	// platforms are those of the property, in order; names are their names.
	platforms []platform
	names     []string
	// open are the records that have not been decided yet.
	open []stream.Record
}

func newGenerator(o Options, location *time.Location) *generator {
	g := &generator{
		options: o, end: o.End.UnixMilli(),
		random: rand.New(rand.NewPCG(o.Seed, uint64(o.Events))),
		uuids:  rand.NewChaCha8(sha256.Sum256(binary.BigEndian.AppendUint64(nil, o.Seed))),
		names:  o.Property.PlatformNames(),
	}
	g.slots = slotsOf(o, location)
	g.people = people{seed: o.Seed, start: g.slots[0].start / 1000, currencies: currenciesBeside(o.Property.Currency), variants: o.Property.Variants()}
	g.shop = newShop()
	for i := range o.Property.Platforms {
		g.platforms = append(g.platforms, newPlatform(&o.Property.Platforms[i], g.slots, g.random))
	}
	return g
}

// plan lets visits begin in a slot until as many events are planned as belong to the time up to its end. The last
// slot takes what is missing.
func (g *generator) plan(s slot, last bool) {
	for g.planned < s.quota {
		start := s.start + g.random.Int64N(s.end-s.start)
		steps := g.visit(start)
		// What lies behind the end of the past has not happened.
		steps = slices.DeleteFunc(steps, func(step step) bool { return step.at >= g.end })
		if missing := s.quota - g.planned; last && len(steps) > missing {
			steps = steps[:missing]
		}
		if missing := g.options.Events - g.planned; len(steps) > missing {
			steps = steps[:missing]
		}
		g.planned += len(steps)
		g.ahead = append(g.ahead, steps...)
	}
}

// happen appends the planned events before end, in order.
func (g *generator) happen(end int64, entries []stream.Entry, events []event.Event) ([]stream.Entry, []event.Event) {
	later := 0
	var due []step
	for _, s := range g.ahead {
		if s.at < end {
			due = append(due, s)
		} else {
			g.ahead[later] = s
			later++
		}
	}
	clear(g.ahead[later:])
	g.ahead = g.ahead[:later]
	// What was planned first comes first where both come in one millisecond.
	slices.SortStableFunc(due, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	for i := range due {
		at := time.UnixMilli(due[i].at)
		g.last = max(g.last+1, stream.At(at))
		e := g.eventOf(&due[i])
		// The keys of the past's devices would be gone.
		entries = append(entries, stream.Entry{Position: g.last, Data: wire.Split(&e, false).Entry})
		for k := range g.platforms {
			g.open = append(g.open, g.platforms[k].deliver(g, &e, g.last))
		}
		e.Context.IP, e.Context.UserAgent = "", ""
		events = append(events, e)
	}
	return entries, events
}

// settle appends the records that are decided before end, in order; all that are open where this is the end of
// the past.
func (g *generator) settle(end int64, last bool, records []stream.Record) []stream.Record {
	open := g.open[:0]
	for _, r := range g.open {
		switch {
		case last && r.At.UnixMilli() >= g.end:
			r.At = g.options.End
			records = append(records, r)
		case last || r.At.UnixMilli() < end:
			records = append(records, r)
		default:
			open = append(open, r)
		}
	}
	g.open = open
	slices.SortStableFunc(records, func(a, b stream.Record) int { return a.At.Compare(b.At) })
	return records
}

// newUUID returns a UUIDv7 of a moment.
func (g *generator) newUUID(ms int64) uuid.UUID {
	var id uuid.UUID
	_, _ = g.uuids.Read(id[6:]) // it never fails
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}
