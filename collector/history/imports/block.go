package imports

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// mostAtOnce is how many imported events a millisecond has room for.
const mostAtOnce = schema.Imported

// pending is an event that is about to be added.
type pending struct {
	identity
	row        rows.Event
	ms         int64
	key        uint64
	deliveries []delivery
	// there says that the history has it, also nobodys that it was made nobody's.
	there, nobodys bool
}

// block is events of one month, in the order of time; those of a millisecond are never in two.
type block struct{ events []pending }

// blocks makes blocks of items.
type blocks struct {
	r       *run
	to      func(block) error
	people  *people
	origins *origins
	// anonymous is the time before which events are nobody's; zero for none.
	anonymous time.Time
	property  string
	group     []item
	block     block
}

func (r *run) newBlocks(to func(block) error) *blocks {
	b := &blocks{r: r, to: to, origins: newOrigins(), property: r.Property.Namespace + "/" + r.Property.Name}
	if r.Property.JoinIdentities {
		b.people = newPeople(r.Property.Retention.JoinedFor())
	}
	if days := r.Property.Retention.IdentifiersDays; days > 0 {
		b.anonymous = r.now.AddDate(0, 0, -days).Truncate(24 * time.Hour)
	}
	return b
}

// add takes the next item, in the order of the sorter.
func (b *blocks) add(ctx context.Context, encoded []byte) error {
	i, err := decodeItem(encoded)
	if err != nil {
		return err
	}
	if len(b.group) > 0 && b.group[0].ms != i.ms {
		if err := b.endGroup(ctx); err != nil {
			return err
		}
	}
	if len(b.group) >= mostAtOnce {
		return fmt.Errorf("%w: there are more than %d events at %s", ErrInput, mostAtOnce, time.UnixMilli(i.ms).UTC().Format(time.RFC3339Nano))
	}
	b.group = append(b.group, i)
	return nil
}

// end hands over what is left.
func (b *blocks) end(ctx context.Context) error {
	if err := b.endGroup(ctx); err != nil {
		return err
	}
	return b.flush()
}

// endGroup takes the events of a millisecond, in the order in which they stood in their files.
func (b *blocks) endGroup(ctx context.Context) error {
	if len(b.group) == 0 {
		return nil
	}
	ms := b.group[0].ms
	if n := len(b.block.events); n >= b.r.BlockRows || n > 0 && monthOf(b.block.events[0].ms) != monthOf(ms) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	if len(b.block.events) == 0 && b.r.Refresh != nil {
		if err := b.r.Refresh(ctx); err != nil {
			return err
		}
	}
	slices.SortFunc(b.group, func(x, y item) int {
		order := cmp.Compare(x.line, y.line)
		if x.file == y.file && b.r.descending[x.file] {
			order = -order
		}
		return cmp.Or(cmp.Compare(x.file, y.file), order)
	})
	seen := make(map[identity]bool, len(b.group))
	for n := range b.group {
		if err := b.take(&b.group[n], seen); err != nil {
			return err
		}
	}
	b.group = b.group[:0]
	return nil
}

// take makes a row of an item, unless its event is to stay out.
func (b *blocks) take(i *item, seen map[identity]bool) error {
	e, err := wire.Decode(i.entry)
	if err != nil {
		return fmt.Errorf("%w: %w", errItem, err)
	}
	own := identity{e.ID, e.Class}
	if seen[own] {
		b.r.report.Repeated++
		return nil
	}
	seen[own] = true
	at := time.UnixMilli(i.ms).UTC()
	if b.isErased(&e, at) {
		b.r.report.Erased++
		return nil
	}
	p := pending{identity: own, ms: i.ms, key: i.key, deliveries: i.deliveries}
	if p.nobodys = at.Before(b.anonymous); p.nobodys {
		e.DropIdentity()
		e.Anonymous = false // it has nothing that could tell anybody
	} else {
		b.join(&e, i.ms)
	}
	p.row = rows.FromEvent(b.property, stream.At(at), &e)
	if i.judged {
		p.row.Touch, p.row.Origin = i.touch, ""
	}
	b.origins.fill(&p.row, i.ms)
	b.block.events = append(b.block.events, p)
	return nil
}

// isErased says whether an event is of a person who was erased. A visitor is called after one of their identifiers.
func (b *blocks) isErased(e *event.Event, at time.Time) bool {
	if b.r.Erased == nil {
		return false
	}
	ids := e.Identifiers(b.property, nil)
	if e.Person != (event.Person{}) {
		ids.List = append(ids.List, e.Person)
	}
	return b.r.Erased(ids, at)
}

// join finds out whose event it is, where nothing has told yet.
func (b *blocks) join(e *event.Event, ms int64) {
	if b.people == nil || !e.Class.Counts() || e.Anonymous || e.Person != (event.Person{}) {
		return
	}
	var buffer [12]event.Identifier
	ids := e.Identifiers(b.property, buffer[:0])
	if len(ids.List) == 0 {
		return
	}
	if person := b.people.tell(ids, ms); person != ids.Default() {
		e.Person = person
	}
}

func (b *blocks) flush() error {
	if len(b.block.events) == 0 {
		return nil
	}
	full := b.block
	b.block = block{}
	return b.to(full)
}

// monthOf numbers UTC's months.
func monthOf(ms int64) int {
	t := time.UnixMilli(ms).UTC()
	return t.Year()*100 + int(t.Month())
}
