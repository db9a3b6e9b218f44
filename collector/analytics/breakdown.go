package analytics

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// Breakdown returns the figures of each value of a dimension. It fails with [ErrReplaying], [ErrTooCostly], [ErrBusy] or where
// the context ends.
func (v *View) Breakdown(ctx context.Context, q BreakdownQuery) (Breakdown, error) {
	return runQuery(ctx, v, totalNames(), func(ctx context.Context, s *snapshot) (Breakdown, error) { return s.breakdown(ctx, q) })
}

func (s *snapshot) breakdown(ctx context.Context, q BreakdownQuery) (Breakdown, error) {
	f, err := s.selecting(q.Filter)
	if err != nil {
		return Breakdown{}, err
	}
	counter, err := s.newTotaller(&f)
	if err != nil {
		return Breakdown{}, err
	}
	rows := s.in(q.Range)
	all, err := counter.count(ctx, rows)
	if err != nil {
		return Breakdown{}, err
	}
	b, err := s.newBreaker(q, &f)
	if err != nil {
		return Breakdown{}, err
	}
	if err := b.tally(ctx, rows); err != nil {
		return Breakdown{}, err
	}
	return b.result(ctx, s.figures(&all))
}

// breaker parts the rows of a breakdown into groups and counts these: first the events of all groups, then the visitors
// of those that are asked for.
type breaker struct {
	*snapshot
	query     BreakdownQuery
	selection *selection
	grouping  grouping
	kinds     []rowKind
	parts     []breakPart
	// counts and earned are those of all parts.
	counts []groupCounts
	earned map[uint32]*earnings
	// places are by a group's number its place in the answer plus 1, 0 for a group whose visitors nobody asks for.
	places []uint32
}

// groupCounts are a group's numbers of rows by kind, those of humans apart in one number.
type groupCounts [8]uint32

// events is how many events of humans there are.
func (c *groupCounts) events() (count int) {
	for _, rows := range c[:humanKinds] {
		count += int(rows)
	}
	return count
}

// breakPart is what one worker counts.
type breakPart struct {
	*breaker
	rows             columns.RowRange
	counts           []groupCounts
	earned           map[uint32]*earnings
	visitors, buyers distinct

	// buffer and members are those of the chunk at hand.
	buffer  []uint16
	members members
}

// What a group takes: in a worker's counts, with its money, and in the answer.
const (
	groupCountBytes = 4 * 8
	earningsBytes   = 256
	groupBytes      = 512
)

func (s *snapshot) newBreaker(q BreakdownQuery, f *selection) (*breaker, error) {
	b := &breaker{snapshot: s, query: q, selection: f}
	var err error
	if b.grouping, err = s.grouped(q.By); err != nil {
		return nil, err
	}
	if b.kinds, err = s.kinds(); err != nil {
		return nil, err
	}
	for i, k := range b.kinds {
		b.kinds[i] = min(k, humanKinds)
	}
	if err := s.reservation.growFor(b.grouping.size(), 4); err != nil {
		return nil, err
	}
	b.places = make([]uint32, b.grouping.size())
	return b, nil
}

// tally counts the events and the money of all groups.
func (b *breaker) tally(ctx context.Context, rows columns.RowRange) error {
	size := b.grouping.size()
	for _, part := range b.splitFor(rows, size) {
		if err := b.reservation.growFor(size, groupCountBytes); err != nil {
			return err
		}
		b.parts = append(b.parts, breakPart{
			breaker: b, rows: part, counts: make([]groupCounts, size), earned: map[uint32]*earnings{}, buffer: make([]uint16, columns.ChunkRows),
		})
	}
	if err := b.each(ctx, (*breakPart).tallyChunk); err != nil {
		return err
	}
	b.counts, b.earned = b.parts[0].counts, b.parts[0].earned
	if len(b.parts) == 1 {
		return nil
	}
	// The others keep their own counts, which say how long their lists get.
	b.counts = slices.Clone(b.counts)
	for i := range b.parts[1:] {
		part := &b.parts[1+i]
		for group := range part.counts {
			for k, rows := range part.counts[group] {
				b.counts[group][k] += rows
			}
		}
		for group, earned := range part.earned {
			b.earningsOf(b.earned, group).merge(earned)
		}
	}
	return nil
}

// each calls visit for the kept rows of each chunk, of all parts at once.
func (b *breaker) each(ctx context.Context, visit func(*breakPart, *columns.ChunkRange)) error {
	return together(len(b.parts), func(part int) error {
		p := &b.parts[part]
		return p.rows.Each(ctx, func(c columns.ChunkRange) {
			kept := b.selection.rows(&c, p.buffer)
			b.grouping.members(&c, kept, &p.members)
			visit(p, &c)
		})
	})
}

// earningsOf returns the money of a group.
func (b *breaker) earningsOf(earned map[uint32]*earnings, group uint32) *earnings {
	e := earned[group]
	if e == nil {
		_ = b.reservation.grow(earningsBytes) // where it fails the query ends with this chunk
		e = &earnings{}
		earned[group] = e
	}
	return e
}

func (p *breakPart) tallyChunk(c *columns.ChunkRange) {
	rows, kinds, counts := p.members.rows, p.kinds, p.counts
	byProduct := p.grouping.by == ByProduct
	for i, group := range p.members.groups {
		row := rows[i]
		k := kinds[c.Name[row]]
		counts[group][k%8]++
		if (k == purchaseKind || k == refundKind) && (!byProduct || group == 0) {
			c.AddValue(row, p.earningsOf(p.earned, group).of(k))
		}
	}
	if byProduct {
		p.tallySales(c)
	}
}

// tallySales counts the money of products in the kept rows.
func (p *breakPart) tallySales(c *columns.ChunkRange) {
	sales, at := c.Sales(), 0
	for i, row := range p.members.rows {
		if i > 0 && row == p.members.rows[i-1] {
			continue
		}
		for at < len(sales) && sales[at].Row < row {
			at++
		}
		for ; at < len(sales) && sales[at].Row == row; at++ {
			if k := p.kinds[c.Name[row]]; k < humanKinds {
				p.earningsOf(p.earned, sales[at].Product).sell(k, c.Currency[row], &sales[at])
			}
		}
	}
}

// seeChunk notes the visitors of the groups that are asked for.
func (p *breakPart) seeChunk(c *columns.ChunkRange) {
	rows, kinds, places := p.members.rows, p.kinds, p.places
	for i, group := range p.members.groups {
		place := places[group]
		if place == 0 {
			continue
		}
		row := rows[i]
		visitor := c.Visitor[row]
		p.visitors.add(place-1, visitor)
		if kinds[c.Name[row]] == purchaseKind {
			p.buyers.add(place-1, visitor)
		}
	}
}

// ordered is a group with what it is ordered by.
type ordered struct {
	group   uint32
	count   int
	revenue event.Sum
}

// present returns the groups that have events, by number.
func (b *breaker) present() ([]ordered, error) {
	var list []ordered
	for group := range b.counts {
		if b.counts[group].events() > 0 {
			list = append(list, ordered{group: uint32(group)})
		}
	}
	return list, b.reservation.growFor(cap(list), 64)
}

// order orders groups by the query's measure; visitors are the groups' in their order, where it is that.
func (b *breaker) order(list []ordered, visitors []int) {
	for i := range list {
		o := &list[i]
		switch b.query.Order {
		case OrderUniqueVisitors:
			o.count = visitors[i]
		case OrderPurchases:
			o.count = int(b.counts[o.group][purchaseKind])
		case OrderRevenue:
			o.revenue = b.revenueOf(o.group)
		default:
			o.count = b.counts[o.group].events()
		}
	}
	slices.SortFunc(list, func(x, y ordered) int {
		return cmp.Or(cmp.Compare(y.count, x.count), y.revenue.Compare(x.revenue), strings.Compare(b.grouping.name(x.group), b.grouping.name(y.group)))
	})
}

// revenueOf is a group's revenue in the property's currency.
func (b *breaker) revenueOf(group uint32) event.Sum {
	earned := b.earned[group]
	if earned == nil {
		return event.Sum{}
	}
	return earned.bought.In(b.reporting).Total.Minus(earned.refunded.In(b.reporting).Total)
}

// see returns how many visitors and how many buyers some groups have.
func (b *breaker) see(ctx context.Context, list []ordered) (visitors, buyers []int, err error) {
	for place, o := range list {
		b.places[o.group] = uint32(place) + 1
	}
	events, purchases := b.countsOf(list, b.counts)
	for i := range b.parts {
		p := &b.parts[i]
		ownEvents, ownPurchases := b.countsOf(list, p.counts)
		if p.visitors, err = b.newDistinct(events, ownEvents); err != nil {
			return nil, nil, err
		}
		if p.buyers, err = b.newDistinct(purchases, ownPurchases); err != nil {
			return nil, nil, err
		}
	}
	if err := b.each(ctx, (*breakPart).seeChunk); err != nil {
		return nil, nil, err
	}
	seen, bought := make([]distinct, len(b.parts)), make([]distinct, len(b.parts))
	for i := range b.parts {
		seen[i], bought[i] = b.parts[i].visitors, b.parts[i].buyers
	}
	if visitors, err = b.countDistinct(ctx, seen); err != nil {
		return nil, nil, err
	}
	buyers, err = b.countDistinct(ctx, bought)
	return visitors, buyers, err
}

// countsOf returns the numbers of events and of purchases of some groups.
func (b *breaker) countsOf(list []ordered, counts []groupCounts) (events, purchases []uint32) {
	for _, o := range list {
		c := &counts[o.group]
		events, purchases = append(events, uint32(c.events())), append(purchases, c[purchaseKind])
	}
	return events, purchases
}

// result orders the groups, counts the visitors of those that are in the answer, and returns it.
func (b *breaker) result(ctx context.Context, all Totals) (Breakdown, error) {
	list, err := b.present()
	if err != nil {
		return Breakdown{}, err
	}
	if b.query.Order == OrderUniqueVisitors {
		visitors, _, err := b.see(ctx, list)
		if err != nil {
			return Breakdown{}, err
		}
		b.order(list, visitors)
		clear(b.places)
	} else {
		b.order(list, nil)
	}
	result := Breakdown{Totals: all, CompleteFrom: b.completeFrom}
	if most := b.query.Limit; most > 0 && len(list) > most {
		result.Others = b.others(list[most:])
		list = list[:most]
	}
	if err := b.reservation.growFor(len(list), groupBytes); err != nil {
		return Breakdown{}, err
	}
	visitors, buyers, err := b.see(ctx, list)
	if err != nil {
		return Breakdown{}, err
	}
	for place, o := range list {
		result.Groups = append(result.Groups, b.group(o.group, visitors[place], buyers[place], all.Events))
	}
	return result, nil
}

// group returns the figures of a group.
func (b *breaker) group(group uint32, visitors, buyers, all int) Group {
	c, earned := &b.counts[group], b.earned[group]
	if earned == nil {
		earned = &earnings{}
	}
	t := totals{
		purchases: int(c[purchaseKind]), addToCarts: int(c[addToCartKind]), pageviews: int(c[pageviewKind]), refunds: int(c[refundKind]),
		visitors: visitors, buyers: buyers, classes: columns.ClassCounts{event.Human: c.events()},
		bought: earned.bought, refunded: earned.refunded,
	}
	return Group{
		Name: b.grouping.name(group), Totals: b.figures(&t), Quantity: earned.quantity, Share: rateOf(int64(c.events()), int64(all)),
	}
}

// others takes groups together.
func (b *breaker) others(list []ordered) *OtherGroups {
	others := &OtherGroups{Groups: len(list)}
	for _, o := range list {
		others.Events += b.counts[o.group].events()
		others.Purchases += int(b.counts[o.group][purchaseKind])
		others.Revenue.Merge(b.revenueOf(o.group))
	}
	return others
}
