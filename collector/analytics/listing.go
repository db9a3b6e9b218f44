package analytics

import (
	"context"
	"slices"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// Listing returns a page of the events of a range. It fails with [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the
// context ends.
func (v *View) Listing(ctx context.Context, q ListingQuery) (Page, error) {
	return runQuery(ctx, v, q.names(), func(ctx context.Context, s *snapshot) (Page, error) { return s.listing(ctx, q) })
}

// names returns the names that the listing keeps, of every class that it shows.
func (q *ListingQuery) names() []columns.Name {
	if !q.AnyClass {
		return namesOf(q.Class, q.Events...)
	}
	var names []columns.Name
	for class := range event.Classes {
		names = append(names, namesOf(event.Class(class), q.Events...)...)
	}
	return names
}

func (s *snapshot) listing(ctx context.Context, q ListingQuery) (Page, error) {
	rows := s.in(q.Range)
	l := newListingPass(s, q)
	if len(q.Visitors) > 0 {
		var err error
		if l.trail, err = s.trail(ctx, rows, q.Visitors); err != nil {
			return Page{}, err
		}
	}
	page := Page{CompleteFrom: s.completeFrom}
	left := s.following(rows, q)
	limit := min(q.Limit, left.Len())
	if err := l.walk(ctx, left, func(c *columns.Chunk, row int) (more bool) { return s.appendRecord(&page, c, row, limit) }); err != nil {
		return Page{}, err
	}
	if !q.Count {
		return page, nil
	}
	total := len(page.Records)
	if q.After != 0 || page.Next != 0 {
		total = 0
		if err := l.walk(ctx, rows, func(*columns.Chunk, int) bool { total++; return true }); err != nil {
			return Page{}, err
		}
	}
	page.Total = &total
	return page, nil
}

// following returns those of the rows that follow the query's cursor in the listing's order.
func (s *snapshot) following(rows columns.RowRange, q ListingQuery) columns.RowRange {
	if q.After == 0 {
		return rows
	}
	at := rows.Search(q.After)
	if !q.Ascending {
		rows.End = at
		return rows
	}
	if at < rows.End {
		if c, row := rows.At(at); c.Position[row] == q.After {
			at++
		}
	}
	rows.First = at
	return rows
}

// appendRecord appends a row to a page. Where there are more than the page takes it notes where the next one begins, and
// says that no more are needed.
func (s *snapshot) appendRecord(page *Page, c *columns.Chunk, row, limit int) (more bool) {
	if len(page.Records) == limit {
		page.Next = page.Records[limit-1].Position
		return false
	}
	if page.Records == nil {
		page.Records = make([]Record, 0, limit)
	}
	page.Records = append(page.Records, s.record(c, row))
	return true
}

// listingPass goes through the rows that a listing shows.
type listingPass struct {
	names     nameFilter
	ids       *columns.IDs
	ascending bool
	// trail has the ordinals of the visitors' rows in stream order; it counts where somebody is asked for.
	trail       []uint64
	hasVisitors bool
	platforms   []string
	// statuses are those that are asked for, nil where any will do.
	statuses map[stream.Status]bool
	lists    []columns.PlatformList
	// places remembers per list of platforms where those stand in it that are asked for.
	places map[uint16][]int
	// buffer takes candidates, matching those of them that have the ids.
	buffer, matching []uint16
}

func newListingPass(s *snapshot, q ListingQuery) *listingPass {
	l := &listingPass{
		names: s.named(q.Class, q.AnyClass, len(q.Events) > 0), ids: columns.NewIDs(q.EventIDs, q.OrderIDs), ascending: q.Ascending,
		hasVisitors: len(q.Visitors) > 0, platforms: q.Platforms, lists: s.Platforms, places: map[uint16][]int{},
		buffer: make([]uint16, 0, columns.ChunkRows),
	}
	if len(q.Statuses) > 0 {
		l.statuses = map[stream.Status]bool{}
		for _, status := range q.Statuses {
			l.statuses[status] = true
		}
	}
	return l
}

// walk calls show for the rows that are shown, in the listing's order, with their chunk's lock held, as long as it wants more.
func (l *listingPass) walk(ctx context.Context, rows columns.RowRange, show func(*columns.Chunk, int) (more bool)) error {
	take := rows.TakeLast
	if l.ascending {
		take = rows.TakeFirst
	}
	for more := true; more && rows.Len() > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := take()
		if found := l.candidates(&c); len(found) > 0 {
			more = l.showThose(c.Chunk, found, show)
		}
	}
	return ctx.Err()
}

func (l *listingPass) showThose(c *columns.Chunk, rows []uint16, show func(*columns.Chunk, int) (more bool)) (more bool) {
	c.Lock()
	defer c.Unlock()
	if !l.ids.All() {
		l.matching = c.WithIDs(rows, l.ids, l.matching[:0])
		rows = l.matching
	}
	for i := range rows {
		if !l.ascending {
			i = len(rows) - 1 - i
		}
		if row := int(rows[i]); l.keeps(c, row) && !show(c, row) {
			return false
		}
	}
	return true
}

// candidates returns those rows of a chunk whose names and visitors are asked for, in stream order.
func (l *listingPass) candidates(c *columns.ChunkRange) []uint16 {
	if !l.hasVisitors {
		return l.names.rows(c, l.buffer)
	}
	first, _ := slices.BinarySearch(l.trail, c.Ordinal)
	found := l.buffer[:0]
	for _, ordinal := range l.trail[first:] {
		row := c.From + int(ordinal-c.Ordinal)
		if row >= c.To {
			break
		}
		if l.names.keeps(c.Name[row]) {
			found = append(found, uint16(row))
		}
	}
	return found
}

// keeps says whether a row that has the names, visitors and ids is shown. The caller holds the chunk's lock.
func (l *listingPass) keeps(c *columns.Chunk, row int) bool {
	if len(l.platforms) == 0 && l.statuses == nil {
		return true
	}
	return slices.ContainsFunc(l.placesIn(c.Platforms[row]), func(place int) bool {
		return l.statuses == nil || l.statuses[c.Deliveries[place][row].Status()]
	})
}

// trailBytes is about what an ordinal of a trail takes, the room that it grows by included.
const trailBytes = 16

// trail returns the ordinals of those of the rows that belong to some visitors, in stream order. It follows each of them back
// from the newest event.
func (s *snapshot) trail(ctx context.Context, rows columns.RowRange, visitors []string) ([]uint64, error) {
	var found []uint64
	steps := 0
	for _, newest := range s.newestOf(visitors) {
		for at, more := newest, s.IsSomebodys(newest); more && at >= rows.First; at, more = s.Previous(at) {
			if steps++; steps%columns.ChunkRows == 1 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if at >= rows.End {
				continue
			}
			if len(found)%columns.ChunkRows == 0 {
				if err := s.reservation.growFor(columns.ChunkRows, trailBytes); err != nil {
					return nil, err
				}
			}
			found = append(found, at)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// newestOf returns the ordinals of the newest events of those of some visitors who have any.
func (s *snapshot) newestOf(visitors []string) (newest []uint64) {
	s.lookUp(func(table *columns.Table) {
		for _, id := range visitors {
			person, isOne := event.ParsePerson(id)
			if !isOne {
				continue
			}
			if ordinal, found := table.NewestOf(person, s.End); found {
				newest = append(newest, ordinal)
			}
		}
	})
	return newest
}

// placesIn returns where in a list of platforms those stand that are asked for.
func (l *listingPass) placesIn(list uint16) []int {
	places, known := l.places[list]
	if known || l.lists[list] == "" {
		return places
	}
	for place, name := range l.lists[list].All() {
		if len(l.platforms) == 0 || slices.Contains(l.platforms, name) {
			places = append(places, place)
		}
	}
	l.places[list] = places
	return places
}

// record returns the row as the listing shows it. The caller holds the chunk's lock.
func (s *snapshot) record(c *columns.Chunk, row int) Record {
	received, name := c.Position[row].Time(), s.Names[c.Name[row]]
	r := Record{
		Position: c.Position[row], Event: name.Event, Class: name.Class, ReceivedAt: received,
		Currency: s.Currencies[c.Currency[row]], Touch: s.Touches[c.Touch[row]],
		Anonymous: c.Position[row] < s.NobodyBefore,
	}
	visitor := c.Visitor[row]
	r.EventID, r.OrderID, r.ClientID = c.IDs(row, s.ClientIDs[visitor])
	if value := c.Value[row]; value != columns.NoValue {
		r.Value = &value
	}
	if visitor != 0 {
		r.Visitor = s.VisitorKeys[visitor].String()
	}
	list := s.Platforms[c.Platforms[row]]
	if count := list.Count(); count > 0 {
		r.Deliveries = make([]Delivery, 0, count)
	}
	for place, platform := range list.All() {
		r.Deliveries = append(r.Deliveries, DeliveryOf(c.Deliveries[place][row], platform, s.Reason(c.Deliveries[place][row]), received))
	}
	return r
}
