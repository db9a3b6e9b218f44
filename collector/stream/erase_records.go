package stream

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

const (
	// eraseRead is how many entries of records are read at a time, as an erasure goes through all of them.
	eraseRead = 1000
	// keptAtOnce is about how many records of other events are held in memory; where there are more it takes another pass.
	keptAtOnce = 400_000
	// replaceCap and replaceBytes bound the entries that one call replaces.
	replaceCap, replaceBytes = 256, 1 << 20
	// countedCap is for how many erasures one call counts. An entry that is of more is counted for so many.
	countedCap = 4000
	// replaceTries is how often a step is tried that others' records come before.
	replaceTries = 1000
)

// EraseRecords removes the records of erased events: of those in erased, with the erasures that they went by, and of those
// that the stream itself announces for the wanted erasures, so that another deliverer can finish what one has begun. What
// is removed is counted for its erasures.
//
// An entry that has such a record is replaced: what it says of other events is said again in a new entry, unless a later
// one says something else of the same event and platform. So the last record of each stays the last, whatever is written
// meanwhile.
func (s *Stream) EraseRecords(ctx context.Context, erased map[Position][]string, wanted func(erasure string) bool) error {
	for again := true; again; {
		pass := recordPass{stream: s, erased: erased, wanted: wanted, kept: map[recordKey]*Record{}, platforms: map[string][]*doomedRecords{}}
		if err := pass.read(ctx); err != nil {
			return err
		}
		for _, platform := range slices.Sorted(maps.Keys(pass.platforms)) {
			for len(pass.platforms[platform]) > 0 {
				if err := pass.replace(ctx, platform); err != nil {
					return err
				}
			}
		}
		again = pass.again
	}
	return nil
}

// recordPass is one way through the deliveries stream.
type recordPass struct {
	stream *Stream
	erased map[Position][]string
	wanted func(erasure string) bool

	// known is up to where the stream has been read.
	known Position
	// platforms are the entries that are to be replaced, by their platforms; kept are their records of other events that no
	// later entry has said something else of.
	platforms map[string][]*doomedRecords
	kept      map[recordKey]*Record
	// again says that there was more than one pass can do.
	again bool
}

type recordKey struct {
	event    Position
	platform string
}

// doomedRecords is an entry that is to be replaced.
type doomedRecords struct {
	position Position
	size     int
	others   []*Record // those that stand in kept are said again
	removed  map[string]removedRecords
}

// removedRecords is what an erasure removes of an entry: how many records, and whether the platform may have got something.
type removedRecords struct {
	records int
	reached bool
}

// read goes through what it does not know yet.
func (p *recordPass) read(ctx context.Context) error {
	for {
		entries, err := p.stream.read(ctx, p.stream.keys.deliveries(), recordField, p.known, eraseRead, 0)
		if err != nil {
			return fmt.Errorf("read delivery records: %w", err)
		}
		if len(entries) == 0 {
			return nil
		}
		for _, entry := range entries {
			p.known = entry.Position
			var found Records
			if found.decode(entry.Data) != nil {
				continue // nobody can read of whom it is
			}
			p.announced(found)
			p.take(entry, found.Records)
		}
	}
}

// announced learns of events that are erased. Their records stand before.
func (p *recordPass) announced(found Records) {
	if len(found.Erased) == 0 || !p.wanted(found.erasure) {
		return
	}
	for _, position := range found.Erased {
		if !slices.Contains(p.erased[position], found.erasure) {
			p.erased[position] = append(p.erased[position], found.erasure)
			p.again = true
		}
	}
}

// take notes an entry that is to be replaced, and what any entry says of events that another such entry has told of.
func (p *recordPass) take(entry Entry, records []Record) {
	doomed := slices.ContainsFunc(records, func(r Record) bool { _, gone := p.erased[r.Event]; return gone })
	if doomed && len(p.kept) >= keptAtOnce {
		doomed, p.again = false, true
	}
	if !doomed {
		if len(p.kept) > 0 {
			for i := range records {
				delete(p.kept, recordKey{records[i].Event, records[i].Platform})
			}
		}
		return
	}
	one := &doomedRecords{position: entry.Position, size: len(entry.Data), removed: map[string]removedRecords{}}
	for i := range records {
		r := &records[i]
		by, gone := p.erased[r.Event]
		if !gone {
			one.others = append(one.others, r)
			p.kept[recordKey{r.Event, r.Platform}] = r
			continue
		}
		for _, erasure := range by {
			sum := one.removed[erasure]
			one.removed[erasure] = removedRecords{sum.records + 1, sum.reached || r.Attempts > 0 || r.Status == Delivered}
		}
	}
	platform := records[0].Platform
	p.platforms[platform] = append(p.platforms[platform], one)
}

// replace replaces the next entries of a platform.
func (p *recordPass) replace(ctx context.Context, platform string) error {
	for range replaceTries {
		if err := p.read(ctx); err != nil {
			return err
		}
		step := p.step(platform)
		if len(step) == 0 {
			return nil
		}
		replied, err := p.stream.redis.FCall(ctx, functionReplace,
			[]string{p.stream.keys.deliveries(), p.stream.keys.erasureState("")}, p.arguments(platform, step)...).Int()
		switch {
		case err != nil:
			return describe("erase delivery records of platform "+platform, err)
		case replied == 1:
			for _, entry := range step {
				p.forget(entry)
			}
			p.platforms[platform] = p.platforms[platform][len(step):]
			return nil
		case replied == -2:
			if err := p.dropMissing(ctx, platform, len(step)); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("erase delivery records of platform %s: its records change faster than they are read", platform)
}

// step returns as many of a platform's entries as one call replaces.
func (p *recordPass) step(platform string) []*doomedRecords {
	entries, bytes, counted, most := p.platforms[platform], 0, 0, 0
	for _, entry := range entries[:min(len(entries), replaceCap)] {
		bytes, counted = bytes+entry.size, counted+len(entry.removed)
		if most > 0 && (bytes > replaceBytes || counted > countedCap) {
			break
		}
		most++
	}
	return entries[:most]
}

// forget lets go of what was kept of an entry.
func (p *recordPass) forget(entry *doomedRecords) {
	for _, r := range entry.others {
		if key := (recordKey{r.Event, r.Platform}); p.kept[key] == r {
			delete(p.kept, key)
		}
	}
}

// arguments are those of weir_replace_records.
func (p *recordPass) arguments(platform string, step []*doomedRecords) []any {
	var again []Record
	sums := map[string]removedRecords{}
	ids := make([]any, 0, len(step))
	for _, entry := range step {
		ids = append(ids, entry.position.String())
		for _, r := range entry.others {
			if p.kept[recordKey{r.Event, r.Platform}] == r {
				again = append(again, *r)
			}
		}
		for erasure, removed := range entry.removed {
			sum := sums[erasure]
			sums[erasure] = removedRecords{sum.records + removed.records, sum.reached || removed.reached}
		}
	}
	var added []any
	for records := range slices.Chunk(again, settleCap) {
		added = append(added, encodeRecords(platform, records))
	}
	args := append([]any{p.known.String(), platform, headOf(platform), len(ids), len(added)}, ids...)
	args = append(args, added...)
	for erasure, sum := range sums {
		if len(args) >= 5+len(ids)+len(added)+3*countedCap {
			break
		}
		reached := ""
		if sum.reached {
			reached = "1"
		}
		args = append(args, erasure, sum.records, reached)
	}
	return args
}

// dropMissing forgets those of a platform's first n entries that are not there any more: they were trimmed away, or another
// deliverer has replaced them.
func (p *recordPass) dropMissing(ctx context.Context, platform string, n int) error {
	entries, found := p.platforms[platform], make([]*redis.XMessageSliceCmd, n)
	_, err := p.stream.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, entry := range entries[:n] {
			id := entry.position.String()
			found[i] = pipe.XRangeN(ctx, p.stream.keys.deliveries(), id, id, 1)
		}
		return nil
	})
	if err != nil {
		return describe("look for delivery records", err)
	}
	var left []*doomedRecords
	for i, entry := range entries[:n] {
		if len(found[i].Val()) > 0 {
			left = append(left, entry)
		} else {
			p.forget(entry)
		}
	}
	p.platforms[platform] = append(left, entries[n:]...)
	return nil
}
