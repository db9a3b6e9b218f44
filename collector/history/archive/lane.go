package archive

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	// entries is how many entries a block has at most.
	entries int
	// token returns a text that no other block has.
	token func() string

	// at is up to where all rows are in the table, where settled says that this is known.
	at      stream.Position
	settled bool
}

// step copies one block, and says whether there was one. After an error it is to be called again, unless that is [ErrDeposed].
func (l *lane[Row]) step(ctx context.Context) (copied bool, err error) {
	if !l.settled {
		if err := l.settle(ctx); err != nil {
			return false, err
		}
		l.settled = true
	}
	rows, last, err := l.source.Read(ctx, l.at, l.entries)
	if err != nil || last == l.at {
		return false, err
	}
	rows, last = l.cut(rows, last)
	l.settled = false // until the block is confirmed
	if len(rows) > 0 {
		intent := Intent{After: l.at, Last: last, Token: l.token()}
		if err := l.notes.Intend(ctx, l.epoch, l.name, intent); err != nil {
			return false, err
		}
		l.source.Prepare(rows)
		if err := l.table.Insert(ctx, rows, intent.Token); err != nil {
			return false, err
		}
	}
	if err := l.notes.Confirm(ctx, l.epoch, l.name, last); err != nil {
		return false, err
	}
	l.at, l.settled = last, true
	return true, nil
}

// cut shortens a block to one month, for a block of one partition is added as a whole or not at all.
func (l *lane[Row]) cut(rows []Row, last stream.Position) ([]Row, stream.Position) {
	if len(rows) == 0 {
		return rows, last
	}
	month := monthOf(l.source.Place(&rows[0]).Entry)
	end := slices.IndexFunc(rows, func(row Row) bool { return monthOf(l.source.Place(&row).Entry) != month })
	if end < 0 {
		return rows, last
	}
	return rows[:end], l.source.Place(&rows[end-1]).Entry
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
	last, err := l.table.Last(ctx)
	if err != nil {
		return err
	}
	l.at = last
	if note.Intent == nil {
		return nil
	}
	intent := *note.Intent
	rows, whole, err := l.between(ctx, min(last, intent.After), intent.Last)
	if err != nil {
		return err
	}
	if !whole {
		// The table has lost more than a block since: it was restored, and what was on its way to it before is no more.
		return l.notes.Confirm(ctx, l.epoch, l.name, last)
	}
	// A table that has less than is noted has lost it, or it was erased: both are sent again as far as the stream has it.
	if last < intent.After {
		intent.After = last
		if err := l.notes.Intend(ctx, l.epoch, l.name, intent); err != nil {
			return err
		}
	}
	if err := l.complete(ctx, intent, rows); err != nil {
		return err
	}
	l.at = max(last, intent.Last)
	return l.notes.Confirm(ctx, l.epoch, l.name, l.at)
}

// between returns the rows of the entries behind after, up to last. whole is false where they are too many for a block, or of
// several months.
func (l *lane[Row]) between(ctx context.Context, after, last stream.Position) (rows []Row, whole bool, err error) {
	count := 2 * l.entries // what is noted, and what may lie before it
	rows, end, err := l.source.Read(ctx, after, count)
	if err != nil {
		return nil, false, err
	}
	beyond := slices.IndexFunc(rows, func(row Row) bool { return l.source.Place(&row).Entry > last })
	if beyond >= 0 {
		rows = rows[:beyond]
	}
	_, next, err := l.source.Read(ctx, end, 1)
	if err != nil {
		return nil, false, err
	}
	_, cut := l.cut(rows, last)
	return rows, (end >= last || next == end) && cut == last, nil
}

// complete sends those rows of an intent that the table lacks: under the intent's token as long as it has none of them. Where they
// are not there afterwards the table knows the token, so that no copy of the block can come any more, but has lost the rows since.
// Further tokens follow from the first, for another writer may come to send the same rows.
func (l *lane[Row]) complete(ctx context.Context, intent Intent, rows []Row) error {
	const attempts = 3
	for attempt := range attempts {
		there, err := l.table.Places(ctx, intent.After, intent.Last)
		if err != nil {
			return err
		}
		missing := slices.DeleteFunc(slices.Clone(rows), func(row Row) bool { return there[l.source.Place(&row)] })
		if len(missing) == 0 {
			return nil
		}
		token := intent.Token
		if len(there) > 0 || attempt > 0 {
			token += "/" + strconv.Itoa(len(missing)) + "/" + strconv.Itoa(attempt)
		}
		l.source.Prepare(missing)
		if err := l.table.Insert(ctx, missing, token); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s up to %s: %w", l.name, intent.Last, errUnsettled)
}
