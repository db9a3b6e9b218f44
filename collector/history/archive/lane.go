package archive

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// lane copies one stream into one table. It is one writer's: of several at a time the notes let one go on.
type lane[Row any] struct {
	name   Lane
	notes  Notes
	source Source[Row]
	table  Table[Row]
	epoch  uint64
	// limit is about how many rows, or entries, a block has at most.
	limit int
	// token returns a text that no other block has.
	token func() string
	// missed is told before the lane goes on from one entry to another that is not the next any more: entries up to lost may have
	// been taken from between. Nil for nobody.
	missed func(ctx context.Context, after, next, lost stream.Position) error
	// lacks is told up to where the table is where it has less than is noted. Nil for nobody.
	lacks func(ctx context.Context, last stream.Position) error
	// readsAhead says that a block is read while the one before is sent.
	readsAhead bool
	// spread says that the table is one of a cluster: see [lane.complete].
	spread bool

	// at is up to where all rows are in the table, where settled says that this is known.
	at      stream.Position
	settled bool
	// known is up to where the table may have rows already, doubted up to where it may lack rows that the stream has no more.
	known, doubted stream.Position
	// last is the block that was copied, or looked at, last.
	last  Block[Row]
	ahead chan readAhead[Row]
}

// readAhead is a block that was read while another one was sent.
type readAhead[Row any] struct {
	after stream.Position
	block Block[Row]
	err   error
}

// step copies one block, and says whether there was one. After an error it is to be called again, unless that is [ErrDeposed].
func (l *lane[Row]) step(ctx context.Context) (copied bool, err error) {
	if !l.settled {
		if err := l.settle(ctx); err != nil {
			return false, err
		}
		l.settled = true
	}
	block, err := l.next(ctx)
	if err != nil {
		return false, err
	}
	if block.Last > l.at {
		l.settled = false // until the block is confirmed
		if err := l.copy(ctx, block); err != nil {
			return false, err
		}
		copied, l.at, l.settled = true, block.Last, true
	}
	l.last = block
	l.last.Rows = nil
	return copied, nil
}

// next returns the next block.
func (l *lane[Row]) next(ctx context.Context) (block Block[Row], err error) {
	ahead := l.ahead
	l.ahead = nil
	if ahead != nil {
		select {
		case <-ctx.Done():
			return block, ctx.Err()
		case found := <-ahead:
			if found.after != l.at || found.err != nil {
				ahead = nil
			}
			block = found.block
		}
	}
	if ahead == nil {
		if block, err = l.source.Read(ctx, l.at, l.limit); err != nil {
			return block, err
		}
	}
	block = l.cut(block)
	if l.readsAhead && !block.End {
		after, ahead := block.Last, make(chan readAhead[Row], 1)
		l.ahead = ahead
		go func() {
			block, err := l.source.Read(ctx, after, l.limit)
			ahead <- readAhead[Row]{after, block, err}
		}()
	}
	return block, nil
}

// copy sends a block, of which the table may have rows where it has any behind the lane's place.
func (l *lane[Row]) copy(ctx context.Context, block Block[Row]) error {
	rows, err := l.source.Prepare(ctx, l.at, block.Last, block.Rows)
	if err != nil {
		return err
	}
	if len(rows) > 0 && l.source.Place(&rows[0]).Entry <= l.known {
		there, err := l.table.Places(ctx, l.at, block.Last)
		if err != nil {
			return err
		}
		rows = l.without(rows, there)
	}
	note := Note{Confirmed: l.at}
	if len(rows) > 0 {
		note.Intent = &Intent{Last: block.Last, Token: l.token() + "/" + strconv.Itoa(len(rows))}
	}
	lost, err := l.notes.Write(ctx, l.epoch, l.name, note)
	if err != nil {
		return err
	}
	if err := l.miss(ctx, block.First, lost); err != nil {
		return err
	}
	if note.Intent != nil {
		if err := l.table.Insert(ctx, rows, note.Intent.Token); err != nil {
			return err
		}
	}
	_, err = l.notes.Write(ctx, l.epoch, l.name, Note{Confirmed: block.Last})
	return err
}

// miss tells what may be missing between the lane's place and the next entry.
func (l *lane[Row]) miss(ctx context.Context, next, lost stream.Position) error {
	if lost = max(lost, l.doubted); l.missed == nil || lost <= l.at || next <= l.at+1 {
		return nil
	}
	return l.missed(ctx, l.at, next, lost)
}

// without returns the rows that are not there.
func (l *lane[Row]) without(rows []Row, there map[Place]bool) []Row {
	if len(there) == 0 {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row Row) bool { return there[l.source.Place(&row)] })
}

// cut shortens a block to one month, for a block of one partition is added as a whole or not at all.
func (l *lane[Row]) cut(block Block[Row]) Block[Row] {
	if len(block.Rows) == 0 {
		return block
	}
	month := monthOf(l.source.Place(&block.Rows[0]).Entry)
	if monthOf(l.source.Place(&block.Rows[len(block.Rows)-1]).Entry) == month {
		return block
	}
	end := slices.IndexFunc(block.Rows, func(row Row) bool { return monthOf(l.source.Place(&row).Entry) != month })
	block.Rows, block.End = block.Rows[:end], false
	block.Last = l.source.Place(&block.Rows[end-1]).Entry
	return block
}

// monthOf numbers UTC's months.
func monthOf(p stream.Position) int {
	const months = 12
	t := p.Time()
	return t.Year()*months + int(t.Month()-time.January)
}

// settle finds out up to where all rows are there, and brings there what may have been on its way.
func (l *lane[Row]) settle(ctx context.Context) error {
	note, err := l.notes.Note(ctx, l.name)
	if err != nil {
		return err
	}
	last, err := l.table.Last(ctx, note.Confirmed)
	if err != nil {
		return err
	}
	// A table that has less than is noted has lost it, or it was erased. One that has more may have it from before the notes were
	// lost, or Redis was restored: of what the stream has there, each row is looked for.
	l.at, l.known, l.doubted = min(note.Confirmed, last), last, 0
	switch {
	case last < note.Confirmed:
		l.doubted = note.Confirmed
		if l.lacks != nil {
			if err := l.lacks(ctx, last); err != nil {
				return err
			}
		}
	case last == 0:
		l.doubted = math.MaxUint64 // nobody has looked before at what the stream has had
	}
	if note.Intent == nil {
		return nil
	}
	intent := *note.Intent
	block, whole, err := l.between(ctx, l.at, intent.Last)
	if err != nil {
		return err
	}
	if !whole {
		// The table has lost more than a few blocks since: it was restored, and what was on its way to it before is no more.
		_, err := l.notes.Write(ctx, l.epoch, l.name, Note{Confirmed: l.at})
		return err
	}
	lost, err := l.notes.Write(ctx, l.epoch, l.name, Note{Confirmed: l.at, Intent: &intent})
	if err != nil {
		return err
	}
	if err := l.miss(ctx, block.First, lost); err != nil {
		return err
	}
	if err := l.complete(ctx, intent, block.Rows); err != nil {
		return err
	}
	l.at = max(l.at, intent.Last)
	_, err = l.notes.Write(ctx, l.epoch, l.name, Note{Confirmed: l.at})
	return err
}

// between returns the entries behind after, up to last. whole is false where they are too many for a few blocks, or of several
// months.
func (l *lane[Row]) between(ctx context.Context, after, last stream.Position) (block Block[Row], whole bool, err error) {
	const blocks = 4 // what is noted, and what may lie before it
	block = Block[Row]{First: after, Last: after}
	for block.Last < last && len(block.Rows) <= blocks*l.limit {
		next, err := l.source.Read(ctx, block.Last, l.limit)
		if err != nil {
			return block, false, err
		}
		if block.First == after {
			block.First = next.First
		}
		if next.Last == block.Last {
			block.Last = last
			break
		}
		block.Rows, block.Last = append(block.Rows, next.Rows...), next.Last
	}
	whole = block.Last >= last
	if beyond := slices.IndexFunc(block.Rows, func(row Row) bool { return l.source.Place(&row).Entry > last }); beyond >= 0 {
		block.Rows = block.Rows[:beyond]
	}
	return block, whole && len(l.cut(block).Rows) == len(block.Rows), nil
}

// complete sends those rows of an intent that the table lacks: under the intent's token as long as it has none of the block's. Where
// they are not there afterwards the table knows the token, so that no copy of the block can come any more, but has lost the rows
// since. Further tokens follow from the first, for another writer may come to send the same rows.
//
// Of a table that is spread over shards each has its piece of the block, there wholly or not at all, and its own memory of tokens. What
// is missing are pieces, which go under the block's token too. Where they are not there afterwards, the replica that is asked has not
// got them yet from another that has, and they come: another token would have them twice.
func (l *lane[Row]) complete(ctx context.Context, intent Intent, rows []Row) error {
	rows, err := l.source.Prepare(ctx, l.at, intent.Last, rows)
	if err != nil {
		return err
	}
	const attempts = 3
	for attempt := range attempts {
		there, err := l.table.Places(ctx, l.at, intent.Last)
		if err != nil {
			return err
		}
		missing := l.without(rows, there)
		if len(missing) == 0 {
			return nil
		}
		token := intent.Token
		if !l.spread && (attempt > 0 || len(there) > 0 && len(missing) != intent.rows()) {
			token += "/" + strconv.Itoa(len(missing)) + "/" + strconv.Itoa(attempt)
		}
		if err := l.table.Insert(ctx, missing, token); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s up to %s: %w", l.name, intent.Last, errUnsettled)
}

// rows is how many rows the block had when it was sent; -1 where that is not known.
func (i *Intent) rows() int {
	_, count, _ := strings.Cut(i.Token, "/")
	if n, err := strconv.Atoi(count); err == nil {
		return n
	}
	return -1
}
