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
	// counts and earned are those of all parts, by group.
	counts []groupCounts
	earned []*earnings
	// places are by a group's number the place of its visitors plus 1, 0 for a group whose visitors nobody asks for. visitors and
	// buyers are counts by place.
	places           []uint32
	visitors, buyers []int
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

// What a group takes: in a worker's counts, with its money, and in the answer.
const (
	groupCountBytes = 4*8 + 8
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

// tally counts the events and the money of all groups, and where there are few groups their visitors.
func (b *breaker) tally(ctx context.Context, rows columns.RowRange) error {
	size := b.grouping.size()
	for _, part := range b.splitFor(rows, size) {
		if err := b.reservation.growFor(size, groupCountBytes); err != nil {
			return err
		}
		b.parts = append(b.parts, breakPart{
			breaker: b, rows: part, counts: make([]groupCounts, size), earned: make([]*earnings, size), buffer: make([]uint16, columns.ChunkRows),
		})
	}
	if err := b.tallyAndSee(ctx, size); err != nil {
		return err
	}
	b.merge()
	return nil
}

// fewGroupsBytes is what the sets of all groups of a part may take for visitors to be noted with the counts.
const fewGroupsBytes = 4 << 20

// tallyAndSee counts events and money, and where there are few groups their visitors with them.
func (b *breaker) tallyAndSee(ctx context.Context, size int) error {
	if size*len(b.VisitorKeys)/4 > fewGroupsBytes {
		return b.each(ctx, (*breakPart).tally)
	}
	every := make([]uint32, size)
	for group := range every {
		every[group] = always
		b.places[group] = uint32(group) + 1
	}
	return b.count(ctx, func(*breakPart) distinctCounts { return distinctCounts{every, every, every, every} }, (*breakPart).tallyAndSee)
}

// merge adds up what the parts have counted. These keep their own counts, which say how long their lists get.
func (b *breaker) merge() {
	b.counts, b.earned = b.parts[0].counts, b.parts[0].earned
	if len(b.parts) == 1 {
		return
	}
	b.counts = slices.Clone(b.counts)
	for i := range b.parts[1:] {
		part := &b.parts[1+i]
		for group := range part.counts {
			for k, rows := range part.counts[group] {
				b.counts[group][k] += rows
			}
			if earned := part.earned[group]; earned != nil {
				b.earningsOf(b.earned, uint32(group)).merge(earned)
			}
		}
	}
}

// each calls visit for the kept rows of each chunk, of all parts at once.
func (b *breaker) each(ctx context.Context, visit func(*breakPart, *columns.ChunkRange, *members)) error {
	return together(len(b.parts), func(part int) error {
		p := &b.parts[part]
		return p.rows.Each(ctx, func(c columns.ChunkRange) {
			p.grouper.part(&b.grouping, &c, b.selection.rows(&c, p.buffer), func(m *members) { visit(p, &c, m) })
		})
	})
}

// earningsOf returns the money of a group.
func (b *breaker) earningsOf(earned []*earnings, group uint32) *earnings {
	e := earned[group]
	if e == nil {
		_ = b.reservation.grow(earningsBytes) // where it fails the query ends with this chunk
		e = &earnings{}
		earned[group] = e
	}
	return e
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

// order orders groups by the query's measure. Where that is their visitors these have been counted.
func (b *breaker) order(list []ordered) {
	for i := range list {
		o := &list[i]
		switch b.query.Order {
		case OrderUniqueVisitors:
			o.count = b.visitors[b.places[o.group]-1]
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

// see counts the visitors and buyers of some groups, unless that has been done.
func (b *breaker) see(ctx context.Context, list []ordered) error {
	if b.visitors != nil {
		return nil
	}
	for place, o := range list {
		b.places[o.group] = uint32(place) + 1
	}
	events, purchases := countsOf(list, b.counts)
	return b.count(ctx, func(p *breakPart) distinctCounts {
		ownEvents, ownPurchases := countsOf(list, p.counts)
		return distinctCounts{events, ownEvents, purchases, ownPurchases}
	}, (*breakPart).see)
}

// distinctCounts are the numbers of events and of purchases by a group's place, in all and in a part.
type distinctCounts struct{ events, ownEvents, purchases, ownPurchases []uint32 }

// countsOf returns the numbers of events and of purchases of some groups.
func countsOf(list []ordered, counts []groupCounts) (events, purchases []uint32) {
	for _, o := range list {
		c := &counts[o.group]
		events, purchases = append(events, uint32(c.events())), append(purchases, c[purchaseKind])
	}
	return events, purchases
}

// count visits the chunks with what it takes to note visitors, and counts these.
func (b *breaker) count(ctx context.Context, of func(*breakPart) distinctCounts, visit func(*breakPart, *columns.ChunkRange, *members)) (err error) {
	for i := range b.parts {
		p := &b.parts[i]
		counts := of(p)
		if p.visitors, err = b.newDistinct(counts.events, counts.ownEvents); err != nil {
			return err
		}
		if p.buyers, err = b.newDistinct(counts.purchases, counts.ownPurchases); err != nil {
			return err
		}
	}
	if err := b.each(ctx, visit); err != nil {
		return err
	}
	visitors, buyers := make([]distinct, len(b.parts)), make([]distinct, len(b.parts))
	for i := range b.parts {
		visitors[i], buyers[i] = b.parts[i].visitors, b.parts[i].buyers
	}
	if b.visitors, err = b.countDistinct(ctx, visitors); err != nil {
		return err
	}
	b.buyers, err = b.countDistinct(ctx, buyers)
	return err
}

// result orders the groups, counts the visitors of those that are in the answer, and returns it.
func (b *breaker) result(ctx context.Context, all Totals) (Breakdown, error) {
	list, err := b.present()
	if err != nil {
		return Breakdown{}, err
	}
	if b.query.Order == OrderUniqueVisitors {
		if err := b.see(ctx, list); err != nil {
			return Breakdown{}, err
		}
	}
	b.order(list)
	result := Breakdown{Totals: all, CompleteFrom: b.completeFrom}
	if most := b.query.Limit; most > 0 && len(list) > most {
		result.Others = b.others(list[most:])
		list = list[:most]
	}
	if err := b.reservation.growFor(len(list), groupBytes); err != nil {
		return Breakdown{}, err
	}
	if err := b.see(ctx, list); err != nil {
		return Breakdown{}, err
	}
	for _, o := range list {
		result.Groups = append(result.Groups, b.group(o.group, all.Events))
	}
	return result, nil
}

// group returns the figures of a group.
func (b *breaker) group(group uint32, all int) Group {
	c, earned, place := &b.counts[group], b.earned[group], b.places[group]-1
	if earned == nil {
		earned = &earnings{}
	}
	t := totals{
		purchases: int(c[purchaseKind]), addToCarts: int(c[addToCartKind]), pageviews: int(c[pageviewKind]), refunds: int(c[refundKind]),
		visitors: b.visitors[place], buyers: b.buyers[place], classes: columns.ClassCounts{event.Human: c.events()},
		bought: earned.bought, refunded: earned.refunded,
	}
	return Group{
		Name: b.grouping.name(group), Totals: b.figures(&t), Quantity: earned.quantity, Share: RateOf(int64(c.events()), int64(all)),
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
